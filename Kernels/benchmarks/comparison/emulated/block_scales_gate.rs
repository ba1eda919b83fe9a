//! Matrix products of FP8 with UE8M0 scales, MXFP8, NVFP4 and MXFP4 under the interpreter, whose scales the tensor
//! cores apply, against the oracle.

use contender::{Problem, Slice};
use gemm::{Layout, Product};
use machine::Watch;
use numeric::DType;
use runtime::Memory;
use support::kinds::assert_right_on_every_kind;
use support::{
    assert_caught, assert_close, assert_mutants, counts_of, download, is_blackwell, room, run,
    under_every_schedule, Dtype, Kind, Survivor, Variant, BF16,
};
use tensor::Inputs;
use workloads::{GemmProblem, GemmShape, GemmSuite, GroupKind, RowLayout};

/// A product and its check.
type Gated = Box<dyn Fn()>;

const FORMATS: [DType; 4] = [DType::Fp8Ue8m0, DType::Mxfp8, DType::Nvfp4, DType::Mxfp4];

fn problem(dtype: DType, layout: RowLayout, n: usize, k: usize) -> GemmProblem {
    let workload = GemmSuite::custom(layout.rows, n, k).2;
    GemmProblem::seeded(GemmShape { n, k }, layout, dtype, workload, 5).unwrap()
}

fn product(problem: &GemmProblem, address: &dyn Fn(&str) -> usize) -> Product {
    let layout = &problem.layout;
    Product {
        a: address("a"),
        b: address("b"),
        out: address("out"),
        a_scales: address("a_scales"),
        b_scales: address("b_scales"),
        tensor_scale: address("tensor_scale"),
        index: layout.index_name().map_or(0, address),
        rows: layout.room(),
        n: problem.shape.n,
        k: problem.shape.k,
        groups: layout.groups(),
        dtype: Dtype::named(&problem.dtype().to_string()).unwrap(),
        layout: match layout.kind {
            GroupKind::Dense => Layout::Dense,
            GroupKind::Contiguous => Layout::Contiguous,
            GroupKind::Masked => Layout::Masked,
        },
        expected_rows: 0,
    }
}

fn tuned(dtype: DType, rows: usize, n: usize, k: usize) -> impl Fn() {
    let tile = if rows > 128 { "256x192" } else { "128x128" };
    of_layout(dtype, RowLayout::dense(rows), (n, k), tile)
}

/// Groups with padding and an empty one, whose scales are NaN.
fn grouped(dtype: DType, layout: RowLayout) -> impl Fn() {
    of_layout(dtype, layout, (136, 384), "128x128")
}

fn layouts() -> [RowLayout; 2] {
    [
        RowLayout::contiguous(vec![3, 0, 150]),
        // Rooms that end inside a tile of scales.
        RowLayout::masked(vec![130, 0, 40], 200),
    ]
}

/// The tuned kernel, which must have this tile, all of its result against the oracle.
fn of_layout(
    dtype: DType,
    layout: RowLayout,
    (n, k): (usize, usize),
    tile: &'static str,
) -> impl Fn() {
    const SEED: u64 = 3;
    let rows = layout.rows;
    let problem = problem(dtype, layout, n, k);
    let inputs = Inputs::new(problem.tensors(), SEED);
    let wanted: Vec<Slice> = (0..problem.units())
        .flat_map(|unit| problem.oracle(&inputs, unit))
        .collect();
    let contents: Vec<Vec<u8>> = problem
        .tensors()
        .iter()
        .enumerate()
        .map(|(place, spec)| {
            let mut bytes = vec![0; spec.bytes()];
            if spec.role.is_read() {
                tensor::fill_into(spec, place as u32, SEED, 0, &mut bytes);
            }
            bytes
        })
        .collect();
    move || {
        let memories: Vec<Memory> = contents
            .iter()
            .map(|bytes| Memory::from_bytes(bytes))
            .collect();
        let out = room(rows * n);
        let place = |name: &str| problem.tensors().iter().position(|spec| spec.name == name);
        let address = |name: &str| match name {
            "out" => out.address(),
            _ => place(name).map_or(0, |place| memories[place].address()),
        };
        let product = product(&problem, &address);
        let choice = gemm::choice(&product, Variant::Tuned).unwrap();
        assert!(choice.contains(tile), "{choice}");
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { gemm::plan(&product, Variant::Tuned) }).unwrap();
        let found = download(&out);
        for slice in &wanted {
            let what = format!("{dtype} {rows}x{n}x{k} from {}", slice.start);
            let found = &found[slice.start..][..slice.values.len()];
            assert_close(&what, found, &slice.values, BF16, 1e-2);
        }
    }
}

