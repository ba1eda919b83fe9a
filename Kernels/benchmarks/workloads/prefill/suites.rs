//! Suites of prefill batches.

use std::collections::BTreeMap;

use contender::{Workload, SHAPES_SEED};
use numeric::{bits, uniform};

use super::shape::{BadPrefill, PrefillOp, PrefillShape};
use crate::suite::{self, axes, suites};
use crate::unseen::{distinct, Draws, SHAPES};

suites! {
    pub enum PrefillSuite {
        Modular("modular", "2 sequences of 2048 or 4096, 0 to 8192 cached; 32 heads, 4 kv heads, d 128"),
        Llama8b("llama-8b", "one prompt of 1k to 32k, heads of Llama 3 8B (32, 8 kv, d 128)"),
        Llama70b("llama-70b", "one prompt of 1k to 32k, heads of Llama 3 70B (64, 8 kv, d 128)"),
        Llama405b("llama-405b", "one prompt of 1k to 32k, heads of Llama 3 405B (128, 8 kv, d 128)"),
        Qwen("qwen", "one prompt of 1k to 32k, heads of Qwen2.5 7B (28, 4 kv, d 128)"),
        Chunked("chunked", "16 to 512 queries after 8k to 64k cached keys, heads of Llama 3 8B"),
        MlaPrefill("mla-prefill", "one prompt of 1k to 32k, heads of DeepSeek-V3 (128, d 192, values 128)"),
        Gemma("gemma", "one prompt of 1k to 32k, heads of Gemma 3 12B (16, 8 kv, d 256)"),
        Small("small", "1 to 32 sequences of 128 or 256, 1 to 8 heads, d 64, no mask"),
        Ragged("ragged", "batches with seeded log-normal lengths, heads of Llama 3 8B"),
        Unseen("unseen", "24 batches drawn by --shapes-seed, within the ranges of models"),
        Smoke("smoke", "small shapes and edge cases; fits a CPU"),
    }
}

/// Query heads, KV heads, head dim.
#[derive(Clone, Copy)]
struct Layout(usize, usize, usize);

const MODULAR: Layout = Layout(32, 4, 128);
const LLAMA_8B: Layout = Layout(32, 8, 128);
const LLAMA_70B: Layout = Layout(64, 8, 128);
const LLAMA_405B: Layout = Layout(128, 8, 128);
/// Groups of seven heads, which do not divide any tile.
const QWEN_7B: Layout = Layout(28, 4, 128);
/// Keys and values expanded from latents, one for every head, as prompts are served.
const DEEPSEEK_V3: Layout = Layout(128, 128, 192);
const DEEPSEEK_V3_VALUES: usize = 128;
const GEMMA_12B: Layout = Layout(16, 8, 256);

const MODULAR_BATCH: usize = 2;
const MODULAR_Q: [usize; 2] = [2048, 4096];
const MODULAR_CACHE: [usize; 4] = [0, 2048, 4096, 8192];
const PROMPTS: [usize; 6] = [1024, 2048, 4096, 8192, 16384, 32768];
/// New queries and cached keys: drafts to be verified, and chunks of a long prompt.
const CHUNKS: [(usize, usize); 4] = [(16, 32768), (128, 32768), (512, 8192), (512, 65536)];
const SMALL_BATCHES: [(usize, usize); 3] = [(1, 1), (8, 4), (32, 8)];
const SMALL_LENGTHS: [usize; 2] = [128, 256];

/// A batch of prompts with log-normal lengths.
struct Mix {
    name: &'static str,
    sequences: usize,
    median: f64,
    /// Standard deviation of the logarithm of a length.
    sigma: f64,
    /// Median of the cached prefixes, with the same spread as the prompts; 0 for none.
    cache_median: f64,
    causal: bool,
}

