//! RoPE under the interpreter, against the oracle.

use reference::rope::{rotate, Pairs};
use rope::Rope;
use runtime::Memory;
use support::{
    assert_caught, assert_close, assert_value_mutants, download, forms_of, inputs, is_blackwell,
    run, under_every_schedule, upload, Dtype, Variant, BF16,
};

/// Queries and keys of so many tokens, turned in place, against the oracle.
fn forward_of(interleaved: bool, tokens: usize, dim: usize) -> impl Fn() {
    let (query_heads, key_heads) = (4, 2);
    let pairs = if interleaved {
        Pairs::Interleaved
    } else {
        Pairs::HalfSplit
    };
    let (q, k) = (
        inputs(1, tokens * query_heads * dim),
        inputs(2, tokens * key_heads * dim),
    );
    let angles: Vec<f64> = inputs(3, tokens * dim / 2)
        .iter()
        .map(|value| 3.0 * value)
        .collect();
    let singles = |function: fn(f64) -> f64| -> Vec<f64> {
        angles
            .iter()
            .map(|angle| f64::from(function(*angle) as f32))
            .collect()
    };
    let (cos, sin) = (singles(f64::cos), singles(f64::sin));
    let turned = |values: &[f64], heads: usize| -> Vec<f64> {
        let head = |(at, head): (usize, &[f64])| {
            let from = at / heads * dim / 2;
            rotate(
                pairs,
                head,
                &cos[from..from + dim / 2],
                &sin[from..from + dim / 2],
            )
        };
        values.chunks(dim).enumerate().flat_map(head).collect()
    };
    let (q_wanted, k_wanted) = (turned(&q, query_heads), turned(&k, key_heads));
    move || {
        let upload_f32 = |values: &[f64]| {
            Memory::from_bytes(
                &values
                    .iter()
                    .flat_map(|value| (*value as f32).to_le_bytes())
                    .collect::<Vec<u8>>(),
            )
        };
        let (queries, keys, cos, sin) =
            (upload(&q), upload(&k), upload_f32(&cos), upload_f32(&sin));
        let rope = Rope {
            backward: false,
            interleaved,
            dtype: Dtype::Bf16,
            tokens,
            sequence: tokens,
            query_heads,
            key_heads,
            dim,
            queries: queries.address(),
            keys: keys.address(),
            cos: cos.address(),
            sin: sin.address(),
        };
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { rope::plan(&rope, Variant::Tuned) }).unwrap();
        assert_close("queries", &download(&queries), &q_wanted, BF16, 1e-5);
        assert_close("keys", &download(&keys), &k_wanted, BF16, 1e-5);
    }
}

#[test]
fn forward() {
    for interleaved in [false, true] {
        for dim in [128, 16] {
            under_every_schedule(forward_of(interleaved, 20, dim));
        }
    }
}

/// Blackwell moves 32 bytes at once where a head, or half of one, is whole pieces of them.
#[test]
fn packets_of_16_and_32_bytes() {
    for (interleaved, dim, fits) in [(false, 128, true), (false, 16, false), (true, 16, true)] {
        let forms = forms_of(forward_of(interleaved, 3, dim));
        for form in ["ld.global.v8", "st.global.v8"] {
            let ran = forms.iter().any(|ran| ran.starts_with(form));
            assert_eq!(ran, fits && is_blackwell(), "{form} of {dim} elements");
        }
    }
}

#[test]
fn planted_faults() {
    for interleaved in [false, true] {
        let case = forward_of(interleaved, 5, 128);
        // The sign of a sine, and the end of the packets.
        assert_caught(("neg.f32", "mov.f32"), &case);
        assert_caught(("setp.ge.u32", "setp.gt.u32"), &case);
    }
}

#[test]
fn mutants() {
    for (name, interleaved) in [("halves", false), ("interleaved", true)] {
        assert_value_mutants(name, (3, 4), &[], forward_of(interleaved, 5, 128));
    }
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
