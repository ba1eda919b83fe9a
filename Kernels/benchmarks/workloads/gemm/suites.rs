//! Suites of shapes for dense GEMMs.

use contender::{Workload, SHAPES_SEED};

use super::shape::{GemmShape, RowLayout};
use crate::suite::{axes, suites, workload};
use crate::unseen::{distinct, Draws, SHAPES};

suites! {
    pub enum GemmSuite {
        Square("square", "cubes of 512 to 16384"),
        Dsv3("dsv3", "DeepSeek-V3's projections, decode and prefill rows"),
        Llama("llama", "projections of Llama 3 8B and 70B"),
        Logits("logits", "Llama 3 8B's last product, 16 and 64 rows"),
        Unseen("unseen", "24 shapes drawn by --shapes-seed, within the ranges of models"),
        Smoke("smoke", "small shapes; fits a CPU"),
    }
}

const SQUARES: [usize; 6] = [512, 1024, 2048, 4096, 8192, 16384];
/// Rows: tokens of a decode step, and of a prefill chunk.
const DSV3_ROWS: [usize; 3] = [64, 128, 4096];
/// n x k of DeepSeek-V3's projections, as in DeepGEMM's tests.
const DSV3: [(usize, usize); 6] = [
    (2112, 7168),
    (24576, 1536),
    (32768, 512),
    (7168, 16384),
    (4096, 7168),
    (7168, 2048),
];
const LLAMA_ROWS: [usize; 3] = [16, 512, 8192];
/// n x k of Llama 3 8B (qkv, o, gate-up, down) and 70B (qkv, gate-up, down).
const LLAMA: [(usize, usize); 7] = [
    (6144, 4096),
    (4096, 4096),
    (28672, 4096),
    (4096, 14336),
    (10240, 8192),
    (57344, 8192),
    (8192, 28672),
];
/// n x k of Llama 3 8B's vocabulary.
const LOGITS: (usize, usize) = (128_256, 4096);
/// Small, with sizes that are not multiples of a tile; k is a multiple of 128, as FP8 requires. The
/// last two have few tiles with a long k, and more tall tiles than there are blocks, so that
/// sanitizers see those kernels too.
const SMOKE: [(usize, usize, usize); 5] = [
    (1, 128, 128),
    (65, 272, 384),
    (256, 512, 256),
    (130, 520, 2048),
    (1100, 2888, 128),
];

pub type DenseWorkload = (GemmShape, RowLayout, Workload);

impl GemmSuite {
    /// The suite as published.
    pub fn workloads(self) -> Vec<DenseWorkload> {
        self.drawn(SHAPES_SEED)
    }

    /// The suite, with unseen shapes of a seed.
    pub fn drawn(self, seed: u64) -> Vec<DenseWorkload> {
        let grid = |rows: &[usize], sides: &[(usize, usize)], provenance: &str| {
            rows.iter()
                .flat_map(|&m| sides.iter().map(move |&(n, k)| (m, n, k)))
                .map(|(m, n, k)| dense(&self.to_string(), m, n, k, provenance))
                .collect()
        };
        match self {
            GemmSuite::Square => SQUARES
                .iter()
                .map(|&side| dense("square", side, side, side, "cubes"))
                .collect(),
            GemmSuite::Dsv3 => grid(
                &DSV3_ROWS,
                &DSV3,
                "DeepSeek-V3 projections, as in DeepGEMM's tests",
            ),
            GemmSuite::Llama => grid(
                &LLAMA_ROWS,
                &LLAMA,
                "projections of Llama 3 8B and 70B: qkv, o, gate and up together, down",
            ),
            GemmSuite::Logits => grid(&[16, 64], &[LOGITS], "the vocabulary of Llama 3 8B"),
            GemmSuite::Unseen => distinct(seed, SHAPES, unseen, |(_, _, workload)| workload),
            GemmSuite::Smoke => SMOKE
                .iter()
                .map(|&(m, n, k)| dense("smoke", m, n, k, "small shapes of this project"))
                .collect(),
        }
    }

    /// A custom shape.
    pub fn custom(m: usize, n: usize, k: usize) -> DenseWorkload {
        dense("custom", m, n, k, "given on the command line")
    }
}

/// A projection of a model: rows of any number, sides of whole vectors, and of whole tiles three
/// times in four.
fn unseen(draws: Draws) -> DenseWorkload {
    let m = draws.size(0, 1, 16_384, 1);
    let n = draws.size(1, 512, 32_768, draws.one_of(2, &[8, 64, 128, 256]));
    let k = draws.size(3, 512, 28_672, 128);
    let provenance = "drawn within the ranges of projections from Qwen2.5 0.5B to Llama 3 405B";
    dense("unseen", m, n, k, provenance)
}

fn dense(suite: &str, m: usize, n: usize, k: usize, provenance: &str) -> DenseWorkload {
    let axes = axes([("m", m), ("n", n), ("k", k)]);
    let workload = workload(suite, format!("{m}x{n}x{k}"), provenance, axes);
    (GemmShape { n, k }, RowLayout::dense(m), workload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_named_once;

    #[test]
    fn unseen_shapes_are_drawn_and_legal() {
        let sizes = |(shape, layout, _): DenseWorkload| (layout.rows, shape);
        let drawn = |seed| GemmSuite::Unseen.drawn(seed).into_iter().map(sizes);
        crate::unseen::assert_drawn(|seed| drawn(seed).collect(), 24);
        for (m, GemmShape { n, k }) in (0..40).flat_map(drawn) {
            assert!(m > 0 && n.is_multiple_of(8) && k.is_multiple_of(128));
            assert!(m * n <= 1 << 29 && n * k <= 1 << 30);
        }
    }

    #[test]
    fn names_are_unique_and_axes_say_the_shape() {
        for suite in GemmSuite::all() {
            let workloads = suite.workloads();
            assert_named_once(suite, workloads.iter().map(|(_, _, workload)| workload));
            for (shape, layout, workload) in &workloads {
                let (m, n, k) = (layout.rows, shape.n, shape.k);
                assert_eq!(workload.axes, axes([("m", m), ("n", n), ("k", k)]));
                assert_eq!(k % 128, 0);
            }
        }
        assert_eq!(GemmSuite::Dsv3.workloads().len(), 18);
    }
}