/// Prompts of a chat service, long documents, follow-ups with a cached prefix, and an encoder's
/// batch. Spreads follow public serving traces: a few times the median in both directions.
const MIXES: [Mix; 4] = [
    Mix {
        name: "chat64",
        sequences: 64,
        median: 500.0,
        sigma: 1.0,
        cache_median: 0.0,
        causal: true,
    },
    Mix {
        name: "documents8",
        sequences: 8,
        median: 6000.0,
        sigma: 0.8,
        cache_median: 0.0,
        causal: true,
    },
    Mix {
        name: "followups32",
        sequences: 32,
        median: 200.0,
        sigma: 1.0,
        cache_median: 3000.0,
        causal: true,
    },
    Mix {
        name: "encoder32",
        sequences: 32,
        median: 700.0,
        sigma: 0.7,
        cache_median: 0.0,
        causal: false,
    },
];
const RAGGED_SEED: u64 = 0x7261_6767;
const LONGEST: usize = 32768;

/// Lengths of queries, lengths of keys, heads, kv heads, head dim, causal.
type Batch = (&'static [usize], &'static [usize], Layout, bool);

/// Takes seconds in all, for a quick first look: lengths 0 and 1, a cached prefix, grouped and
/// shared keys, both head dims, with and without the causal mask.
const SMOKE: [Batch; 5] = [
    (&[1, 0, 37, 130], &[1, 5, 37, 130], Layout(4, 2, 64), true),
    (&[64, 3], &[200, 131], Layout(4, 1, 128), true),
    (&[100, 1], &[67, 300], Layout(2, 2, 64), false),
    (&[65], &[129], Layout(3, 1, 128), false),
    (&[256], &[256], Layout(2, 2, 128), true),
];

impl PrefillSuite {
    pub fn ops(self) -> &'static [PrefillOp] {
        match self {
            PrefillSuite::Smoke => &[PrefillOp::Prefill, PrefillOp::PrefillLse],
            _ => &[PrefillOp::Prefill],
        }
    }

    /// The suite as published.
    pub fn workloads(self) -> Vec<(PrefillShape, Workload)> {
        self.drawn(SHAPES_SEED)
    }

    /// The suite, with unseen batches of a seed.
    pub fn drawn(self, seed: u64) -> Vec<(PrefillShape, Workload)> {
        match self {
            PrefillSuite::Modular => {
                let sizes = MODULAR_Q.map(|q| MODULAR_CACHE.map(|cache| (q, cache)));
                let provenance = "axes of the public prefill comparison of MAX: 32 heads, 4 kv heads, cached prefix";
                cached(
                    self,
                    MODULAR_BATCH,
                    MODULAR,
                    sizes.as_flattened(),
                    provenance,
                )
            }
            PrefillSuite::Llama8b => prompts(self, LLAMA_8B, "heads of Llama 3 8B"),
            PrefillSuite::Llama70b => prompts(self, LLAMA_70B, "heads of Llama 3 70B"),
            PrefillSuite::Llama405b => prompts(self, LLAMA_405B, "heads of Llama 3 405B"),
            PrefillSuite::Qwen => prompts(self, QWEN_7B, "heads of Qwen2.5 7B"),
            PrefillSuite::Chunked => cached(self, 1, LLAMA_8B, &CHUNKS, "heads of Llama 3 8B"),
            PrefillSuite::MlaPrefill => {
                let mut prompts = prompts(self, DEEPSEEK_V3, "heads of DeepSeek-V3");
                for (shape, _) in &mut prompts {
                    shape.value_dim = Some(DEEPSEEK_V3_VALUES);
                }
                prompts
            }
            PrefillSuite::Gemma => prompts(self, GEMMA_12B, "global layers' heads of Gemma 3 12B"),
            PrefillSuite::Small => small(),
            PrefillSuite::Ragged => MIXES.iter().enumerate().map(ragged).collect(),
            PrefillSuite::Unseen => distinct(seed, SHAPES, unseen, |(_, workload)| workload),
            PrefillSuite::Smoke => smoke(),
        }
    }

    /// A custom workload.
    pub fn custom(name: String) -> Workload {
        suite::workload("custom", name, "given on the command line", BTreeMap::new())
    }

    /// A causal batch of equal sequences from six sizes: batch, queries and keys per sequence, heads,
    /// kv heads, head dim; and the values' head dim, which is not in the name where it is the keys'.
    pub fn from_sizes(
        sizes: [usize; 6],
        value_dim: Option<usize>,
    ) -> Result<(PrefillShape, Workload), BadPrefill> {
        let [batch, q_len, kv_len, heads, kv_heads, head_dim] = sizes;
        let layout = Layout(heads, kv_heads, head_dim);
        let shape = PrefillShape {
            value_dim,
            ..uniform_batch(batch, q_len, kv_len, layout, true)
        };
        let shape = shape.normal();
        shape.validate()?;
        let sizes = sizes.into_iter().chain(shape.value_dim);
        let name: Vec<String> = sizes.map(|size| size.to_string()).collect();
        Ok((shape, Self::custom(name.join("x"))))
    }
}

