//! How a race is told: both accesses by who made them, where, and what is missing between them.

use super::order::Order;
use super::shadow::{Access, Conflict, Proxy};
use super::{Races, BULK, BULK_WRITES, COPIES, STREAMS, TENSOR_LOADS, TENSOR_STORES, THREADS};
use crate::op::Scope;
use crate::program::{Program, RESERVED_SHARED};
use crate::warp::lanes;

/// An address as a kernel counts it.
fn offset(address: u32) -> i64 {
    i64::from(address & 0xff_ffff) - i64::from(RESERVED_SHARED)
}

pub fn shared(rank: u32, address: u32) -> String {
    format!("shared +{} of block {rank}", offset(address))
}

pub fn tensor(rank: usize, lane: u32, column: u32) -> String {
    format!("tensor memory at lane {lane}, column {column} of block {rank}")
}

pub fn global(address: u64) -> String {
    format!("global {address:#x}")
}

impl Races {
    pub(super) fn describe(
        &self,
        program: &Program,
        (at, mask): (usize, u32),
        access: &Access,
        place: &str,
        conflict: &Conflict,
    ) -> String {
        let earlier = &conflict.earlier;
        let verb = |access: &Access| if access.writes { "write" } else { "read" };
        let generic = Access {
            proxy: Proxy::Generic,
            ..*access
        };
        let only_fence = Order::crosses(access, earlier).is_some()
            && self.warps[at].is_after(mask, &generic, earlier);
        format!(
            "race: {} by {} of {place} {} the {} by {}\n  at {}\n  and",
            verb(access),
            self.who(access),
            if only_fence {
                "without fence.proxy.async after"
            } else {
                "is not ordered with"
            },
            verb(earlier),
            self.who(earlier),
            program.place(earlier.pc as usize),
        )
    }

    fn who(&self, access: &Access) -> String {
        let first_tensor = self.tensor_agent(0);
        if access.agent >= first_tensor {
            let number = (access.agent - first_tensor) as usize;
            return match number.checked_sub(self.shadows.len()) {
                None => format!("tcgen05 of block {number}"),
                _ if access.cluster != self.cluster => {
                    format!("a copy for an mbarrier of cluster {}", access.cluster)
                }
                Some(signal) => {
                    let address = self.signals.get(signal).copied().unwrap_or(0);
                    format!(
                        "the copy for mbarrier +{} of block {}",
                        offset(address),
                        address >> 24
                    )
                }
            };
        }
        let warp = access.agent / STREAMS;
        let (block, warp) = (warp / self.warps_per_block, warp % self.warps_per_block);
        let what = match access.agent % STREAMS {
            THREADS => threads(warp, access.lanes),
            COPIES => format!("cp.async of {}", threads(warp, access.lanes)),
            BULK | BULK_WRITES => format!("the bulk copy of {}", threads(warp, access.lanes)),
            TENSOR_LOADS => format!("tcgen05.ld of warp {warp}"),
            TENSOR_STORES => format!("tcgen05.st of warp {warp}"),
            _ => format!("wgmma of warp {warp}"),
        };
        if access.cluster == self.cluster {
            format!("{what} of block {block}")
        } else {
            format!("{what} of block {block} of cluster {}", access.cluster)
        }
    }

    /// Whether an mbarrier may be used yet: by threads, or by work beside them.
    pub fn check_mbarrier(
        &self,
        program: &Program,
        (block, warp, mask): (usize, u32, u32),
        address: u32,
        asynchronous: bool,
    ) -> Result<(), String> {
        let order = &self.warps[block * self.warps_per_block as usize + warp as usize];
        let Some(phases) = self.mbarriers.get(&address) else {
            return Ok(());
        };
        let access = order.access(mask, 0, true, Scope::Weak);
        let lacks = if asynchronous && !phases.published {
            "copies may not see yet: no fence after"
        } else if order.is_after(mask, &access, &phases.made) {
            return Ok(());
        } else {
            "is not ordered with"
        };
        Err(format!(
            "race: use of mbarrier +{} of block {} that {lacks} its initialisation by {}\n  at {}\n  and",
            offset(address),
            address >> 24,
            self.who(&phases.made),
            program.place(phases.made.pc as usize),
        ))
    }
}

/// The lanes of an access as threads of a block.
fn threads(warp: u32, mask: u32) -> String {
    match mask.count_ones() {
        1 => format!("thread {}", warp * 32 + mask.trailing_zeros()),
        32 => format!("warp {warp}"),
        _ => {
            let list: Vec<String> = lanes(mask)
                .take(4)
                .map(|lane| (warp * 32 + lane).to_string())
                .collect();
            format!("threads {} of warp {warp}", list.join(", "))
        }
    }
}
