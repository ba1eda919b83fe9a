//! Prefill under the interpreter, against the oracle.

use machine::Watch;
use numeric::DType;
use prefill::Batch;
use support::kinds::assert_right_on_every_kind;
use support::{
    assert_caught, assert_close, assert_mutants, download, inputs, is_blackwell, is_hopper,
    on_uneven_devices, room, room_for_singles, run, under_every_schedule, upload, Dtype, Kind,
    Survivor, Variant,
};
use workloads::{PrefillOp, PrefillProblem, PrefillShape, PrefillSuite};

const HEADS: usize = 2;

/// Attention over two sequences.
#[derive(Clone, Copy)]
struct Case {
    heads: usize,
    kv_heads: usize,
    /// Where the sequences' queries start, plus the end.
    starts: [usize; 3],
    /// Keys of each sequence before those of its queries.
    cached: usize,
    variant: Variant,
    head_dim: usize,
    value_dim: usize,
    causal: bool,
    /// Scores grow with the keys, so that maxima leave those of earlier steps behind.
    rising: bool,
    /// Sequences whose keys are split, on the usual device.
    merges: Option<usize>,
    /// Heads that are worked on before the next, if not all.
    at_once: usize,
    /// The tile, if it is not any.
    config: &'static str,
}

/// Tiles end raggedly.
const RAGGED: Case = Case {
    heads: HEADS,
    kv_heads: 1,
    starts: [0, 70, 200],
    cached: 0,
    variant: Variant::Tuned,
    head_dim: 128,
    value_dim: 128,
    causal: true,
    rising: false,
    merges: Some(0),
    at_once: 0,
    config: "",
};

/// Two tiles of queries with different numbers of steps, and blocks that take two items.
const LONGER: Case = Case {
    starts: [0, 70, 480],
    ..RAGGED
};

/// Sums are rescaled.
const RISING: Case = Case {
    causal: false,
    rising: true,
    ..LONGER
};

/// Few queries over many keys: more blocks than tiles.
const CACHED: Case = Case {
    heads: 1,
    starts: [0, 10, 40],
    cached: 1600,
    merges: Some(2),
    ..RAGGED
};

