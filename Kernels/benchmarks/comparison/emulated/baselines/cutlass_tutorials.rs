//! The GEMMs of CUTLASS's CuTe tutorial for Blackwell, from threads that copy operands to an epilogue with TMA.

mod gemm_plus_c;

use contender::{bound, contender, Binding, Contenders, DeviceInfo, DeviceKind, Identity, Tensors};
use cutlass_tutorials::{Product, SHA256, VERSION};
use gemm_plus_c::{GemmPlusC, ALPHA, BETA};
use support::{Kind, Survivor, Table};

struct Tutorial {
    number: u8,
    name: &'static str,
    /// Rows and columns of what a cluster computes, and the depth of a step.
    tile: [usize; 3],
}

/// In the order of the fields.
const fn tutorial(number: u8, name: &'static str, tile: [usize; 3]) -> Tutorial {
    Tutorial { number, name, tile }
}

const TUTORIALS: [Tutorial; 5] = [
    tutorial(1, "cutlass_tutorial_01", [128, 256, 64]),
    tutorial(2, "cutlass_tutorial_02", [128, 256, 64]),
    tutorial(3, "cutlass_tutorial_03", [512, 1024, 64]),
    tutorial(4, "cutlass_tutorial_04", [512, 1024, 64]),
    tutorial(5, "cutlass_tutorial_05", [512, 1024, 64]),
];

fn contenders() -> Contenders<GemmPlusC> {
    let each = TUTORIALS.iter().map(|tutorial| {
        let sha256 = Some(SHA256.to_owned());
        let identity = Identity::baseline(tutorial.name, VERSION, sha256, "its host function");
        contender(
            identity,
            DeviceKind::Cuda,
            |problem, _| unsupported(tutorial, problem),
            |problem, tensors, device| bind(tutorial, problem, tensors, device),
        )
    });
    each.collect()
}

fn unsupported(tutorial: &Tutorial, problem: &GemmPlusC) -> Option<String> {
    let sides = [problem.m, problem.n, problem.k].into_iter();
    let fits = sides
        .zip(tutorial.tile)
        .all(|(side, tile)| side % tile == 0);
    (!fits).then(|| format!("only for multiples of {:?}", tutorial.tile))
}

fn bind(
    tutorial: &Tutorial,
    problem: &GemmPlusC,
    tensors: &Tensors,
    _device: &DeviceInfo,
) -> Binding {
    let number = tutorial.number;
    let product = Product {
        a: tensors.address("a")?,
        b: tensors.address("b")?,
        c: tensors.address("c")?,
        d: tensors.address("out")?,
        m: problem.m as i32,
        n: problem.n as i32,
        k: problem.k as i32,
        alpha: ALPHA,
        beta: BETA,
    };
    // SAFETY: the problem describes its tensors, and the harness keeps them while a contender is bound.
    Ok(bound(Default::default(), move |_stream| unsafe {
        cutlass_tutorials::run(number, &product)
    }))
}

/// One cluster with an odd number of steps, so that barriers end in another phase than they began in, and the
/// tutorials' own shape.
fn problems(tutorial: &Tutorial) -> [GemmPlusC; 2] {
    let [m, n, k] = tutorial.tile;
    [GemmPlusC::new(m, n, 3 * k), GemmPlusC::new(512, 1024, 256)]
}

/// Before `bar.sync` and `barrier.cluster`: what asynchronous work reads was written, and what was loaded is there.
const FENCE_AND_WAIT: (&str, &str) = (
    "\nbar",
    "\nfence.proxy.async; tcgen05.wait::ld.sync.aligned; bar",
);

#[test]
fn right_under_every_schedule() {
    let mut table = Table::default();
    for tutorial in &TUTORIALS {
        for problem in problems(tutorial) {
            table.assert_right(&contenders(), tutorial.name, &problem);
        }
    }
}

#[test]
fn ordered_once_fences_and_waits_are_there() {
    let table = Table::default();
    for tutorial in &TUTORIALS {
        let [problem, _] = problems(tutorial);
        table.assert_ordered_once_repaired(&contenders(), tutorial.name, &problem, FENCE_AND_WAIT);
    }
}

#[test]
fn mutants() {
    let (table, pairs) = (Table::default(), &TUTORIALS[3]);
    let [problem, _] = problems(pairs);
    let survivor = |kind, why| Survivor {
        kind,
        count: 1,
        why,
    };
    let survivors = [
        survivor(Kind::DropBarrier, "nothing comes before it but printing"),
        survivor(
            Kind::Accumulate,
            "the first product does not accumulate anyway",
        ),
        Survivor {
            kind: Kind::DescriptorLead,
            count: 2,
            why: "b lies along k, where swizzled rows have no leading offset",
        },
    ];
    table.assert_mutants(&contenders(), pairs.name, &problem, (2, 25), &survivors);
}
