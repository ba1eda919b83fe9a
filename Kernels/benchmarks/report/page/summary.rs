//! One line per family, against whoever is fastest on each workload, and every loss.

use super::plan::Table;
use super::races::{median_us, Duel, Published};
use record::markdown_table::{cell, header, line};
use record::time_us_text;
use stats::{geomean, Verdict};

/// Placeholder for a ratio if we have no time.
const FAILED: &str = "we have no time";

fn duels<'a>(table: &Table, published: &'a Published) -> Result<Vec<Duel<'a>>, String> {
    let duels: Result<Vec<Option<Duel>>, String> = published
        .races(table)
        .of_table(table)?
        .into_iter()
        .map(|race| race.duel())
        .collect();
    Ok(duels?.into_iter().flatten().collect())
}

impl Duel<'_> {
    fn verdict(&self) -> Verdict {
        self.ratio.map_or(Verdict::Slower, |ratio| ratio.verdict)
    }

    /// Sort key, worst first.
    fn rank(&self) -> f64 {
        self.ratio.map_or(0.0, |ratio| ratio.ratio)
    }
}

pub fn summary(published: &Published) -> Result<String, String> {
    let mut text = header(&[
        "family",
        "workloads :",
        "fastest other / ours",
        "won :",
        "even :",
        "lost :",
        "worst",
    ]);
    for table in &published.plan.tables {
        let workloads = published.races(table).of_table(table)?.len();
        let duels = duels(table, published)?;
        let Some(worst) = duels.iter().min_by(|a, b| a.rank().total_cmp(&b.rank())) else {
            return Err(format!(
                "table '{}' has no time of another contender",
                table.name
            ));
        };
        let ratios = duels.iter().filter_map(|duel| duel.ratio);
        let ratios: Vec<_> = ratios
            .map(|ratio| (ratio.ratio, ratio.low, ratio.high))
            .collect();
        let mean = geomean(&ratios).map_or(FAILED.to_owned(), |mean| {
            format!("{:.3} [{:.3}, {:.3}]", mean.ratio, mean.low, mean.high)
        });
        let count = |verdict| {
            duels
                .iter()
                .filter(|duel| duel.verdict() == verdict)
                .count()
        };
        let alone = workloads - duels.len();
        text += &line(&[
            cell(&table.title),
            match alone {
                0 => workloads.to_string(),
                _ => format!("{workloads}, {alone} without a rival"),
            },
            mean,
            count(Verdict::Faster).to_string(),
            (count(Verdict::Same) + count(Verdict::Ambiguous)).to_string(),
            count(Verdict::Slower).to_string(),
            format!(
                "{}: {}, {}",
                worst
                    .ratio
                    .map_or(FAILED.to_owned(), |ratio| format!("{:.2}", ratio.ratio)),
                cell(&worst.race.name()),
                table.title_of(&worst.best.contender.name),
            ),
        ]);
    }
    Ok(text)
}

pub fn losses(published: &Published) -> Result<String, String> {
    let plan = &published.plan;
    let mut lost = Vec::new();
    for table in &plan.tables {
        let duels = duels(table, published)?;
        lost.extend(duels.into_iter().map(|duel| (table, duel)));
    }
    lost.retain(|(_, duel)| {
        duel.verdict() == Verdict::Slower && duel.rank() <= 1.0 - plan.loss_min
    });
    lost.sort_by(|(_, left), (_, right)| left.rank().total_cmp(&right.rank()));
    let mut text = header(&[
        "workload",
        "fastest",
        "theirs, us :",
        "ours, us :",
        "fastest / ours :",
    ]);
    for (table, duel) in lost {
        let ratio = duel.ratio.map_or(FAILED.to_owned(), |ratio| {
            format!("{:.3} [{:.3}, {:.3}]", ratio.ratio, ratio.low, ratio.high)
        });
        text += &line(&[
            cell(&duel.race.name()),
            table.title_of(&duel.best.contender.name).to_owned(),
            time_us_text(median_us(duel.best)),
            duel.race
                .ours()
                .map_or("-".to_owned(), |row| time_us_text(median_us(row))),
            ratio,
        ]);
    }
    Ok(text)
}