impl Case {
    fn attention(self) -> impl Fn() {
        let Case {
            heads,
            kv_heads,
            head_dim,
            value_dim,
            ..
        } = self;
        let starts_kv = [0, 1, 2].map(|sequence| self.starts[sequence] + sequence * self.cached);
        let (total_q, total_kv) = (self.starts[2], starts_kv[2]);
        let longest = starts_kv[2] - starts_kv[1];
        let (q, mut k, v) = (
            inputs(1, total_q * heads * head_dim),
            inputs(2, total_kv * kv_heads * head_dim),
            inputs(3, total_kv * kv_heads * value_dim),
        );
        if self.rising {
            for (key, row) in k.chunks_exact_mut(kv_heads * head_dim).enumerate() {
                let times = f64::from(1 << (key / 128 * 3));
                row.iter_mut().for_each(|value| *value *= times);
            }
        }
        let scale = 1.0 / (head_dim as f64).sqrt();
        let (mut wanted, mut wanted_lse) = (
            vec![0.0; total_q * heads * value_dim],
            vec![0.0; total_q * heads],
        );
        for (row, head) in (0..total_q).flat_map(|row| (0..heads).map(move |head| (row, head))) {
            let sequence = usize::from(row >= self.starts[1]);
            let (first, end) = (starts_kv[sequence], starts_kv[sequence + 1]);
            let own = first + self.cached + row - self.starts[sequence];
            let end = if self.causal { own + 1 } else { end };
            let kv_head = head * kv_heads / heads;
            let narrow = |values: &[f64], dim: usize| -> Vec<f32> {
                let rows = values.chunks_exact(dim).skip(kv_head).step_by(kv_heads);
                let seen = rows.skip(first).take(end - first).flatten();
                seen.map(|value| *value as f32).collect()
            };
            let place = row * heads + head;
            let attended = reference::attention::row(
                &q[place * head_dim..][..head_dim],
                &narrow(&k, head_dim),
                &narrow(&v, value_dim),
                scale,
                |weight| weight,
            );
            wanted[place * value_dim..][..value_dim].copy_from_slice(&attended.out);
            wanted_lse[place] = attended.lse;
        }
        move || {
            let [starts_q, starts_kv] =
                [self.starts, starts_kv].map(|starts| starts.map(|start| start as i32));
            let (q, k, v, out, lse) = (
                upload(&q),
                upload(&k),
                upload(&v),
                room(wanted.len()),
                room_for_singles(total_q * heads),
            );
            let batch = Batch {
                q: q.address(),
                k: k.address(),
                v: v.address(),
                starts_q: 0,
                starts_kv: 0,
                out: out.address(),
                lse: lse.address(),
                total_q,
                total_kv,
                // Chosen as for one: tall tiles.
                sequences: 1,
                longest_kv: longest,
                heads,
                kv_heads,
                head_dim,
                value_dim,
                causal: self.causal,
                scale: scale as f32,
                dtype: Dtype::Bf16,
            };
            // SAFETY: the addresses are those of the tensors.
            let plan = unsafe { prefill::plan(&batch, self.variant, &starts_q, &starts_kv) };
            let facts = plan.as_ref().unwrap().facts().to_string();
            if let Some(merges) = self.merges {
                let merges = format!("\"merges\": {merges},");
                assert!(facts.contains(&merges), "{facts}");
            }
            assert!(facts.contains(self.config), "{facts}");
            let at_once = match self.at_once {
                0 => heads,
                at_once => at_once,
            };
            let at_once = format!("\"heads_at_once\": {at_once}");
            assert!(facts.contains(&at_once), "{facts}");
            run(plan).unwrap();
            assert_close("out", &download(&out), &wanted, 0.01, 4e-3);
            let found: Vec<f64> = lse
                .to_bytes()
                .chunks_exact(4)
                .map(|bytes| {
                    f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
                })
                .collect();
            assert_close("lse", &found, &wanted_lse, 1e-4, 1e-3);
        }
    }

    fn under_every_schedule(self) {
        under_every_schedule(self.attention());
    }

    fn of_dims(self, head_dim: usize, value_dim: usize) -> Self {
        Self {
            head_dim,
            value_dim,
            ..self
        }
    }
}

const PORTABLE: Case = Case {
    variant: Variant::Portable,
    ..RAGGED
};

/// Without the causal mask, with heads of 64.
const FULL: Case = Case {
    head_dim: 64,
    value_dim: 64,
    causal: false,
    ..RAGGED
};

#[test]
fn portable() {
    PORTABLE.under_every_schedule();
}

#[test]
fn best() {
    RAGGED.under_every_schedule();
    FULL.under_every_schedule();
}

/// Every tile; groups that divide none, that fill one, and of a single head.
#[test]
fn hopper() {
    if is_hopper() {
        for (head_dim, heads, causal, config) in [
            (64, 1, true, "hopper 128x128"),
            (64, 2, true, "hopper 192x128"),
            (64, 5, true, "hopper 192x128"),
            (64, 5, false, "hopper 256x64"),
            (128, 1, true, "hopper 128x128"),
            (128, 3, true, "hopper 192x80"),
        ] {
            let case = Case {
                heads,
                causal,
                config,
                ..LONGER
            };
            case.of_dims(head_dim, head_dim).under_every_schedule();
        }
        let full = Case {
            heads: 4,
            causal: false,
            ..LONGER
        };
        full.under_every_schedule();
    }
}

