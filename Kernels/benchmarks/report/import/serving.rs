//! A trace of requests as a suite: some steps of the system that would have served it, evenly chosen.

use super::replay::{replay, Event, Room};
use super::requests::read_requests;
use super::strata::Strata;
use crate::ReportingError;
use record::{count_text, is_plain, GivenWorkload, WorkloadFile, WORKLOADS_VERSION};
use serde_json::{json, Map, Value};
use std::path::Path;

const BATCH_MAX: usize = 1024;
const SAMPLES_MAX: u64 = 1000;
const STEP_MAX_MS: f64 = 1e6;
const SUITE_MAX: usize = 100;

/// The kernel whose shapes are asked for, and the heads of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceShape {
    Decode([usize; 3]),
    Prefill([usize; 3]),
    MlaDecode(usize),
}

impl TraceShape {
    /// `bench` is `decode`, `prefill` or `mla_decode`.
    pub fn parse(bench: &str, heads: &str) -> Result<TraceShape, ReportingError> {
        let sizes: Option<Vec<usize>> = heads
            .split('x')
            .map(|size| {
                size.parse()
                    .ok()
                    .filter(|size| (1..=1 << 16).contains(size))
            })
            .collect();
        let wanted = match (bench, sizes.as_deref()) {
            ("mla_decode", Some(&[heads])) => return Ok(TraceShape::MlaDecode(heads)),
            ("mla_decode", _) => "the number of heads, such as 128",
            (_, Some(&[heads, kv_heads, head_dim])) if heads % kv_heads == 0 => {
                let sizes = [heads, kv_heads, head_dim];
                return match bench {
                    "decode" => Ok(TraceShape::Decode(sizes)),
                    "prefill" => Ok(TraceShape::Prefill(sizes)),
                    other => Err(ReportingError::Usage(format!(
                        "'{other}' is none of decode, prefill and mla_decode"
                    ))),
                };
            }
            _ => "heads, KV heads and elements of a head, such as 32x8x128, the first a multiple of the second",
        };
        Err(ReportingError::Usage(format!(
            "--heads {heads}: expected {wanted}"
        )))
    }

