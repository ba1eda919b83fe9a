//! Statistics of timed rounds: summaries, paired ratios with confidence intervals, verdicts,
//! contender order and the stopping rule. Pure: values in, values out, no clock, no global state.
//!
//! The unit of data is the round. In each round every contender runs once, so whatever changes
//! slowly (heat, clocks, other tenants) affects all of them alike and cancels in the ratio of two
//! samples of the same round. See `ratio` for the estimator and `stopping` for the rule.

mod cards;
mod clock;
mod error;
mod fit;
mod geomean;
mod order;
mod processes;
mod random;
mod ratio;
mod rounds;
mod small;
mod stopping;
mod summary;

pub use cards::{elsewhere, SPREAD_BETWEEN_CARDS};
pub use clock::{reference_clock_mhz, ClockFilter};
pub use error::StatsError;
pub use geomean::{geomean, weighted_geomean, Geomean};
pub use order::{latin_square, latin_square_period, Schedule};
pub use processes::{
    paired_ratio_of_processes, typical_spread, ProcessSpread, SPREAD_BETWEEN_PROCESSES,
};
pub use ratio::{paired_ratio, verdict, PairedRatio, RatioOptions, Verdict};
pub use rounds::Rounds;
pub use small::{small_verdict, SMALL_US};
pub use stopping::{Decision, StopReason, Stopping, StoppingRule};
pub use summary::{quantile, Summary};
