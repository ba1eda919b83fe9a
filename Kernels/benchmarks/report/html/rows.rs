//! Every row as data for the table and for what hovers over the pictures. Each text is stored once.

use crate::View;
use record::Row;
use serde_json::{json, Value};
use std::collections::HashMap;

/// Bars of a histogram, and the steps of their height.
const BINS: usize = 24;
const STEPS: u32 = 35;

/// Separates a command's parts.
const CONTENDERS: &str = " --contenders ";

/// Fields of a row in their order, and what they hold: `text` and `texts` are places in the list of texts. `command` is
/// a place in the list of commands, each cut before its options, which are texts; and texts for the contenders and
/// for what follows.
const FIELDS: [(&str, &str); 25] = [
    ("view", "number"),
    ("op", "text"),
    ("dtype", "text"),
    ("suite", "text"),
    ("workload", "text"),
    ("contender", "text"),
    ("status", "text"),
    ("median", "number"),
    ("low", "number"),
    ("high", "number"),
    ("samples", "number"),
    ("tflops", "number"),
    ("tbps", "number"),
    ("roof", "number"),
    ("speedup", "number"),
    ("speedup_low", "number"),
    ("speedup_high", "number"),
    ("baseline", "text"),
    ("verdict", "text"),
    ("about", "texts"),
    ("notes", "texts"),
    ("facts", "text"),
    ("repro", "command"),
    ("bins", "number"),
    ("shape", "text"),
];

pub fn section() -> String {
    "<section id=\"rows\"><h2>All rows</h2><div id=\"filters\"></div>\
     <p id=\"count\" aria-live=\"polite\"></p>\
     <div class=\"scroll\"><table id=\"table\"><thead></thead><tbody></tbody></table></div>\
     <button id=\"more\" type=\"button\">Show more</button></section>\n"
        .to_owned()
}

pub fn data(views: &[View]) -> Value {
    let mut texts = Texts::default();
    let mut rows = Vec::new();
    for (index, view) in views.iter().enumerate() {
        rows.extend(
            view.file
                .rows
                .iter()
                .map(|row| values(index, row, &mut texts)),
        );
    }
    let fields: Vec<[&str; 2]> = FIELDS.iter().map(|(name, kind)| [*name, *kind]).collect();
    let Texts { texts, commands } = texts;
    json!({"fields": fields, "texts": texts.list, "commands": commands.list, "values": rows})
}

/// Each once.
struct Unique<T> {
    places: HashMap<String, usize>,
    list: Vec<T>,
}

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self {
            places: HashMap::new(),
            list: Vec::new(),
        }
    }
}

impl<T> Unique<T> {
    fn place(&mut self, text: &str, made: impl FnOnce() -> T) -> Value {
        if let Some(place) = self.places.get(text) {
            return (*place).into();
        }
        self.places.insert(text.to_owned(), self.list.len());
        self.list.push(made());
        (self.list.len() - 1).into()
    }
}

#[derive(Default)]
struct Texts {
    texts: Unique<String>,
    commands: Unique<Value>,
}

impl Texts {
    fn place(&mut self, text: &str) -> Value {
        self.texts.place(text, || text.to_owned())
    }

    /// In three parts, because contenders of a race differ in the second alone.
    fn command(&mut self, text: &str) -> Value {
        let Some((head, rest)) = text.split_once(CONTENDERS) else {
            return json!([self.options(text)]);
        };
        let (who, tail) = rest.split_once(" --").unwrap_or((rest, ""));
        json!([self.options(head), self.place(who), self.place(tail)])
    }

    fn options(&mut self, text: &str) -> Value {
        let texts = &mut self.texts;
        self.commands.place(text, || {
            let place = |option: &str| texts.place(option, || option.to_owned());
            text.split(" --").map(place).collect()
        })
    }

    fn all<'a>(&mut self, all: impl IntoIterator<Item = &'a str>) -> Value {
        all.into_iter().map(|text| self.place(text)).collect()
    }
}

/// Four digits, which is what the page shows.
fn number(value: Option<f64>) -> Value {
    let rounded = |value: f64| format!("{value:.3e}").parse::<f64>().unwrap_or(value);
    value
        .filter(|value| value.is_finite())
        .map_or(Value::Null, |value| rounded(value).into())
}

fn values(view: usize, row: &Row, texts: &mut Texts) -> [Value; FIELDS.len()] {
    let time = row.time.as_ref();
    let speedup = row.headline();
    let verdict = speedup
        .map(|speedup| speedup.verdict.to_string())
        .unwrap_or_default();
    let axes = row.workload.axes.iter();
    let axes: Vec<String> = axes
        .map(|(name, value)| format!("{name} {}", value.to_string().trim_matches('"')))
        .collect();
    let mut about = vec![
        format!("{} {}", row.contender.kind, row.contender.version),
        row.contender.timed_region.clone(),
        row.workload.provenance.clone(),
        axes.join(", "),
    ];
    about.extend(row.contender.libraries.iter().map(ToString::to_string));
    let facts = match row.facts.is_empty() {
        true => String::new(),
        false => serde_json::to_string(&row.facts).unwrap_or_default(),
    };
    let (bins, shape) = histogram(row);
    [
        view.into(),
        texts.place(&row.op),
        texts.place(&row.dtype),
        texts.place(&row.workload.suite),
        texts.place(&row.workload.name),
        texts.place(&row.contender.name),
        texts.place(&row.status.to_string()),
        number(time.map(|time| time.median_us)),
        number(time.map(|time| time.p5_us)),
        number(time.map(|time| time.p95_us)),
        time.map(|time| time.count).into(),
        number(row.metrics.tflops),
        number(row.metrics.tbps),
        number(row.metrics.roof_share),
        number(speedup.map(|speedup| speedup.ratio)),
        number(speedup.map(|speedup| speedup.low)),
        number(speedup.map(|speedup| speedup.high)),
        texts.place(speedup.map_or("", |speedup| &speedup.baseline)),
        texts.place(&verdict),
        texts.all(about.iter().map(String::as_str)),
        texts.all(row.reason.iter().chain(&row.warnings).map(String::as_str)),
        texts.place(&facts),
        texts.command(&row.repro),
        bins,
        texts.place(&shape),
    ]
}

/// Histogram of the kept samples between their 1 % and 99 % points, as tails would squash the rest: both ends, how
/// many lie outside, and a digit of base 36 for the height of each bar.
fn histogram(row: &Row) -> (Value, String) {
    let mut samples: Vec<f64> = row.samples_us.iter().flatten().copied().collect();
    if samples.len() < 2 || row.time.is_none() {
        return (Value::Null, String::new());
    }
    samples.sort_unstable_by(f64::total_cmp);
    let low = stats::quantile(&samples, 0.01);
    let high = stats::quantile(&samples, 0.99).max(low * (1.0 + 1e-9));
    let mut counts = [0u32; BINS];
    let mut outside = 0;
    for sample in samples {
        match ((sample - low) / (high - low) * BINS as f64).floor() {
            bin if bin >= 0.0 && bin < BINS as f64 => counts[bin as usize] += 1,
            bin if bin == BINS as f64 => counts[BINS - 1] += 1,
            _ => outside += 1,
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    // A single sample is still a bar.
    let height = |count: u32| (count * STEPS).div_ceil(most);
    let shape = counts
        .iter()
        .filter_map(|count| char::from_digit(height(*count), STEPS + 1));
    (
        json!([number(Some(low)), number(Some(high)), outside]),
        shape.collect(),
    )
}
