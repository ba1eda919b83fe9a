//! Suites of shapes for decode attention.

use contender::{Workload, SHAPES_SEED};
use serde_json::Value;

use super::shape::{DecodeShape, KvLayout};
use crate::paged::lengths::{jittered, long_tail};
use crate::paged::KvType;
use crate::suite::{axes, suites, workload};
use crate::unseen::{distinct, Draws, SHAPES};

suites! {
    pub enum DecodeSuite {
        Modular("modular", "Llama 3 8B, batch 1 to 128, pages of 128"),
        Llama("llama", "Llama models, batch 1 to 256, 1k to 128k tokens, pages of 16"),
        Qwen("qwen", "Qwen models, batch 1 to 256, 4k to 128k tokens, pages of 64"),
        LongTail("long_tail", "batches of many short and a few long sequences"),
        Speculative("speculative", "2 to 8 new tokens per sequence"),
        Pages("pages", "pages of 1 to 128 tokens in both layouts, heads of 64"),
        Fp8("fp8", "FP8 caches with a scale, batch 1 to 256, 2k to 128k tokens"),
        Jittered("jittered", "batches of lengths that all differ, from half of the longest on"),
        Unseen("unseen", "24 shapes drawn by --shapes-seed, within the ranges of models"),
        Smoke("smoke", "small shapes and edge cases; fits a CPU"),
    }
}

/// Attention of a model: query heads, KV heads, head dim.
struct Model {
    name: &'static str,
    provenance: &'static str,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
}

const LLAMA_8B: Model = Model {
    name: "llama8b",
    provenance: "Llama 3 8B: 32 heads, 8 KV heads, 128 each",
    heads: 32,
    kv_heads: 8,
    head_dim: 128,
};
const LLAMA_70B: Model = Model {
    name: "llama70b",
    provenance: "Llama 3 70B: 64 heads, 8 KV heads, 128 each",
    heads: 64,
    kv_heads: 8,
    head_dim: 128,
};
const LLAMA_1B: Model = Model {
    name: "llama1b",
    provenance: "Llama 3.2 1B: 32 heads, 8 KV heads, 64 each",
    heads: 32,
    kv_heads: 8,
    head_dim: 64,
};
const LLAMA2_7B: Model = Model {
    name: "llama2_7b",
    provenance: "Llama 2 7B: 32 heads, 32 KV heads, 128 each",
    heads: 32,
    kv_heads: 32,
    head_dim: 128,
};
const QWEN_7B: Model = Model {
    name: "qwen7b",
    provenance: "Qwen2.5 7B: 28 heads, 4 KV heads, 128 each",
    heads: 28,
    kv_heads: 4,
    head_dim: 128,
};
const QWEN_235B: Model = Model {
    name: "qwen235b",
    provenance: "Qwen3 235B-A22B: 64 heads, 4 KV heads, 128 each",
    heads: 64,
    kv_heads: 4,
    head_dim: 128,
};

/// Batch and context of one step.
const LLAMA_STEPS: [(usize, usize); 8] = [
    (1, 1024),
    (1, 8192),
    (1, 65_536),
    (1, 131_072),
    (16, 8192),
    (64, 4096),
    (64, 32_768),
    (256, 1024),
];
const QWEN_STEPS: [(usize, usize); 5] = [
    (1, 32_768),
    (8, 131_072),
    (32, 8192),
    (128, 4096),
    (256, 8192),
];
/// For an FP8 cache, which holds twice the tokens in the same bytes.
const FP8_STEPS: [(usize, usize); 6] = [
    (1, 8192),
    (1, 131_072),
    (16, 16_384),
    (64, 8192),
    (64, 32_768),
    (256, 2048),
];
const MODULAR_BATCHES: [usize; 4] = [1, 8, 32, 128];
const MODULAR_CONTEXTS: [usize; 2] = [1024, 8192];

/// Model, batch, longest sequence.
const JITTERED: [(&Model, usize, usize); 8] = [
    (&LLAMA_8B, 8, 32_768),
    (&LLAMA_8B, 32, 8192),
    (&LLAMA_8B, 128, 4096),
    (&LLAMA_70B, 16, 8192),
    (&LLAMA_70B, 64, 4096),
    (&LLAMA_70B, 256, 1024),
    (&QWEN_7B, 32, 16_384),
    (&QWEN_235B, 64, 8192),
];

