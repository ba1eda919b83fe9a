//! A workload's axes, told apart: what must match exactly, and sizes that have a below and an above.

use crate::ReportingError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Axes whose values are amounts of work: between two measured ones, others can be judged.
const SIZES: [&str; 10] = [
    "batch",
    "kv_longest",
    "kv_tokens",
    "m",
    "q_longest",
    "q_tokens",
    "rows",
    "sequence",
    "tokens",
    "tokens_most",
];
/// No shape is as large; every smaller whole number is one in f64 as well.
const SIZE_END: f64 = 1e15;
/// Numbers that no kernel's time depends on.
const IGNORED: [&str; 3] = ["base", "epsilon", "scale"];
/// Lists of lengths, and what their total and their largest are called.
const LISTS: [(&str, &str, &str); 3] = [
    ("q_lens", "q_tokens", "q_longest"),
    ("kv_lens", "kv_tokens", "kv_longest"),
    ("tokens", "tokens", "tokens_most"),
];
/// Axes that say again what others say, where those are there.
const REPEATED: [(&str, &[&str]); 3] = [
    (
        "q_tokens",
        &["q_len", "cache_len", "sequence", "total_q", "total_kv"],
    ),
    ("rows", &["batch", "sequence"]),
    ("tokens", &["rows"]),
];

/// What a race was about, or what somebody asks about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shape {
    pub exact: BTreeMap<String, String>,
    pub sizes: BTreeMap<String, f64>,
}

impl Shape {
    pub fn of(axes: &BTreeMap<String, Value>) -> Shape {
        let mut shape = Shape::default();
        for (name, value) in axes.iter().filter(|(name, _)| !IGNORED.contains(&&***name)) {
            let list = LISTS.iter().find(|(list, ..)| list == name);
            match (value, list) {
                (Value::Array(lengths), Some((_, total, most))) => {
                    let lengths = || lengths.iter().filter_map(Value::as_f64);
                    shape.put(total, &lengths().sum::<f64>().into());
                    shape.put(most, &lengths().fold(0.0, f64::max).into());
                }
                (Value::Array(_) | Value::Object(_), _) => {}
                (value, _) => shape.put(name, value),
            }
        }
        for (kept, repeated) in REPEATED {
            if shape.sizes.contains_key(kept) {
                shape.exact.retain(|name, _| !repeated.contains(&&**name));
                shape.sizes.retain(|name, _| !repeated.contains(&&**name));
            }
        }
        shape
    }

    fn put(&mut self, name: &str, value: &Value) {
        let size = value.as_f64().filter(|size| (1.0..SIZE_END).contains(size));
        match size.filter(|_| SIZES.contains(&name)) {
            Some(size) => drop(self.sizes.insert(name.to_owned(), size)),
            None => {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                self.exact.insert(name.to_owned(), text);
            }
        }
    }

    /// `m=64,n=4096,k=7168`, for an operation whose shapes are like `known`.
    pub fn asked(text: &str, known: &[&Shape]) -> Result<Shape, ReportingError> {
        let mut given: BTreeMap<String, String> = BTreeMap::new();
        for part in text.split(',') {
            let wrong = || {
                ReportingError::Usage(format!(
                    "'{part}' is not an axis with its value: expected m=64,n=4096, or a workload's name"
                ))
            };
            let (name, value) = part.split_once('=').ok_or_else(wrong)?;
            if given
                .insert(name.trim().to_owned(), value.trim().to_owned())
                .is_some()
            {
                return Err(ReportingError::Usage(format!("{name} is given twice")));
            }
        }
        complete(&mut given, known);
        let mut shape = Shape::default();
        for (name, value) in given {
            if known.iter().any(|known| known.sizes.contains_key(&name)) {
                let size = value
                    .parse::<f64>()
                    .ok()
                    .filter(|size| (1.0..SIZE_END).contains(size));
                let size = size.ok_or_else(|| {
                    ReportingError::Usage(format!(
                        "{name} is '{value}': expected a number from 1 on"
                    ))
                })?;
                shape.sizes.insert(name, size);
            } else if known.iter().any(|known| known.exact.contains_key(&name)) {
                shape.exact.insert(name, value);
            } else {
                let axes: std::collections::BTreeSet<&str> =
                    known.iter().flat_map(|known| known.axes()).collect();
                let axes: Vec<&str> = axes.into_iter().collect();
                let axes = axes.join(", ");
                return Err(ReportingError::Usage(format!(
                    "no axis is called '{name}' here; there are {axes}"
                )));
            }
        }
        Ok(shape)
    }

    pub fn axes(&self) -> impl Iterator<Item = &str> {
        self.exact
            .keys()
            .chain(self.sizes.keys())
            .map(String::as_str)
    }
}

