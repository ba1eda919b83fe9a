//! Decoded instructions of fifth-generation tensor cores.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcgenKind {
    F16,
    Tf32,
    F8f6f4,
    I8,
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
    /// Two halves of a warp, the second one some columns further.
    S16x32Twice {
        split: u32,
    },
}

impl TcgenShape {
    /// Lane of tensor memory and column behind a register, from where the address points.
    pub fn cell(self, lane: u32, number: u32) -> (u32, u32) {
        match self {
            Self::S32x32 => (lane, number),
            Self::S16x64 => (lane / 4 + 8 * (lane % 2), lane / 2 % 2 + 2 * number),
            Self::S16x128 => (lane / 4 + 8 * (number % 2), lane % 4 + 4 * (number / 2)),
            Self::S16x256 => (
                lane / 4 + 8 * (number / 2 % 2),
                lane % 4 * 2 + number % 2 + 8 * (number / 4),
            ),
            Self::S16x32Twice { split } => (lane % 16, lane / 16 * split + number),
        }
    }
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
        /// Weights stay: rows are few, and columns fill the lanes.
        ws: bool,
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
        /// The low halves of two columns in one register.
        packed: bool,
        targets: Box<[u32]>,
        address: Address,
    },
    Store {
        shape: TcgenShape,
        packed: bool,
        values: Box<[Word]>,
        address: Address,
    },
    Copy {
        pair: bool,
        shape: CopyShape,
        /// Bits of an element, of which 16 at the start of 16 bytes become bytes.
        narrow: Option<u32>,
        address: Address,
        descriptor: Wide,
    },
    /// Rows of 32 bytes move by one lane, within 32 lanes.
    Shift {
        pair: bool,
        address: Address,
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
