//! Native sparse attention under the interpreter, against the naive loop on the host.

use machine::Watch;
use nsa::{Nsa, Op};
use nsa_cpu::{plain, Branch, Reach};
use runtime::Memory;
use support::paged::upload_i32;
use support::{
    assert_caught, assert_close, assert_mutants, download, inputs, room, room_for_singles, run,
    under_every_schedule, upload, Dtype, Variant,
};

/// Two sequences that are no multiple of a block.
const TOKENS: usize = 80;
const SEQUENCE: usize = 40;
const HEADS: usize = 4;
const GROUPS: usize = 2;
const BLOCK: usize = 16;
const SELECTED: usize = 2;
const WINDOW: usize = 20;

/// An operation in bf16 that has no tensors yet.
fn nsa(op: Op, dim: usize) -> Nsa {
    Nsa {
        op,
        dtype: Dtype::Bf16,
        tokens: TOKENS,
        sequence: SEQUENCE,
        heads: HEADS,
        groups: GROUPS,
        dim,
        scale: 1.0 / (dim as f32).sqrt(),
        block: BLOCK,
        selected: SELECTED,
        window: WINDOW,
        queries: 0,
        keys: 0,
        values: 0,
        blocks: 0,
        outputs: [0; 3],
        gates: [0; 3],
        out: 0,
        lse: 0,
    }
}

fn run_nsa(given: &Nsa) {
    // SAFETY: the addresses are those of the tensors.
    run(unsafe { nsa::plan(given, Variant::Tuned) }).unwrap();
}

/// The block of the query, and one before it where there is one.
fn chosen() -> Vec<i32> {
    let of_query = |at: usize| {
        let (token, group) = (at / GROUPS, at % GROUPS);
        let own = (token % SEQUENCE / BLOCK) as i32;
        let other = (own - 1 - (token + group) as i32 % 2).max(-1);
        [own, other]
    };
    (0..TOKENS * GROUPS).flat_map(of_query).collect()
}

fn branch(op: Op, dim: usize) -> impl Fn() {
    let rows = if op == Op::Compressed {
        TOKENS / SEQUENCE * SEQUENCE.div_ceil(BLOCK)
    } else {
        TOKENS
    };
    let (q, k, v) = (
        inputs(1, TOKENS * HEADS * dim),
        inputs(2, rows * GROUPS * dim),
        inputs(3, rows * GROUPS * dim),
    );
    let blocks = chosen();
    let [queries, keys, values] = [&q, &k, &v]
        .map(|values| -> Vec<f32> { values.iter().map(|value| *value as f32).collect() });
    let (mut out, mut lse) = (vec![0f32; q.len()], vec![0f32; TOKENS * HEADS]);
    plain::attend(
        &Branch {
            queries: &queries,
            keys: &keys,
            values: &values,
            reach: match op {
                Op::Selected => Reach::Selected {
                    blocks: &blocks,
                    block: BLOCK,
                    selected: SELECTED,
                },
                Op::Compressed => Reach::Compressed { block: BLOCK },
                _ => Reach::Window(WINDOW),
            },
            sequence: SEQUENCE,
            heads: HEADS,
            groups: GROUPS,
            dim,
            scale: 1.0 / (dim as f32).sqrt(),
        },
        &mut out,
        &mut lse,
    );
    let [wanted, wanted_lse] =
        [out, lse].map(|values| -> Vec<f64> { values.into_iter().map(f64::from).collect() });
    move || {
        let (q, k, v, out) = (upload(&q), upload(&k), upload(&v), room(wanted.len()));
        let (blocks, lse) = (upload_i32(&blocks), room_for_singles(wanted_lse.len()));
        run_nsa(&Nsa {
            queries: q.address(),
            keys: k.address(),
            values: v.address(),
            blocks: if op == Op::Selected {
                blocks.address()
            } else {
                0
            },
            out: out.address(),
            lse: lse.address(),
            ..nsa(op, dim)
        });
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
fn branches() {
    for op in [Op::Selected, Op::Compressed, Op::Sliding] {
        under_every_schedule(branch(op, 64));
    }
    under_every_schedule(branch(Op::Selected, 128));
}

#[test]
fn gated_sum() {
    let dim = 64;
    let rows = TOKENS * HEADS;
    let outputs = [1, 2, 3].map(|seed| inputs(seed, rows * dim));
    let gates = [4, 5, 6].map(|seed| inputs(seed, rows));
    let wanted: Vec<f64> = (0..rows * dim)
        .map(|at| {
            let branches = outputs.iter().zip(&gates);
            branches
                .map(|(output, gate)| gate[at / dim] * output[at])
                .sum()
        })
        .collect();
    under_every_schedule(|| {
        let (outputs, gates) = (
            outputs.each_ref().map(|values| upload(values)),
            gates.each_ref().map(|values| upload(values)),
        );
        let out = room(rows * dim);
        run_nsa(&Nsa {
            outputs: outputs.each_ref().map(Memory::address),
            gates: gates.each_ref().map(Memory::address),
            out: out.address(),
            ..nsa(Op::Gated, dim)
        });
        assert_close("out", &download(&out), &wanted, 0.005, 1e-2);
    });
}

#[test]
fn planted_faults() {
    let sliding = branch(Op::Sliding, 64);
    assert_caught(("xor.b32", "or.b32"), &sliding);
    assert_caught(
        ("cp.async.wait_group 0;", "cp.async.wait_group 1;"),
        &sliding,
    );
}

#[test]
fn mutants() {
    for op in [Op::Selected, Op::Sliding] {
        assert_mutants(&format!("{op:?}"), (1, 4), Watch::All, &[], branch(op, 64));
    }
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
