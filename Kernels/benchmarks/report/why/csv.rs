//! What `ncu --csv` prints, one line per kernel and metric, as one profile of all kernels of a range.

use std::collections::BTreeMap;

/// The metrics of a range's kernels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    pub range: String,
    pub kernels: usize,
    /// In ncu's order: name, unit, and the value for all kernels.
    metrics: Vec<(String, String, f64)>,
}

impl Profile {
    pub fn metrics(&self) -> impl Iterator<Item = (&str, &str, f64)> {
        self.metrics
            .iter()
            .map(|(name, unit, value)| (&**name, &**unit, *value))
    }

    pub fn value(&self, metric: &str) -> Option<f64> {
        self.metrics()
            .find(|(name, ..)| *name == metric)
            .map(|(.., value)| value)
    }
}

const COLUMNS: [&str; 5] = [
    "ID",
    "Kernel Name",
    "Metric Name",
    "Metric Unit",
    "Metric Value",
];
/// What ncu calls a kernel's time.
const TIME: &str = "Duration";

/// A kernel's metrics by name, with their units.
type Kernel = Vec<(String, String, f64)>;

/// Reads ncu's output, which may begin with lines of the profiled program. ncu puts a kernel's range before its name,
/// with a slash between. Profiles are in order of launch.
pub fn read_csv(text: &str) -> Result<Vec<Profile>, String> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("\"ID\","));
    let header = fields(lines.next().ok_or("it printed no table")?, usize::MAX)?;
    let place = |column: &str| header.iter().position(|name| name == column);
    let mut places = [0; COLUMNS.len()];
    for (slot, column) in places.iter_mut().zip(COLUMNS) {
        *slot = place(column).ok_or(format!("the table has no column '{column}'"))?;
    }
    // What comes after is advice, whose prose has quotes of its own.
    let needed = places.iter().max().map_or(0, |last| last + 1);
    let mut kernels: BTreeMap<u64, (String, Kernel)> = BTreeMap::new();
    for line in lines.filter(|line| line.starts_with('"')) {
        let fields = fields(line, needed)?;
        let field = |index: usize| fields.get(places[index]).map_or("", String::as_str);
        let id = field(0)
            .parse()
            .map_err(|_| format!("'{}' is not a kernel's number", field(0)))?;
        let range = || {
            let name = field(1);
            let range = name.split_once('/').map_or(name, |(range, _)| range);
            (range.to_owned(), Vec::new())
        };
        let (_, kernel) = kernels.entry(id).or_insert_with(range);
        // Advice has no metric, and some metrics are words.
        let number = field(4).replace(',', "").parse::<f64>();
        if let (false, Ok(value)) = (field(2).is_empty(), number) {
            if value.is_finite() && !kernel.iter().any(|(name, ..)| name == field(2)) {
                kernel.push((field(2).to_owned(), field(3).to_owned(), value));
            }
        }
    }
    let mut of_range: Vec<(String, Vec<Kernel>)> = Vec::new();
    for (range, kernel) in kernels.into_values() {
        match of_range.iter_mut().find(|(other, _)| *other == range) {
            Some((_, all)) => all.push(kernel),
            None => of_range.push((range, vec![kernel])),
        }
    }
    match of_range.is_empty() {
        true => Err("no kernel was profiled".to_owned()),
        false => Ok(of_range.into_iter().map(profile_of).collect()),
    }
}

fn profile_of((range, kernels): (String, Vec<Kernel>)) -> Profile {
    let metrics = kernels[0]
        .iter()
        .map(|(name, unit, _)| (name.clone(), unit.clone(), combined(&kernels, name, unit)));
    Profile {
        metrics: metrics.collect(),
        range,
        kernels: kernels.len(),
    }
}