/// More keys and values than L2 has room for: some heads, then one less.
#[test]
fn heads_in_turns() {
    let heads = match (is_hopper(), is_blackwell()) {
        (true, _) => 131,
        (_, true) => 263,
        _ => return,
    };
    let case = Case {
        heads,
        kv_heads: heads,
        starts: [0, 1, 3],
        cached: 100,
        at_once: heads.div_ceil(2),
        ..RAGGED
    };
    case.of_dims(256, 256).attention()();
}

/// Queries and keys of 192 with values of 128, and heads of 256: ragged tiles, several of them with
/// heads that share one, no mask, one tile alone, sums that are rescaled, and split keys.
#[test]
fn larger_heads() {
    for (head_dim, value_dim) in LARGER {
        PORTABLE.of_dims(head_dim, value_dim).under_every_schedule();
        if !is_hopper() && !is_blackwell() {
            continue;
        }
        let full = Case {
            causal: false,
            ..RAGGED
        };
        let [tall, low] = match is_hopper() && head_dim == 192 {
            true => ["hopper 192x80", "hopper 128x128"],
            false => [""; 2],
        };
        let several = Case {
            heads: 3,
            config: tall,
            ..LONGER
        };
        let alone = Case {
            heads: 1,
            starts: [0, 0, 100],
            config: low,
            ..RAGGED
        };
        for case in [several, full, alone, RISING, CACHED] {
            case.of_dims(head_dim, value_dim).under_every_schedule();
        }
    }
}

const LARGER: [(usize, usize); 2] = [(192, 128), (256, 256)];

/// Split where the mask leaves most queries only a part of the last step, and without a mask; heads
/// that share the tile.
#[test]
fn split_keys() {
    if is_hopper() || is_blackwell() {
        CACHED.under_every_schedule();
        let full = Case {
            causal: false,
            ..CACHED
        };
        full.of_dims(64, 64).under_every_schedule();
    }
    if is_hopper() {
        Case { heads: 3, ..CACHED }.under_every_schedule();
        // Nine tiles for four blocks: the last is split.
        let uneven = Case {
            starts: [0, 0, 1728],
            cached: 400,
            causal: false,
            merges: Some(1),
            ..CACHED
        };
        uneven.under_every_schedule();
    }
}

#[test]
fn blackwell() {
    if is_blackwell() {
        LONGER.under_every_schedule();
        let full = Case {
            causal: false,
            ..LONGER
        };
        full.of_dims(64, 64).under_every_schedule();
        RISING.under_every_schedule();
    }
}

#[test]
fn mutants_of_blackwell() {
    if is_blackwell() {
        let lead = Survivor {
            kind: Kind::DescriptorLead,
            count: 4,
            why: "64 columns of values are one block, and no other is led to",
        };
        let case = LONGER.of_dims(64, 64);
        assert_mutants_of_blackwell("blackwell", (4, 12), [lead], case);
    }
}

/// Every wait, arrival and commit, and a third of the products or more.
#[test]
fn mutants_of_blackwells_larger_heads() {
    if is_blackwell() {
        for (head_dim, value_dim) in LARGER {
            let name = format!("blackwell {head_dim}");
            let case = RISING.of_dims(head_dim, value_dim);
            let survivors = [
                Survivor {
                    kind: Kind::DescriptorLead,
                    count: usize::from(head_dim == 192),
                    why: "the weights of these values vanish beside those of later keys",
                },
                Survivor {
                    kind: Kind::Accumulate,
                    count: 1,
                    why: "the first product of scores does not accumulate as it is",
                },
            ];
            assert_mutants_of_blackwell(&name, (16, 100), survivors, case);
        }
    }
}

/// With what survives in every case.
fn assert_mutants_of_blackwell<const COUNT: usize>(
    name: &str,
    counts: (usize, usize),
    survivors: [Survivor; COUNT],
    case: Case,
) {
    let always = [
        Survivor {
            kind: Kind::DropWarpBarrier,
            count: 2,
            why: "aligned instructions around them bring the warp together too",
        },
        Survivor {
            kind: Kind::DropTensorFence,
            count: 5,
            why: "around allocation and release no column is read or written; after a tile the fence of the next \
                  weights comes in time",
        },
    ];
    let survivors: Vec<Survivor> = always.into_iter().chain(survivors).collect();
    assert_mutants(name, counts, Watch::All, &survivors, case.attention());
}

