//! A model's step, added up from measured rows: what it takes, what is missing, and which kernel to swap.

mod estimate;
mod parts;
mod text;

pub use models::{find_model, known_models, Model};

pub use estimate::{Estimate, Timed};
pub use parts::{parts, Part, Phase};
pub use text::step_text;

use crate::choose::races;
use crate::View;

/// What is asked about a model.
#[derive(Debug, Clone)]
pub struct StepOptions {
    pub phase: Phase,
    pub batch: u64,
    /// Tokens of each sequence.
    pub context: u64,
    /// The contender to start from, where it has a time.
    pub using: String,
    /// The type of the matrix products; everything else is in `dtype`.
    pub gemm_dtype: String,
    pub dtype: String,
}

/// A part of the step and what is known about it: times by contender, or why there are none.
#[derive(Debug, Clone)]
pub struct Line {
    pub part: Part,
    pub timed: Result<Timed, String>,
    /// The contender that counts: the one asked for, or the fastest where that one has no time.
    pub contender: String,
}

/// A whole step on one device.
#[derive(Debug, Clone)]
pub struct Step {
    pub lines: Vec<Line>,
    pub layers: u64,
    /// New tokens per step.
    pub tokens: u64,
}

/// The other contender of a part, and what it would buy.
#[derive(Debug, Clone, PartialEq)]
pub struct Swap {
    pub part: &'static str,
    pub from: String,
    pub to: String,
    /// Per step.
    pub saved_us: Estimate,
}

/// The shapes of a model's step as questions to `choose`: the part, its operation and shape.
pub fn model_questions(
    model: &Model,
    phase: Phase,
    batch: u64,
    context: u64,
) -> Vec<(String, String, String)> {
    let question = |part: Part| {
        let shape = part.shapes.into_iter().next().unwrap_or_default();
        (format!("{}, {}", phase.name(), part.name), part.op, shape)
    };
    parts(model, phase, batch, context)
        .into_iter()
        .map(question)
        .collect()
}

pub fn step(view: &View, model: &Model, options: &StepOptions) -> Step {
    let races = races(view);
    let line = |part: Part| {
        let dtype = if part.op.contains("gemm") {
            &options.gemm_dtype
        } else {
            &options.dtype
        };
        let timed = estimate::estimate(&races, &part.op, Some(dtype), &part.shapes);
        let contender = match &timed {
            Ok(timed) if timed.by_contender.contains_key(&options.using) => options.using.clone(),
            Ok(timed) => timed.fastest.clone(),
            Err(_) => String::new(),
        };
        Line {
            part,
            timed,
            contender,
        }
    };
    Step {
        lines: parts(model, options.phase, options.batch, options.context)
            .into_iter()
            .map(line)
            .collect(),
        layers: model.layers,
        tokens: match options.phase {
            Phase::Prefill => options.batch * options.context,
            Phase::Decode => options.batch,
        },
    }
}

impl Line {
    /// Time per step of the contender that counts.
    pub fn total(&self) -> Option<Estimate> {
        let timed = self.timed.as_ref().ok()?;
        let each = timed.by_contender.get(&self.contender)?;
        let runs = self.part.runs as f64;
        Some(Estimate {
            us: runs * each.us,
            low: runs * each.low,
            high: runs * each.high,
        })
    }

    /// What the fastest contender would save; none if that is the one, or not beyond doubt.
    fn swap(&self) -> Option<Swap> {
        let timed = self.timed.as_ref().ok()?;
        let (mine, best) = (
            timed.by_contender.get(&self.contender)?,
            timed.by_contender.get(&timed.fastest)?,
        );
        let runs = self.part.runs as f64;
        let saved = match timed.leads.get(&self.contender) {
            // The ratio of paired rounds is known better than either time.
            Some((ratio, low, high)) => {
                [*ratio, *low, *high].map(|ratio| mine.us * (1.0 - 1.0 / ratio))
            }
            None => [
                mine.us - best.us,
                mine.low - best.high,
                mine.high - best.low,
            ],
        };
        let [us, low, high] = saved.map(|saved| runs * saved);
        (timed.fastest != self.contender && low > 0.0).then(|| Swap {
            part: self.part.name,
            from: self.contender.clone(),
            to: timed.fastest.clone(),
            saved_us: Estimate { us, low, high },
        })
    }
}

impl Step {
    pub fn missing(&self) -> impl Iterator<Item = (&Part, &str)> {
        self.lines
            .iter()
            .filter_map(|line| Some((&line.part, line.timed.as_ref().err()?.as_str())))
    }

    /// The sum of all parts with a time. Errors of measured parts are independent and add in quadrature; those
    /// of interpolated ones are not, and add up.
    pub fn measured(&self) -> Estimate {
        self.sum(|_| true)
    }

    /// One layer's share of the parts inside the layers, averaged over layers that differ.
    pub fn layer(&self) -> Option<Estimate> {
        let whole = !self.missing().any(|(part, _)| part.in_layers);
        let Estimate { us, low, high } = self.sum(|line| line.part.in_layers);
        let layers = self.layers as f64;
        whole.then_some(Estimate {
            us: us / layers,
            low: low / layers,
            high: high / layers,
        })
    }

    /// The whole step; none while anything is missing.
    pub fn total(&self) -> Option<Estimate> {
        let whole = self.missing().next().is_none();
        whole.then(|| self.measured())
    }

    fn sum(&self, counts: impl Fn(&Line) -> bool) -> Estimate {
        let (mut us, mut apart, mut together) = (0.0, (0.0, 0.0), (0.0, 0.0));
        for line in self.lines.iter().filter(|line| counts(line)) {
            let (Some(time), Ok(timed)) = (line.total(), &line.timed) else {
                continue;
            };
            us += time.us;
            let (below, above) = (time.us - time.low, time.high - time.us);
            match timed.interpolated() {
                true => together = (together.0 + below, together.1 + above),
                false => apart = (apart.0 + below * below, apart.1 + above * above),
            }
        }
        Estimate {
            us,
            low: us - apart.0.sqrt() - together.0,
            high: us + apart.1.sqrt() + together.1,
        }
    }

    /// Tokens per second of a step that takes this long.
    pub fn rate(&self, step_us: f64) -> f64 {
        self.tokens as f64 / step_us * 1e6
    }

    /// The swaps that save time beyond doubt, the one that saves most first.
    pub fn swaps(&self) -> Vec<Swap> {
        let mut swaps: Vec<Swap> = self.lines.iter().filter_map(Line::swap).collect();
        swaps.sort_by(|left, right| right.saved_us.us.total_cmp(&left.saved_us.us));
        swaps
    }
}
