//! The scoreboard for a terminal: aligned, and coloured where somebody looks.

use super::{losses, scoreboard, trust, Block, Score, Trust};
use crate::View;
use record::{interval_text, printable, ratio_text};
use stats::Verdict;

const LISTED: usize = 10;

/// Blue for faster and orange for slower, which everybody can tell apart.
const FASTER: &str = "\u{1b}[38;5;75m";
const SLOWER: &str = "\u{1b}[38;5;208m";
const FAINT: &str = "\u{1b}[2m";
const END: &str = "\u{1b}[0m";

/// Text with the colour of what it says, which takes no room.
struct Painted {
    text: String,
    colour: &'static str,
}

impl Painted {
    fn plain(text: impl Into<String>) -> Painted {
        Painted {
            text: printable(&text.into()),
            colour: "",
        }
    }

    fn show(&self, width: usize, coloured: bool) -> String {
        let pad = " ".repeat(width.saturating_sub(self.text.chars().count()));
        match coloured && !self.colour.is_empty() {
            true => format!("{}{}{END}{pad}", self.colour, self.text),
            false => format!("{}{pad}", self.text),
        }
    }
}

pub fn scoreboard_text(view: &View, coloured: bool) -> String {
    let board = scoreboard(view);
    let mut text = printable(&view.title) + "\n";
    for fact in trust(view) {
        let line = Painted {
            text: printable(&format!("  {:<13} {}", fact.name, fact.text)),
            colour: match fact.trust {
                Trust::Doubtful => SLOWER,
                Trust::Unknown => FAINT,
                Trust::Good | Trust::Plain => "",
            },
        };
        text += &(line.show(0, coloured) + "\n");
    }
    if let Some((name, score)) = &board.ours {
        text += &format!("\n{}: {}\n", printable(name), score.sentence());
    }
    for block in &board.blocks {
        text += &("\n".to_owned() + &table(block, coloured));
    }
    text + &worst(view, coloured)
}

fn table(block: &Block, coloured: bool) -> String {
    let titles = ["op", "dtype"]
        .into_iter()
        .chain(block.contenders.iter().map(String::as_str));
    let mut lines = vec![titles
        .map(|title| Painted {
            colour: FAINT,
            ..Painted::plain(title)
        })
        .collect::<Vec<_>>()];
    for line in &block.lines {
        let mut cells = vec![Painted::plain(&line.op), Painted::plain(&line.dtype)];
        cells.extend(
            line.best
                .iter()
                .map(|score| score.as_ref().map_or(Painted::plain("-"), painted)),
        );
        lines.push(cells);
    }
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].text.chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let shown = lines.iter().map(|line| {
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| cell.show(*width, coloured))
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    });
    let notes = block.notes().into_iter();
    let notes = notes.map(|note| printable(&note) + "\n");
    match block.lines.is_empty() {
        true => notes.collect(),
        false => shown.chain(notes).collect(),
    }
}

fn painted(score: &Score) -> Painted {
    Painted {
        text: format!(
            "{} {} {}",
            ratio_text(score.mean.ratio),
            interval_text(score.mean.low, score.mean.high),
            score.counts()
        ),
        colour: match score.shade().0 {
            Verdict::Faster => FASTER,
            Verdict::Slower => SLOWER,
            Verdict::Same | Verdict::Ambiguous => "",
        },
    }
}

fn worst(view: &View, coloured: bool) -> String {
    let lost = losses(view);
    let mut text = match lost.len() {
        0 => return String::new(),
        count => format!("\nWhere we lose, worst {} of {count}:\n", count.min(LISTED)),
    };
    for loss in lost.iter().take(LISTED) {
        let ratio = Painted {
            text: loss
                .speedup
                .map_or("none".to_owned(), |speedup| ratio_text(speedup.ratio)),
            colour: SLOWER,
        };
        let workload = &loss.row.workload;
        text += &format!(
            "  {}  {}\n",
            ratio.show(5, coloured),
            printable(&format!(
                "{} {} {}/{} to {}: {}",
                loss.row.op,
                loss.row.dtype,
                workload.suite,
                workload.name,
                loss.other.contender.name,
                loss.reason
            ))
        );
    }
    text
}
