//! Decode under the interpreter, against plain sums: segments are split and merged.

use decode::Step;
use machine::Watch;
use numeric::DType;
use runtime::Memory;
use support::kinds::assert_right_on_every_kind;
use support::paged::{attend, upload_i32, Pages};
use support::{
    assert_caught, assert_close, assert_mutants, assert_race, download, inputs, is_blackwell,
    of_type, on_uneven_devices, room, run, under_every_schedule, upload, Dtype, Kind, Survivor,
    Variant,
};
use workloads::{DecodeProblem, DecodeShape, DecodeSuite, KvLayout, KvType};

/// Of an FP8 cache, whose codes reach 240.
const CODES: f64 = 240.0;

/// A step over a cache in pages.
#[derive(Clone, Copy)]
struct Case {
    lengths: &'static [usize],
    q_len: usize,
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    page_size: usize,
    layout: KvLayout,
    kv_type: KvType,
    variant: Variant,
    /// Scores are larger from the second tile of a sequence on, by more than maxima may lag.
    rising: bool,
    /// Words of the plan on Blackwell.
    plan: &'static str,
}

/// Parts of one sequence; the other has a few tokens.
const RAGGED: Case = Case {
    lengths: &[300, 37],
    q_len: 1,
    heads: 8,
    kv_heads: 2,
    head_dim: 128,
    page_size: 16,
    layout: KvLayout::Nhd,
    kv_type: KvType::Same,
    variant: Variant::Tuned,
    rising: false,
    plan: "cluster 1 ",
};

const PORTABLE: Case = Case {
    variant: Variant::Portable,
    ..RAGGED
};

/// Long enough that what is counted is the loop over tokens; two clusters of two blocks.
const LONG: Case = Case {
    lengths: &[4000],
    plan: "cluster 2 ",
    ..RAGGED
};

/// Sums are rescaled, and blocks have several sequences.
const RISING: Case = Case {
    lengths: &[300, 20, 140, 300],
    rising: true,
    ..RAGGED
};

/// All columns of a product are rows that exist, all tokens of most tiles too, and stages are filled
/// more than twice.
const MUTATED: Case = Case {
    lengths: &[1000, 120, 100, 90, 110, 125, 1020, 510],
    heads: 16,
    kv_heads: 1,
    ..RISING
};

/// Blocks of a cluster merge four parts; pages of one head lie together.
const CLUSTER: Case = Case {
    lengths: &[700],
    heads: 4,
    kv_heads: 1,
    page_size: 64,
    layout: KvLayout::Hnd,
    rising: true,
    plan: "cluster 4 ",
    ..RAGGED
};

/// Of Gemma 3's heads.
const WIDE: Case = Case {
    head_dim: 256,
    ..RISING
};

impl Case {
    const fn over_fp8(self) -> Self {
        Self {
            kv_type: KvType::Fp8,
            ..self
        }
    }

    fn slot(&self, pages: &Pages, sequence: usize, token: usize, kv_head: usize) -> usize {
        let slot = pages.slot(sequence, token);
        match self.layout {
            KvLayout::Nhd => slot * self.kv_heads + kv_head,
            KvLayout::Hnd => {
                (slot / pages.size * self.kv_heads + kv_head) * pages.size + slot % pages.size
            }
        }
    }

    /// Keys or values as the cache has them, and its bytes.
    fn stored(&self, values: &[f64]) -> (Vec<f64>, Vec<u8>) {
        let (dtype, unit) = match self.kv_type {
            KvType::Same => (DType::Bf16, 1.0),
            KvType::Fp8 => (DType::F8E4M3, CODES),
        };
        let codes: Vec<f64> = values.iter().map(|value| value * unit).collect();
        let bytes = dtype.encode(&codes);
        let codes = dtype.decode(&bytes);
        (codes.iter().map(|code| code / unit).collect(), bytes)
    }

