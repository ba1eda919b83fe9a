//! What the activity tracer saw of each sample, and whether it belongs there.

use serde::{Deserialize, Serialize};

/// One kernel, copy or fill on the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Kernel symbol, or `memcpy` / `memset`.
    pub name: String,
    /// The tracer's number of its stream.
    pub stream: u32,
    /// A node of a graph, which runs where the graph was launched, whatever its stream.
    pub in_graph: bool,
    /// Start, in ns of the tracer's clock.
    pub start_ns: u64,
    /// End, in ns of the tracer's clock.
    pub end_ns: u64,
}

/// Where work was that is not in the timed region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// On a stream that the work was not given, at any time.
    OtherStream,
    /// On the given stream, before or after the timed region. Untimed runs that the harness asks for
    /// are there too.
    OtherTime,
}

/// The activities of one sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Those between the marks, by start.
    pub activities: Vec<Activity>,
    /// All others since the sample before that are not the harness's own.
    pub outside: Vec<(Place, Activity)>,
}

impl Trace {
    /// From the start of the first activity in the timed region to the end of the last.
    pub fn activity_us(&self) -> Option<f64> {
        let start_ns = self.activities.iter().map(|each| each.start_ns).min()?;
        let end_ns = self.activities.iter().map(|each| each.end_ns).max()?;
        Some((end_ns - start_ns) as f64 / 1e3)
    }
}

/// The harness's kernels right before the first event and right after the second.
#[cfg(any(feature = "cuda", test))]
const MARKS: [&str; 2] = ["stamp_head_kernel", "stamp_tail_kernel"];

/// Splits records, sorted by start, into the samples between whose marks they are. The harness's own
/// kernels start with `own_prefix`, and its copies and fills are on the stream of the marks.
#[cfg(any(feature = "cuda", test))]
pub(crate) fn by_sample(
    records: Vec<Activity>,
    own_prefix: &str,
    samples: usize,
) -> Result<Vec<Trace>, String> {
    let marks = |mark: &str| -> Vec<(u32, u64, u64)> {
        let marks = records.iter().filter(|record| is(record, own_prefix, mark));
        let edges = marks.map(|record| (record.stream, record.start_ns, record.end_ns));
        edges.collect()
    };
    let [heads, tails] = MARKS.map(marks);
    if heads.len() != samples || tails.len() != samples {
        return Err(format!(
            "the tracer saw {} starts and {} ends of {samples} samples",
            heads.len(),
            tails.len()
        ));
    }
    let mut traces = vec![Trace::default(); samples];
    for record in records.into_iter().filter(|_| samples > 0) {
        // The sample it comes before the end of; what comes after the last one belongs to it too.
        let sample = tails.iter().position(|tail| record.start_ns < tail.1);
        let sample = sample.unwrap_or(samples - 1);
        let ((stream, _, begin_ns), (_, end_ns, _)) = (heads[sample], tails[sample]);
        let timed = (begin_ns..end_ns).contains(&record.start_ns);
        let given = record.stream == stream;
        let prepares = ["memcpy", "memset"].contains(&&*record.name);
        if given && !timed && (prepares || record.name.starts_with(own_prefix)) {
            continue;
        }
        let trace = &mut traces[sample];
        if !given && !record.in_graph {
            trace.outside.push((Place::OtherStream, record));
        } else if !timed {
            trace.outside.push((Place::OtherTime, record));
        } else {
            trace.activities.push(record);
        }
    }
    Ok(traces)
}

#[cfg(any(feature = "cuda", test))]
fn is(record: &Activity, own_prefix: &str, mark: &str) -> bool {
    record.name.starts_with(own_prefix) && record.name.contains(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "_ZN14harness_device";
    const STREAM: u32 = 13;

    fn activity(name: &str, start_ns: u64, end_ns: u64) -> Activity {
        Activity {
            name: name.into(),
            stream: STREAM,
            in_graph: false,
            start_ns,
            end_ns,
        }
    }

    /// The harness's part of a sample whose timed region is from 220 to 350 after `at`.
    fn sample(at: u64) -> Vec<Activity> {
        let own =
            |kernel: &str, start, end| activity(&format!("{OWN}{kernel}"), at + start, at + end);
        vec![
            activity("memset", at, at + 5),
            own("18flush_write_kernel", 5, 10),
            own("11hold_kernel", 10, 90),
            own("17stamp_head_kernel", 210, 220),
            own("17stamp_tail_kernel", 350, 400),
        ]
    }

    fn traces(mut records: Vec<Activity>, samples: usize) -> Vec<Trace> {
        records.sort_by_key(|record| record.start_ns);
        by_sample(records, OWN, samples).unwrap()
    }

    #[test]
    fn work_belongs_to_the_sample_around_it() {
        let mut seen = [sample(0), sample(1000)].concat();
        let first = activity("work", 230, 330);
        let second = [activity("work", 1230, 1330), activity("memcpy", 1330, 1340)];
        seen.push(first.clone());
        seen.extend(second.clone());
        let traces = traces(seen, 2);
        assert_eq!(traces[0].activities, [first]);
        assert_eq!(traces[1].activities, second);
        assert!(traces.iter().all(|trace| trace.outside.is_empty()));
        assert_eq!(traces[1].activity_us(), Some(0.11));
    }

    #[test]
    fn work_elsewhere_is_named_by_its_place() {
        let on_side = |start, end| Activity {
            stream: 14,
            ..activity("side", start, end)
        };
        let early = on_side(20, 80);
        let within = on_side(240, 250);
        // A copy between samples is the harness's, unless it is on another stream.
        let copy = Activity {
            name: "memcpy".into(),
            ..on_side(990, 995)
        };
        let (warm, after) = (activity("warm", 100, 200), activity("work", 1500, 1600));
        let mut seen = [sample(0), sample(1000)].concat();
        let strays = [&early, &within, &copy, &warm, &after];
        seen.extend(strays.map(Activity::clone));
        let traces = traces(seen, 2);
        let outside = |trace: &Trace| trace.outside.clone();
        assert_eq!(
            outside(&traces[0]),
            [
                (Place::OtherStream, early),
                (Place::OtherTime, warm),
                (Place::OtherStream, within),
            ]
        );
        assert_eq!(
            outside(&traces[1]),
            [(Place::OtherStream, copy), (Place::OtherTime, after)]
        );
        assert_eq!(traces[0].activity_us(), None);
    }

    #[test]
    fn nodes_of_a_graph_may_use_any_stream_in_the_timed_region_only() {
        let node = |start, end| Activity {
            stream: 15,
            in_graph: true,
            ..activity("node", start, end)
        };
        let traces = traces(
            [sample(0), vec![node(150, 190), node(230, 240)]].concat(),
            1,
        );
        assert_eq!(traces[0].activities, [node(230, 240)]);
        assert_eq!(traces[0].outside, [(Place::OtherTime, node(150, 190))]);
    }

    #[test]
    fn a_lost_mark_is_an_error() {
        let lost = by_sample(sample(0), OWN, 2).unwrap_err();
        assert!(lost.contains("1 starts and 1 ends of 2"), "{lost}");
        let nothing = by_sample(vec![activity("memset", 0, 5)], OWN, 0);
        assert_eq!(nothing, Ok(Vec::new()));
    }
}
