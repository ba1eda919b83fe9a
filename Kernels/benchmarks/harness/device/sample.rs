//! What one sample is, and what it returns.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// State of the last-level cache when the timed work starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Holds none of the work's data: at least twice its size is written, then as much read.
    #[default]
    Cold,
    /// Holds whatever an untimed execution right before left in it.
    Hot,
    /// As the caller left it: neither flushed nor warmed. For rotating buffers, which are colder than
    /// any flush can make them.
    AsIs,
}

/// How a sample is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleMode {
    /// Cache state at the start.
    pub cache: Cache,
    /// The longest that the blocking kernel holds the stream. Work that synchronizes or allocates
    /// waits for the stream, which waits for the release: only this limit breaks the deadlock.
    pub hold_limit: Duration,
}

impl SampleMode {
    /// Long enough to enqueue thousands of launches, short enough for a test of a synchronizing op.
    pub const HOLD_LIMIT: Duration = Duration::from_millis(500);

    /// `cache` with the usual limit.
    pub fn new(cache: Cache) -> Self {
        Self {
            cache,
            hold_limit: Self::HOLD_LIMIT,
        }
    }
}

impl Default for SampleMode {
    fn default() -> Self {
        Self::new(Cache::default())
    }
}

/// Whether the timed work was fully queued before it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// The device has no queue: work runs as it is called (CPU).
    Direct,
    /// All launches were queued behind the blocking kernel: host latency is not included.
    Held,
    /// The blocking kernel timed out: the time includes host latency or a synchronization.
    TimedOut,
}

/// One timed execution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Time between the two marks, in us. CUDA events have a resolution of about 0.5 us.
    pub elapsed_us: f64,
    /// Mean core clock over the sample and a short tail after it, if it can be measured.
    pub clock_mhz: Option<f64>,
    /// Whether launch latency was excluded.
    pub queue: Queue,
    /// Host time inside `enqueue`; none where that is the sample itself.
    pub enqueue_us: Option<f64>,
}
