//! The protocols that have a name. Published numbers come from one of them, and the controls inside
//! the same run show how well it worked.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use timing::{Energy, Plan};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Three processes: for numbers to publish
    Published,
    /// One process and little time: for a look
    Quick,
}

impl Preset {
    /// Processes that measure each workload.
    pub fn processes(self) -> usize {
        match self {
            Preset::Published => 3,
            Preset::Quick => 1,
        }
    }

    /// Other kinds of inputs that every workload is proved right on.
    pub(crate) fn kinds(self) -> usize {
        match self {
            Preset::Published => 3,
            Preset::Quick => 1,
        }
    }

    pub(crate) fn apply(self, plan: &mut Plan) {
        let (warmup_ms, duration_min_ms, budget_ms) = match self {
            // Noise slower than its least duration shows between processes.
            Preset::Published => (3, 20, 35),
            Preset::Quick => (2, 10, 10),
        };
        plan.warmup = Duration::from_millis(warmup_ms);
        plan.rule.duration_min = Duration::from_millis(duration_min_ms);
        plan.rule.budget = Duration::from_millis(budget_ms);
        if self == Preset::Published {
            plan.energy = plan.energy.or(Some(Energy {
                duration: Duration::from_millis(100),
                limited_only: true,
            }));
        }
    }

    /// The budget of a race with a control: to be called the same takes more rounds than to be
    /// called faster.
    pub(crate) fn control_budget(self) -> Duration {
        Duration::from_millis(300)
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Preset::Published => "published",
            Preset::Quick => "quick",
        })
    }
}