/// Shares of tiles that come out uneven, and keys in parts.
#[test]
fn uneven_devices() {
    for case in [RAGGED, LONGER, CACHED, PORTABLE] {
        let case = Case {
            merges: None,
            ..case
        };
        on_uneven_devices(case.attention());
    }
}

#[test]
fn planted_faults() {
    let portable = PORTABLE.attention();
    assert_caught(
        ("cp.async.wait_group 0;", "cp.async.wait_group 1;"),
        &portable,
    );
    assert_caught(("xor.b32", "or.b32"), &portable);
    if !is_hopper() {
        return;
    }
    let wait = "wgmma.wait_group.sync.aligned 0;";
    let best = RAGGED.attention();
    assert_caught((wait, "wgmma.wait_group.sync.aligned 1;"), best);
}

#[test]
fn every_kind_of_inputs() {
    for (variant, head_dim, value_dim, causal) in [
        (Variant::Portable, 64, 64, true),
        (Variant::Tuned, 128, 128, true),
        (Variant::Tuned, 64, 64, false),
        (Variant::Tuned, 192, 128, true),
        (Variant::Tuned, 256, 256, true),
    ] {
        let shape = PrefillShape {
            q_lens: vec![70, 90],
            kv_lens: vec![70, 120],
            heads: HEADS,
            kv_heads: 1,
            head_dim,
            value_dim: Some(value_dim),
            causal,
        };
        right_on_every_kind(shape, variant, DType::Bf16);
    }
}

/// Several steps in both types.
#[test]
fn every_kind_of_inputs_of_larger_heads() {
    for (head_dim, value_dim) in LARGER {
        for dtype in [DType::Bf16, DType::F16] {
            let shape = PrefillShape {
                q_lens: vec![30, 300],
                kv_lens: vec![170, 300],
                heads: HEADS,
                kv_heads: 1,
                head_dim,
                value_dim: Some(value_dim),
                causal: true,
            };
            right_on_every_kind(shape, Variant::Tuned, dtype);
        }
    }
}

#[test]
fn every_kind_of_inputs_in_parts() {
    let shape = PrefillShape {
        q_lens: vec![10, 30],
        kv_lens: vec![1610, 1630],
        heads: 1,
        kv_heads: 1,
        head_dim: 128,
        value_dim: None,
        causal: true,
    };
    right_on_every_kind(shape, Variant::Tuned, DType::Bf16);
}

fn right_on_every_kind(shape: PrefillShape, variant: Variant, dtype: DType) {
    let workload = PrefillSuite::custom("kinds".to_owned());
    let problem = PrefillProblem::new(PrefillOp::PrefillLse, shape, dtype, workload);
    let problem = problem.unwrap();
    let shape = &problem.shape;
    let starts = |lengths: &[usize]| [0, lengths[0], lengths[0] + lengths[1]].map(|at| at as i32);
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
            sequences: 1,
            longest_kv: shape.kv_lens[1],
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            value_dim: shape.value_dim(),
            causal: shape.causal,
            scale: problem.scale,
            dtype: if dtype == DType::F16 {
                Dtype::F16
            } else {
                Dtype::Bf16
            },
        };
        // SAFETY: the addresses are those of the tensors.
        unsafe {
            prefill::plan(
                &batch,
                variant,
                &starts(&shape.q_lens),
                &starts(&shape.kv_lens),
            )
        }
    });
}

#[test]
fn mutants_of_portable() {
    assert_mutants("portable", (2, 5), Watch::All, &[], PORTABLE.attention());
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
        let case = Case { heads: 5, ..LONGER };
        assert_mutants("hopper", (2, 12), Watch::All, &survivors, case.attention());
    }
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
