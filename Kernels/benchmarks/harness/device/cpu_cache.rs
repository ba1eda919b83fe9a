//! Evicting the data under measurement from the CPU's caches.

use std::collections::BTreeMap;

/// Flushes by line if the architecture allows it, otherwise by sweeping.
///
/// By line: every line of every live allocation is written back and evicted from every level; exact
/// and cheap for small problems, which matters if a virtual machine reports a huge shared cache.
/// By sweep: writes twice the last-level cache, then reads as much other memory, so that the cache
/// holds neither the work's lines nor dirty ones.
pub(crate) struct Flush {
    last_level_bytes: usize,
}

#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

impl Flush {
    pub(crate) fn new(last_level_bytes: usize) -> Self {
        Self { last_level_bytes }
    }

    pub(crate) fn run(&self, live: &BTreeMap<usize, usize>) {
        if cfg!(target_arch = "x86_64") {
            for (address, bytes) in live {
                drop_lines(*address, *bytes);
            }
        } else {
            sweep(self.last_level_bytes);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn drop_lines(address: usize, bytes: usize) {
    use std::arch::x86_64::{_mm_clflush, _mm_mfence};
    for line in (address..address + bytes).step_by(LINE_BYTES) {
        // SAFETY: the line is part of a live allocation; clflush is SSE2, which x86-64 always has.
        unsafe { _mm_clflush(line as *const u8) };
    }
    // SAFETY: SSE2 as well. Orders the flushes before the timed work.
    unsafe { _mm_mfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn drop_lines(_address: usize, _bytes: usize) {
    unreachable!("lines are flushed on x86-64 only");
}

fn sweep(last_level_bytes: usize) {
    let mut written = vec![0u64; last_level_bytes / 4];
    let read = vec![1u64; last_level_bytes / 4];
    for (index, word) in written.iter_mut().enumerate() {
        *word = index as u64;
    }
    std::hint::black_box(&written);
    std::hint::black_box(
        read.iter()
            .fold(0, |sum: u64, word| sum.wrapping_add(*word)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stride in words between visited lines: more than a page, to defeat prefetchers.
    const STRIDE_WORDS: usize = 69 * 8;
    const WORDS: usize = 1 << 16;

    /// A chain of dependent loads, one per line: its time is the latency of wherever the data is.
    fn chase(next: &[u64]) -> (u64, std::time::Duration) {
        let start = std::time::Instant::now();
        let mut at = 0;
        for _ in 0..WORDS / 8 {
            at = std::hint::black_box(next)[at as usize];
        }
        (at, start.elapsed())
    }

    #[test]
    fn flushed_data_keeps_its_value_and_reads_slower() {
        let next: Vec<u64> = (0..WORDS)
            .map(|at| ((at + STRIDE_WORDS) % WORDS) as u64)
            .collect();
        let live = BTreeMap::from([(next.as_ptr() as usize, WORDS * 8)]);
        let flush = Flush::new(1 << 20);
        let fastest = |flushed: bool| {
            (0..20)
                .map(|_| {
                    if flushed {
                        flush.run(&live);
                    }
                    let (end, elapsed) = chase(&next);
                    assert_eq!(end, 0, "the chain closes after a whole round");
                    elapsed
                })
                .min()
                .expect("twenty tries")
        };
        fastest(false);
        let (hot, cold) = (fastest(false), fastest(true));
        if cfg!(target_arch = "x86_64") {
            assert!(cold > hot * 3 / 2, "cold {cold:?}, hot {hot:?}");
        }
    }

    #[test]
    fn sweep_runs() {
        sweep(1 << 16);
    }
}