fn uniform_batch(
    batch: usize,
    q_len: usize,
    kv_len: usize,
    layout: Layout,
    causal: bool,
) -> PrefillShape {
    let Layout(heads, kv_heads, head_dim) = layout;
    PrefillShape {
        q_lens: vec![q_len; batch],
        kv_lens: vec![kv_len; batch],
        heads,
        kv_heads,
        head_dim,
        value_dim: None,
        causal,
    }
}

fn workload(
    suite: PrefillSuite,
    name: String,
    provenance: &str,
    sizes: &[(&str, usize)],
) -> Workload {
    suite::workload(suite, name, provenance, axes(sizes.iter().copied()))
}

/// Equal sequences of so many queries after so many cached keys.
fn cached(
    suite: PrefillSuite,
    batch: usize,
    layout: Layout,
    sizes: &[(usize, usize)],
    provenance: &str,
) -> Vec<(PrefillShape, Workload)> {
    let one = |&(q, cache): &(usize, usize)| {
        let axes = [("batch", batch), ("q_len", q), ("cache_len", cache)];
        let name = format!("b{batch}q{q}c{cache}");
        (
            uniform_batch(batch, q, q + cache, layout, true),
            workload(suite, name, provenance, &axes),
        )
    };
    sizes.iter().map(one).collect()
}

fn prompts(suite: PrefillSuite, layout: Layout, provenance: &str) -> Vec<(PrefillShape, Workload)> {
    PROMPTS
        .iter()
        .map(|&length| {
            let axes = [("batch", 1), ("q_len", length), ("cache_len", 0)];
            (
                uniform_batch(1, length, length, layout, true),
                workload(suite, format!("s{length}"), provenance, &axes),
            )
        })
        .collect()
}

fn small() -> Vec<(PrefillShape, Workload)> {
    let batch = |((batch, heads), length): ((usize, usize), usize)| {
        let shape = uniform_batch(batch, length, length, Layout(heads, heads, 64), false);
        let workload = workload(
            PrefillSuite::Small,
            format!("b{batch}h{heads}s{length}"),
            "workload matrix of a FlashAttention benchmark for small GPUs, without a mask",
            &[("batch", batch), ("q_len", length), ("cache_len", 0)],
        );
        (shape, workload)
    };
    SMALL_LENGTHS
        .iter()
        .flat_map(|&length| SMALL_BATCHES.map(|sizes| (sizes, length)))
        .map(batch)
        .collect()
}

/// Prompts of a model of today, or one GPU's share of its heads; a prefix is cached once in three.
fn unseen(draws: Draws) -> (PrefillShape, Workload) {
    let kv_heads = draws.one_of(0, &[1, 2, 4, 8, 8, 16]);
    let heads = kv_heads * draws.one_of(1, &[1, 2, 4, 4, 5, 6, 7, 8, 8, 12]);
    let longest = (UNSEEN_PAIRS / heads).isqrt();
    let longest = draws.size(2, 64, LONGEST, 1).min(longest);
    let most = (UNSEEN_TOKENS / longest).min(UNSEEN_PAIRS / (heads * longest * longest));
    let batch = draws.size(3, 1, 32, 1).min(most);
    let q_lens = draws.lengths(4, batch, longest);
    let cached = match draws.once_in(7, 3) {
        true => draws.size(8, 64, 8192, 1),
        false => 0,
    };
    let shape = PrefillShape {
        kv_lens: q_lens.iter().map(|q| q + cached).collect(),
        q_lens,
        heads,
        kv_heads,
        head_dim: draws.one_of(9, &[64, 128, 128, 128]),
        value_dim: None,
        causal: !draws.once_in(10, 6),
    };
    let mask = if shape.causal { "" } else { "full" };
    let name = format!(
        "h{heads}kv{kv_heads}d{}_b{batch}q{longest}c{cached}{mask}",
        shape.head_dim
    );
    let provenance = "drawn within the ranges of Llama, Qwen, Mistral, Gemma and GLM models";
    let axes = [
        ("batch", batch),
        ("total_q", shape.total_q()),
        ("total_kv", shape.total_kv()),
    ];
    let workload = workload(PrefillSuite::Unseen, name, provenance, &axes);
    (shape, workload)
}

