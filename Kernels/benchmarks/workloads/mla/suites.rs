//! Suites of shapes for multi-head latent attention decode.

use contender::{Workload, SHAPES_SEED};
use serde_json::Value;

use super::shape::{MlaShape, MLA_LATENT, MLA_ROPE, MLA_WIDTH};
use crate::paged::lengths::{jittered, long_tail};
use crate::paged::KvType;
use crate::suite::{axes, suites, workload};
use crate::unseen::{distinct, Draws, SHAPES};

suites! {
    pub enum MlaSuite {
        Dsv3("dsv3", "DeepSeek-V3: 128 heads, or 16 of them, pages of 64"),
        Kimi("kimi", "Kimi K2: 64 heads, 8k to 128k tokens, pages of 32"),
        LongTail("long_tail", "batches of many short and a few long sequences"),
        Fp8("fp8", "FP8 caches with a scale: 128, 64 or 16 heads, pages of 64"),
        Jittered("jittered", "batches of lengths that all differ, from half of the longest on"),
        Unseen("unseen", "24 shapes drawn by --shapes-seed, within the ranges of models"),
        Smoke("smoke", "small shapes and edge cases; fits a CPU"),
    }
}

/// Heads, batch, context, new tokens.
type Step = (usize, usize, usize, usize);

/// All heads on one GPU, and one GPU's share with tensor parallelism over 8.
const DSV3: [Step; 9] = [
    (128, 1, 32_768, 1),
    (128, 16, 8192, 1),
    (128, 64, 4096, 1),
    (128, 16, 32_768, 1),
    (128, 16, 8192, 2),
    (16, 1, 32_768, 1),
    (16, 64, 4096, 1),
    (16, 128, 8192, 1),
    (16, 64, 4096, 4),
];
const KIMI: [Step; 5] = [
    (64, 1, 65_536, 1),
    (64, 1, 131_072, 1),
    (64, 8, 65_536, 1),
    (64, 64, 8192, 1),
    (64, 32, 8192, 2),
];
/// For an FP8 cache, which holds twice the tokens in the same bytes.
const FP8: [Step; 9] = [
    (128, 1, 65_536, 1),
    (128, 16, 16_384, 1),
    (128, 64, 8192, 1),
    (128, 16, 16_384, 2),
    (64, 1, 131_072, 1),
    (64, 64, 16_384, 1),
    (16, 1, 65_536, 1),
    (16, 64, 8192, 1),
    (16, 128, 16_384, 1),
];

impl MlaSuite {
    /// The suite as published.
    pub fn workloads(self) -> Vec<(MlaShape, Workload)> {
        self.drawn(SHAPES_SEED)
    }

    /// The suite, with unseen shapes of a seed.
    pub fn drawn(self, seed: u64) -> Vec<(MlaShape, Workload)> {
        let even = |steps: &[Step], page_size, kv_type, provenance: &str| {
            let step = |&(heads, batch, context, q_len): &Step| {
                let shape = MlaShape {
                    lengths: vec![context; batch],
                    q_len,
                    heads,
                    page_size,
                    kv_type,
                };
                named(&self.to_string(), format!("s{context}"), shape, provenance)
            };
            steps.iter().map(step).collect::<Vec<_>>()
        };
        match self {
            MlaSuite::Dsv3 => even(
                &DSV3,
                64,
                KvType::Same,
                "DeepSeek-V3: 128 heads, 16 on one of eight GPUs; latent 512, rope 64",
            ),
            MlaSuite::Kimi => even(
                &KIMI,
                32,
                KvType::Same,
                "Kimi K2: 64 heads; latent 512, rope 64",
            ),
            MlaSuite::Fp8 => even(
                &FP8,
                64,
                KvType::Fp8,
                "DeepSeek-V3 and Kimi K2: 128 or 64 heads, 16 on one of eight GPUs; latent 512, rope 64",
            ),
            MlaSuite::LongTail => [(128, 32, 32_768), (64, 64, 32_768), (16, 128, 65_536)]
                .map(|(heads, batch, longest)| {
                    let shape = MlaShape {
                        lengths: long_tail(batch, 64, longest),
                        q_len: 1,
                        heads,
                        page_size: 64,
                        kv_type: KvType::Same,
                    };
                    let provenance = "lengths log-uniform from 64 tokens; latent 512, rope 64";
                    named("long_tail", format!("tail{longest}"), shape, provenance)
                })
                .to_vec(),
            MlaSuite::Jittered => [
                (128, 16, 8192),
                (128, 64, 4096),
                (16, 64, 8192),
                (64, 32, 16_384),
            ]
            .map(|(heads, batch, longest)| {
                let shape = MlaShape {
                    lengths: jittered(batch, longest),
                    q_len: 1,
                    heads,
                    page_size: 64,
                    kv_type: KvType::Same,
                };
                let provenance = "lengths between half and all of the longest, no two alike";
                named("jittered", format!("jit{longest}"), shape, provenance)
            })
            .to_vec(),
            MlaSuite::Unseen => distinct(seed, SHAPES, unseen, |(_, workload)| workload),
            MlaSuite::Smoke => {
                let edge = |name: &str, lengths: &[usize], heads, q_len, page_size, kv_type| {
                    let shape = MlaShape {
                        lengths: lengths.to_vec(),
                        q_len,
                        heads,
                        page_size,
                        kv_type,
                    };
                    let provenance = "small shapes and edge cases of this project";
                    named("smoke", name.to_owned(), shape, provenance)
                };
                vec![
                    edge("edges", &[1, 0, 32, 33, 70], 16, 1, 32, KvType::Same),
                    edge("two", &[130, 64], 16, 2, 64, KvType::Same),
                    edge("even", &[256], 64, 1, 64, KvType::Same),
                    edge("wide", &[200, 130, 0, 1], 128, 1, 64, KvType::Same),
                    edge("codes", &[1, 0, 33, 70], 16, 1, 16, KvType::Fp8),
                    edge("wide", &[200, 130, 0, 1], 128, 1, 64, KvType::Fp8),
                ]
            }
        }
    }

