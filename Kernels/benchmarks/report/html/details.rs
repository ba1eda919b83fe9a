//! Every operation, folded: its pictures, then its scores by suite.

use super::board::anchor;
use crate::plot::{escaped, figures};
use crate::scoreboard::{Line, Scoreboard};
use crate::View;
use record::{interval_text, ratio_text, Group, Row};
use stats::Verdict;

pub fn section(views: &[View], boards: &[Scoreboard]) -> String {
    let mut html = "<section id=\"operations\"><h2>Operations</h2>".to_owned();
    let mut first = 0;
    for (index, (view, board)) in views.iter().zip(boards).enumerate() {
        if views.len() > 1 {
            html += &format!("<h3>{}</h3>", escaped(&view.title));
        }
        if !view.file.meta.complete {
            html += "<p class=\"warning\">Partial: a run was interrupted; missing rows were not measured.</p>";
        }
        html += &format!("<p>{}</p>", status_counts(&view.file.rows));
        let mut groups = record::best_groups(&view.file);
        groups.extend(record::groups(&view.file));
        let mut figures = figures(view, first);
        let blocks = board.blocks.iter();
        for line in blocks.flat_map(|block| block.lines.iter().chain(&block.alone)) {
            let figures = figures
                .remove(&(line.op.clone(), line.dtype.clone()))
                .unwrap_or_default();
            html += &operation(index, line, &groups, &figures);
        }
        first += view.file.rows.len();
    }
    html + "</section>\n"
}

fn operation(view: usize, line: &Line, groups: &[Group], figures: &str) -> String {
    let of: Vec<&Group> = groups
        .iter()
        .filter(|group| group.op == line.op && group.dtype == line.dtype && group.geomean.is_some())
        .collect();
    format!(
        "<details class=\"operation\" id=\"{}\"><summary>{} {} <small>{}</small></summary>{figures}{}</details>\n",
        anchor(view, line),
        escaped(&line.op),
        escaped(&line.dtype),
        record::count_text(line.workloads, "workload"),
        match of.is_empty() {
            true => "<p>No contender has a baseline here; see the shares of the roof.</p>".to_owned(),
            false => format!(
                "<details><summary>Scores by suite</summary>{}</details>",
                table(&of)
            ),
        },
    )
}

fn table(groups: &[&Group]) -> String {
    let mut html = "<div class=\"scroll\"><table><thead><tr><th>suite<th>contender<th>baseline<th class=\"n\">geomean\
                    <th class=\"n\">95 % interval<th class=\"n\">workloads<th class=\"n\">faster<th class=\"n\">same\
                    <th class=\"n\">slower<th class=\"n\">ambiguous</tr></thead><tbody>"
        .to_owned();
    for group in groups {
        let Some(mean) = &group.geomean else { continue };
        let count = |verdict| group.verdict_count(verdict);
        html += &format!(
            "<tr><td>{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}\
             <td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}</tr>",
            escaped(&group.suite),
            escaped(&group.contender),
            escaped(&group.baseline),
            ratio_text(mean.ratio),
            interval_text(mean.low, mean.high),
            mean.count,
            count(Verdict::Faster),
            count(Verdict::Same),
            count(Verdict::Slower),
            count(Verdict::Ambiguous),
        );
    }
    html + "</tbody></table></div>"
}

fn status_counts(rows: &[Row]) -> String {
    let counts = record::Status::ALL.map(|status| {
        let count = rows.iter().filter(|row| row.status == status).count();
        (status, count)
    });
    let words = counts.into_iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> = words
        .map(|(status, count)| format!("<b>{count}</b> {status}"))
        .collect();
    words.join(", ")
}
