//! Prefill under the interpreter, against the oracle.

use machine::Watch;
use numeric::DType;
use prefill::Batch;
use support::kinds::assert_right_on_every_kind;
use support::{
    assert_caught, assert_close, assert_mutants, download, inputs, is_blackwell, is_hopper, room,
    room_for_singles, run, under_every_schedule, upload, Dtype, Kind, Survivor, Variant,
};
use workloads::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};

const HEADS: usize = 2;

fn case(variant: Variant, head_dim: usize, causal: bool) -> impl Fn() {
    // Two sequences, so that tiles end raggedly.
    attention([0, 70, 200], variant, head_dim, causal)
}

fn attention(starts: [usize; 3], variant: Variant, head_dim: usize, causal: bool) -> impl Fn() {
    attention_of(HEADS, starts, variant, head_dim, causal)
}

/// Heads that share one KV head.
fn attention_of(
    heads: usize,
    starts: [usize; 3],
    variant: Variant,
    head_dim: usize,
    causal: bool,
) -> impl Fn() {
    let longest = starts[2] - starts[1];
    attention_chosen_for(longest, heads, starts, variant, head_dim, causal)
}

/// With the kernel that is chosen for sequences as long as `longest`.
fn attention_chosen_for(
    longest: usize,
    heads: usize,
    starts: [usize; 3],
    variant: Variant,
    head_dim: usize,
    causal: bool,
) -> impl Fn() {
    let total = starts[2];
    let (q, k, v) = (
        inputs(1, total * heads * head_dim),
        inputs(2, total * head_dim),
        inputs(3, total * head_dim),
    );
    let scale = 1.0 / (head_dim as f64).sqrt();
    let (mut wanted, mut wanted_lse) = (vec![0.0; q.len()], vec![0.0; total * heads]);
    for (first, end) in starts.iter().zip(&starts[1..]) {
        for (row, head) in (*first..*end).flat_map(|row| (0..heads).map(move |head| (row, head))) {
            let seen = first * head_dim..(if causal { row + 1 } else { *end }) * head_dim;
            let narrow = |values: &[f64]| -> Vec<f32> {
                values[seen.clone()]
                    .iter()
                    .map(|value| *value as f32)
                    .collect()
            };
            let at = (row * heads + head) * head_dim;
            let attended = reference::attention::row(
                &q[at..at + head_dim],
                &narrow(&k),
                &narrow(&v),
                scale,
                |weight| weight,
            );
            wanted[at..at + head_dim].copy_from_slice(&attended.out);
            wanted_lse[row * heads + head] = attended.lse;
        }
    }
    move || {
        let starts: Vec<i32> = starts.iter().map(|start| *start as i32).collect();
        let (q, k, v, out, lse) = (
            upload(&q),
            upload(&k),
            upload(&v),
            room(wanted.len()),
            room_for_singles(total * heads),
        );
        let batch = Batch {
            q: q.address(),
            k: k.address(),
            v: v.address(),
            starts_q: 0,
            starts_kv: 0,
            out: out.address(),
            lse: lse.address(),
            total_q: total,
            total_kv: total,
            longest_kv: longest,
            heads,
            kv_heads: 1,
            head_dim,
            causal,
            scale: scale as f32,
            dtype: Dtype::Bf16,
        };
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { prefill::plan(&batch, variant, &starts, &starts) }).unwrap();
        assert_close("out", &download(&out), &wanted, 0.01, 4e-3);
        let found: Vec<f64> = lse
            .to_bytes()
            .chunks_exact(4)
            .map(|bytes| f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])))
            .collect();
        assert_close("lse", &found, &wanted_lse, 1e-4, 1e-3);
    }
}

#[test]
fn portable() {
    under_every_schedule(case(Variant::Portable, 128, true));
}

#[test]
fn best() {
    under_every_schedule(case(Variant::Tuned, 128, true));
    under_every_schedule(case(Variant::Tuned, 64, false));
}

