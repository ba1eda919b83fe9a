//! Dense products of every type and kind of shape pass the gate, with every contender that
//! supports them.

mod gemm_examine;

use examine::{cpu, gpu};
use gemm_examine::{pass, SEED};
use numeric::DType;
use workloads::{DenseWorkload, GemmProblem, GemmSuite};

const DTYPES: [DType; 3] = [DType::Bf16, DType::F16, DType::F8E4M3];

#[test]
fn cpu_contenders_pass() {
    let device = cpu();
    pass(&*device, &problems(GemmSuite::Smoke.workloads()));
    pass(&*device, &problems(random(12, 80)));
}

#[test]
fn gpu_contenders_pass_random_shapes() {
    if let Some(device) = gpu() {
        pass(&*device, &problems(random(60, 3000)));
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        let suites = [GemmSuite::Smoke, GemmSuite::Dsv3, GemmSuite::Square];
        let mut workloads: Vec<_> = suites.iter().flat_map(|suite| suite.workloads()).collect();
        workloads.retain(|(shape, layout, _)| layout.rows * shape.n * shape.k <= 1 << 38);
        pass(&*device, &problems(workloads));
    }
}

fn problems(workloads: Vec<DenseWorkload>) -> Vec<GemmProblem> {
    let problem = |(shape, layout, workload): &DenseWorkload, dtype| {
        GemmProblem::new(*shape, layout.clone(), dtype, workload.clone()).expect("a problem")
    };
    workloads
        .iter()
        .flat_map(|workload| DTYPES.map(|dtype| problem(workload, dtype)))
        .collect()
}

/// Seeded shapes up to `most` rows and columns: any number of rows; columns that are whole 16-byte
/// pieces of the result; k that is whole blocks of scales.
fn random(cases: u64, most: usize) -> Vec<DenseWorkload> {
    (0..cases)
        .map(|case| {
            let draw = examine::draw(SEED, case);
            let m = 1 + draw(0, if case % 3 == 0 { 64.min(most) } else { most });
            let n = 8 * (1 + draw(1, most / 8));
            let k = 128 * (1 + draw(2, most.div_ceil(256)));
            GemmSuite::custom(m, n, k)
        })
        .collect()
}