    fn bench(self) -> &'static str {
        match self {
            TraceShape::Decode(_) => "bench_decode",
            TraceShape::Prefill(_) => "bench_prefill",
            TraceShape::MlaDecode(_) => "bench_mla_decode",
        }
    }

    fn members(self, lengths: &[u64]) -> Map<String, Value> {
        let members = match self {
            TraceShape::Decode([heads, kv_heads, head_dim]) => json!({"lengths": lengths,
                "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}),
            TraceShape::Prefill([heads, kv_heads, head_dim]) => json!({"q_lens": lengths,
                "kv_lens": lengths, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim,
                "causal": true}),
            TraceShape::MlaDecode(heads) => json!({"lengths": lengths, "heads": heads}),
        };
        let Value::Object(members) = members else {
            unreachable!("a shape is an object");
        };
        members
    }
}

#[derive(Debug, Clone, Copy)]
pub struct TraceOptions {
    pub shape: TraceShape,
    pub max_batch: usize,
    pub samples: u64,
    pub step_ms: f64,
    /// Tokens of prompts that enter in one step; none is no limit.
    pub max_prefill_tokens: Option<u64>,
}

impl TraceOptions {
    fn room(&self) -> Result<Room, ReportingError> {
        let wrong = |option: &str, most: f64| {
            Err(ReportingError::Usage(format!(
                "--{option} must be above 0 and at most {most}"
            )))
        };
        if !(1..=BATCH_MAX).contains(&self.max_batch) {
            return wrong("max-batch", BATCH_MAX as f64);
        }
        if !(1..=SAMPLES_MAX).contains(&self.samples) {
            return wrong("samples", SAMPLES_MAX as f64);
        }
        if !(0.001..=STEP_MAX_MS).contains(&self.step_ms) {
            return wrong("step-ms", STEP_MAX_MS);
        }
        Ok(Room {
            batch: self.max_batch,
            prefill_tokens: self.max_prefill_tokens.unwrap_or(u64::MAX),
            step_us: (self.step_ms * 1000.0) as u64,
        })
    }
}

/// The suite of a trace; its name is that of the file.
pub fn import_trace(
    path: &Path,
    text: &str,
    options: &TraceOptions,
) -> Result<WorkloadFile, ReportingError> {
    let room = options.room()?;
    let requests = read_requests(text, &path.display().to_string())?;
    // The steps of the kind asked for, counted, then visited.
    let prefill = matches!(options.shape, TraceShape::Prefill(_));
    let mut total = 0;
    replay(&requests, &room, |event| {
        total += match event {
            Event::Prefill(_) => u64::from(prefill),
            Event::Decode(span) => span.steps * u64::from(!prefill),
        }
    });
    if total == 0 {
        return Err(ReportingError::input(
            path.display(),
            "no request decodes: each has one token of output at most",
        ));
    }
    let mut chosen = Strata::new(total, options.samples).peekable();
    let mut seen = 0;
    let mut steps: Vec<Sample> = Vec::new();
    replay(&requests, &room, |event| match event {
        Event::Prefill(prompts) if prefill => {
            if let Some((step, weight)) = chosen.next_if(|(step, _)| *step == seen) {
                add(&mut steps, prompts.to_vec(), step, weight);
            }
            seen += 1;
        }
        Event::Decode(span) if !prefill => {
            while let Some((step, weight)) = chosen.next_if(|(step, _)| *step < seen + span.steps) {
                add(&mut steps, span.lengths(step - seen), step, weight);
            }
            seen += span.steps;
        }
        _ => {}
    });
    let name = |name: Option<&std::ffi::OsStr>| -> String {
        let name = name.unwrap_or_default().to_string_lossy();
        name.chars()
            .filter(|c| is_plain(*c))
            .take(SUITE_MAX)
            .collect()
    };
    let rule = format!(
        "of {total}, {} by continuous batching of at most {} in steps of {} ms",
        count_text(requests.len(), "request"),
        options.max_batch,
        options.step_ms
    );
    let kind = if prefill { "prefill" } else { "decode" };
    let workload = |sample: Sample| GivenWorkload {
        name: format!("step{}_b{}", sample.step, sample.lengths.len()),
        op: None,
        shape: options.shape.members(&sample.lengths),
        provenance: format!(
            "{}: {kind} step {} {rule}",
            name(path.file_name()),
            sample.step
        ),
        weight: Some(sample.weight as f64),
    };
    Ok(WorkloadFile {
        workloads_version: WORKLOADS_VERSION,
        bench: options.shape.bench().to_owned(),
        suite: name(path.file_stem()),
        workloads: steps.into_iter().map(workload).collect(),
    })
}

struct Sample {
    lengths: Vec<u64>,
    step: u64,
    /// The steps that it stands for.
    weight: u64,
}

/// Equal batches are one workload.
fn add(samples: &mut Vec<Sample>, lengths: Vec<u64>, step: u64, weight: u64) {
    match samples.iter_mut().find(|known| known.lengths == lengths) {
        Some(known) => known.weight += weight,
        None => samples.push(Sample {
            lengths,
            step,
            weight,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: TraceOptions = TraceOptions {
        shape: TraceShape::Decode([32, 8, 128]),
        max_batch: 4,
        samples: 3,
        step_ms: 10.0,
        max_prefill_tokens: None,
    };

    const TRACE: &str = "{\"timestamp\": 0, \"input_length\": 100, \"output_length\": 7}\n\
                         {\"timestamp\": 30, \"input_length\": 50, \"output_length\": 4}\n";

    fn imported(options: &TraceOptions) -> Result<WorkloadFile, ReportingError> {
        import_trace(Path::new("a/trace.jsonl"), TRACE, options)
    }

    #[test]
    fn samples_stand_for_all_steps() {
        // Step 0 prefills 100; steps 1 to 6 decode it, with 50 in steps 4 to 6.
        let file = imported(&OPTIONS).unwrap();
        assert_eq!((&*file.bench, &*file.suite), ("bench_decode", "trace"));
        let shapes: Vec<&Value> = file
            .workloads
            .iter()
            .map(|one| &one.shape["lengths"])
            .collect();
        assert_eq!(
            shapes,
            [&json!([102]), &json!([104, 51]), &json!([106, 53])]
        );
        let weights: Vec<f64> = file.workloads.iter().filter_map(|one| one.weight).collect();
        assert_eq!(weights, [2.0, 2.0, 2.0]);
        assert_eq!(
            file.workloads[1].provenance,
            "trace.jsonl: decode step 3 of 6, 2 requests by continuous batching of at most 4 in \
             steps of 10 ms"
        );
        let text = file.to_json().unwrap();
        assert_eq!(
            imported(&OPTIONS).unwrap().to_json().unwrap(),
            text,
            "deterministic"
        );
    }

    #[test]
    fn prompts_that_enter_together_are_a_prefill() {
        let options = TraceOptions {
            shape: TraceShape::parse("prefill", "32x8x128").unwrap(),
            ..OPTIONS
        };
        let file = imported(&options).unwrap();
        assert_eq!(file.workloads.len(), 2);
        let expected = json!({"q_lens": [50], "kv_lens": [50], "heads": 32, "kv_heads": 8,
            "head_dim": 128, "causal": true});
        assert_eq!(Value::from(file.workloads[1].shape.clone()), expected);
        let mla = TraceOptions {
            shape: TraceShape::parse("mla_decode", "16").unwrap(),
            ..OPTIONS
        };
        let shape = imported(&mla).unwrap().workloads[0].shape.clone();
        assert_eq!(Value::from(shape), json!({"lengths": [102], "heads": 16}));
    }

    #[test]
    fn wrong_options_are_refused_by_a_sentence() {
        for (bench, heads, why) in [
            ("decode", "32", "such as 32x8x128"),
            ("decode", "32x5x128", "multiple"),
            ("decode", "32x0x128", "such as"),
            ("prefill", "axbxc", "such as"),
            ("mla_decode", "32x8x128", "such as 128"),
            ("norms", "32x8x128", "'norms' is none of"),
        ] {
            let told = TraceShape::parse(bench, heads).unwrap_err().to_string();
            assert!(told.contains(why), "{told}");
        }
        let refused = |options: TraceOptions| imported(&options).unwrap_err().to_string();
        let told = refused(TraceOptions {
            max_batch: 5000,
            ..OPTIONS
        });
        assert_eq!(told, "--max-batch must be above 0 and at most 1024");
        assert!(refused(TraceOptions {
            samples: 0,
            ..OPTIONS
        })
        .contains("--samples"));
        assert!(refused(TraceOptions {
            step_ms: f64::NAN,
            ..OPTIONS
        })
        .contains("--step-ms"));
        let line = "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}";
        let told = import_trace(Path::new("t"), line, &OPTIONS).unwrap_err();
        assert_eq!(
            told.to_string(),
            "t: no request decodes: each has one token of output at most"
        );
    }
}