/// Two tiles of queries with different numbers of steps, and blocks that take two items.
const LONGER: [usize; 3] = [0, 70, 480];

/// Every tile; groups that divide none, that fill one, and of a single head.
#[test]
fn hopper() {
    if is_hopper() {
        for heads in [2, 5] {
            let long = attention_chosen_for(4096, heads, LONGER, Variant::Tuned, 64, true);
            under_every_schedule(long);
        }
        under_every_schedule(attention_of(3, LONGER, Variant::Tuned, 128, true));
        under_every_schedule(attention_of(5, LONGER, Variant::Tuned, 64, true));
        under_every_schedule(attention_of(4, LONGER, Variant::Tuned, 128, false));
        under_every_schedule(attention_of(1, LONGER, Variant::Tuned, 64, true));
    }
}

#[test]
fn blackwell() {
    if is_blackwell() {
        under_every_schedule(attention(LONGER, Variant::Tuned, 128, true));
        under_every_schedule(attention(LONGER, Variant::Tuned, 64, false));
    }
}

#[test]
fn mutants_of_blackwell() {
    if is_blackwell() {
        let case = attention(LONGER, Variant::Tuned, 64, true);
        let survivors = [Survivor {
            kind: Kind::DropWarpBarrier,
            count: 2,
            why: "aligned instructions around them bring the warp together too",
        }];
        assert_mutants("blackwell", (2, 12), Watch::All, &survivors, case);
    }
}

#[test]
fn planted_faults() {
    let portable = case(Variant::Portable, 128, true);
    assert_caught(
        ("cp.async.wait_group 0;", "cp.async.wait_group 1;"),
        &portable,
    );
    assert_caught(("xor.b32", "or.b32"), &portable);
    if !is_hopper() {
        return;
    }
    let wait = "wgmma.wait_group.sync.aligned 0;";
    let best = case(Variant::Tuned, 128, true);
    assert_caught((wait, "wgmma.wait_group.sync.aligned 1;"), best);
}

#[test]
fn every_kind_of_inputs() {
    for (variant, head_dim, causal) in [
        (Variant::Portable, 64, true),
        (Variant::Tuned, 128, true),
        (Variant::Tuned, 64, false),
    ] {
        let shape = PrefillShape {
            q_lens: vec![70, 90],
            kv_lens: vec![70, 120],
            heads: HEADS,
            kv_heads: 1,
            head_dim,
            causal,
        };
        let workload = PrefillSuite::custom("kinds".to_owned());
        let problem = PrefillProblem::new(PrefillOp::PrefillLse, shape, DType::Bf16, workload);
        let problem = problem.unwrap();
        let shape = &problem.shape;
        assert_right_on_every_kind(&problem, |address| {
            let batch = Batch {
                q: address("q"),
                k: address("k"),
                v: address("v"),
                starts_q: address("cu_q"),
                starts_kv: address("cu_kv"),
                out: address("out"),
                lse: address("lse"),
                total_q: shape.total_q(),
                total_kv: shape.total_kv(),
                longest_kv: 120,
                heads: shape.heads,
                kv_heads: shape.kv_heads,
                head_dim,
                causal,
                scale: problem.scale,
                dtype: Dtype::Bf16,
            };
            // SAFETY: the addresses are those of the tensors.
            unsafe { prefill::plan(&batch, variant, &[0, 70, 160], &[0, 70, 190]) }
        });
    }
}

#[test]
fn mutants_of_portable() {
    let case = case(Variant::Portable, 128, true);
    assert_mutants("portable", (2, 5), Watch::All, &[], case);
}

#[test]
fn mutants_of_hopper() {
    let survivors = [
        Survivor {
            kind: Kind::DropProductFence,
            count: 1,
            why: "no other instruction has touched the registers since; only the first product is refused without",
        },
    ];
    if is_hopper() {
        let case = attention_of(5, LONGER, Variant::Tuned, 128, true);
        assert_mutants("hopper", (2, 12), Watch::All, &survivors, case);
    }
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
