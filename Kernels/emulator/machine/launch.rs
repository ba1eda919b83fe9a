//! What a grid is, and how it is to run.

use std::sync::Arc;

use crate::race::Touched;

/// When asynchronous work lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    AtOnce,
    /// Warps in random order and for random times, work at random times.
    Random {
        seed: u64,
    },
    /// Work only when nobody can go on without it.
    Late {
        seed: u64,
    },
    /// The same for one queue, which the seed chooses, while that of the others lands when it is issued.
    Adversarial {
        seed: u64,
    },
}

/// What a kernel is to be right under.
pub const SCHEDULES: [Schedule; 8] = [
    Schedule::AtOnce,
    Schedule::Random { seed: 1 },
    Schedule::Late { seed: 1 },
    Schedule::ADVERSARIES[0],
    Schedule::ADVERSARIES[1],
    Schedule::ADVERSARIES[2],
    Schedule::ADVERSARIES[3],
    Schedule::Random { seed: 2 },
];

/// Asynchronous work by what does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// To shared memory: `cp.async`, bulk and tensor copies, `st.async`.
    Loads,
    /// From there: bulk and tensor stores and reductions.
    Stores,
    /// `wgmma`, and what tensor cores do in order: `tcgen05.mma`, `cp` and `commit`.
    Products,
    /// `tcgen05.ld`.
    TensorLoads,
}

impl Queue {
    /// In the order of the seeds that choose them.
    pub const ALL: [Self; 4] = [Self::Loads, Self::Stores, Self::Products, Self::TensorLoads];
}

/// When work of a queue lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    AtOnce,
    Random,
    Last,
}

impl Schedule {
    /// One for each queue.
    pub const ADVERSARIES: [Self; Queue::ALL.len()] = [
        Self::Adversarial { seed: 0 },
        Self::Adversarial { seed: 1 },
        Self::Adversarial { seed: 2 },
        Self::Adversarial { seed: 3 },
    ];

    pub(crate) fn timing(self, queue: Queue) -> Timing {
        match self {
            Self::AtOnce => Timing::AtOnce,
            Self::Random { .. } => Timing::Random,
            Self::Late { .. } => Timing::Last,
            Self::Adversarial { seed } => {
                let late = Queue::ALL[seed as usize % Queue::ALL.len()];
                if queue == late {
                    Timing::Last
                } else {
                    Timing::AtOnce
                }
            }
        }
    }

    pub(crate) fn seed(self) -> u64 {
        match self {
            Self::AtOnce => 0,
            Self::Random { seed } | Self::Late { seed } | Self::Adversarial { seed } => seed,
        }
    }
}

/// When registers hold what `tcgen05.ld` loads, where it does not land at once. Either way it reads tensor memory then,
/// and not before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TensorLoads {
    /// After `tcgen05.wait::ld` alone, so that every missing one shows: more than PTX asks for.
    #[default]
    AfterWait,
    /// Also at the first instruction that names one of the load's registers: PTX respects that dependence. Whoever
    /// overwrites tensor memory must still know of a wait.
    AtFirstUse,
}

/// Whether accesses of memory that nothing orders are errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watch {
    #[default]
    Off,
    All,
    /// Kernels that drop rows of a wgmma from this one on may read anything for them.
    AllButRowsFrom(u32),
}

#[derive(Clone, Debug)]
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: [u32; 3],
    pub dynamic_shared_bytes: u32,
    /// Laid out as the kernel's parameters are.
    pub parameters: Vec<u8>,
    pub schedule: Schedule,
    pub tensor_loads: TensorLoads,
    /// Threads of this process.
    pub workers: usize,
    /// Thread instructions of a cluster before it is given up.
    pub limit: u64,
    pub multiprocessors: u32,
    pub races: Watch,
    /// What the launch before touched, where this one may begin before it has ended.
    pub before: Option<Arc<Touched>>,
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            grid: [1; 3],
            block: [1; 3],
            cluster: [1; 3],
            dynamic_shared_bytes: 0,
            parameters: Vec::new(),
            schedule: Schedule::AtOnce,
            tensor_loads: TensorLoads::AfterWait,
            workers: 1,
            limit: 1 << 36,
            multiprocessors: 132,
            races: Watch::Off,
            before: None,
        }
    }
}
