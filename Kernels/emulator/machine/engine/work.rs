//! Work that is under way beside the threads.

use crate::op::{Atomic, Element, Words};
use crate::race::View;
use crate::tensor_map::TensorMap;

/// `cp.async` of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// Of all that the thread has started.
    pub number: u64,
    pub to: u32,
    pub from: u64,
    pub bytes: u32,
    pub source_bytes: u32,
}

/// One warp's quarter of a wgmma.
#[derive(Clone, Debug)]
pub struct Product {
    pub pc: usize,
    pub a: u64,
    pub b: u64,
    pub accumulates: bool,
    pub done: bool,
}

/// A `tcgen05.ld` that reads tensor memory later: the instruction, and the address of each thread.
#[derive(Clone, Copy, Debug)]
pub struct TensorRead {
    pub pc: usize,
    pub addresses: Words,
}

#[derive(Clone, Debug)]
pub enum Work {
    TensorLoad {
        map: Box<TensorMap>,
        at: [i64; 5],
        to: u32,
        barrier: u32,
        blocks: u32,
        pair: bool,
    },
    TensorStore {
        map: Box<TensorMap>,
        at: [i64; 5],
        from: u32,
        reduce: Option<(Atomic, syntax::Type)>,
    },
    BulkLoad {
        to: u32,
        from: u64,
        bytes: u32,
        barrier: u32,
        blocks: u32,
    },
    BulkStore {
        to: u64,
        from: u32,
        bytes: u32,
    },
    BulkReduce {
        to: u64,
        from: u32,
        bytes: u32,
        atomic: Atomic,
        ty: syntax::Type,
    },
    BulkShare {
        to: u32,
        from: u32,
        bytes: u32,
        barrier: u32,
    },
    StoreAsync {
        to: u32,
        data: Box<[u8]>,
        barrier: u32,
    },
    /// Arrives once the copies that a thread has issued until now are there.
    CopyArrive {
        warp: u32,
        lane: u32,
        barrier: u32,
        /// How many it had started.
        started: u64,
        /// What the thread did and knew, for the race detector.
        view: Option<Box<View>>,
    },
}

/// Work in the queue of a cluster.
#[derive(Clone, Debug)]
pub struct Pending {
    pub work: Work,
    pub when: u64,
    pub pc: usize,
    pub block: u32,
}

/// Work of a block's tensor core: in order.
#[derive(Clone, Debug)]
pub struct TensorPending {
    pub work: TensorWork,
    /// Warp and lane that issued it.
    pub thread: (u32, u32),
    pub when: u64,
    pub pc: usize,
}

#[derive(Clone, Debug)]
pub enum TensorWork {
    Mma(Box<TensorMma>),
    Copy {
        pair: bool,
        shape: crate::op::CopyShape,
        narrow: Option<u32>,
        to: u32,
        descriptor: u64,
    },
    Shift {
        pair: bool,
        at: u32,
    },
    Commit {
        barrier: u32,
        blocks: Option<u32>,
        view: Option<Box<View>>,
    },
}

#[derive(Clone, Debug)]
pub struct TensorMma {
    pub pair: bool,
    pub ws: bool,
    /// Lanes of both blocks that keep what they have.
    pub disabled: [u32; 8],
    pub d: u32,
    /// A descriptor, or an address in tensor memory.
    pub a: u64,
    pub a_in_tensor: bool,
    pub b: u64,
    pub rows: u32,
    pub columns: u32,
    pub depth: u32,
    pub a_element: Element,
    pub b_element: Element,
    /// Four bits an element, two in a byte.
    pub dense4: bool,
    pub half: bool,
    /// Sums are integers, which may saturate.
    pub whole: Option<bool>,
    pub negated: bool,
    pub a_transposed: bool,
    pub b_transposed: bool,
    pub accumulates: bool,
    pub input_scale: f32,
    pub scales: Option<TensorScales>,
}

impl TensorMma {
    /// As counters name it.
    pub fn name(&self) -> String {
        format!(
            "tcgen05.mma m{}n{}k{} {:?} {:?}{}{}{}",
            self.rows,
            self.columns,
            self.depth,
            self.a_element,
            self.b_element,
            if self.scales.is_some() { " scaled" } else { "" },
            if self.pair { " pair" } else { "" },
            if self.a_in_tensor {
                " a in tensor memory"
            } else {
                ""
            },
        )
    }
}

#[derive(Clone, Copy, Debug)]
pub struct TensorScales {
    pub a: u32,
    pub b: u32,
    pub a_part: u32,
    pub b_part: u32,
    /// Elements of k that share one.
    pub block: u32,
    pub is_ue8m0: bool,
}
