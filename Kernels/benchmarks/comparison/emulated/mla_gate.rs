//! MLA under the interpreter, against plain sums: 16 rows on the portable kernel, all on Hopper's, more on Blackwell's.
//! Over FP8 caches, the portable kernel on Hopper too.

use machine::Watch;
use mla::Step;
use numeric::DType;
use runtime::Memory;
use support::kinds::assert_right_on_every_kind;
use support::paged::{attend, upload_i32, Pages};
use support::{
    assert_close, assert_mutants, assert_race, download, inputs, is_blackwell, is_hopper, of_type,
    on_uneven_devices, room, run, under_every_schedule, upload, Dtype, Kind, Survivor, Variant,
};
use workloads::{KvType, MlaDecodeProblem, MlaShape, MlaSuite};

const WIDTH: usize = 576;
const LATENT: usize = 512;

/// Of an FP8 cache, whose codes reach 240.
const CODES: f64 = 240.0;

fn case(heads: usize, variant: Variant, lengths: &[usize]) -> impl Fn() {
    case_over(KvType::Same, heads, variant, lengths)
}

fn case_over(kv_type: KvType, heads: usize, variant: Variant, lengths: &[usize]) -> impl Fn() {
    let lengths = lengths.to_vec();
    let fp8_cache = kv_type == KvType::Fp8;
    let pages = Pages::of(&lengths, 64);
    let q = inputs(1, lengths.len() * heads * WIDTH);
    let mut cache = inputs(2, pages.pool * pages.size * WIDTH);
    let codes = fp8_cache.then(|| {
        let codes: Vec<f64> = cache.iter().map(|value| value * CODES).collect();
        DType::F8E4M3.encode(&codes)
    });
    if let Some(codes) = &codes {
        cache = DType::F8E4M3.decode(codes);
        cache.iter_mut().for_each(|value| *value /= CODES);
    }
    let scale = 1.0 / (WIDTH as f64).sqrt();
    let mut wanted = Vec::new();
    for (sequence, head) in
        (0..lengths.len()).flat_map(|sequence| (0..heads).map(move |head| (sequence, head)))
    {
        let row = |token| &cache[pages.slot(sequence, token) * WIDTH..][..WIDTH];
        let rows: Vec<_> = (0..lengths[sequence])
            .map(|token| (row(token), &row(token)[..LATENT]))
            .collect();
        wanted.extend(attend(
            &q[(sequence * heads + head) * WIDTH..][..WIDTH],
            &rows,
            scale,
        ));
    }
    move || {
        let (q, out) = (upload(&q), room(wanted.len()));
        let cache = match &codes {
            Some(codes) => of_type("u8", Memory::from_bytes(codes)),
            None => upload(&cache),
        };
        let table = [&pages.indptr, &pages.indices, &pages.lengths].map(|list| upload_i32(list));
        let step = Step {
            q: q.address(),
            cache: cache.address(),
            page_indptr: table[0].address(),
            page_indices: table[1].address(),
            kv_len: table[2].address(),
            out: out.address(),
            batch: lengths.len(),
            q_len: 1,
            heads,
            page_size: pages.size,
            pool_pages: pages.pool,
            dtype: Dtype::Bf16,
            fp8_cache,
            scale: scale as f32,
            cache_scale: (1.0 / CODES) as f32,
        };
        let tuned = match runtime::compute_capability() {
            Some(90) => "hopper",
            Some(100) => "blackwell",
            _ => "portable",
        };
        let expected = match variant {
            Variant::Tuned if is_hopper() && fp8_cache => "portable",
            Variant::Tuned if heads > 32 || is_hopper() => tuned,
            _ => "portable",
        };
        assert_eq!(mla::choice(&step, variant).unwrap(), expected);
        let (indptr, indices) = (&pages.indptr, &pages.indices);
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { mla::plan(&step, variant, indptr, indices, &pages.lengths) }).unwrap();
        assert_close("out", &download(&out), &wanted, 0.01, 3e-3);
    }
}

#[test]
fn portable() {
    under_every_schedule(case(16, Variant::Portable, &[150, 70]));
}

#[test]
fn portable_over_fp8() {
    // Every tile of rows: queries in registers, and in shared memory.
    for heads in [16, 32, 64] {
        let case = case_over(KvType::Fp8, heads, Variant::Portable, &[150, 70]);
        under_every_schedule(case);
    }
    // Parts to merge.
    let case = case_over(KvType::Fp8, 16, Variant::Portable, &[700, 300]);
    under_every_schedule(case);
}

