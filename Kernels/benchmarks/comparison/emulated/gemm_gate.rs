//! Matrix products under the interpreter, against plain sums in f64.

use gemm::{Layout, Product};
use machine::Watch;
use numeric::DType;
use runtime::Memory;
use std::collections::BTreeMap;
use support::kinds::assert_right_on_every_kind;
use support::{
    assert_caught, assert_close, assert_mutants, assert_race, download, inputs, is_blackwell,
    is_hopper, on_uneven_devices, room, run, under_every_schedule,
    under_every_schedule_dropping_rows_from, upload, Dtype, Kind, Survivor, Variant, BF16,
};
use workloads::{GemmProblem, GemmShape, GemmSuite, GroupKind, RowLayout};

fn product(rows: usize, n: usize, k: usize, variant: Variant) -> impl Fn() {
    let (a, b) = (inputs(1, rows * k), inputs(2, n * k));
    let wanted: Vec<f64> = (0..rows * n)
        .map(|at| {
            let (row, column) = (&a[at / n * k..][..k], &b[at % n * k..][..k]);
            row.iter().zip(column).map(|(a, b)| a * b).sum()
        })
        .collect();
    move || {
        let (a, b, out) = (upload(&a), upload(&b), room(rows * n));
        let product = Product {
            a: a.address(),
            b: b.address(),
            out: out.address(),
            ..shape(Dtype::Bf16, rows, n, k)
        };
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { gemm::plan(&product, variant) }).unwrap();
        assert_close(
            &format!("{rows}x{n}x{k}"),
            &download(&out),
            &wanted,
            BF16,
            1e-3,
        );
    }
}

/// A dense product without tensors.
fn shape(dtype: Dtype, rows: usize, n: usize, k: usize) -> Product {
    Product {
        a: 0,
        b: 0,
        out: 0,
        a_scales: 0,
        b_scales: 0,
        tensor_scale: 0,
        index: 0,
        rows,
        n,
        k,
        groups: 1,
        dtype,
        layout: Layout::Dense,
        expected_rows: 0,
    }
}

/// FP8 operands with scales, tuned.
fn scaled_product(rows: usize, n: usize, k: usize) -> impl Fn() {
    let codes = |seed, count| {
        let values: Vec<f64> = inputs(seed, count)
            .iter()
            .map(|value| 200.0 * value)
            .collect();
        let bytes = DType::F8E4M3.encode(&values);
        (DType::F8E4M3.decode(&bytes), bytes)
    };
    // Up to 3, as f32.
    let scales = |seed, count| {
        let values: Vec<f64> = inputs(seed, count)
            .iter()
            .map(|value| 2.0 + value)
            .collect();
        let bytes = DType::F32.encode(&values);
        (values, bytes)
    };
    let (line, blocks) = (rows.next_multiple_of(4), k / 128);
    let ((a, a_bytes), (b, b_bytes)) = (codes(1, rows * k), codes(2, n * k));
    let ((a_scales, a_scale_bytes), (b_scales, b_scale_bytes)) = (
        scales(3, line * blocks),
        scales(4, n.div_ceil(128) * blocks),
    );
    let wanted: Vec<f64> = (0..rows * n)
        .map(|at| {
            let (row, column) = (at / n, at % n);
            let term = |i: usize| {
                let scale =
                    a_scales[i / 128 * line + row] * b_scales[column / 128 * blocks + i / 128];
                a[row * k + i] * b[column * k + i] * scale
            };
            (0..k).map(term).sum()
        })
        .collect();
    move || {
        let (a, b, out) = (
            Memory::from_bytes(&a_bytes),
            Memory::from_bytes(&b_bytes),
            room(rows * n),
        );
        let (a_scales, b_scales) = (
            Memory::from_bytes(&a_scale_bytes),
            Memory::from_bytes(&b_scale_bytes),
        );
        let product = Product {
            a: a.address(),
            b: b.address(),
            out: out.address(),
            a_scales: a_scales.address(),
            b_scales: b_scales.address(),
            ..shape(Dtype::E4m3, rows, n, k)
        };
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { gemm::plan(&product, Variant::Tuned) }).unwrap();
        let what = format!("{rows}x{n}x{k}");
        assert_close(&what, &download(&out), &wanted, BF16, 2.0);
    }
}

