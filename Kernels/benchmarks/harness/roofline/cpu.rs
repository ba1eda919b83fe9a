//! Roofs of the CPU: copy, triad and read on all cores, and fused multiply-adds.

use std::fmt;

use device::Device;
use rayon::prelude::*;

use crate::cpu_fma;
use crate::peak::{best_of, Amount};
use crate::{Measured, RooflineError};

/// Arrays are twice the last-level cache within these limits, and at most this share of memory.
const LEAST_BYTES: u64 = 64 << 20;
const MOST_BYTES: u64 = 1 << 30;
const MEMORY_SHARE: u64 = 16;

/// Elements per thread and chunk.
#[derive(Clone, Copy)]
struct Chunk(usize);

const CHUNKS: [Chunk; 2] = [Chunk(1 << 14), Chunk(1 << 18)];

impl fmt::Display for Chunk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kibibytes = self.0 * size_of::<f32>() / 1024;
        write!(formatter, "all cores, chunks of {kibibytes} KiB")
    }
}

const SCALE: f32 = 0.40625;

pub(crate) fn measure(device: &dyn Device) -> Result<Measured, RooflineError> {
    let info = device.info();
    let bytes = (2 * info.l2_bytes)
        .clamp(LEAST_BYTES, MOST_BYTES)
        .min(info.memory_bytes / MEMORY_SHARE);
    let elements = bytes as usize / size_of::<f32>();
    let (a, b) = (noise(elements, 0), noise(elements, 1));
    let mut out = vec![0.0; elements];
    let moved = |arrays: usize| Amount::Bytes((arrays * elements * size_of::<f32>()) as f64);

    let copy = best_of(
        device,
        "dram_copy",
        &CHUNKS,
        |_| moved(2),
        |chunk, _| {
            copy(&mut out, &a, chunk.0);
            Ok(())
        },
    )?;
    let triad = best_of(
        device,
        "dram_triad",
        &CHUNKS,
        |_| moved(3),
        |chunk, _| {
            triad(&mut out, &a, &b, chunk.0);
            Ok(())
        },
    )?;
    let read = best_of(
        device,
        "dram_read",
        &CHUNKS,
        |_| moved(1),
        |chunk, _| {
            std::hint::black_box(sum(&a, chunk.0));
            Ok(())
        },
    )?;
    let threads = info.multiprocessors as usize;
    let fp32 = best_of(
        device,
        "fp32",
        &cpu_fma::available(),
        |unit| Amount::Flops(unit.flops() * threads as f64),
        |unit, _| {
            (0..threads).into_par_iter().for_each(|_| {
                std::hint::black_box(unit.run());
            });
            Ok(())
        },
    )?;
    Ok(Measured {
        peaks: vec![copy, triad, read, fp32],
        notes: Vec::new(),
    })
}

fn noise(elements: usize, tensor: u32) -> Vec<f32> {
    (0..elements as u64)
        .into_par_iter()
        .map(|index| numeric::uniform(numeric::bits(1, tensor, index), -1.0, 1.0))
        .collect()
}

fn copy(out: &mut [f32], a: &[f32], chunk: usize) {
    out.par_chunks_mut(chunk)
        .zip(a.par_chunks(chunk))
        .for_each(|(out, a)| out.copy_from_slice(a));
}

fn triad(out: &mut [f32], a: &[f32], b: &[f32], chunk: usize) {
    out.par_chunks_mut(chunk)
        .zip(a.par_chunks(chunk).zip(b.par_chunks(chunk)))
        .for_each(|(out, (a, b))| {
            for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
                *out = a + SCALE * b;
            }
        });
}

/// Sixteen independent sums, so that additions do not wait for each other.
fn sum(a: &[f32], chunk: usize) -> f32 {
    a.par_chunks(chunk)
        .map(|part| {
            let mut sums = [0.0f32; 16];
            for values in part.chunks_exact(16) {
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum += value;
                }
            }
            sums.iter().sum::<f32>()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passes_compute_what_they_say() {
        let (a, b) = (noise(1000, 0), noise(1000, 1));
        let mut out = vec![0.0; 1000];
        copy(&mut out, &a, 64);
        assert_eq!(out, a);
        triad(&mut out, &a, &b, 64);
        assert_eq!(out[999], a[999] + SCALE * b[999]);
        let total: f32 = sum(&vec![1.0; 1024], 64);
        assert_eq!(total, 1024.0);
    }
}