#[test]
fn best() {
    // On Hopper, three tiles, then one, which one consumer takes alone.
    under_every_schedule(case(128, Variant::Tuned, &[150]));
    under_every_schedule(case(128, Variant::Tuned, &[64]));
}

#[test]
fn few_rows() {
    if is_hopper() {
        // More sequences than blocks.
        under_every_schedule(case(16, Variant::Tuned, &[150, 70, 64, 30, 100]));
        // Parts to merge.
        under_every_schedule(case(32, Variant::Tuned, &[500]));
        under_every_schedule(case(8, Variant::Tuned, &[700, 300, 90]));
    }
}

#[test]
fn blackwell() {
    if is_blackwell() {
        // Two pairs of blocks: one begins the first sequence, the other ends it and has the next.
        under_every_schedule(case(128, Variant::Tuned, &[700, 300]));
        // The second block of the pair has no rows, and a pair has two sequences.
        under_every_schedule(case(64, Variant::Tuned, &[130, 70]));
    }
}

#[test]
fn blackwell_over_fp8() {
    if is_blackwell() {
        // As above; and one tile.
        for (heads, lengths) in [(128, &[700, 300][..]), (64, &[130, 70]), (128, &[64])] {
            under_every_schedule(case_over(KvType::Fp8, heads, Variant::Tuned, lengths));
        }
    }
}

/// Of Blackwell's kernel, whatever the cache.
const BLACKWELL_SURVIVORS: [Survivor; 3] = [
    Survivor {
        kind: Kind::DropWarpBarrier,
        count: 1,
        why: "it brings the warp together for a barrier, where the interpreter waits for all lanes anyway",
    },
    Survivor {
        kind: Kind::RelaxClusterArrive,
        count: 1,
        why: "after the last barrier nothing is read, only tensor memory freed",
    },
    Survivor {
        kind: Kind::DropTensorFence,
        count: 12,
        why: "around allocation and release no column is read or written; others follow a wait for copies alone, or \
              have another behind them that comes in time",
    },
];

#[test]
fn mutants_of_blackwell() {
    if is_blackwell() {
        // Enough of a kind for every barrier, and two sequences of one tile for a pair.
        let case = case(128, Variant::Tuned, &[70, 90, 300]);
        assert_mutants(
            "blackwell",
            (16, 80),
            Watch::All,
            &BLACKWELL_SURVIVORS,
            case,
        );
    }
}

#[test]
fn mutants_of_blackwell_over_fp8() {
    if is_blackwell() {
        let [warp, cluster, fences] = BLACKWELL_SURVIVORS;
        let fences = Survivor {
            count: 16,
            ..fences
        };
        let first = Survivor {
            kind: Kind::Accumulate,
            count: 1,
            why: "the first product of a tile's scores, unrolled, adds to nothing",
        };
        let case = case_over(KvType::Fp8, 128, Variant::Tuned, &[70, 90, 300]);
        assert_mutants(
            "blackwell_over_fp8",
            (16, 80),
            Watch::All,
            &[warp, cluster, fences, first],
            case,
        );
    }
}

/// Shares of tiles that come out uneven, of pairs of blocks too.
#[test]
fn uneven_devices() {
    on_uneven_devices(case(128, Variant::Tuned, &[700, 300]));
    on_uneven_devices(case(16, Variant::Tuned, &[150, 70, 64, 30, 100]));
    on_uneven_devices(case(64, Variant::Portable, &[150, 70]));
}

#[test]
fn planted_faults() {
    if !is_hopper() {
        return;
    }
    let seesaw = case(128, Variant::Tuned, &[150]);
    assert_race(
        ("fence.proxy.async.shared::cta;", ""),
        "without fence.proxy.async",
        &seesaw,
    );
}

#[test]
fn mutants_of_portable() {
    let case = case(16, Variant::Portable, &[150, 70]);
    assert_mutants("portable", (1, 5), Watch::All, &[], case);
}

#[test]
fn mutants_of_portable_over_fp8() {
    let case = case_over(KvType::Fp8, 16, Variant::Portable, &[150, 70]);
    assert_mutants("portable_over_fp8", (1, 5), Watch::All, &[], case);
}

#[test]
fn mutants_of_hopper() {
    if is_hopper() {
        // A block has two sequences, so that queries are replaced.
        let case = case(128, Variant::Tuned, &[150, 70, 64]);
        assert_mutants("hopper", (1, 8), Watch::All, &[], case);
    }
}

