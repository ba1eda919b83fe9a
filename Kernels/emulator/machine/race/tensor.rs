//! Tensor memory: loads and stores of warps, and what tensor cores do there in the order of their issue.

use super::shadow::{self, Access, Proxy, Shadow};
use super::{words, Races, TENSOR_LOADS, TENSOR_STORES};
use crate::op::Scope;
use crate::program::Program;
use crate::tensor_memory::{COLUMNS, ROWS};

/// Who touches tensor memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorBy {
    Load,
    Store,
    /// tcgen05.mma, .cp or .shift of a block.
    Core {
        rank: u32,
        writes: bool,
    },
    /// Columns are given back.
    Free,
}

impl Races {
    /// Notes that a warp, or work that it issues, touches lanes of a column of a block's tensor memory.
    pub fn touch_tensor(
        &mut self,
        program: &Program,
        (block, warp, mask): (usize, u32, u32),
        (rank, column, lanes): (usize, u32, (u32, u32)),
        by: TensorBy,
        (pc, writes): (usize, bool),
    ) -> Result<(), String> {
        let at = block * self.warps_per_block as usize + warp as usize;
        let order = &self.warps[at];
        let plain = order.access(mask, pc, writes, Scope::Weak);
        let own = |stream: u32, epoch: u32| Access {
            agent: plain.agent + stream,
            lanes: 1,
            epoch,
            ..plain
        };
        let access = match by {
            TensorBy::Load => own(TENSOR_LOADS, order.tensor_loads.open(0)),
            TensorBy::Store => own(TENSOR_STORES, order.tensor_stores.open(0)),
            TensorBy::Free => plain,
            TensorBy::Core { rank, .. } => Access {
                agent: self.tensor_agent(rank),
                lanes: 1,
                epoch: self.tensor[rank as usize],
                proxy: Proxy::Async,
                ..plain
            },
        };
        let cores = self.tensor_agent(0)..self.tensor_agent(self.shadows.len() as u32);
        let ordered = |earlier: &Access| match by {
            // What is given back must be over; nobody looks at its values any more.
            TensorBy::Free => order.is_after(
                mask,
                &plain,
                &Access {
                    stored: false,
                    ..*earlier
                },
            ),
            TensorBy::Core { .. } if cores.contains(&earlier.agent) => true,
            _ => earlier.agent == plain.agent || order.has_heard(mask, earlier),
        };
        if self.tensors.is_empty() {
            let bytes = (COLUMNS * ROWS * 4) as usize;
            let shadows = self.shadows.iter();
            self.tensors = shadows
                .map(|_| Shadow::new(shadow::TENSOR, bytes))
                .collect();
        }
        let range = |lane: u32| (column * ROWS + lane) * 4;
        let found = self.tensors[rank].touch((range(lanes.0), range(lanes.1)), access, &ordered);
        if by == TensorBy::Free && found.is_ok() {
            self.tensors[rank].forget(range(0));
        }
        found.map_err(|conflict| {
            let place = words::tensor(rank, conflict.offset / 4 % ROWS, conflict.offset / 4 / ROWS);
            self.describe(program, (at, mask), &access, &place, &conflict)
        })
    }

    pub fn wait_tensor(&mut self, block: usize, warp: u32, loads: bool) {
        self.order(block, warp).wait_tensor(loads);
    }

    pub fn fence_tensor(&mut self, block: usize, warp: u32, mask: u32, before: bool) {
        let order = self.order(block, warp);
        if before {
            order.tell_tensor(mask);
        } else {
            order.hear_tensor(mask);
        }
    }
}