/// Pairs of blocks: each takes several tiles, of which every second starts inside a tile of scales; rows and columns
/// end inside.
fn pairs() -> [(&'static str, Gated); 4] {
    [
        (
            "blackwell pairs FP8 UE8M0",
            Box::new(tuned(DType::Fp8Ue8m0, 300, 712, 640)),
        ),
        (
            "blackwell pairs MXFP8",
            Box::new(tuned(DType::Mxfp8, 300, 712, 256)),
        ),
        (
            "blackwell pairs NVFP4",
            Box::new(tuned(DType::Nvfp4, 300, 712, 896)),
        ),
        (
            "blackwell pairs MXFP4",
            Box::new(tuned(DType::Mxfp4, 300, 712, 384)),
        ),
    ]
}

/// A block takes four tiles, each buffer of sums twice; with FP4 the last step is half a stage, with FP8 and UE8M0
/// scales the last tile of them is of two steps.
fn products() -> [(&'static str, Gated); 4] {
    [
        (
            "blackwell FP8 UE8M0",
            Box::new(tuned(DType::Fp8Ue8m0, 40, 1608, 768)),
        ),
        (
            "blackwell MXFP8",
            Box::new(tuned(DType::Mxfp8, 40, 1608, 256)),
        ),
        (
            "blackwell NVFP4",
            Box::new(tuned(DType::Nvfp4, 40, 1608, 384)),
        ),
        (
            "blackwell MXFP4",
            Box::new(tuned(DType::Mxfp4, 40, 1608, 384)),
        ),
    ]
}

#[test]
fn blackwell() {
    if is_blackwell() {
        for (_, product) in products().into_iter().chain(pairs()) {
            under_every_schedule(product);
        }
        // More steps than stages; rows and columns that end inside a tile, of a block and of a pair.
        for (dtype, rows) in FORMATS
            .into_iter()
            .flat_map(|dtype| [(dtype, 72), (dtype, 200)])
        {
            under_every_schedule(tuned(dtype, rows, 328, 1664));
        }
        for (dtype, layout) in FORMATS
            .into_iter()
            .flat_map(|dtype| layouts().map(|layout| (dtype, layout)))
        {
            under_every_schedule(grouped(dtype, layout));
        }
        return;
    }
    // Where tensor cores apply no scales there is an answer that says so.
    for dtype in FORMATS {
        let problem = problem(dtype, RowLayout::dense(8), 8, 128);
        let refused = gemm::choice(&product(&problem, &|_| 0), Variant::Tuned);
        let message = refused.unwrap_err().to_string();
        let words = format!("products of {dtype} take tensor cores");
        assert!(message.contains(&words), "{message}");
    }
}

/// Scales of rows that differ, of blocks that stand out, terms of one sign: the plain kernel everywhere.
#[test]
fn every_kind_of_inputs() {
    let layouts = || layouts().into_iter().chain([RowLayout::dense(40)]);
    let all = FORMATS
        .into_iter()
        .flat_map(|dtype| layouts().map(move |layout| (dtype, layout)));
    for (dtype, layout) in all {
        let problem = problem(dtype, layout, 136, 384);
        let variants: &[Variant] = match is_blackwell() {
            true => &[Variant::Plain, Variant::Tuned],
            false => &[Variant::Plain],
        };
        for &variant in variants {
            assert_right_on_every_kind(&problem, |address| {
                // SAFETY: the addresses are those of the tensors.
                unsafe { gemm::plan(&product(&problem, address), variant) }
            });
        }
    }
}

/// A wait that is missing, and fields of the products' descriptors: which byte of a word of scales, and their type.
#[test]
fn planted_faults() {
    if !is_blackwell() {
        return;
    }
    let [(_, blocks), (_, bytes), (_, pairs), (_, powers)] = products();
    for product in [&blocks, &bytes, &pairs, &powers] {
        assert_caught(("tcgen05.wait::ld.sync.aligned;", ""), product);
    }
    // Every 128 of k with the first byte of a's scales.
    assert_caught((", 29;", ", 32;"), &blocks);
    // The second 32 of k with the first byte of b's scales.
    assert_caught(("681574416", "681574400"), &bytes);
    // Scales read as powers of two.
    assert_caught(("136316032", "144704640"), &pairs);
    // The second 64 of k with the first two bytes of b's scales.
    assert_caught(("1218446496", "1218446464"), &powers);
}

/// The tensor cores apply UE8M0 scales of 128, four steps of which share a tile of each operand.
#[test]
fn scales_of_four_steps_are_copied_once() {
    if !is_blackwell() {
        return;
    }
    let [(_, product), ..] = products();
    let counts = counts_of(product);
    let count = |start: &str| -> u64 {
        let forms = counts.iter().filter(|(form, _)| form.starts_with(start));
        forms.map(|(_, count)| count).sum()
    };
    let (tiles, steps) = (13, 6);
    let scaled = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X";
    assert_eq!(count(scaled), tiles * steps * 4);
    assert_eq!(count("tcgen05.mma"), count(scaled));
    assert_eq!(count("tcgen05.cp"), tiles * steps.div_ceil(4) * 2);
}

#[test]
fn mutants() {
    if !is_blackwell() {
        return;
    }
    let survivors = [
        // Only where the instruction's descriptor depends on the step can a mutant not know.
        Survivor {
            kind: Kind::DescriptorLead,
            count: 2,
            why: "b lies along k, where no leading offset is used",
        },
        Survivor {
            kind: Kind::DropBulkWait,
            count: 1,
            why: "the last copies of a block, which the interpreter lets finish",
        },
        Survivor {
            kind: Kind::DropWarpBarrier,
            count: 2,
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
    ];
    let [blocks, others @ ..] = products();
    for (name, product) in others {
        assert_mutants(name, (2, 12), Watch::All, &survivors[1..4], product);
    }
    let [pairs_of_blocks, others @ ..] = pairs();
    for (name, product) in others {
        assert_mutants(name, (2, 12), Watch::All, &survivors[1..], product);
    }
    let (name, product) = blocks;
    assert_mutants(name, (2, 12), Watch::All, &survivors[..4], product);
    let (name, product) = pairs_of_blocks;
    assert_mutants(name, (2, 12), Watch::All, &survivors, product);
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