/// Fills in what follows if all sequences, and all groups, are alike.
fn complete(given: &mut BTreeMap<String, String>, known: &[&Shape]) {
    let has = |name: &str| known.iter().any(|known| known.sizes.contains_key(name));
    let number =
        |given: &BTreeMap<String, String>, name: &str| given.get(name)?.parse::<f64>().ok();
    if let (true, Some(context)) = (has("kv_longest"), given.remove("context")) {
        given.entry("kv_longest".to_owned()).or_insert(context);
    }
    if has("q_tokens") {
        if let Some(q_len) = number(given, "q_len") {
            let cached = number(given, "cache_len").unwrap_or(0.0);
            given.remove("q_len");
            given.remove("cache_len");
            given
                .entry("q_longest".to_owned())
                .or_insert(q_len.to_string());
            given
                .entry("kv_longest".to_owned())
                .or_insert((q_len + cached).to_string());
        }
    }
    let product = |given: &mut BTreeMap<String, String>, name: &str, factors: [&str; 2]| {
        let values = factors.map(|factor| number(given, factor));
        if let (true, [Some(left), Some(right)]) = (has(name), values) {
            given
                .entry(name.to_owned())
                .or_insert((left * right).to_string());
        }
    };
    product(given, "q_tokens", ["batch", "q_longest"]);
    product(given, "kv_tokens", ["batch", "kv_longest"]);
    product(given, "rows", ["batch", "sequence"]);
    if has("rows") {
        given.remove("batch");
        given.remove("sequence");
    }
    if let (true, Some(tokens), Some(groups)) = (
        has("tokens_most"),
        number(given, "tokens"),
        number(given, "groups"),
    ) {
        given
            .entry("tokens_most".to_owned())
            .or_insert((tokens / groups).ceil().to_string());
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self
            .sizes
            .iter()
            .map(|(name, size)| format!("{name}={size}"));
        let exact = self
            .exact
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        f.write_str(&sizes.chain(exact).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shape(axes: Value) -> Shape {
        Shape::of(&serde_json::from_value(axes).unwrap())
    }

    #[test]
    fn lists_are_totals_and_what_is_said_twice_is_dropped() {
        let prefill = shape(
            json!({"batch": 2, "cache_len": 1024, "causal": true, "heads": 32, "kv_lens": [3072, 2048],
            "q_len": 2048, "q_lens": [2048, 1024], "scale": "0.088"}),
        );
        let text = "batch=2 kv_longest=3072 kv_tokens=5120 q_longest=2048 q_tokens=3072 causal=true heads=32";
        assert_eq!(prefill.to_string(), text);
        let norm = shape(
            json!({"batch": 4, "columns": 4096, "rows": 8192, "sequence": 2048, "weight_dtype": "bf16"}),
        );
        assert_eq!(norm.to_string(), "rows=8192 columns=4096 weight_dtype=bf16");
        let grouped =
            shape(json!({"groups": 2, "rows": 256, "tokens": [100, 20], "n": 64, "k": 32}));
        assert_eq!(
            grouped.to_string(),
            "tokens=120 tokens_most=100 groups=2 k=32 n=64"
        );
    }

    #[test]
    fn a_question_is_completed_as_if_all_sequences_were_alike() {
        let decode = shape(
            json!({"batch": 8, "kv_longest": 100, "kv_tokens": 800, "heads": 32, "q_len": 1}),
        );
        let asked = |text: &str| Shape::asked(text, &[&decode]).map(|shape| shape.to_string());
        let whole = "batch=64 kv_longest=8192 kv_tokens=524288 heads=32 q_len=1";
        assert_eq!(
            asked("batch=64,context=8192,heads=32,q_len=1").unwrap(),
            whole
        );
        assert!(asked("batch=64,hats=3")
            .unwrap_err()
            .to_string()
            .contains("no axis is called 'hats'"));
        assert!(asked("batch=none")
            .unwrap_err()
            .to_string()
            .contains("expected a number"));
        assert!(asked("batch=1,batch=2")
            .unwrap_err()
            .to_string()
            .contains("twice"));
        assert!(asked("64")
            .unwrap_err()
            .to_string()
            .contains("workload's name"));
        let prefill = shape(json!({"batch": 1, "kv_lens": [9], "q_lens": [9], "heads": 1}));
        let asked = Shape::asked("batch=2,q_len=2048,cache_len=1024", &[&prefill]).unwrap();
        assert_eq!(
            asked.to_string(),
            "batch=2 kv_longest=3072 kv_tokens=6144 q_longest=2048 q_tokens=4096"
        );
    }
}
