//! Grouped products pass the gate on 200 random group layouts and on the suites, with every
//! contender that supports them.

mod gemm_examine;

use examine::{cpu, gpu};
use gemm_examine::{pass, SEED};
use numeric::DType;
use workloads::{GemmProblem, GemmShape, GroupedGemmSuite, GroupedWorkload, RowLayout};

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

/// Layouts with empty groups, single rows, whole tiles, and anything up to `most` rows; alternating
/// between contiguous and masked, and bf16 and FP8.
fn random(cases: u64, most: usize, sides: usize) -> Vec<GemmProblem> {
    (0..cases)
        .map(|case| {
            let draw = examine::draw(SEED, case);
            let groups = 1 + draw(0, 24);
            let mut tokens: Vec<usize> = (0..groups as u32)
                .map(|group| match draw(10 + 2 * group, 6) {
                    0 => 0,
                    1 => 1,
                    2 => 128.min(most),
                    3 => 1 + draw(11 + 2 * group, 40),
                    _ => 1 + draw(11 + 2 * group, most),
                })
                .collect();
            if tokens.iter().all(|&rows| rows == 0) {
                tokens[0] = 1;
            }
            let shape = GemmShape {
                n: 16 * (1 + draw(1, sides / 16)),
                k: 128 * (1 + draw(2, sides.div_ceil(128))),
            };
            let layout = if case % 4 == 3 {
                // Space that is not a multiple of a tile.
                let room = tokens
                    .iter()
                    .max()
                    .copied()
                    .unwrap_or(0)
                    .next_multiple_of(8);
                RowLayout::masked(tokens, room)
            } else {
                RowLayout::contiguous(tokens)
            };
            let dtype = [DType::Bf16, DType::F8E4M3][draw(3, 2)];
            let workload = GroupedGemmSuite::custom(1, 1, shape.n, shape.k).2;
            GemmProblem::new(shape, layout, dtype, workload).expect("a problem")
        })
        .collect()
}
