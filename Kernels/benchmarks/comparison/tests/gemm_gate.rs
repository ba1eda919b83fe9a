//! Dense products of every type and kind of shape pass the gate, with every contender that
//! supports them.

mod gemm_examine;

use contender::{Problem, Support};
use device::Device;
use drawn::Draw;
use examine::{cpu, gpu};
use gemm_examine::{pass, SEED};
use numeric::DType;
use workloads::{DenseWorkload, GemmProblem, GemmSuite};

const DTYPES: [DType; 3] = [DType::Bf16, DType::F16, DType::F8E4M3];
/// Ours needs tensor cores that apply their scales.
const BLOCK_SCALED: [DType; 4] = [DType::Fp8Ue8m0, DType::Mxfp8, DType::Nvfp4, DType::Mxfp4];

#[test]
fn cpu_contenders_pass() {
    let device = cpu();
    for dtypes in [&DTYPES[..], &BLOCK_SCALED] {
        pass(&*device, &problems(GemmSuite::Smoke.workloads(), dtypes));
        pass(&*device, &problems(random(12, 80), dtypes));
    }
}

/// Where tensor cores do not apply the scales, ours says so.
#[test]
fn gpu_contenders_pass_block_scales_or_decline() {
    let Some(device) = gpu() else { return };
    let smoke = problems(GemmSuite::Smoke.workloads(), &BLOCK_SCALED);
    if device.info().compute_capability == Some((10, 0)) {
        pass(&*device, &smoke);
        pass(&*device, &problems(random_for(&*device, 40), &BLOCK_SCALED));
        return;
    }
    let ours = &gemm_contenders::contenders(device.info().kind)[0];
    for problem in &smoke {
        match ours.supports(problem, device.info()) {
            Support::No(reason) => assert!(reason.contains("tcgen05"), "{reason}"),
            Support::Yes => panic!("ours supports {} here", problem.dtype()),
        }
    }
}

#[test]
fn gpu_contenders_pass_random_shapes() {
    if let Some(device) = gpu() {
        pass(&*device, &problems(random_for(&*device, 60), &DTYPES));
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        let suites = [GemmSuite::Smoke, GemmSuite::Dsv3, GemmSuite::Square];
        let mut workloads: Vec<_> = suites.iter().flat_map(|suite| suite.workloads()).collect();
        let most = if device.info().emulated { 30 } else { 38 };
        workloads.retain(|(shape, layout, _)| layout.rows * shape.n * shape.k <= 1 << most);
        pass(&*device, &problems(workloads, &DTYPES));
    }
}

fn problems(workloads: Vec<DenseWorkload>, dtypes: &[DType]) -> Vec<GemmProblem> {
    let problem = |(shape, layout, workload): &DenseWorkload, dtype| {
        GemmProblem::new(*shape, layout.clone(), dtype, workload.clone()).expect("a problem")
    };
    workloads
        .iter()
        .flat_map(|workload| dtypes.iter().map(|&dtype| problem(workload, dtype)))
        .collect()
}

/// Of sizes that the device's kernels have time for.
fn random_for(device: &dyn Device, cases: u64) -> Vec<DenseWorkload> {
    random(cases, if device.info().emulated { 600 } else { 3000 })
}

fn random(cases: u64, most: usize) -> Vec<DenseWorkload> {
    let draws = Draw::all(SEED, cases);
    draws.map(|draw| drawn::dense(&draw, most)).collect()
}