    /// The workload of a custom shape.
    pub fn custom(shape: &MlaShape) -> Workload {
        let longest = shape.lengths.iter().max().unwrap_or(&0);
        named(
            "custom",
            format!("s{longest}"),
            shape.clone(),
            "given on the command line",
        )
        .1
    }
}

/// A step of DeepSeek-V2, V3 or Kimi K2, or of one of several GPUs that share it.
fn unseen(draws: Draws) -> (MlaShape, Workload) {
    let context = draws.size(0, 128, 131_072, 1);
    let batch = draws
        .size(1, 1, 256, 1)
        .min((UNSEEN_TOKENS / context).max(1));
    let shape = MlaShape {
        lengths: draws.lengths(2, batch, context),
        q_len: draws.one_of(5, &[1, 1, 1, 2]),
        heads: draws.one_of(6, &[8, 16, 16, 32, 64, 128, 128]),
        page_size: draws.one_of(7, &[32, 64, 64]),
        kv_type: KvType::Same,
    };
    let provenance = "drawn within the ranges of DeepSeek-V2, V3 and Kimi K2; latent 512, rope 64";
    named("unseen", format!("s{context}"), shape, provenance)
}

/// Cached tokens of a drawn step: 2 GiB of bf16.
const UNSEEN_TOKENS: usize = (1 << 30) / MLA_WIDTH;

fn named(suite: &str, what: String, shape: MlaShape, provenance: &str) -> (MlaShape, Workload) {
    let MlaShape {
        q_len,
        heads,
        page_size,
        kv_type,
        ..
    } = shape;
    let mut axes = axes([
        ("batch", shape.batch()),
        ("q_len", q_len),
        ("heads", heads),
        ("page_size", page_size),
        ("latent_dim", MLA_LATENT),
        ("rope_dim", MLA_ROPE),
        ("kv_tokens", shape.lengths.iter().sum()),
        (
            "kv_longest",
            shape.lengths.iter().max().copied().unwrap_or(0),
        ),
    ]);
    let mut name = format!("h{heads}_b{}{what}_p{page_size}_q{q_len}", shape.batch());
    // If not set, the cache has the row's type.
    if kv_type == KvType::Fp8 {
        axes.insert("kv_dtype".to_owned(), Value::from("fp8_e4m3"));
        name.push_str("_fp8");
    }
    (shape, workload(suite, name, provenance, axes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_named_once;

    #[test]
    fn unseen_shapes_are_drawn_legal_and_fit() {
        let drawn = |seed| MlaSuite::Unseen.drawn(seed);
        crate::unseen::assert_drawn(|seed| drawn(seed).into_iter().map(|w| w.0).collect(), 24);
        for (shape, _) in (0..40).flat_map(drawn) {
            assert!(shape.lengths.iter().sum::<usize>() <= UNSEEN_TOKENS);
            assert!(shape.lengths.iter().all(|length| *length >= shape.q_len));
        }
    }

    #[test]
    fn names_are_unique_and_axes_say_the_shape() {
        for suite in MlaSuite::all() {
            let workloads = suite.workloads();
            assert_named_once(suite, workloads.iter().map(|(_, workload)| workload));
            for (shape, workload) in &workloads {
                assert_eq!(workload.axes["batch"], shape.batch());
                assert_eq!(workload.axes["heads"], shape.heads);
                let has_kv_dtype = workload.axes.contains_key("kv_dtype");
                assert_eq!(has_kv_dtype, shape.kv_type == KvType::Fp8);
            }
        }
    }
    #[test]
    fn the_suite_of_fp8_caches_has_no_other() {
        let is_fp8 = |suite: MlaSuite| -> Vec<bool> {
            let workloads = suite.workloads().into_iter();
            workloads
                .map(|(shape, _)| shape.kv_type == KvType::Fp8)
                .collect()
        };
        assert!(is_fp8(MlaSuite::Fp8).into_iter().all(|fp8| fp8));
        assert!(is_fp8(MlaSuite::Dsv3).into_iter().all(|fp8| !fp8));
        assert!(is_fp8(MlaSuite::Smoke).contains(&true));
    }
}