#[test]
fn portable() {
    // Steps of depth that are no multiple of the stages, and rows that are no multiple of a tile.
    under_every_schedule(product(200, 256, 320, Variant::Portable));
}

#[test]
fn hopper() {
    if !is_hopper() {
        return;
    }
    // Several tiles a block.
    on_hopper(Dtype::Bf16, 600, 392, 448);
    on_hopper(Dtype::Bf16, 300, 512, 320);
    // Few rows with scales.
    on_hopper(Dtype::E4m3, 16, 256, 1024);
    // One tile a block, of each width that is stored in boxes of 16 or 32 columns, and ends inside the last.
    for n in [88, 152, 168, 216] {
        on_hopper(Dtype::Bf16, 500, n, 320);
    }
}

/// Wide tiles of FP8 that begin within a block of b's scales and end in the next one, which is the last and not
/// whole.
#[test]
fn scales_of_two_blocks_on_hopper() {
    if !is_hopper() {
        return;
    }
    const DEPTH: usize = 256;
    const WIDE: usize = 160;
    let ends_in_the_next = |n: usize| {
        let start = (n - 1) / WIDE * WIDE;
        let next = (start / 128 + 1) * 128;
        !start.is_multiple_of(128) && next < n && n <= start + 128
    };
    let has_such_tiles = |&(rows, n): &(usize, usize)| {
        ends_in_the_next(n) && choice(Dtype::E4m3, rows, n, DEPTH).contains(&format!("128x{WIDE},"))
    };
    let (rows, n) = (136..=1024)
        .step_by(8)
        .flat_map(|n| [120, 250, 380, 500].map(|rows| (rows, n)))
        .find(has_such_tiles)
        .expect("a product with such tiles");
    under_every_schedule(scaled_product(rows, n, DEPTH));
}

/// Each tile that small products get on the interpreter's four multiprocessors, by the smallest of them.
#[test]
fn every_small_tile_on_hopper() {
    if !is_hopper() {
        return;
    }
    const ROWS: [usize; 12] = [1, 9, 17, 33, 50, 70, 90, 130, 160, 200, 300, 500];
    const MOST: usize = 10_000_000;
    for (dtype, tiles) in [(Dtype::Bf16, 25), (Dtype::E4m3, 11)] {
        let mut smallest = BTreeMap::new();
        for (rows, n, k) in (8..=776)
            .step_by(8)
            .flat_map(|n| ROWS.map(|rows| (rows, n)))
            .flat_map(|(rows, n)| [128, 256, 384, 1024].map(|k| (rows, n, k)))
            .filter(|(rows, n, k)| rows * n * k <= MOST)
        {
            let product = (rows * n * k, rows, n, k);
            let least = smallest.entry(choice(dtype, rows, n, k)).or_insert(product);
            *least = product.min(*least);
        }
        assert!(smallest.len() >= tiles, "{dtype:?}: {smallest:?}");
        for (_, rows, n, k) in smallest.into_values() {
            on_hopper(dtype, rows, n, k);
        }
    }
    // Blocks of a cluster share k.
    on_hopper(Dtype::Bf16, 17, 136, 1024);
}

/// Two blocks load an operand together where lines of k are astray: tiles one below the other, and side by side. The
/// last pair's second tile has no rows, or no columns.
#[test]
fn pairs_on_hopper() {
    if !is_hopper() {
        return;
    }
    for (tile, rows, n, k) in [
        ("256x256,", 770, 232, 200),
        ("256x192,", 1030, 184, 72),
        ("128x192, 6", 70, 264, 392),
    ] {
        let choice = choice(Dtype::Bf16, rows, n, k);
        assert!(choice.contains(tile), "{choice}");
        under_every_schedule(product(rows, n, k, Variant::Tuned));
    }
}

fn choice(dtype: Dtype, rows: usize, n: usize, k: usize) -> String {
    gemm::choice(&shape(dtype, rows, n, k), Variant::Tuned).unwrap()
}

