//! The part of a page that answers "what should I use?": a form, filled in and answered by `html/choose.js`.

use super::race::Standing;
use super::{races, Race};
use crate::View;
use serde_json::{json, Value};
use stats::Verdict;

/// The script of the panel; a page embeds it once, under its content security policy.
pub const PANEL_SCRIPT: &str = include_str!("../html/choose.js");

/// A fragment of HTML. What the files say is in its data only, which the script inserts as text.
pub fn panel(views: &[View]) -> String {
    let of_view = |(index, view): (usize, &View)| {
        let races = races(view);
        races
            .iter()
            .map(|race| race_data(index, race))
            .collect::<Vec<Value>>()
    };
    let data = json!({
        "far": super::near::FAR,
        "views": views.iter().map(|view| &view.title).collect::<Vec<_>>(),
        "races": views.iter().enumerate().flat_map(of_view).collect::<Vec<Value>>(),
    });
    // Inside a script element only `<` could end it or open a comment.
    let data = data.to_string().replace('<', "\\u003c");
    format!(
        "<section id=\"choose\"><h2>What should I use?</h2>\
         <form id=\"choose-form\" aria-label=\"operation and shape\"></form>\
         <output id=\"choose-answer\" for=\"choose-form\" aria-live=\"polite\"></output>\
         <script type=\"application/json\" id=\"choose-data\">{data}</script></section>\n"
    )
}

fn race_data(view: usize, race: &Race) -> Value {
    // The first two, and whoever may be as fast as the first: nobody else is named.
    let tied = |standing: &Standing| {
        let behind = standing.behind.as_ref();
        behind.is_some_and(|behind| behind.verdict != Verdict::Faster)
    };
    let named = race.standings.iter().enumerate();
    let named = named.filter(|(place, standing)| *place < 2 || tied(standing));
    let standings = named.map(|(_, standing)| {
        let behind = standing.behind.as_ref();
        json!([
            standing.name(),
            rounded(standing.median_us),
            behind.map(|behind| json!([
                rounded(behind.ratio),
                rounded(behind.low),
                rounded(behind.high)
            ])),
            behind.map(|behind| behind.verdict.to_string()),
        ])
    });
    json!({
        "view": view,
        "op": race.op,
        "dtype": race.dtype,
        "workload": race.workload(),
        "exact": race.shape.exact,
        "sizes": race.shape.sizes,
        "standings": standings.collect::<Vec<Value>>(),
    })
}

/// Five digits are more than a measurement has.
fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}