/// A metric of all kernels together: amounts add up; shares and rates are means, weighted by time.
fn combined(kernels: &[Kernel], name: &str, unit: &str) -> f64 {
    let value = |kernel: &Kernel, name: &str| {
        kernel
            .iter()
            .find(|(other, ..)| other == name)
            .map(|(.., value)| *value)
    };
    let adds = [
        "ns", "nsecond", "us", "usecond", "byte", "cycle", "inst", "block", "thread",
    ]
    .contains(&unit);
    if adds {
        return kernels
            .iter()
            .filter_map(|kernel| value(kernel, name))
            .sum();
    }
    let weighted = kernels
        .iter()
        .filter_map(|kernel| Some((value(kernel, name)?, value(kernel, TIME).unwrap_or(1.0))));
    let (sum, weights) = weighted.fold((0.0, 0.0), |(sum, weights), (value, weight)| {
        (sum + value * weight, weights + weight)
    });
    if weights > 0.0 {
        sum / weights
    } else {
        0.0
    }
}

/// The first fields of a line, at most `most`: all in quotes, a quote inside doubled.
fn fields(line: &str, most: usize) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    let mut characters = line.trim_end().chars().peekable();
    loop {
        if characters.next() != Some('"') {
            return Err("a line is not in ncu's form".to_owned());
        }
        let mut field = String::new();
        loop {
            match characters.next() {
                Some('"') if characters.next_if_eq(&'"').is_some() => field.push('"'),
                Some('"') => break,
                Some(other) => field.push(other),
                None => return Err("a line ends inside a field".to_owned()),
            }
        }
        fields.push(field);
        if fields.len() == most {
            return Ok(fields);
        }
        match characters.next() {
            Some(',') => {}
            None => return Ok(fields),
            Some(_) => return Err("a line is not in ncu's form".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"==PROF== Connected
rmsnorm_fwd 4096x7168 ours: profiled
"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"
"0","9","op 64 a/void a<int, ""x"">(int)","GPU Speed Of Light Throughput","Duration","ns","3,000",""
"0","9","op 64 a/void a<int, ""x"">(int)","GPU Speed Of Light Throughput","DRAM Throughput","%","90.5",""
"0","9","op 64 a/void a<int, ""x"">(int)","","","","","Advice that says "look" to its reader"
"0","9","op 64 a/void a<int, ""x"">(int)","Launch Statistics","Function Cache Configuration","","CachePreferNone",""
"1","9","op 64 b/b(T / 2)","GPU Speed Of Light Throughput","Duration","ns","1,500",""
"2","9","op 64 a/void a<int, ""x"">(int)","GPU Speed Of Light Throughput","Duration","ns","1,000",""
"2","9","op 64 a/void a<int, ""x"">(int)","GPU Speed Of Light Throughput","DRAM Throughput","%","50.5",""
"#;

    #[test]
    fn kernels_of_a_range_are_one_profile() {
        let profiles = read_csv(TEXT).unwrap();
        let ranges: Vec<_> = profiles.iter().map(|it| (&*it.range, it.kernels)).collect();
        assert_eq!(ranges, [("op 64 a", 2), ("op 64 b", 1)]);
        let metrics: Vec<_> = profiles[0].metrics().collect();
        assert_eq!(
            metrics,
            [("Duration", "ns", 4000.0), ("DRAM Throughput", "%", 80.5)]
        );
        assert_eq!(profiles[1].value("Duration"), Some(1500.0));
    }

    #[test]
    fn what_is_no_profile_is_refused() {
        let refused = |text: &str| read_csv(text).unwrap_err();
        assert!(refused("==ERROR== no permission").contains("no table"));
        assert!(refused("\"ID\",\"Kernel Name\"\n").contains("no column 'Metric Name'"));
        let header = TEXT.lines().nth(2).unwrap();
        assert!(refused(header).contains("no kernel"));
        assert!(refused(&format!("{header}\n\"x\"")).contains("'x' is not a kernel's number"));
        assert!(refused(&format!("{header}\n\"0\",\"open")).contains("inside a field"));
    }
}
