//! Decode under the interpreter, against plain sums: segments are split and merged.

use decode::Step;
use machine::Watch;
use numeric::DType;
use support::kinds::assert_right_on_every_kind;
use support::paged::{attend, upload_i32, Pages};
use support::{
    assert_caught, assert_close, assert_mutants, assert_race, download, inputs, room, run,
    under_every_schedule, upload, Dtype, Kind, Survivor, Variant,
};
use workloads::{DecodeProblem, DecodeShape, DecodeSuite, KvLayout, KvType};

fn pages_in_bf16(lengths: &[usize]) -> impl Fn() {
    let (heads, kv_heads, head_dim) = (8, 2, 128);
    let lengths = lengths.to_vec();
    let pages = Pages::of(&lengths, 16);
    let q = inputs(1, lengths.len() * heads * head_dim);
    let pool = pages.pool * pages.size * kv_heads * head_dim;
    let (k, v) = (inputs(2, pool), inputs(3, pool));
    let scale = 1.0 / (head_dim as f64).sqrt();
    let mut wanted = Vec::new();
    for (sequence, head) in
        (0..lengths.len()).flat_map(|sequence| (0..heads).map(move |head| (sequence, head)))
    {
        let at =
            |token| (pages.slot(sequence, token) * kv_heads + head * kv_heads / heads) * head_dim;
        let rows: Vec<_> = (0..lengths[sequence])
            .map(|token| (&k[at(token)..][..head_dim], &v[at(token)..][..head_dim]))
            .collect();
        wanted.extend(attend(
            &q[(sequence * heads + head) * head_dim..][..head_dim],
            &rows,
            scale,
        ));
    }
    move || {
        let (q, k, v, out) = (upload(&q), upload(&k), upload(&v), room(wanted.len()));
        let table = [&pages.indptr, &pages.indices, &pages.lengths].map(|list| upload_i32(list));
        let step = Step {
            q: q.address(),
            k_pages: k.address(),
            v_pages: v.address(),
            page_indptr: table[0].address(),
            page_indices: table[1].address(),
            kv_len: table[2].address(),
            out: out.address(),
            batch: lengths.len(),
            q_len: 1,
            heads,
            kv_heads,
            head_dim,
            page_size: pages.size,
            pool_pages: pages.pool,
            head_major: false,
            dtype: Dtype::Bf16,
            fp8_cache: false,
            scale: scale as f32,
            value_scale: 1.0,
        };
        let (indptr, indices) = (&pages.indptr, &pages.indices);
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { decode::plan(&step, Variant::Tuned, indptr, indices, &pages.lengths) })
            .unwrap();
        assert_close("out", &download(&out), &wanted, 0.01, 3e-3);
    }
}

#[test]
fn segments() {
    under_every_schedule(pages_in_bf16(&[300, 37]));
    // Long enough that what is counted is the loop over tokens.
    under_every_schedule(pages_in_bf16(&[4000]));
}

#[test]
fn planted_faults() {
    let case = pages_in_bf16(&[300, 37]);
    assert_caught(("cp.async.wait_group 1;", "cp.async.wait_group 2;"), &case);
    assert_race(("cp.async.wait_group 1;", ""), "cp.async", &case);
    assert_caught(("xor.b32", "or.b32"), &case);
    // The last block of a sequence merges what the others have written.
    assert_race(
        ("atom.acq_rel.gpu", "atom.relaxed.gpu"),
        "is not ordered with",
        &case,
    );
}

#[test]
fn mutants() {
    let survivors = [
        Survivor {
            kind: Kind::DropWarpBarrier,
            count: 1,
            why: "after ldmatrix, which all lanes have run before any goes on",
        },
        Survivor {
            kind: Kind::DropCopyWait,
            count: 1,
            why: "the last: every group that is left is empty",
        },
    ];
    let case = pages_in_bf16(&[300, 37]);
    assert_mutants("pages", (2, 6), Watch::All, &survivors, case);
}

#[test]
fn every_kind_of_inputs() {
    for (kv_type, layout) in [(KvType::Same, KvLayout::Nhd), (KvType::Fp8, KvLayout::Hnd)] {
        let shape = DecodeShape {
            lengths: vec![100, 37, 1],
            q_len: 1,
            heads: 8,
            kv_heads: 2,
            head_dim: 128,
            page_size: 16,
            layout,
            kv_type,
        };
        let workload = DecodeSuite::custom(&shape);
        let problem = DecodeProblem::seeded(shape, DType::Bf16, workload, 9);
        let (shape, table) = (&problem.shape, &problem.table);
        assert_right_on_every_kind(&problem, |address| {
            let step = Step {
                q: address("q"),
                k_pages: address("k_pages"),
                v_pages: address("v_pages"),
                page_indptr: address("page_indptr"),
                page_indices: address("page_indices"),
                kv_len: address("kv_len"),
                out: address("out"),
                batch: shape.batch(),
                q_len: shape.q_len,
                heads: shape.heads,
                kv_heads: shape.kv_heads,
                head_dim: shape.head_dim,
                page_size: shape.page_size,
                pool_pages: table.pool_pages,
                head_major: layout == KvLayout::Hnd,
                dtype: Dtype::Bf16,
                fp8_cache: kv_type == KvType::Fp8,
                scale: problem.scale * problem.k_scale,
                value_scale: problem.v_scale,
            };
            let (indptr, indices, lengths) = (&table.indptr, &table.indices, &table.lengths);
            // SAFETY: the addresses are those of the tensors.
            unsafe { decode::plan(&step, Variant::Tuned, indptr, indices, lengths) }
        });
    }
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
