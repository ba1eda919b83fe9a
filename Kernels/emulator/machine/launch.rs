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
