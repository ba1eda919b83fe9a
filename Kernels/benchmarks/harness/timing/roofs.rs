//! The measured limits of a device, and the minimum time that they imply for a problem.

use std::collections::BTreeMap;

use contender::{Cost, Math};

use crate::CacheState;

/// The measured peaks of a device. Empty if nothing has been measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roofs {
    /// Of copy, triad and read.
    pub bandwidths: Vec<Bandwidth>,
    /// Peaks by [`Roofs::math_name`].
    pub tflops: BTreeMap<String, f64>,
}

/// A measured memory bandwidth.
#[derive(Clone, Debug, PartialEq)]
pub struct Bandwidth {
    pub name: String,
    pub tbps: f64,
    /// Share of the bytes that are writes: one half for a copy.
    pub written_share: f64,
}

/// A roof is itself a measurement: a time this much below it is still plausible.
const ROOF_SLACK: f64 = 0.05;

impl Roofs {
    /// The name under which the peak of a kind of arithmetic is recorded: `fp32`, `tensor_bf16`.
    pub fn math_name(math: Math) -> String {
        match math {
            Math::Fp32 => "fp32".to_owned(),
            Math::TensorCore(dtype) => format!("tensor_{dtype}"),
        }
    }

    /// The bandwidth measured with the mix of reads and writes closest to the problem's; on a tie, the
    /// higher one.
    pub fn bandwidth_for(&self, cost: &Cost) -> Option<&Bandwidth> {
        let written_share = cost.written_bytes / (cost.read_bytes + cost.written_bytes);
        let distance = |roof: &Bandwidth| (roof.written_share - written_share).abs();
        self.bandwidths.iter().min_by(|a, b| {
            let nearer = distance(a).total_cmp(&distance(b));
            nearer.then(b.tbps.total_cmp(&a.tbps))
        })
    }

    pub fn peak_tflops(&self, math: Math) -> Option<f64> {
        self.tflops.get(&Self::math_name(math)).copied()
    }
}

/// The time below which a measurement cannot be true. `None` if no roof is known.
pub fn floor_us(cost: &Cost, cache: CacheState, l2_bytes: u64, roofs: &Roofs) -> Option<f64> {
    let [memory, compute] = floors_us(cost, cache, l2_bytes, roofs);
    let floor = memory.into_iter().chain(compute).reduce(f64::max)?;
    Some(floor * (1.0 - ROOF_SLACK))
}

/// Whether arithmetic takes longer than memory, as far as the roofs are known.
pub fn is_compute_bound(
    cost: &Cost,
    cache: CacheState,
    l2_bytes: u64,
    roofs: &Roofs,
) -> Option<bool> {
    let [memory, compute] = floors_us(cost, cache, l2_bytes, roofs);
    Some(compute? > memory?)
}

/// The least time for memory and for arithmetic.
fn floors_us(cost: &Cost, cache: CacheState, l2_bytes: u64, roofs: &Roofs) -> [Option<f64>; 2] {
    let bytes = cost.read_bytes + cost.written_bytes;
    // Data that fits in the cache need not be written back in time or, when hot, be read at all.
    let through_cache = (bytes - l2_bytes as f64).max(0.0);
    let moved = match cache {
        CacheState::Cold => through_cache.max(cost.read_bytes),
        CacheState::Hot => through_cache,
    };
    let fastest = roofs.bandwidths.iter().map(|roof| roof.tbps);
    let memory = fastest.reduce(f64::max).map(|tbps| moved / (tbps * 1e6));
    let compute = roofs
        .peak_tflops(cost.math)
        .map(|tflops| cost.flops / (tflops * 1e6));
    [memory, compute]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roofs() -> Roofs {
        Roofs {
            bandwidths: [("read", 4.0, 0.0), ("copy", 3.5, 0.5), ("memcpy", 3.6, 0.5)]
                .map(|(name, tbps, written_share)| Bandwidth {
                    name: name.into(),
                    tbps,
                    written_share,
                })
                .into(),
            tflops: BTreeMap::from([("fp32".into(), 50.0)]),
        }
    }

    fn cost(flops: f64, read_bytes: f64, written_bytes: f64) -> Cost {
        Cost {
            flops,
            read_bytes,
            written_bytes,
            math: Math::Fp32,
        }
    }

    #[test]
    fn memory_and_compute_both_bound() {
        let memory = floor_us(&cost(1.0, 4e8, 4e8), CacheState::Cold, 0, &roofs());
        assert!((memory.unwrap() - 190.0).abs() < 1e-9);
        let compute = floor_us(&cost(1e10, 4.0, 4.0), CacheState::Cold, 0, &roofs());
        assert!((compute.unwrap() - 190.0).abs() < 1e-9);
    }

    #[test]
    fn the_cache_can_hold_writes_and_when_hot_also_reads() {
        let small = cost(0.0, 4e6, 4e6);
        let l2_bytes = 50_000_000;
        assert!(
            (floor_us(&small, CacheState::Cold, l2_bytes, &roofs()).unwrap() - 0.95).abs() < 1e-9
        );
        assert_eq!(
            floor_us(&small, CacheState::Hot, l2_bytes, &roofs()),
            Some(0.0)
        );
    }

    #[test]
    fn a_problem_is_held_against_its_own_mix_of_reads_and_writes() {
        let name = |read_bytes, written_bytes| {
            let cost = cost(0.0, read_bytes, written_bytes);
            roofs().bandwidth_for(&cost).map(|roof| roof.name.clone())
        };
        assert_eq!(name(1.0, 1.0).as_deref(), Some("memcpy"));
        assert_eq!(name(1.0, 0.1).as_deref(), Some("read"));
        assert_eq!(Roofs::default().bandwidth_for(&cost(0.0, 1.0, 1.0)), None);
    }

    #[test]
    fn no_roof_no_floor() {
        assert_eq!(
            floor_us(&cost(1.0, 1.0, 1.0), CacheState::Cold, 0, &Roofs::default()),
            None
        );
    }

    #[test]
    fn long_sums_of_few_bytes_are_bound_by_arithmetic() {
        let bound = |flops, bytes| {
            is_compute_bound(&cost(flops, bytes, 0.0), CacheState::Cold, 0, &roofs())
        };
        assert_eq!(bound(1e9, 1e6), Some(true));
        assert_eq!(bound(1e6, 1e9), Some(false));
        let unknown = Roofs::default();
        let cost = cost(1e9, 1e6, 0.0);
        assert_eq!(is_compute_bound(&cost, CacheState::Cold, 0, &unknown), None);
    }
}
