//! The rows of one workload, and their paired ratios: from the file where it has them, computed where it does not.

use record::{speedup_over, ContenderKind, ResultFile, Row, RowKey, Speedup};
use stats::{RatioOptions, Verdict};
use std::collections::HashMap;

/// The fastest this many face everybody; nobody slower is the best other.
const RIVALS_MAX: usize = 12;

/// The other side's time over a contender's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Duel {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    pub verdict: Verdict,
}

impl Duel {
    fn of(speedup: &Speedup) -> Duel {
        Duel {
            ratio: speedup.ratio,
            low: speedup.low,
            high: speedup.high,
            verdict: speedup.verdict,
        }
    }

    fn reversed(self) -> Duel {
        Duel {
            ratio: 1.0 / self.ratio,
            low: 1.0 / self.high,
            high: 1.0 / self.low,
            verdict: match self.verdict {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                even => even,
            },
        }
    }
}

/// All rows of one workload except controls and references, which do not compete.
pub struct Race<'a> {
    pub op: &'a str,
    pub dtype: &'a str,
    pub rows: Vec<&'a Row>,
    /// By contender and rival, once for each pair.
    duels: HashMap<(&'a str, &'a str), Duel>,
    best: HashMap<&'a str, Duel>,
}

/// In order of their first rows.
pub fn races(file: &ResultFile) -> Vec<Race<'_>> {
    let options = RatioOptions {
        margin: file.meta.protocol.margin,
        ..RatioOptions::default()
    };
    let mut places: HashMap<RowKey, usize> = HashMap::new();
    let mut races: Vec<Race> = Vec::new();
    for row in file.rows.iter().filter(|row| competes(row)) {
        let mut key = RowKey::of(row);
        key.contender.clear();
        let place = *places.entry(key).or_insert(races.len());
        if place == races.len() {
            races.push(Race {
                op: &row.op,
                dtype: &row.dtype,
                rows: Vec::new(),
                duels: HashMap::new(),
                best: HashMap::new(),
            });
        }
        races[place].rows.push(row);
    }
    for race in &mut races {
        race.fight(&options);
    }
    races
}

fn competes(row: &Row) -> bool {
    matches!(
        row.contender.kind,
        ContenderKind::Own | ContenderKind::Baseline
    )
}

impl<'a> Race<'a> {
    fn fight(&mut self, options: &RatioOptions) {
        let median = |row: &Row| {
            row.time
                .as_ref()
                .map_or(f64::INFINITY, |time| time.median_us)
        };
        let mut timed: Vec<&Row> = self
            .rows
            .iter()
            .copied()
            .filter(|row| row.time.is_some())
            .collect();
        timed.sort_by(|left, right| median(left).total_cmp(&median(right)));
        let rivals = &timed[..timed.len().min(RIVALS_MAX)];
        for (at, row) in timed.iter().enumerate() {
            for rival in rivals.iter().take(at) {
                if let Some(duel) = recorded(row, rival).or_else(|| computed(row, rival, options)) {
                    self.duels
                        .insert((&row.contender.name, &rival.contender.name), duel);
                }
            }
        }
        for row in &timed {
            if let Some(best) = self.against_best(row, rivals) {
                self.best.insert(&row.contender.name, best);
            }
        }
    }

    /// Ours against the fastest baseline, as the record has it; a baseline against the fastest of all others. There
    /// the choice is uncertain too: whoever may be the fastest can lower the low end.
    fn against_best(&self, row: &Row, rivals: &[&Row]) -> Option<Duel> {
        if row.contender.kind == ContenderKind::Own {
            return row
                .against_best
                .as_ref()
                .map(|best| Duel::of(&best.speedup));
        }
        let duels = || {
            rivals
                .iter()
                .filter_map(|rival| self.duel(&row.contender.name, &rival.contender.name))
        };
        let best = duels().min_by(|left, right| left.ratio.total_cmp(&right.ratio))?;
        let contested = duels().filter(|duel| duel.low <= best.high);
        Some(Duel {
            low: contested.map(|duel| duel.low).fold(best.low, f64::min),
            ..best
        })
    }

    /// A contender against one other.
    pub fn duel(&self, contender: &str, other: &str) -> Option<Duel> {
        let found = self.duels.get(&(contender, other)).copied();
        found.or_else(|| Some(self.duels.get(&(other, contender))?.reversed()))
    }

    /// A contender against the best other.
    pub fn best_of(&self, contender: &str) -> Option<&Duel> {
        self.best.get(contender)
    }
}

/// What the file says of a pair, whichever side says it.
fn recorded(row: &Row, rival: &Row) -> Option<Duel> {
    let says = |row: &Row, other: &Row| {
        let all = row.against.iter().chain(&row.speedup);
        all.into_iter()
            .find(|speedup| speedup.baseline == other.contender.name)
            .map(Duel::of)
    };
    says(row, rival).or_else(|| Some(says(rival, row)?.reversed()))
}

/// None with too few rounds in common.
fn computed(row: &Row, rival: &Row, options: &RatioOptions) -> Option<Duel> {
    speedup_over(rival, row, options)
        .ok()
        .map(|speedup| Duel::of(&speedup))
}