/// Prompts of a drawn batch together, and their pairs of a query and a key in all heads: about as many
/// as in the longest prompt of the suites.
const UNSEEN_TOKENS: usize = 1 << 16;
const UNSEEN_PAIRS: usize = 1 << 36;

/// The heads are Llama 3 8B's.
fn ragged((index, mix): (usize, &Mix)) -> (PrefillShape, Workload) {
    let Layout(heads, kv_heads, head_dim) = LLAMA_8B;
    let stream = 2 * index as u32;
    let lengths = |stream, median| -> Vec<usize> {
        (0..mix.sequences)
            .map(|sequence| log_normal(stream, sequence, median, mix.sigma))
            .collect()
    };
    let q_lens = lengths(stream, mix.median);
    let kv_lens = if mix.cache_median > 0.0 {
        let cached = lengths(stream + 1, mix.cache_median);
        q_lens
            .iter()
            .zip(cached)
            .map(|(q, cached)| q + cached)
            .collect()
    } else {
        q_lens.clone()
    };
    let shape = PrefillShape {
        q_lens,
        kv_lens,
        heads,
        kv_heads,
        head_dim,
        value_dim: None,
        causal: mix.causal,
    };
    let provenance = "log-normal lengths, seeded; heads of Llama 3 8B";
    let axes = [
        ("batch", mix.sequences),
        ("total_q", shape.total_q()),
        ("total_kv", shape.total_kv()),
    ];
    let workload = workload(PrefillSuite::Ragged, mix.name.to_owned(), provenance, &axes);
    (shape, workload)
}

/// `median * exp(sigma * z)`, with z close to a standard normal: the sum of twelve uniform numbers is
/// exact, so that every machine gets the same lengths up to the last rounding.
fn log_normal(stream: u32, sequence: usize, median: f64, sigma: f64) -> usize {
    let z: f64 = (0..12)
        .map(|term| bits(RAGGED_SEED, stream, sequence as u64 * 12 + term))
        .map(|bits| f64::from(uniform(bits, -0.5, 0.5)))
        .sum();
    (median * (sigma * z).exp())
        .round()
        .clamp(1.0, LONGEST as f64) as usize
}