/// A product whose tile may be lower than the instructions, which then read rows that nobody loads.
fn on_hopper(dtype: Dtype, rows: usize, n: usize, k: usize) {
    let choice = choice(dtype, rows, n, k);
    let tile = choice.trim_start_matches("hopper ").split(',').next();
    let (down, across) = tile.and_then(|tile| tile.split_once('x')).unwrap();
    let (down, across): (u32, u32) = (down.parse().unwrap(), across.parse().unwrap());
    let scaled = dtype == Dtype::E4m3;
    // Of those with 16 bits, what is low and wide is transposed.
    let from = if down < 64 && (scaled || across < 64) {
        down
    } else {
        64
    };
    match scaled {
        true => under_every_schedule_dropping_rows_from(from, scaled_product(rows, n, k)),
        false => {
            let case = product(rows, n, k, Variant::Tuned);
            under_every_schedule_dropping_rows_from(from, case);
        }
    }
}

#[test]
fn blackwell() {
    if !is_blackwell() {
        return;
    }
    // Several tiles a pair of blocks, whose rows and columns end inside, then few rows, one block each.
    under_every_schedule(product(600, 712, 328, Variant::Tuned));
    under_every_schedule(product(16, 256, 1024, Variant::Tuned));
    // With scales: a pair of blocks, then one.
    under_every_schedule(scaled_product(300, 328, 768));
    under_every_schedule(scaled_product(100, 712, 768));
}

/// Tiles that come out uneven, of pairs too.
#[test]
fn uneven_devices() {
    on_uneven_devices(product(600, 712, 328, Variant::Tuned));
    on_uneven_devices(product(16, 1024, 512, Variant::Tuned));
    on_uneven_devices(product(200, 256, 320, Variant::Portable));
    if is_hopper() || is_blackwell() {
        on_uneven_devices(scaled_product(300, 328, 768));
    }
}

#[test]
fn planted_faults() {
    let portable = product(200, 256, 320, Variant::Portable);
    assert_caught(
        ("cp.async.wait_group 2;", "cp.async.wait_group 3;"),
        &portable,
    );
    assert_caught(("xor.b32", "or.b32"), &portable);
    assert_race(("cp.async.wait_group 2;", ""), "cp.async", &portable);
    if is_blackwell() {
        let blackwell = product(600, 712, 328, Variant::Tuned);
        assert_caught(("tcgen05.wait::ld.sync.aligned;", ""), &blackwell);
    }
    if !is_hopper() {
        return;
    }
    let hopper = product(300, 512, 320, Variant::Tuned);
    let wait = "wgmma.wait_group.sync.aligned 1;";
    assert_caught((wait, "wgmma.wait_group.sync.aligned 2;"), &hopper);
}

#[test]
fn mutants_of_portable() {
    // Some blocks take two tiles.
    let case = product(300, 256, 320, Variant::Portable);
    assert_mutants("portable", (2, 6), Watch::All, &[], case);
}

fn hopper_survivors() -> [Survivor; 3] {
    [
        Survivor {
            kind: Kind::DropBulkWait,
            count: 1,
            why: "the last copies of a block, which the interpreter lets finish",
        },
        Survivor {
            kind: Kind::DropBarrier,
            count: 1,
            why: "the last turn, after which nobody takes one",
        },
        Survivor {
            kind: Kind::ArriveCount,
            count: 1,
            why: "the barrier of shared k, which these shapes do not use",
        },
    ]
}

#[test]
fn mutants_of_hopper() {
    let survivors = |warp_barriers| {
        let [copies, turn, shared_k] = hopper_survivors();
        let warp_barriers = Survivor {
            kind: Kind::DropWarpBarrier,
            count: warp_barriers,
            why: "the products that follow meet all lanes of a warp, too",
        };
        [copies, turn, shared_k, warp_barriers]
    };
    if is_hopper() {
        // The mutants that are drawn of the second have none.
        for (name, rows, n, k, warp_barriers) in [
            ("hopper", 600, 392, 448, 1),
            ("transposed", 300, 512, 320, 0),
        ] {
            let case = product(rows, n, k, Variant::Tuned);
            let survivors = survivors(warp_barriers);
            assert_mutants(name, (2, 12), Watch::All, &survivors, case);
        }
    }
}

#[test]
fn mutants_of_pairs() {
    if is_hopper() {
        let [copies, turn, shared_k] = hopper_survivors();
        let arrival = Survivor {
            kind: Kind::RelaxClusterArrive,
            count: 1,
            why: "a fence of their own has ordered the barriers, and nothing else is told",
        };
        let survivors = [copies, turn, shared_k, arrival];
        let case = product(1030, 184, 72, Variant::Tuned);
        assert_mutants("hopper pairs", (2, 12), Watch::All, &survivors, case);
    }
}

