//! The first screen: how far to trust the run, who wins by how much, and where we lose.

use crate::plot::escaped;
use crate::scoreboard::{losses, trust, Block, Line, Loss, Score, Scoreboard, Trust};
use crate::View;
use record::{count_text, interval_text, ratio_text};
use serde_json::{json, Value};
use stats::Verdict;

/// Losses in sight before the reader asks for more.
const LISTED: usize = 12;

pub fn section(index: usize, view: &View, board: &Scoreboard) -> String {
    let losses = losses(view);
    format!(
        "<section class=\"scoreboard\" data-view=\"{index}\"><h2>{}</h2>{}{}\
         <div class=\"answer\"><div class=\"board\">{}<div class=\"blocks\">{}</div></div>{}</div></section>\n",
        escaped(&view.title),
        trust_strip(view),
        verdict(board, losses.first()),
        baselines(index, board),
        board
            .blocks
            .iter()
            .enumerate()
            .map(|(at, block)| table(index, board, at, block))
            .collect::<String>(),
        lost(&losses),
    )
}

fn trust_strip(view: &View) -> String {
    let item = |fact: crate::scoreboard::Fact| {
        let class = match fact.trust {
            Trust::Good => "good",
            Trust::Doubtful => "doubtful",
            Trust::Unknown => "unknown",
            Trust::Plain => "plain",
        };
        format!(
            "<li class=\"{class}\"><b>{}</b> {}</li>",
            fact.name,
            escaped(&fact.text)
        )
    };
    let items: String = trust(view).into_iter().map(item).collect();
    format!("<ul class=\"trust\" aria-label=\"How far to trust this run\">{items}</ul>")
}

/// One sentence and a bar of won, even and lost.
fn verdict(board: &Scoreboard, worst: Option<&Loss>) -> String {
    let Some((name, score)) = &board.ours else {
        return "<p class=\"verdict\">None of ours has a rival here; compare shares of the roof.</p>".to_owned();
    };
    let total = (score.won + score.even + score.lost).max(1) as f64;
    let mut bar = String::new();
    let mut x = 0.0;
    for (class, count) in [
        ("won", score.won),
        ("even", score.even),
        ("lost", score.lost),
    ] {
        let width = 100.0 * count as f64 / total;
        bar += &format!("<rect class=\"{class}\" x=\"{x:.2}\" width=\"{width:.2}\" height=\"4\"/>");
        x += width;
    }
    let worst = worst.map_or(String::new(), |worst| {
        format!(
            "; worst <b class=\"lost\">{}</b> on {} {} to {}",
            worst
                .speedup
                .map_or("no time".to_owned(), |speedup| ratio_text(speedup.ratio)),
            escaped(&worst.row.op),
            escaped(&worst.row.workload.name),
            escaped(&worst.other.contender.name)
        )
    });
    format!(
        "<p class=\"verdict\"><strong>{}: {}×</strong> the speed of the best other, {} on {}: \
         <span class=\"won\">{} won</span>, {} even, <span class=\"lost\">{} lost</span>{worst}</p>\
         <svg class=\"bar\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" aria-hidden=\"true\">{bar}</svg>",
        escaped(name),
        ratio_text(score.mean.ratio),
        interval_text(score.mean.low, score.mean.high),
        count_text(score.mean.count, "workload"),
        score.won,
        score.even,
        score.lost,
    )
}

/// What to compare with: the best other of each workload, or one contender.
fn baselines(index: usize, board: &Scoreboard) -> String {
    let mut names: Vec<&str> = board
        .blocks
        .iter()
        .flat_map(|block| &block.contenders)
        .map(|name| &**name)
        .collect();
    names.sort_unstable();
    names.dedup();
    let options: String = names
        .iter()
        .map(|name| format!("<option>{}</option>", escaped(name)))
        .collect();
    format!(
        "<p class=\"choice\"><label>Compare with <select class=\"baseline\" id=\"baseline-{index}\">\
         <option value=\"\">the best other</option>{options}</select></label> \
         <small>Their time over the contender's: above 1 is faster. Paired geomean, 95 % interval, \
         won/even/lost.</small></p>"
    )
}

/// The place of a line's details in the page.
pub fn anchor(view: usize, line: &Line) -> String {
    let plain =
        |text: &str| text.replace(|character: char| !character.is_ascii_alphanumeric(), "_");
    format!("op-{view}-{}-{}", plain(&line.op), plain(&line.dtype))
}