impl DecodeSuite {
    /// The suite as published.
    pub fn workloads(self) -> Vec<(DecodeShape, Workload)> {
        self.drawn(SHAPES_SEED)
    }

    /// The suite, with unseen shapes of a seed.
    pub fn drawn(self, seed: u64) -> Vec<(DecodeShape, Workload)> {
        let entries: Vec<Entry> = match self {
            DecodeSuite::Modular => MODULAR_BATCHES
                .iter()
                .flat_map(|&batch| {
                    MODULAR_CONTEXTS.map(|context| even(&LLAMA_8B, batch, context).pages(128))
                })
                .collect(),
            DecodeSuite::Llama => [LLAMA_8B, LLAMA_70B]
                .iter()
                .flat_map(|model| {
                    LLAMA_STEPS.map(|(batch, context)| even(model, batch, context).pages(16))
                })
                .chain([even(&LLAMA2_7B, 32, 4096).pages(16)])
                .collect(),
            DecodeSuite::Qwen => [QWEN_7B, QWEN_235B]
                .iter()
                .flat_map(|model| {
                    QWEN_STEPS.map(|(batch, context)| even(model, batch, context).pages(64))
                })
                .collect(),
            DecodeSuite::LongTail => [(16, 131_072), (64, 65_536), (256, 32_768)]
                .iter()
                .flat_map(|&(batch, longest)| {
                    [&LLAMA_8B, &LLAMA_70B].map(|model| tail(model, batch, longest).pages(16))
                })
                .collect(),
            DecodeSuite::Speculative => [(2, &LLAMA_8B), (4, &LLAMA_8B), (8, &LLAMA_8B)]
                .into_iter()
                .chain([(2, &LLAMA_70B), (4, &LLAMA_70B)])
                .map(|(q_len, model)| even(model, 32, 8192).pages(16).queries(q_len))
                .collect(),
            DecodeSuite::Pages => pages(),
            DecodeSuite::Fp8 => [LLAMA_8B, LLAMA_70B]
                .iter()
                .flat_map(|model| {
                    FP8_STEPS.map(|(batch, context)| even(model, batch, context).pages(16).fp8())
                })
                .chain([
                    tail(&LLAMA_8B, 64, 65_536).pages(16).fp8(),
                    even(&QWEN_235B, 32, 16_384).pages(64).fp8(),
                ])
                .collect(),
            DecodeSuite::Jittered => JITTERED
                .iter()
                .map(|&(model, batch, longest)| uneven(model, batch, longest).pages(16))
                .collect(),
            DecodeSuite::Unseen => {
                let draw = |draws| unseen(draws).workload("unseen");
                return distinct(seed, SHAPES, draw, |(_, workload)| workload);
            }
            DecodeSuite::Smoke => smoke(),
        };
        let suite = self.to_string();
        entries
            .into_iter()
            .map(|entry| entry.workload(&suite))
            .collect()
    }

    /// The workload of a custom shape.
    pub fn custom(shape: &DecodeShape) -> Workload {
        Entry {
            name: format!(
                "b{}s{}h{}kv{}d{}p{}{}q{}{}",
                shape.batch(),
                shape.lengths.iter().max().unwrap_or(&0),
                shape.heads,
                shape.kv_heads,
                shape.head_dim,
                shape.page_size,
                shape.layout,
                shape.q_len,
                match shape.kv_type {
                    KvType::Same => "",
                    KvType::Fp8 => "_fp8",
                }
            ),
            provenance: "given on the command line".to_owned(),
            shape: shape.clone(),
        }
        .workload("custom")
        .1
    }
}

fn pages() -> Vec<Entry> {
    let mut entries = Vec::new();
    for layout in [KvLayout::Nhd, KvLayout::Hnd] {
        for page_size in [1, 16, 32, 64, 128] {
            entries.push(even(&LLAMA_8B, 32, 8192).pages(page_size).laid_out(layout));
        }
        entries.push(even(&LLAMA_1B, 32, 8192).pages(16).laid_out(layout));
    }
    entries
}

