//! Grouped products pass the gate on 200 random group layouts and on the suites, with every
//! contender that supports them.

mod gemm_examine;

use drawn::Draw;
use examine::{cpu, gpu};
use gemm_examine::{pass, SEED};
use numeric::DType;
use workloads::{GemmProblem, GroupedGemmSuite, GroupedWorkload};

const RANDOM_LAYOUTS: u64 = 200;
const BOTH: [DType; 2] = [DType::Bf16, DType::F8E4M3];
const BLOCK_SCALED: [DType; 4] = [DType::Fp8Ue8m0, DType::Mxfp8, DType::Nvfp4, DType::Mxfp4];

#[test]
fn cpu_contenders_pass() {
    let device = cpu();
    let smoke = GroupedGemmSuite::Smoke.workloads();
    pass(&*device, &of_types(&smoke, &BOTH));
    pass(&*device, &of_types(&smoke, &BLOCK_SCALED));
    pass(&*device, &random(24, 40, 96));
}

/// Ours needs tensor cores that apply their scales.
#[test]
fn gpu_contenders_pass_block_scales() {
    let Some(device) = gpu() else { return };
    if device.info().compute_capability == Some((10, 0)) {
        let smoke = GroupedGemmSuite::Smoke.workloads();
        pass(&*device, &of_types(&smoke, &BLOCK_SCALED));
    }
}

#[test]
fn gpu_contenders_pass_random_layouts() {
    if let Some(device) = gpu() {
        pass(&*device, &random(RANDOM_LAYOUTS, 700, 1024));
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        let mut workloads: Vec<_> = GroupedGemmSuite::all()
            .flat_map(|suite| suite.workloads())
            .collect();
        // The operands of the largest take more memory than a test should.
        workloads.retain(|(shape, layout, _)| layout.groups() * shape.n * shape.k <= 1 << 31);
        pass(&*device, &of_types(&workloads, &BOTH));
    }
}

fn of_types(workloads: &[GroupedWorkload], dtypes: &[DType]) -> Vec<GemmProblem> {
    workloads
        .iter()
        .flat_map(|(shape, layout, workload)| {
            dtypes.iter().map(|&dtype| {
                GemmProblem::new(*shape, layout.clone(), dtype, workload.clone()).expect("valid")
            })
        })
        .collect()
}

fn random(cases: u64, most: usize, sides: usize) -> Vec<GemmProblem> {
    let draws = Draw::all(SEED, cases);
    draws
        .map(|draw| drawn::grouped(&draw, 24, most, sides, &BOTH))
        .collect()
}
