//! Decoded instructions of fifth-generation tensor cores.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcgenKind {
    F16,
    Tf32,
    F8f6f4,
    Mxf8f6f4,
    Mxf4,
    Mxf4nvf4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcgenShape {
    S32x32,
    S16x64,
    S16x128,
    S16x256,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyShape {
    S128x256,
    S4x256,
    S128x128,
    S64x128Pairs02,
    S64x128Pairs01,
    S32x128,
}

impl CopyShape {
    /// Rows, and chunks of 16 bytes in each.
    pub fn rows_and_chunks(self) -> (u32, u32) {
        match self {
            Self::S128x256 => (128, 2),
            Self::S4x256 => (4, 2),
            Self::S128x128 => (128, 1),
            Self::S64x128Pairs02 | Self::S64x128Pairs01 => (64, 1),
            Self::S32x128 => (32, 1),
        }
    }
}

#[derive(Clone, Debug)]
pub enum Tcgen {
    Alloc {
        pair: bool,
        address: Address,
        columns: Word,
    },
    Dealloc {
        pair: bool,
        base: Word,
        columns: Word,
    },
    Relinquish {
        pair: bool,
    },
    Mma {
        pair: bool,
        kind: TcgenKind,
        d: Address,
        a: TcgenA,
        b: Wide,
        descriptor: Word,
        scales: Option<(Address, Address)>,
        /// How many elements of k share a scale.
        scale_block: u32,
        disabled: Box<[Word]>,
        accumulates: Bit,
        scale_input: u32,
    },
    Load {
        shape: TcgenShape,
        targets: Box<[u32]>,
        address: Address,
    },
    Store {
        shape: TcgenShape,
        values: Box<[Word]>,
        address: Address,
    },
    Copy {
        pair: bool,
        shape: CopyShape,
        address: Address,
        descriptor: Wide,
    },
    Commit {
        barrier: Address,
        multicast: Option<Word>,
    },
    WaitLoad,
    WaitStore,
    /// Before a synchronisation of threads, or after one.
    Fence {
        before: bool,
    },
}

#[derive(Clone, Debug)]
pub enum TcgenA {
    Shared(Wide),
    Tensor(Address),
}