fn table(view: usize, board: &Scoreboard, at: usize, block: &Block) -> String {
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"scores\" data-block=\"{at}\"><thead><tr><th scope=\"col\">operation</th>"
    );
    let ours = board.ours.as_ref().map(|(name, _)| name);
    for name in &block.contenders {
        let class = if Some(name) == ours {
            " class=\"ours\""
        } else {
            ""
        };
        html += &format!(
            "<th scope=\"col\"{class}><button type=\"button\" class=\"sort\">{}</button></th>",
            escaped(name)
        );
    }
    html += "</tr></thead><tbody>";
    for (index, line) in block.lines.iter().enumerate() {
        html += &format!(
            "<tr data-line=\"{index}\"><th scope=\"row\"><a href=\"#{}\">{}</a> <small>{} · {}</small></th>",
            anchor(view, line),
            // A narrow screen breaks names between words.
            escaped(&line.op).replace('_', "_<wbr>"),
            escaped(&line.dtype),
            line.workloads
        );
        html += &line
            .best
            .iter()
            .map(|score| score_cell(score.as_ref()))
            .collect::<String>();
        html += "</tr>";
    }
    html += "</tbody></table></div>";
    if block.lines.is_empty() {
        html.clear();
    }
    let notes = block.notes().into_iter();
    let notes: String = notes
        .map(|note| format!("<p class=\"note\">{}</p>", escaped(&note)))
        .collect();
    format!("<div class=\"block\">{html}{notes}</div>")
}

fn shade(score: &Score) -> String {
    match score.shade() {
        (Verdict::Faster, step) => format!("won{step}"),
        (Verdict::Slower, step) => format!("lost{step}"),
        _ => "even".to_owned(),
    }
}

fn score_cell(score: Option<&Score>) -> String {
    let Some(score) = score else {
        return "<td class=\"none\">-</td>".to_owned();
    };
    format!(
        "<td class=\"{}\"><b>{}</b> <small>{}</small><small>{}</small></td>",
        shade(score),
        ratio_text(score.mean.ratio),
        interval_text(score.mean.low, score.mean.high),
        score.counts()
    )
}

/// All scores by block, line, baseline and contender, for the choice of a baseline.
pub fn data(board: &Scoreboard) -> Value {
    let score = |score: &Option<Score>| match score {
        None => Value::Null,
        Some(score) => json!([
            ratio_text(score.mean.ratio),
            interval_text(score.mean.low, score.mean.high),
            score.counts(),
            shade(score)
        ]),
    };
    let scores = |scores: &Vec<Option<Score>>| scores.iter().map(score).collect::<Vec<_>>();
    let line = |line: &Line| {
        let against: Vec<_> = line.against.iter().map(scores).collect();
        json!({"best": scores(&line.best), "against": against})
    };
    let blocks = board.blocks.iter().map(|block| {
        json!({"contenders": block.contenders, "lines": block.lines.iter().map(line).collect::<Vec<_>>()})
    });
    Value::Array(blocks.collect())
}

fn lost(lost: &[Loss]) -> String {
    if lost.is_empty() {
        return "<div class=\"losses\"><h3>Where we lose: nowhere</h3></div>".to_owned();
    }
    let (first, rest) = lost.split_at(lost.len().min(LISTED));
    let items = |losses: &[Loss]| losses.iter().map(loss).collect::<String>();
    let more = match rest.is_empty() {
        true => String::new(),
        false => format!(
            "<details><summary>{} more</summary><ol>{}</ol></details>",
            rest.len(),
            items(rest)
        ),
    };
    let title = count_text(lost.len(), "workload");
    format!(
        "<div class=\"losses\"><h3>Where we lose: {title}</h3><ol>{}</ol>{more}</div>",
        items(first)
    )
}

fn loss(loss: &Loss) -> String {
    let row = loss.row;
    let (ratio, interval) = match loss.speedup {
        Some(speedup) => (
            ratio_text(speedup.ratio),
            interval_text(speedup.low, speedup.high),
        ),
        None => ("no time".to_owned(), String::new()),
    };
    format!(
        "<li><b class=\"lost\">{ratio}</b> <span>{} {} <b>{}/{}</b></span> to {} \
         <small>{interval} {}</small></li>",
        escaped(&row.op),
        escaped(&row.dtype),
        escaped(&row.workload.suite),
        escaped(&row.workload.name),
        escaped(&loss.other.contender.name),
        escaped(&loss.reason)
    )
}