fn step(heads: usize, q_len: usize, page_size: usize, lengths: &[usize]) -> MlaShape {
    MlaShape {
        lengths: lengths.to_vec(),
        q_len,
        heads,
        page_size,
        kv_type: KvType::Same,
    }
}

/// The same over an FP8 cache.
fn fp8_step(heads: usize, q_len: usize, page_size: usize, lengths: &[usize]) -> MlaShape {
    MlaShape {
        kv_type: KvType::Fp8,
        ..step(heads, q_len, page_size, lengths)
    }
}

fn on_every_kind(shape: MlaShape, variant: Variant) {
    on_every_kind_of(DType::Bf16, Dtype::Bf16, shape, variant);
}

fn on_every_kind_of(dtype: DType, kernel_dtype: Dtype, shape: MlaShape, variant: Variant) {
    let workload = MlaSuite::custom(&shape);
    let problem = MlaDecodeProblem::seeded(shape, dtype, workload, 9);
    let (shape, table) = (&problem.shape, &problem.table);
    assert_right_on_every_kind(&problem, |address| {
        let step = Step {
            q: address("q"),
            cache: address("cache"),
            page_indptr: address("page_indptr"),
            page_indices: address("page_indices"),
            kv_len: address("kv_len"),
            out: address("out"),
            batch: shape.batch(),
            q_len: shape.q_len,
            heads: shape.heads,
            page_size: shape.page_size,
            pool_pages: table.pool_pages,
            dtype: kernel_dtype,
            fp8_cache: shape.kv_type == KvType::Fp8,
            scale: problem.scale,
            cache_scale: problem.cache_scale,
        };
        let (indptr, indices, lengths) = (&table.indptr, &table.indices, &table.lengths);
        // SAFETY: the addresses are those of the tensors.
        unsafe { mla::plan(&step, variant, indptr, indices, lengths) }
    });
}

#[test]
fn every_kind_of_inputs_on_the_portable_kernel() {
    on_every_kind(step(16, 1, 64, &[70, 33]), Variant::Portable);
}

#[test]
fn every_kind_of_inputs_over_fp8() {
    on_every_kind(fp8_step(16, 1, 64, &[70, 33]), Variant::Portable);
    // Small pages, queries that see nothing, an empty sequence, and another tile of rows.
    on_every_kind(fp8_step(16, 2, 16, &[150, 1, 0]), Variant::Portable);
    // Rows that the last block of rows does not fill, in parts: on Blackwell's kernel too.
    on_every_kind(fp8_step(96, 1, 64, &[500]), Variant::Tuned);
    on_every_kind_of(
        DType::F16,
        Dtype::F16,
        fp8_step(16, 4, 64, &[140]),
        Variant::Portable,
    );
}

#[test]
fn every_kind_of_inputs_on_hoppers_kernel() {
    on_every_kind(step(64, 1, 64, &[90]), Variant::Tuned);
}

#[test]
fn every_kind_of_inputs_on_hoppers_kernel_with_few_rows() {
    if is_hopper() {
        // Small pages, queries that see nothing, and an empty sequence.
        on_every_kind(step(8, 2, 32, &[150, 1, 0]), Variant::Tuned);
        on_every_kind_of(
            DType::F16,
            Dtype::F16,
            step(16, 2, 64, &[140]),
            Variant::Tuned,
        );
    }
}

#[test]
fn every_kind_of_inputs_in_parts() {
    // At most two, three and more parts of a sequence: a thread that merges takes four rows, two or one.
    for lengths in [&[320; 4][..], &[500, 500, 330], &[1000]] {
        on_every_kind(step(16, 1, 64, lengths), Variant::Portable);
    }
    if is_hopper() {
        for lengths in [&[640; 2][..], &[960, 320], &[1000]] {
            on_every_kind(step(8, 1, 64, lengths), Variant::Tuned);
        }
    }
}

#[test]
fn every_kind_of_inputs_on_blackwells_kernel() {
    if is_blackwell() {
        // Two blocks of rows, small pages, a query that sees nothing, and an empty sequence.
        on_every_kind(step(96, 2, 32, &[150, 1, 0]), Variant::Tuned);
        on_every_kind(fp8_step(96, 2, 32, &[150, 1, 0]), Variant::Tuned);
        for shape in [step(64, 1, 64, &[140]), fp8_step(64, 1, 64, &[140])] {
            on_every_kind_of(DType::F16, Dtype::F16, shape, Variant::Tuned);
        }
    }
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