fn smoke() -> Vec<(PrefillShape, Workload)> {
    SMOKE
        .iter()
        .map(
            |&(q_lens, kv_lens, Layout(heads, kv_heads, head_dim), causal)| {
                let shape = PrefillShape {
                    q_lens: q_lens.to_vec(),
                    kv_lens: kv_lens.to_vec(),
                    heads,
                    kv_heads,
                    head_dim,
                    value_dim: None,
                    causal,
                };
                let mask = if causal { "causal" } else { "full" };
                let lengths: Vec<String> = q_lens
                    .iter()
                    .zip(kv_lens)
                    .map(|(q, kv)| format!("{q}.{kv}"))
                    .collect();
                let name = format!(
                    "{}_h{heads}.{kv_heads}_d{head_dim}_{mask}",
                    lengths.join("_")
                );
                let provenance = "small shapes and edge cases of this project";
                let axes = [("batch", q_lens.len())];
                (
                    shape,
                    workload(PrefillSuite::Smoke, name, provenance, &axes),
                )
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_named_once;

    #[test]
    fn every_shape_is_valid_and_named_once() {
        for suite in PrefillSuite::all() {
            let workloads = suite.workloads();
            assert_named_once(suite, workloads.iter().map(|(_, workload)| workload));
            for (shape, workload) in &workloads {
                assert_eq!(shape.validate(), Ok(()), "{suite}/{}", workload.name);
                assert_eq!(workload.axes["batch"], shape.batch());
            }
        }
    }

    #[test]
    fn unseen_batches_are_drawn_legal_and_fit() {
        let drawn = |seed| PrefillSuite::Unseen.drawn(seed);
        crate::unseen::assert_drawn(|seed| drawn(seed).into_iter().map(|w| w.0).collect(), 24);
        for (shape, workload) in (0..40).flat_map(drawn) {
            assert_eq!(shape.validate(), Ok(()), "{}", workload.name);
            assert!(shape.total_q() <= UNSEEN_TOKENS, "{}", workload.name);
            let squares = shape.q_lens.iter().map(|length| length * length);
            assert!(shape.heads * squares.sum::<usize>() <= UNSEEN_PAIRS);
        }
    }

    #[test]
    fn sizes_and_ends_of_the_suites() {
        let modular = PrefillSuite::Modular.workloads();
        assert_eq!(modular.len(), 8);
        assert_eq!(modular[7].0.kv_lens, [4096 + 8192; 2]);
        let llama = PrefillSuite::Llama405b.workloads();
        assert_eq!((llama.len(), llama[5].0.q_lens[0]), (6, 32768));
        assert_eq!(llama[0].0.heads, 128);
        assert_eq!(PrefillSuite::Small.workloads().len(), 6);
        let chunked = PrefillSuite::Chunked.workloads();
        assert_eq!(chunked[0].0.q_lens, [16]);
        assert_eq!(chunked[3].0.kv_lens, [512 + 65536]);
        let latent = PrefillSuite::MlaPrefill.workloads();
        assert_eq!((latent[0].0.head_dim, latent[0].0.value_dim()), (192, 128));
    }

    #[test]
    fn ragged_lengths_spread_around_their_median_and_stay() {
        let suites = PrefillSuite::Ragged.workloads();
        let (chat, _) = &suites[0];
        let below = chat.q_lens.iter().filter(|&&length| length < 500).count();
        assert!((20..=44).contains(&below), "{below} of 64 below the median");
        assert!(
            chat.q_lens.iter().max() > chat.q_lens.iter().min().map(|least| least * 8).as_ref()
        );
        let (followups, _) = &suites[2];
        assert!(followups
            .kv_lens
            .iter()
            .zip(&followups.q_lens)
            .all(|(kv, q)| kv > q));
        assert_eq!(PrefillSuite::Ragged.workloads(), suites);
        // Pins the lengths: a change here changes committed results.
        assert_eq!(chat.q_lens[..4], [2665, 2758, 1643, 166]);
    }

    #[test]
    fn shapes_by_hand() {
        let (shape, workload) = PrefillSuite::from_sizes([2, 3, 5, 8, 4, 64], None).unwrap();
        assert_eq!((shape.q_lens, shape.kv_lens), (vec![3; 2], vec![5; 2]));
        assert_eq!(workload.name, "2x3x5x8x4x64");
        assert!(PrefillSuite::from_sizes([2, 5, 3, 8, 4, 64], None).is_err());
        let named = |value_dim| {
            let sizes = [2, 3, 5, 8, 4, 64];
            let (shape, workload) = PrefillSuite::from_sizes(sizes, Some(value_dim)).unwrap();
            (shape.value_dim, workload.name)
        };
        assert_eq!(named(64), (None, "2x3x5x8x4x64".to_owned()));
        assert_eq!(named(32), (Some(32), "2x3x5x8x4x64x32".to_owned()));
        let refused = PrefillSuite::from_sizes([2, 3, 5, 8, 4, 64], Some(0)).unwrap_err();
        assert_eq!(refused.to_string(), "value dim 0; it must be at least 1");
    }
}
