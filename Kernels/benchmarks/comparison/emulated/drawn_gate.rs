//! All families on problems that are drawn: other sizes, types, operations and devices than the families' own gates.

use drawn::{NormLimits, PrefillLimits};
use numeric::DType;
use support::drawn::assert_right;
use support::is_blackwell;
use workloads::GemmProblem;

const HALVES: [DType; 2] = [DType::Bf16, DType::F16];

/// Which our kernels support: those whose scales tensor cores apply, on Blackwell alone.
fn operands() -> Vec<DType> {
    let scaled = [DType::Fp8Ue8m0, DType::Mxfp8, DType::Nvfp4, DType::Mxfp4];
    let scaled = scaled.into_iter().filter(|_| is_blackwell());
    [DType::Bf16, DType::F16, DType::F8E4M3]
        .into_iter()
        .chain(scaled)
        .collect()
}

#[test]
fn products() {
    assert_right(&gemm_ours::contenders(), 6, |draw| {
        let (shape, layout, workload) = drawn::dense(draw, 400);
        let dtype = draw.one_of(3, &operands());
        GemmProblem::seeded(shape, layout, dtype, workload, draw.case).expect("a problem")
    });
}

#[test]
fn grouped_products() {
    assert_right(&gemm_ours::contenders(), 6, |draw| {
        drawn::grouped(draw, 6, 150, 256, &operands())
    });
}

#[test]
fn prefill() {
    const LIMITS: PrefillLimits = PrefillLimits {
        sequences: 4,
        longest: 260,
        dtypes: &HALVES,
        dims: &[(64, None), (128, None), (192, Some(128)), (256, None)],
    };
    assert_right(&prefill_ours::contenders(), 6, |draw| {
        drawn::prefill(draw, &LIMITS)
    });
}

#[test]
fn decode() {
    assert_right(&decode_ours::contenders(), 6, |draw| {
        drawn::decode(draw, 900)
    });
}

#[test]
fn latent_decode() {
    let heads = [1, 8, 16, 32, 64, 96, 128];
    assert_right(&mla_ours::contenders(), 4, |draw| {
        drawn::latent(draw, 500, &heads)
    });
}

#[test]
fn norms() {
    const LIMITS: NormLimits = NormLimits {
        elements: 1 << 19,
        columns: 1 << 17,
        rows: 300,
    };
    assert_right(&norms_ours::contenders(), 20, |draw| {
        drawn::norm(draw, &LIMITS)
    });
}

#[test]
fn sparse_attention() {
    assert_right(&nsa_ours::contenders(), 4, |draw| {
        drawn::nsa(draw, 1 << 14, &HALVES)
    });
}

#[test]
fn training() {
    let dtypes = [DType::Bf16, DType::F16, DType::F32];
    assert_right(&training_ours::contenders(), 20, |draw| {
        drawn::training(draw, 1 << 14, &dtypes)
    });
}
