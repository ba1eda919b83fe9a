//! Checks without a GPU how Liger's kernels are launched for every shape of the norm suites: the
//! kernel is in the pinned archive, its block and warps follow Liger's own rule, and the arguments
//! match what it was compiled for. Shapes without a kernel say why.

use contender::{Buffer, DeviceInfo, DeviceKind, Problem, Support, Tensors};
use norms_contenders::liger::{self, Extra, Launch};
use numeric::DType;
use triton::{Library, TritonError};
use workloads::{NormOp, NormProblem, NormSuite, NormTypes, RowShape};

/// One per architecture of this build.
fn devices() -> Vec<DeviceInfo> {
    let device = |name: &str, arch: &str, major, multiprocessors| DeviceInfo {
        kind: DeviceKind::Cuda,
        name: name.to_owned(),
        uuid: None,
        arch: arch.to_owned(),
        compute_capability: Some((major, 0)),
        multiprocessors,
        l2_bytes: 50 << 20,
        memory_bytes: 141 << 30,
        shared_bytes_per_block: 227 << 10,
        emulated: false,
    };
    let mut devices = vec![
        device("NVIDIA H200", "sm_90a", 9, 132),
        device("NVIDIA B200", "sm_100a", 10, 148),
    ];
    devices.retain(
        |device| match triton::archive(Library::Liger, &device.arch) {
            Ok(_) => true,
            Err(TritonError::Absent(_)) => false,
            Err(error) => panic!("{}: {error}", device.arch),
        },
    );
    assert!(!devices.is_empty(), "a build for CUDA has kernels");
    devices
}

/// Liger's `calculate_settings` and `cross_entropy_forward`.
fn warps(problem: &NormProblem, device: &DeviceInfo) -> u32 {
    if problem.op.is_cross_entropy() {
        return if device.arch == "sm_100a" { 8 } else { 32 };
    }
    match problem.shape.columns.next_power_of_two() {
        32768.. => 32,
        8192.. => 16,
        2048.. => 8,
        _ => 4,
    }
}

fn problem(op: NormOp, shape: RowShape, activation: DType, weight: DType) -> NormProblem {
    let (shape, workload) = NormSuite::custom(shape);
    NormProblem::new(op, shape, NormTypes { activation, weight }, workload)
}

#[test]
fn every_shape_of_the_suites_has_its_kernel() {
    use NormOp::{CrossEntropyBackward, CrossEntropyForward};
    let exported = |op: &NormOp| !matches!(op, CrossEntropyForward | CrossEntropyBackward);
    for device in devices() {
        let mut launches = 0;
        for op in NormOp::all().filter(exported) {
            // Kernels for drawn shapes and vocabularies are built on demand.
            let on_demand = [NormSuite::Unseen, NormSuite::Vocabulary];
            let suites = NormSuite::all().filter(|suite| !on_demand.contains(suite));
            let shapes = suites.flat_map(|suite| suite.workloads(op));
            for (shape, _) in shapes.filter(|(shape, _)| shape.columns != 1001) {
                for weight in [DType::Bf16, DType::F32] {
                    check(&problem(op, shape, DType::Bf16, weight), &device);
                    launches += 1;
                }
            }
        }
        assert!(launches > 500, "{launches} launches");
    }
}

fn check(problem: &NormProblem, device: &DeviceInfo) {
    let name = format!("{} {} on {}", problem.op, problem.shape, device.arch);
    let support = liger::contenders()[0].supports(problem, device);
    assert_eq!(support, Support::Yes, "{name}");
    let archive = triton::archive(Library::Liger, &device.arch).unwrap();
    let launch = Launch::of(problem, device).unwrap();
    let kernel = archive.find(&launch.kernel).unwrap();
    assert_eq!(kernel.threads, 32 * warps(problem, device), "{name}");
    // As aligned as the harness's buffers, and all different.
    let specs = problem.tensors().iter().enumerate();
    let buffers: Vec<Buffer> = specs
        .map(|(place, spec)| Buffer {
            address: (1 << 20) + 256 * place,
            bytes: spec.bytes(),
        })
        .collect();
    let extra = Extra {
        statistics: 1 << 30,
        partials: vec![1 << 31, (1 << 31) + 256],
    };
    let tensors = Tensors::new(problem, &buffers).unwrap();
    let arguments = launch.arguments(problem, &tensors, &extra).unwrap();
    kernel.words(&arguments).unwrap();
}

#[test]
fn rows_are_spread_over_multiprocessors() {
    for device in devices() {
        let multiprocessors = device.multiprocessors as usize;
        let launch = |op, rows| {
            let columns = 4096;
            let problem = problem(op, RowShape { rows, columns }, DType::Bf16, DType::F32);
            Launch::of(&problem, &device).unwrap()
        };
        for op in [NormOp::RmsNormBackward, NormOp::LayerNormBackward] {
            let few = launch(op, multiprocessors);
            assert_eq!((few.programs, few.rows_per_program), (multiprocessors, 1));
            assert_eq!(few.kernel, format!("{op}_one_bf16_wf32_b4096"));
            let more = launch(op, multiprocessors + 1);
            assert_eq!((more.programs, more.rows_per_program), (multiprocessors, 2));
            assert_eq!(more.kernel, format!("{op}_bf16_wf32_b4096"));
        }
        assert_eq!(launch(NormOp::RmsNormForward, 7).programs, 7);
    }
}

#[test]
fn what_it_does_not_do_has_a_reason() {
    use NormOp::{CrossEntropyForward, RmsNormForward, SoftmaxForward};
    for (op, rows, columns, dtype, words) in [
        (
            RmsNormForward,
            3,
            1001,
            DType::Bf16,
            "1001 columns; exported for multiples of 16",
        ),
        (
            RmsNormForward,
            3,
            4096,
            DType::F16,
            "f16; exported for bf16 only",
        ),
        (SoftmaxForward, 3, 65552, DType::Bf16, "Liger takes 65536"),
        (SoftmaxForward, 3, 65536, DType::Bf16, "--width 65536`"),
        (
            CrossEntropyForward,
            3,
            4096,
            DType::Bf16,
            "see cross_entropy_fwd_bwd",
        ),
        (
            RmsNormForward,
            1 << 31,
            4096,
            DType::Bf16,
            "2147483648 rows",
        ),
    ] {
        let problem = problem(op, RowShape { rows, columns }, dtype, dtype);
        for device in devices() {
            match liger::contenders()[0].supports(&problem, &device) {
                Support::No(reason) => assert!(reason.contains(words), "{reason}, not {words}"),
                Support::Yes => panic!("{op} {rows}x{columns} is supported"),
            }
        }
    }
}
