//! Global memory: one shadow for all clusters of a launch, and what atomics pass from one cluster to another.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use super::clock::{join_reach, Reach, View};
use super::shadow::{self, Access, Shadow};
use super::{may_meet, words, By, Races};
use crate::op::{Scope, Strength};
use crate::program::Program;

const PAGE: u64 = 4096;

/// Lines of 128 bytes that a launch touched, and whether it wrote them.
pub type Touched = BTreeMap<u64, bool>;

/// What the clusters of a launch did to global memory.
#[derive(Debug, Default)]
pub struct Global {
    pages: HashMap<u64, Shadow>,
    /// What strong accesses of an address have passed on.
    places: HashMap<u64, Reach>,
    /// What the launch before did, where this one may begin before that has ended.
    before: Option<Arc<Touched>>,
}

impl Global {
    pub fn after(before: Option<Arc<Touched>>) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    pub fn touched(&self) -> Touched {
        let line = u64::from(shadow::GLOBAL[0]);
        let pages = self.pages.iter();
        pages
            .flat_map(|(page, shadow)| {
                let cells = shadow.touched();
                cells.map(move |(at, writes)| (page * PAGE / line + at as u64, writes))
            })
            .collect()
    }

    /// Whether the launch before may still be at it: a line that it wrote, or read if this access is a write.
    fn is_unfinished(&self, address: u64, bytes: u64, writes: bool) -> bool {
        let line = u64::from(shadow::GLOBAL[0]);
        let Some(before) = &self.before else {
            return false;
        };
        let mut found = before.range(address / line..=(address + bytes - 1) / line);
        found.any(|(_, wrote)| *wrote || writes)
    }
}

impl Races {
    /// Notes that lanes touch global memory, and says which access that is not ordered with.
    pub fn touch_global(
        &mut self,
        program: &Program,
        (block, warp, mask): (usize, u32, u32),
        (address, bytes): (u64, u32),
        by: By,
        (pc, writes, reads): (usize, bool, bool),
    ) -> Result<(), String> {
        let at = block * self.warps_per_block as usize + warp as usize;
        let cluster = self.cluster;
        let global = Arc::clone(&self.global);
        let mut global = global.lock().unwrap_or_else(PoisonError::into_inner);
        let order = &mut self.warps[at];
        if !order.follows(mask) && global.is_unfinished(address, bytes.into(), writes) {
            return Err(format!(
                "race: {} of global memory that the kernel before may still use, before griddepcontrol.wait",
                if writes { "write" } else { "read" },
            ));
        }
        if let By::Thread(strength) = by {
            if strength.scope != Scope::Weak {
                let place = global.places.entry(address).or_default();
                let lane = mask.trailing_zeros();
                if reads {
                    order.acquire_reach(lane, place, strength.acquires);
                }
                if writes {
                    let view = release(order, lane, strength);
                    join_reach(place, &reach(cluster, view));
                }
            }
        }
        let order = &self.warps[at];
        let access = Access {
            global: true,
            ..self.stamp(order, mask, by, (pc, writes))
        };
        let warps = self.warps_per_block;
        let ordered = |earlier: &Access| {
            may_meet(warps, &access, earlier)
                || if earlier.cluster == cluster {
                    order.is_after(mask, &access, earlier)
                } else {
                    order.is_after_foreign(mask, &access, earlier)
                }
        };
        let (mut from, end) = (address, address + u64::from(bytes));
        while from < end {
            let page = from / PAGE;
            let to = end.min((page + 1) * PAGE);
            let shadow = global
                .pages
                .entry(page)
                .or_insert_with(|| Shadow::new(shadow::GLOBAL, PAGE as usize));
            let range = ((from % PAGE) as u32, (to - page * PAGE) as u32);
            shadow.touch(range, access, &ordered).map_err(|conflict| {
                let place = words::global(page * PAGE + u64::from(conflict.offset));
                self.describe(program, (at, mask), &access, &place, &conflict)
            })?;
            from = to;
        }
        Ok(())
    }

    /// fence and membar.
    pub fn fence_memory(&mut self, block: usize, warp: u32, mask: u32, scope: Scope) {
        if scope == Scope::Device {
            self.order(block, warp).fence_memory(mask);
        }
    }

    pub fn follow(&mut self, block: usize, warp: u32, mask: u32) {
        self.order(block, warp).follow(mask);
    }
}

fn release(order: &mut super::Order, lane: u32, strength: Strength) -> View {
    if strength.releases {
        order.release(1 << lane)
    } else {
        order.release_relaxed(lane)
    }
}

/// What a view says of its own cluster and of the others.
fn reach(cluster: u32, mut view: View) -> Reach {
    let mut reach = view
        .foreign
        .take()
        .map_or_else(Reach::new, |reach| (*reach).clone());
    reach.insert(cluster, Arc::new(view));
    reach
}