/// A step of a model of today, or of one of eight GPUs that share it.
fn unseen(draws: Draws) -> Entry {
    let kv_heads = draws.one_of(0, &[1, 2, 4, 8, 8, 16]);
    let group = draws.one_of(1, &[1, 2, 4, 4, 5, 6, 7, 8, 8, 12, 16]);
    let head_dim = draws.one_of(2, &[64, 128, 128, 128]);
    let context = draws.size(3, 128, 131_072, 1);
    let token = kv_heads * head_dim;
    let batch = draws
        .size(4, 1, 256, 1)
        .min((UNSEEN_ELEMENTS / (token * context)).max(1));
    let q_len = if draws.once_in(5, 6) {
        2 + draws.below(6, 4)
    } else {
        1
    };
    let model = Model {
        name: "unseen",
        provenance: "drawn within the ranges of Llama, Qwen, Mistral, Gemma and GLM models",
        heads: kv_heads * group,
        kv_heads,
        head_dim,
    };
    let lengths = draws.lengths(7, batch, context.max(q_len));
    let name = format!("h{}kv{kv_heads}d{head_dim}_b{batch}s{context}", model.heads);
    let mut entry = entry(&model, name, lengths).pages(draws.one_of(10, &[16, 16, 32, 64, 128]));
    entry
        .shape
        .lengths
        .iter_mut()
        .for_each(|length| *length = (*length).max(q_len));
    if draws.once_in(11, 4) {
        entry = entry.laid_out(KvLayout::Hnd);
    }
    if q_len > 1 {
        entry = entry.queries(q_len);
    } else if draws.once_in(12, 5) {
        entry = entry.fp8();
    }
    entry
}

/// Elements of the keys of a drawn step: 2 GiB of bf16.
const UNSEEN_ELEMENTS: usize = 1 << 30;

/// Edge cases: one token, an empty sequence, last pages that are full, nearly empty and in between.
fn smoke() -> Vec<Entry> {
    const SMALL: Model = Model {
        name: "small",
        provenance: "small shapes and edge cases of this project",
        heads: 8,
        kv_heads: 2,
        head_dim: 64,
    };
    let ragged = |name: &str, lengths: &[usize]| {
        let mut entry = even(&SMALL, 1, 1);
        entry.name = name.to_owned();
        entry.shape.lengths = lengths.to_vec();
        entry
    };
    let wide = Model {
        head_dim: 128,
        name: "wide",
        ..SMALL
    };
    vec![
        ragged("edges", &[1, 0, 16, 17, 31, 100]).pages(16),
        ragged("single", &[1]).pages(1),
        ragged("hnd", &[250, 3, 64])
            .pages(32)
            .laid_out(KvLayout::Hnd),
        even(&wide, 4, 300).pages(16).queries(3),
        even(&wide, 1, 2048).pages(64),
        ragged("codes", &[1, 0, 33, 130]).pages(16).fp8(),
        even(&wide, 2, 600).pages(32).queries(5).fp8(),
    ]
}

/// A workload under construction.
struct Entry {
    name: String,
    provenance: String,
    shape: DecodeShape,
}

fn even(model: &Model, batch: usize, context: usize) -> Entry {
    entry(model, format!("b{batch}s{context}"), vec![context; batch])
}

fn uneven(model: &Model, batch: usize, longest: usize) -> Entry {
    let mut entry = entry(
        model,
        format!("b{batch}jit{longest}"),
        jittered(batch, longest),
    );
    entry
        .provenance
        .push_str("; lengths between half and all of the longest, no two alike");
    entry
}

fn tail(model: &Model, batch: usize, longest: usize) -> Entry {
    let lengths = long_tail(batch, 64, longest);
    let mut entry = entry(model, format!("b{batch}tail{longest}"), lengths);
    entry
        .provenance
        .push_str("; lengths log-uniform from 64 tokens");
    entry
}

fn entry(model: &Model, step: String, lengths: Vec<usize>) -> Entry {
    Entry {
        name: format!("{}_{step}", model.name),
        provenance: model.provenance.to_owned(),
        shape: DecodeShape {
            lengths,
            q_len: 1,
            heads: model.heads,
            kv_heads: model.kv_heads,
            head_dim: model.head_dim,
            page_size: 16,
            layout: KvLayout::Nhd,
            kv_type: KvType::Same,
        },
    }
}

