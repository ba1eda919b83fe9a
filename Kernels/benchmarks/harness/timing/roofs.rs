//! The measured limits of a device, and the least time that they leave for a problem.

use std::collections::BTreeMap;

use contender::{Cost, Math};

use crate::CacheState;

/// What a device was measured to do at best. Empty where nothing has been measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Roofs {
    /// Best of copy, triad and read.
    pub bandwidth: Option<Bandwidth>,
    /// Peaks by the name of [`Roofs::math_name`].
    pub tflops: BTreeMap<String, f64>,
}

/// A measured rate of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Bandwidth {
    pub name: String,
    pub tbps: f64,
}

/// A measured roof is itself a measurement: a time this much below it is still possible.
const ROOF_SLACK: f64 = 0.05;

impl Roofs {
    /// The name under which the peak of a kind of arithmetic is recorded: `fp32`, `tensor_bf16`.
    pub fn math_name(math: Math) -> String {
        match math {
            Math::Fp32 => "fp32".to_owned(),
            Math::TensorCore(dtype) => format!("tensor_{dtype}"),
        }
    }

    pub fn peak_tflops(&self, math: Math) -> Option<f64> {
        self.tflops.get(&Self::math_name(math)).copied()
    }
}

/// The time below which a measurement cannot be true. `None` where no roof is known.
pub fn floor_us(cost: &Cost, cache: CacheState, l2_bytes: u64, roofs: &Roofs) -> Option<f64> {
    let bytes = cost.read_bytes + cost.written_bytes;
    // What fits in the cache need not be written back in time, or be read at all when hot.
    let through_cache = (bytes - l2_bytes as f64).max(0.0);
    let moved = match cache {
        CacheState::Cold => through_cache.max(cost.read_bytes),
        CacheState::Hot => through_cache,
    };
    let memory = roofs
        .bandwidth
        .as_ref()
        .map(|roof| moved / (roof.tbps * 1e6));
    let compute = roofs
        .peak_tflops(cost.math)
        .map(|tflops| cost.flops / (tflops * 1e6));
    let floor = memory.into_iter().chain(compute).reduce(f64::max)?;
    Some(floor * (1.0 - ROOF_SLACK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roofs() -> Roofs {
        Roofs {
            bandwidth: Some(Bandwidth {
                name: "hbm_read".into(),
                tbps: 4.0,
            }),
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
    fn no_roof_no_floor() {
        assert_eq!(
            floor_us(&cost(1.0, 1.0, 1.0), CacheState::Cold, 0, &Roofs::default()),
            None
        );
    }
}
