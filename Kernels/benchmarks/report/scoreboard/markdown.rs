//! The scoreboard as Markdown: what a summary begins with.

use super::{losses, scoreboard, trust, Block, Score, Scoreboard, Trust};
use crate::View;
use record::markdown_table::{cell, header, line};
use record::{count_text, interval_text, ratio_text, RowKey};
use stats::Verdict;

/// The most losses to list; the page has them all.
const LISTED: usize = 40;

/// Trust, scores and losses of a view.
pub fn scoreboard_markdown(view: &View) -> String {
    let board = scoreboard(view);
    let facts: Vec<String> = trust(view)
        .into_iter()
        .map(|fact| {
            let mark = if fact.trust == Trust::Doubtful {
                "⚠ "
            } else {
                ""
            };
            format!("{mark}{}: {}", fact.name, cell(&fact.text))
        })
        .collect();
    let mut text = format!(
        "## {}\n\n{}.\n\n{}",
        cell(&view.title),
        facts.join(" · "),
        verdict_text(&board)
    );
    for block in &board.blocks {
        text += &table(block);
    }
    text + &losses_markdown(view)
}

/// One sentence: who wins, and by how much.
pub fn verdict_text(board: &Scoreboard) -> String {
    let how = "Each cell: time of the best other over the contender's, so above 1 is faster; geometric mean of paired \
               ratios, 95 % interval, workloads won/even/lost.\n\n";
    match &board.ours {
        None => format!("None of ours has a rival here. {how}"),
        Some((name, score)) => format!("**{}: {}.** {how}", cell(name), score.sentence()),
    }
}

fn table(block: &Block) -> String {
    let mut titles = vec![
        "op".to_owned(),
        "dtype".to_owned(),
        "workloads :".to_owned(),
    ];
    titles.extend(block.contenders.iter().map(|name| cell(name)));
    let titles: Vec<&str> = titles.iter().map(|title| &**title).collect();
    let mut text = header(&titles);
    for each in &block.lines {
        let mut cells = vec![
            cell(&each.op),
            cell(&each.dtype),
            each.workloads.to_string(),
        ];
        cells.extend(
            each.best
                .iter()
                .map(|score| score.as_ref().map_or("-".to_owned(), score_text)),
        );
        text += &line(&cells);
    }
    let notes: String = block
        .notes()
        .iter()
        .map(|note| format!("\n{}\n", cell(note)))
        .collect();
    let text = if block.lines.is_empty() {
        String::new()
    } else {
        text
    };
    format!("{text}{notes}\n")
}

fn score_text(score: &Score) -> String {
    let ratio = ratio_text(score.mean.ratio);
    let ratio = match score.shade().0 {
        Verdict::Faster => format!("🟦 **{ratio}**"),
        Verdict::Slower => format!("🟧 {ratio}"),
        _ => ratio,
    };
    format!(
        "{ratio} {} {}",
        interval_text(score.mean.low, score.mean.high),
        score.counts()
    )
}

fn losses_markdown(view: &View) -> String {
    let lost = losses(view);
    if lost.is_empty() {
        return String::new();
    }
    let mut text = format!("### Where we lose: {}\n\n", count_text(lost.len(), "row"));
    text += &header(&["row", "faster", "ratio :", "95 % interval :", "why"]);
    for loss in lost.iter().take(LISTED) {
        let (ratio, interval) = match loss.speedup {
            Some(speedup) => (
                ratio_text(speedup.ratio),
                interval_text(speedup.low, speedup.high),
            ),
            None => ("-".to_owned(), "-".to_owned()),
        };
        text += &line(&[
            cell(&RowKey::of(loss.row).to_string()),
            cell(&loss.other.contender.name),
            ratio,
            interval,
            cell(&loss.reason),
        ]);
    }
    match lost.len().checked_sub(LISTED) {
        Some(more) if more > 0 => {
            text + &format!("\nand {more} more; the HTML report has them all.\n\n")
        }
        _ => text + "\n",
    }
}