impl Entry {
    fn pages(mut self, page_size: usize) -> Self {
        self.shape.page_size = page_size;
        self.name.push_str(&format!("_p{page_size}"));
        self
    }

    fn laid_out(mut self, layout: KvLayout) -> Self {
        self.shape.layout = layout;
        self.name.push_str(&format!("_{layout}"));
        self
    }

    fn fp8(mut self) -> Self {
        self.shape.kv_type = KvType::Fp8;
        self.name.push_str("_fp8");
        self
    }

    fn queries(mut self, q_len: usize) -> Self {
        self.shape.q_len = q_len;
        self.name.push_str(&format!("_q{q_len}"));
        self
    }

    fn workload(self, suite: &str) -> (DecodeShape, Workload) {
        let shape = self.shape;
        let mut axes = axes([
            ("batch", shape.batch()),
            ("q_len", shape.q_len),
            ("heads", shape.heads),
            ("kv_heads", shape.kv_heads),
            ("head_dim", shape.head_dim),
            ("page_size", shape.page_size),
            ("kv_tokens", shape.lengths.iter().sum()),
            (
                "kv_longest",
                shape.lengths.iter().max().copied().unwrap_or(0),
            ),
        ]);
        axes.insert("layout".to_owned(), Value::from(shape.layout.to_string()));
        // If not set, the cache has the row's type.
        if shape.kv_type == KvType::Fp8 {
            axes.insert("kv_dtype".to_owned(), Value::from("fp8_e4m3"));
        }
        (shape, workload(suite, self.name, &self.provenance, axes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_named_once;

    #[test]
    fn names_are_unique_and_axes_say_the_shape() {
        for suite in DecodeSuite::all() {
            let workloads = suite.workloads();
            assert_named_once(suite, workloads.iter().map(|(_, workload)| workload));
            for (shape, workload) in &workloads {
                assert_eq!(workload.axes["batch"], shape.batch());
                assert_eq!(workload.axes["layout"], shape.layout.to_string());
                let has_kv_dtype = workload.axes.contains_key("kv_dtype");
                assert_eq!(has_kv_dtype, shape.kv_type == KvType::Fp8);
                assert!(shape.heads.is_multiple_of(shape.kv_heads));
            }
        }
    }

    #[test]
    fn unseen_shapes_are_drawn_legal_and_fit() {
        let drawn = |seed| DecodeSuite::Unseen.drawn(seed);
        crate::unseen::assert_drawn(|seed| drawn(seed).into_iter().map(|w| w.0).collect(), 24);
        for (shape, workload) in (0..40).flat_map(drawn) {
            assert!(
                shape.heads.is_multiple_of(shape.kv_heads),
                "{}",
                workload.name
            );
            let tokens: usize = shape.lengths.iter().sum();
            assert!(tokens * shape.kv_heads * shape.head_dim <= UNSEEN_ELEMENTS);
            assert!(shape.lengths.iter().all(|length| *length >= shape.q_len));
        }
    }

    #[test]
    fn no_two_jittered_sequences_are_alike() {
        for (shape, workload) in DecodeSuite::Jittered.workloads() {
            let mut lengths = shape.lengths.clone();
            lengths.sort_unstable();
            lengths.dedup();
            assert_eq!(lengths.len(), shape.batch(), "{}", workload.name);
        }
    }

    #[test]
    fn the_smoke_suite_has_the_edges() {
        let shapes: Vec<DecodeShape> = DecodeSuite::Smoke
            .workloads()
            .into_iter()
            .map(|(shape, _)| shape)
            .collect();
        let lengths = || shapes.iter().flat_map(|shape| &shape.lengths);
        assert!(lengths().any(|&n| n == 0) && lengths().any(|&n| n == 1));
        assert!(shapes.iter().any(|shape| shape.q_len > 1));
        assert!(shapes.iter().any(|shape| shape.layout == KvLayout::Hnd));
        assert!(shapes.iter().any(|shape| shape.kv_type == KvType::Fp8));
    }
}
