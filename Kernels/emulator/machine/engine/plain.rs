//! Loads and stores as most are: in one space, aligned, in bounds, and nobody looks for races. All lanes are checked
//! before any is served; whatever is unusual is left to the slow way, which says what is wrong.

use syntax::Type;

use super::shared::{locate, Location};
use super::Engine;
use crate::memory::{get, put};
use crate::op::*;
use crate::program::RESERVED_SHARED;
use crate::warp::{lanes, Warp};

/// Where all lanes of an access fall.
enum Place {
    Global,
    /// A block's, by its rank.
    Shared(usize),
}

fn offset(address: u64) -> usize {
    (address & 0xff_ffff) as usize
}

fn in_block(shared: &[u8], at: usize, bytes: u32) -> u64 {
    let mut value = [0; 8];
    value[..bytes as usize].copy_from_slice(&shared[at..at + bytes as usize]);
    u64::from_le_bytes(value)
}

#[inline(always)]
fn take(
    warp: &mut Warp,
    mask: u32,
    (targets, bytes, signed): (&[Target], u32, bool),
    read: impl Fn(usize, u64) -> u64,
) {
    let shift = 64 - 8 * bytes;
    for (at, target) in targets.iter().enumerate() {
        let ahead = at as u64 * u64::from(bytes);
        if signed {
            warp.set_all(*target, mask, |lane| {
                ((read(lane as usize, ahead) << shift) as i64 >> shift) as u64
            });
        } else {
            warp.set_all(*target, mask, |lane| read(lane as usize, ahead));
        }
    }
}

impl Engine<'_> {
    fn place(&mut self, space: Space, mask: u32, addresses: &Wides, total: u32) -> Option<Place> {
        if self.races.is_some() || mask == 0 || !total.is_power_of_two() {
            return None;
        }
        let aligned = |address: u64| address & u64::from(total - 1) == 0;
        let mut each = lanes(mask).map(|lane| addresses[lane as usize]);
        match locate(space, addresses[mask.trailing_zeros() as usize]) {
            Location::Global(_) => each
                .all(|address| {
                    aligned(address)
                        && matches!(locate(space, address), Location::Global(_))
                        && self
                            .memory
                            .check(&mut self.recent, address, total.into())
                            .is_ok()
                })
                .then_some(Place::Global),
            Location::Shared(first) => {
                let rank = (first >> 24) as usize;
                let size = self.blocks.get(rank)?.shared.len();
                each.all(|address| {
                    let Location::Shared(found) = locate(space, address) else {
                        return false;
                    };
                    let at = offset(address);
                    aligned(address)
                        && (found >> 24) as usize == rank
                        && at >= RESERVED_SHARED as usize
                        && at + total as usize <= size
                })
                .then_some(Place::Shared(rank))
            }
            Location::Local(_) => None,
        }
    }

    /// False where nothing was done.
    pub(super) fn load_plainly(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        (ty, space, targets): (Type, Space, &[Target]),
        addresses: &Wides,
    ) -> bool {
        let bytes = ty.bytes();
        let Some(place) = self.place(space, mask, addresses, bytes * targets.len() as u32) else {
            return false;
        };
        let signed = ty.is_signed();
        match place {
            Place::Global => {
                // SAFETY: the addresses of these lanes were checked, and are aligned.
                let read = |lane: usize, ahead| unsafe { get(addresses[lane] + ahead, bytes) };
                take(warp, mask, (targets, bytes, signed), read);
            }
            Place::Shared(rank) => {
                let shared = &self.blocks[rank].shared;
                // Words, by far the most, with their size known to the compiler.
                if bytes == 4 {
                    take(warp, mask, (targets, 4, signed), |lane, ahead| {
                        in_block(shared, offset(addresses[lane] + ahead), 4)
                    });
                } else {
                    take(warp, mask, (targets, bytes, signed), |lane, ahead| {
                        in_block(shared, offset(addresses[lane] + ahead), bytes)
                    });
                }
            }
        }
        true
    }

    /// False where nothing was done.
    pub(super) fn store_plainly(
        &mut self,
        warp: &Warp,
        mask: u32,
        (ty, space, values): (Type, Space, &[Value]),
        addresses: &Wides,
    ) -> bool {
        let bytes = ty.bytes();
        let Some(place) = self.place(space, mask, addresses, bytes * values.len() as u32) else {
            return false;
        };
        for (at, value) in values.iter().enumerate() {
            let data = self.values(warp, *value);
            let ahead = at as u64 * u64::from(bytes);
            for lane in lanes(mask).map(|lane| lane as usize) {
                let address = addresses[lane] + ahead;
                match place {
                    // SAFETY: the addresses of these lanes were checked, and are aligned.
                    Place::Global => unsafe { put(address, bytes, data[lane]) },
                    Place::Shared(rank) => {
                        let at = offset(address);
                        self.blocks[rank].shared[at..at + bytes as usize]
                            .copy_from_slice(&data[lane].to_le_bytes()[..bytes as usize]);
                    }
                }
            }
        }
        true
    }
}