    fn attention(self) -> impl Fn() {
        let Case {
            q_len,
            heads,
            kv_heads,
            head_dim,
            ..
        } = self;
        let batch = self.lengths.len();
        let pages = Pages::of(self.lengths, self.page_size);
        let pool = pages.pool * pages.size * kv_heads * head_dim;
        let mut q = inputs(1, batch * q_len * heads * head_dim);
        let (mut k, v) = (inputs(2, pool), inputs(3, pool));
        if self.rising {
            q.chunks_exact_mut(head_dim).for_each(|row| row[0] = 64.0);
            for (sequence, &length) in self.lengths.iter().enumerate() {
                for token in 0..length {
                    for kv_head in 0..kv_heads {
                        let row = self.slot(&pages, sequence, token, kv_head) * head_dim;
                        k[row] = if token < 128 { 0.0 } else { 1.5 };
                    }
                }
            }
        }
        let ((k, k_bytes), (v, v_bytes)) = (self.stored(&k), self.stored(&v));
        let scale = 1.0 / (head_dim as f64).sqrt();
        let mut wanted = Vec::new();
        for row in 0..batch * q_len * heads {
            let (sequence, query, head) = (row / heads / q_len, row / heads % q_len, row % heads);
            let seen = (self.lengths[sequence] + query + 1).saturating_sub(q_len);
            let at = |token| self.slot(&pages, sequence, token, head * kv_heads / heads) * head_dim;
            let rows: Vec<_> = (0..seen)
                .map(|token| (&k[at(token)..][..head_dim], &v[at(token)..][..head_dim]))
                .collect();
            if rows.is_empty() {
                wanted.extend(vec![0.0; head_dim]);
            } else {
                wanted.extend(attend(&q[row * head_dim..][..head_dim], &rows, scale));
            }
        }
        move || {
            let fp8_cache = self.kv_type == KvType::Fp8;
            let dtype = if fp8_cache { "u8" } else { "bf16" };
            let cache = |bytes: &[u8]| of_type(dtype, Memory::from_bytes(bytes));
            let (q, out) = (upload(&q), room(wanted.len()));
            let (k, v) = (cache(&k_bytes), cache(&v_bytes));
            let table =
                [&pages.indptr, &pages.indices, &pages.lengths].map(|list| upload_i32(list));
            let unit = if fp8_cache { 1.0 / CODES } else { 1.0 };
            let step = Step {
                q: q.address(),
                k_pages: k.address(),
                v_pages: v.address(),
                page_indptr: table[0].address(),
                page_indices: table[1].address(),
                kv_len: table[2].address(),
                out: out.address(),
                batch,
                q_len,
                heads,
                kv_heads,
                head_dim,
                page_size: pages.size,
                pool_pages: pages.pool,
                head_major: self.layout == KvLayout::Hnd,
                dtype: Dtype::Bf16,
                fp8_cache,
                scale: (scale * unit) as f32,
                value_scale: unit as f32,
            };
            let tuned = is_blackwell() && matches!(self.variant, Variant::Tuned);
            let expected = if tuned { "blackwell" } else { "portable" };
            assert_eq!(decode::choice(&step, self.variant).unwrap(), expected);
            let (indptr, indices) = (&pages.indptr, &pages.indices);
            // SAFETY: the addresses are those of the tensors.
            let plan =
                unsafe { decode::plan(&step, self.variant, indptr, indices, &pages.lengths) };
            if tuned {
                let facts = plan.as_ref().unwrap().facts().to_string();
                assert!(facts.contains(self.plan), "not {:?}: {facts}", self.plan);
            }
            run(plan).unwrap();
            assert_close("out", &download(&out), &wanted, 0.01, 3e-3);
        }
    }
}

#[test]
fn portable() {
    under_every_schedule(PORTABLE.attention());
    let long = Case {
        variant: Variant::Portable,
        ..LONG
    };
    under_every_schedule(long.attention());
    under_every_schedule(PORTABLE.over_fp8().attention());
}

/// On Blackwell's kernel, where it was built.
#[test]
fn best() {
    for case in [RAGGED, LONG, RISING, CLUSTER] {
        under_every_schedule(case.attention());
        under_every_schedule(case.over_fp8().attention());
    }
}