#[test]
fn mutants_of_blackwell() {
    let ends = || {
        [
            Survivor {
                kind: Kind::DropBulkWait,
                count: 1,
                why: "the last copies of a block, which the interpreter lets finish",
            },
            Survivor {
                kind: Kind::DropWarpBarrier,
                count: 3,
                why: "it brings the warp together for a barrier, where the interpreter waits for all lanes anyway",
            },
            Survivor {
                kind: Kind::DropTensorFence,
                count: 4,
                why: "around allocation and release, where no column is read or written",
            },
            Survivor {
                kind: Kind::RelaxClusterArrive,
                count: 1,
                why: "after the last barrier nothing is read, only tensor memory freed",
            },
        ]
    };
    if is_blackwell() {
        let pairs = product(600, 712, 328, Variant::Tuned);
        assert_mutants("blackwell pairs", (4, 12), Watch::All, &ends(), pairs);
        let single = product(16, 4088, 320, Variant::Tuned);
        assert_mutants("blackwell", (4, 12), Watch::All, &ends()[..3], single);
        let [last, together, fences, arrive] = ends();
        let first = Survivor {
            kind: Kind::Accumulate,
            count: 1,
            why: "the first product of a stage, which adds to nothing",
        };
        let pairs = scaled_product(300, 328, 768);
        let survivors = [last, together, fences, first, arrive];
        assert_mutants(
            "blackwell pairs FP8",
            (4, 12),
            Watch::All,
            &survivors,
            pairs,
        );
        let single = scaled_product(100, 712, 768);
        assert_mutants(
            "blackwell FP8",
            (4, 12),
            Watch::All,
            &survivors[..4],
            single,
        );
    }
}

#[test]
fn mutants_of_shared_k() {
    let survivors = [
        Survivor {
            kind: Kind::DropBulkWait,
            count: 1,
            why: "the last copies of a block, which the interpreter lets finish",
        },
        Survivor {
            kind: Kind::DropWarpBarrier,
            count: 1,
            why: "the products that follow meet all lanes of a warp, too",
        },
    ];
    if is_hopper() {
        let case = product(17, 136, 4096, Variant::Tuned);
        assert_mutants("shared_k", (1, 8), Watch::All, &survivors, case);
    }
}

/// Groups with padding and an empty one; what belongs to no group is NaN.
#[test]
fn every_kind_of_inputs() {
    let tokens = vec![3, 0, 17];
    for (layout, dtype) in [
        (RowLayout::dense(40), DType::Bf16),
        (RowLayout::contiguous(tokens.clone()), DType::Bf16),
        (RowLayout::contiguous(tokens.clone()), DType::F8E4M3),
        (RowLayout::masked(tokens.clone(), 32), DType::F8E4M3),
    ] {
        let (n, k) = (136, 256);
        let (rows, kind, index) = match layout.kind {
            GroupKind::Dense => (layout.rows, Layout::Dense, ""),
            GroupKind::Contiguous => (layout.rows, Layout::Contiguous, "group_of_row"),
            GroupKind::Masked => (layout.room(), Layout::Masked, "rows_of_group"),
        };
        let (shape, workload) = (GemmShape { n, k }, GemmSuite::custom(rows, n, k).2);
        let problem = GemmProblem::seeded(shape, layout.clone(), dtype, workload, 9).unwrap();
        for variant in [Variant::Portable, Variant::Tuned] {
            assert_right_on_every_kind(&problem, |address| {
                let product = Product {
                    a: address("a"),
                    b: address("b"),
                    out: address("out"),
                    a_scales: address("a_scales"),
                    b_scales: address("b_scales"),
                    tensor_scale: 0,
                    index: address(index),
                    rows,
                    n,
                    k,
                    groups: layout.groups(),
                    dtype: Dtype::named(&dtype.to_string()).unwrap(),
                    layout: kind,
                    expected_rows: 10,
                };
                // SAFETY: the addresses are those of the tensors.
                unsafe { gemm::plan(&product, variant) }
            });
        }
    }
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
