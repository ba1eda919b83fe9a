//! Which mbarriers asynchronous work signals when it lands.

use super::work::{TensorWork, Work};
use crate::warp::lanes;

impl Work {
    pub fn signals(&self) -> Vec<u32> {
        let of_blocks = |barrier: u32, blocks: u32, pair: bool| {
            let each = lanes(blocks)
                .map(|rank| signalled(rank, barrier, pair) << 24 | barrier & 0xff_ffff);
            each.collect()
        };
        match self {
            Self::TensorLoad {
                barrier,
                blocks,
                pair,
                ..
            } => of_blocks(*barrier, *blocks, *pair),
            Self::BulkLoad {
                barrier, blocks, ..
            } => of_blocks(*barrier, *blocks, false),
            Self::BulkShare { barrier, .. }
            | Self::StoreAsync { barrier, .. }
            | Self::CopyArrive { barrier, .. } => vec![*barrier],
            Self::TensorStore { .. } | Self::BulkStore { .. } | Self::BulkReduce { .. } => {
                Vec::new()
            }
        }
    }
}

impl TensorWork {
    pub fn signals(&self) -> Vec<u32> {
        match self {
            Self::Commit {
                barrier, blocks, ..
            } => lanes(blocks.unwrap_or(1 << (barrier >> 24)))
                .map(|rank| rank << 24 | barrier & 0xff_ffff)
                .collect(),
            Self::Mma(_) | Self::Copy { .. } | Self::Shift { .. } => Vec::new(),
        }
    }
}

/// The block whose mbarrier a copy to `rank` signals: one of a pair for both.
pub(super) fn signalled(rank: u32, barrier: u32, pair: bool) -> u32 {
    if pair {
        rank & !1 | barrier >> 24 & 1
    } else {
        rank
    }
}