#[test]
fn many_rows() {
    // Two and four tiles of rows, then two blocks of rows; later queries see more.
    for (heads, q_len, kv_type, plan) in [
        (8, 3, KvType::Same, "rows 1x32 tile 128 cluster 4 "),
        (8, 3, KvType::Fp8, "rows 1x32 tile 128 cluster 4 "),
        (16, 3, KvType::Same, "rows 1x64 tile 128 cluster 4 "),
        (24, 3, KvType::Same, "rows 2x64 tile 128 cluster 2 "),
        (16, 3, KvType::Fp8, "rows 2x32 tile 128 cluster 2 "),
    ] {
        let case = Case {
            lengths: &[390],
            heads,
            q_len,
            kv_heads: 1,
            kv_type,
            plan,
            ..RISING
        };
        under_every_schedule(case.attention());
    }
}

#[test]
fn narrow_heads() {
    for (heads, lengths, plan) in [
        (8, &[300, 1, 0, 37][..], "rows 1x16 tile 128 cluster 1 "),
        (4, &[700], "rows 1x16 tile 128 cluster 4 "),
        (32, &[300], "rows 1x32 tile 128 cluster 1 "),
        (64, &[130], "rows 1x64 tile 128 cluster 1 "),
    ] {
        let case = Case {
            lengths,
            heads,
            kv_heads: 1,
            head_dim: 64,
            plan,
            ..RISING
        };
        under_every_schedule(case.attention());
        // Of codes, more rows are the portable kernel's.
        if heads <= 16 {
            under_every_schedule(case.over_fp8().attention());
        }
    }
}

/// On Blackwell keys and values arrive in halves, and sums are in two places; elsewhere an SM has half of the warps.
#[test]
fn wide_heads() {
    for (heads, q_len, lengths, plan) in [
        (8, 1, &[300, 1, 0, 37][..], "rows 1x16 tile 128 cluster 1 "),
        (2, 2, &[700], "rows 1x16 tile 128 cluster 4 "),
        (8, 3, &[390], "rows 1x32 tile 128 cluster 4 "),
        (16, 3, &[390], "rows 2x32 tile 128 cluster 2 "),
    ] {
        let case = Case {
            lengths,
            heads,
            q_len,
            kv_heads: 1,
            plan,
            ..WIDE
        };
        under_every_schedule(case.attention());
        under_every_schedule(case.over_fp8().attention());
    }
    // Long enough that what is counted is the loop over tokens.
    let long = Case {
        head_dim: 256,
        ..LONG
    };
    for variant in [Variant::Tuned, Variant::Portable] {
        let long = Case { variant, ..long };
        under_every_schedule(long.attention());
        under_every_schedule(long.over_fp8().attention());
    }
}

/// Shares of tiles that come out uneven, lists of them, and clusters of which some multiprocessors have none.
#[test]
fn uneven_devices() {
    for case in [RAGGED, LONG, RISING, CLUSTER, PORTABLE] {
        let case = Case { plan: "", ..case };
        on_uneven_devices(case.attention());
        on_uneven_devices(case.over_fp8().attention());
    }
}

