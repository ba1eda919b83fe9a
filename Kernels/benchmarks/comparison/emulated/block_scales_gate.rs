//! Matrix products of MXFP8, NVFP4 and MXFP4 under the interpreter, whose scales the tensor cores apply, against the
//! oracle.

use contender::Problem;
use gemm::{Layout, Product};
use machine::Watch;
use numeric::DType;
use runtime::Memory;
use support::kinds::assert_right_on_every_kind;
use support::{
    assert_caught, assert_close, assert_mutants, download, is_blackwell, room, run,
    under_every_schedule, Dtype, Kind, Survivor, Variant, BF16,
};
use tensor::Inputs;
use workloads::{GemmProblem, GemmShape, GemmSuite, RowLayout};

/// A product and its check.
type Gated = Box<dyn Fn()>;

const FORMATS: [DType; 3] = [DType::Mxfp8, DType::Nvfp4, DType::Mxfp4];

fn problem(dtype: DType, rows: usize, n: usize, k: usize) -> GemmProblem {
    let workload = GemmSuite::custom(rows, n, k).2;
    let layout = RowLayout::dense(rows);
    GemmProblem::seeded(GemmShape { n, k }, layout, dtype, workload, 5).unwrap()
}

fn product(problem: &GemmProblem, address: &dyn Fn(&str) -> usize) -> Product {
    Product {
        a: address("a"),
        b: address("b"),
        out: address("out"),
        a_scales: address("a_scales"),
        b_scales: address("b_scales"),
        tensor_scale: address("tensor_scale"),
        index: 0,
        rows: problem.layout.rows,
        n: problem.shape.n,
        k: problem.shape.k,
        groups: 1,
        dtype: Dtype::named(&problem.dtype().to_string()).unwrap(),
        layout: Layout::Dense,
        expected_rows: 0,
    }
}

/// The tuned kernel, all of its result against the oracle.
fn tuned(dtype: DType, rows: usize, n: usize, k: usize) -> impl Fn() {
    const SEED: u64 = 3;
    let problem = problem(dtype, rows, n, k);
    let inputs = Inputs::new(problem.tensors(), SEED);
    let mut wanted = vec![0.0; rows * n];
    for unit in 0..problem.units() {
        for slice in problem.oracle(&inputs, unit) {
            wanted[slice.start..][..slice.values.len()].copy_from_slice(&slice.values);
        }
    }
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
        let tile = if rows > 128 { "256x192" } else { "128x128" };
        assert!(choice.contains(tile), "{choice}");
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { gemm::plan(&product, Variant::Tuned) }).unwrap();
        let what = format!("{dtype} {rows}x{n}x{k}");
        assert_close(&what, &download(&out), &wanted, BF16, 1e-2);
    }
}

/// Pairs of blocks: each takes several tiles, of which every second starts inside a tile of scales; rows and columns
/// end inside.
fn pairs() -> [(&'static str, Gated); 3] {
    [
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

/// A block takes four tiles, each buffer of sums twice; with FP4 the last step is half a stage.
fn products() -> [(&'static str, Gated); 3] {
    [
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
        return;
    }
    // Where tensor cores apply no scales there is an answer that says so.
    for dtype in FORMATS {
        let problem = problem(dtype, 8, 8, 128);
        let refused = gemm::choice(&product(&problem, &|_| 0), Variant::Tuned);
        let message = refused.unwrap_err().to_string();
        let words = format!("products of {dtype} take tensor cores");
        assert!(message.contains(&words), "{message}");
    }
}

/// Scales of rows that differ, of blocks that stand out, terms of one sign: the plain kernel everywhere.
#[test]
fn every_kind_of_inputs() {
    for dtype in FORMATS {
        let problem = problem(dtype, 40, 136, 384);
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
    let [(_, bytes), (_, pairs), (_, powers)] = products();
    for product in [&bytes, &pairs, &powers] {
        assert_caught(("tcgen05.wait::ld.sync.aligned;", ""), product);
    }
    // The second 32 of k with the first byte of b's scales.
    assert_caught(("681574416", "681574400"), &bytes);
    // Scales read as powers of two.
    assert_caught(("136316032", "144704640"), &pairs);
    // The second 64 of k with the first two bytes of b's scales.
    assert_caught(("1218446496", "1218446464"), &powers);
}

#[test]
fn mutants() {
    if !is_blackwell() {
        return;
    }
    let survivors = [
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
            kind: Kind::RelaxClusterArrive,
            count: 1,
            why: "after the last barrier nothing is read, only tensor memory freed",
        },
    ];
    for (name, product) in products() {
        assert_mutants(name, (2, 12), Watch::All, &survivors[..2], product);
    }
    for (name, product) in pairs() {
        assert_mutants(name, (2, 12), Watch::All, &survivors, product);
    }
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
