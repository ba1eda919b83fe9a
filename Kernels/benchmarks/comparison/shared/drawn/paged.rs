use numeric::DType;
use workloads::{
    DecodeProblem, DecodeShape, DecodeSuite, KvLayout, KvType, MlaDecodeProblem, MlaShape, MlaSuite,
};

use crate::Draw;

const PAGE_SIZES: [usize; 7] = [1, 8, 16, 32, 64, 128, 256];
const KV_TYPES: [KvType; 3] = [KvType::Same, KvType::Same, KvType::Fp8];

/// What decode of every kind has.
struct Batch {
    lengths: Vec<usize>,
    q_len: usize,
    page_size: usize,
    dtype: DType,
}

pub fn decode(draw: &Draw, most_tokens: usize) -> DecodeProblem {
    let batch = batch(draw, most_tokens, &[1, 1, 1, 2, 4, 8]);
    let kv_heads = draw.one_of(1, &[1, 2, 3, 4, 8]);
    let shape = DecodeShape {
        lengths: batch.lengths,
        q_len: batch.q_len,
        heads: kv_heads * draw.one_of(2, &[1, 2, 3, 4, 5, 7, 8, 16]),
        kv_heads,
        head_dim: draw.one_of(6, &[64, 128, 256]),
        page_size: batch.page_size,
        layout: draw.one_of(7, &[KvLayout::Nhd, KvLayout::Hnd]),
        kv_type: draw.one_of(9, &KV_TYPES),
    };
    let workload = DecodeSuite::custom(&shape);
    DecodeProblem::new(shape, batch.dtype, workload)
}

pub fn latent(draw: &Draw, most_tokens: usize, heads: &[usize]) -> MlaDecodeProblem {
    let batch = batch(draw, most_tokens, &[1, 1, 1, 2, 3, 4]);
    let shape = MlaShape {
        lengths: batch.lengths,
        q_len: batch.q_len,
        heads: draw.one_of(6, heads),
        page_size: batch.page_size,
        kv_type: draw.one_of(9, &KV_TYPES),
    };
    let workload = MlaSuite::custom(&shape);
    MlaDecodeProblem::new(shape, batch.dtype, workload)
}

fn batch(draw: &Draw, most_tokens: usize, q_lens: &[usize]) -> Batch {
    let page_size = draw.one_of(0, &PAGE_SIZES);
    let q_len = draw.one_of(3, q_lens);
    let sequences = 1 + draw.below(4, 9);
    let longest = 1 + draw.below(5, most_tokens.div_ceil(sequences));
    Batch {
        lengths: lengths(draw, sequences, longest, q_len, page_size),
        q_len,
        page_size,
        dtype: draw.one_of(8, &[DType::Bf16, DType::F16]),
    }
}

/// Empty sequences, only the new tokens, whole and partial last pages, and anything in between.
fn lengths(
    draw: &Draw,
    sequences: usize,
    longest: usize,
    q_len: usize,
    page_size: usize,
) -> Vec<usize> {
    (0..sequences as u32)
        .map(|sequence| match draw.below(10 + sequence, 8) {
            0 => 0,
            // The caches of a step hold its new tokens; 1 if there is one.
            1 => q_len,
            2 => longest.next_multiple_of(page_size).max(q_len),
            3 => longest.next_multiple_of(page_size).max(q_len) + 1,
            _ => draw.below(40 + sequence, longest).max(q_len),
        })
        .collect()
}