#[test]
fn planted_faults() {
    let case = PORTABLE.attention();
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
fn planted_faults_on_blackwell() {
    if !is_blackwell() {
        return;
    }
    let case = RISING.attention();
    assert_caught(("tcgen05.wait::ld.sync.aligned;", ""), &case);
    // Keys without their swizzle.
    assert_caught(("4611756662049538048", "70643622150144"), &case);
    let words = "without fence.proxy.async";
    assert_race(("fence.proxy.async.shared::cta;", ""), words, &case);
    // Parts that arrive in a peer's shared memory.
    let cluster = CLUSTER.attention();
    let wait = "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [";
    assert_caught((wait, "setp.ne.u32 done, 1, 0; // ["), &cluster);
}

#[test]
fn mutants_of_portable() {
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
    let case = PORTABLE.attention();
    assert_mutants("portable", (2, 6), Watch::All, &survivors, case);
}

/// Of Blackwell's kernel, whatever the cache; of kinds that depend on it, so many.
fn survivors_of_blackwell(
    swizzles: usize,
    warp_barriers: usize,
    commits: usize,
    arrivals: usize,
) -> [Survivor; 6] {
    [
        Survivor {
            kind: Kind::DescriptorSwizzle,
            count: swizzles,
            why: "queries and weights, the operands that are changed, have no swizzle",
        },
        Survivor {
            kind: Kind::Accumulate,
            count: 1,
            why: "the first product of scores does not accumulate as it is",
        },
        Survivor {
            kind: Kind::DropTensorFence,
            count: 3,
            why: "around allocation and release no column is read or written",
        },
        Survivor {
            kind: Kind::DropWarpBarrier,
            count: warp_barriers,
            why: "one brings the warp together for a barrier, where the interpreter waits for all lanes anyway; over \
                  FP8 another follows the last tile's, since which no lane has read a scale",
        },
        Survivor {
            kind: Kind::DropCommit,
            count: commits,
            why: "nobody fills the last stage again",
        },
        Survivor {
            kind: Kind::ArriveCount,
            count: arrivals,
            why: "nobody waits for what is received outside of a cluster, or for a stage that is filled once",
        },
    ]
}

#[test]
fn mutants_of_blackwell() {
    if is_blackwell() {
        let survivors = survivors_of_blackwell(8, 1, 1, 1);
        let case = MUTATED.attention();
        assert_mutants("blackwell", (8, 100), Watch::All, &survivors, case);
    }
}

#[test]
fn mutants_of_blackwell_over_fp8() {
    if is_blackwell() {
        let third = "only the third codes suffer, which count less than the tolerance";
        let survivors = survivors_of_blackwell(6, 2, 0, 2).into_iter().chain([
            Survivor {
                kind: Kind::InstructionField,
                count: 4,
                why: third,
            },
            Survivor {
                kind: Kind::TensorColumn,
                count: 4,
                why: third,
            },
            Survivor {
                kind: Kind::DropPhaseWait,
                count: 1,
                why: "the scales of queries come before their scores, for which the softmax waits too",
            },
        ]);
        let survivors: Vec<Survivor> = survivors.collect();
        let case = MUTATED.over_fp8().attention();
        assert_mutants("blackwell_over_fp8", (6, 100), Watch::All, &survivors, case);
    }
}

#[test]
fn mutants_of_blackwell_with_wide_heads() {
    if is_blackwell() {
        let survivors = survivors_of_blackwell(6, 1, 1, 1)
            .into_iter()
            .chain([Survivor {
                kind: Kind::TensorColumn,
                count: 2,
                why:
                    "sums of other rows, rescaled for a new maximum, count less than the tolerance",
            }]);
        let survivors: Vec<Survivor> = survivors.collect();
        let case = Case {
            head_dim: 256,
            ..MUTATED
        };
        let case = case.attention();
        assert_mutants("blackwell_wide", (6, 100), Watch::All, &survivors, case);
    }
}

fn on_every_kind(shape: DecodeShape, dtype: DType, variant: Variant) {
    let workload = DecodeSuite::custom(&shape);
    println!("{}", workload.name);
    let problem = DecodeProblem::seeded(shape, dtype, workload, 9);
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
            head_major: shape.layout == KvLayout::Hnd,
            dtype: if dtype == DType::F16 {
                Dtype::F16
            } else {
                Dtype::Bf16
            },
            fp8_cache: shape.kv_type == KvType::Fp8,
            scale: problem.scale * problem.k_scale,
            value_scale: problem.v_scale,
        };
        let (indptr, indices, lengths) = (&table.indptr, &table.indices, &table.lengths);
        // SAFETY: the addresses are those of the tensors.
        unsafe { decode::plan(&step, variant, indptr, indices, lengths) }
    });
}

#[test]
fn every_kind_of_inputs() {
    for (kv_type, layout) in [(KvType::Same, KvLayout::Nhd), (KvType::Fp8, KvLayout::Hnd)] {
        for variant in [Variant::Tuned, Variant::Portable] {
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
            on_every_kind(shape, DType::Bf16, variant);
        }
    }
}

#[test]
fn every_kind_of_inputs_with_wide_heads() {
    for (kv_type, layout, dtype) in [
        (KvType::Same, KvLayout::Nhd, DType::F16),
        (KvType::Same, KvLayout::Hnd, DType::Bf16),
        (KvType::Fp8, KvLayout::Hnd, DType::F16),
    ] {
        let shape = DecodeShape {
            lengths: vec![260, 37, 1],
            q_len: 1,
            heads: 8,
            kv_heads: 2,
            head_dim: 256,
            page_size: 32,
            layout,
            kv_type,
        };
        for variant in [Variant::Tuned, Variant::Portable] {
            on_every_kind(shape.clone(), dtype, variant);
        }
    }
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
