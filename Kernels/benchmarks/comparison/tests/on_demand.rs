//! Checks without a GPU what baselines say of shapes that nobody exported: the command that builds the kernels, or why
//! nothing would. The BUILD file points the user's cache at nothing.

use contender::{Contender, DeviceInfo, DeviceKind, Problem, Support};
use gemm_contenders::contenders as gemm;
use norms_contenders::contenders as norms;
use numeric::DType;
use prefill_contenders::contenders as prefill;
use training_contenders::contenders as training;
use workloads::{
    Activation, GemmProblem, GemmShape, GemmSuite, GroupedGemmSuite, NormOp, NormProblem,
    NormSuite, NormTypes, Pass, PrefillOp, PrefillProblem, PrefillSuite, RowLayout, RowShape,
    TrainingOp, TrainingProblem, TrainingShape, TrainingSuite,
};

const ARCH: &str = "sm_90a";

fn device() -> DeviceInfo {
    DeviceInfo {
        kind: DeviceKind::Cuda,
        name: "NVIDIA H200".to_owned(),
        uuid: None,
        arch: ARCH.to_owned(),
        compute_capability: Some((9, 0)),
        multiprocessors: 132,
        l2_bytes: 50 << 20,
        memory_bytes: 141 << 30,
        shared_bytes_per_block: 227 << 10,
        emulated: false,
    }
}

fn norm(op: NormOp, columns: usize, dtype: DType) -> NormProblem {
    let (shape, workload) = NormSuite::custom(RowShape { rows: 64, columns });
    let types = NormTypes {
        activation: dtype,
        weight: dtype,
    };
    NormProblem::new(op, shape, types, workload)
}

fn named<P: Problem>(all: Vec<Box<dyn Contender<P>>>, name: &str) -> Box<dyn Contender<P>> {
    let mut all = all.into_iter();
    let found = all.find(|contender| contender.identity().name == name);
    found.unwrap_or_else(|| panic!("no {name}"))
}

/// The row says the command, and `--build-missing` runs it.
fn check_command<P: Problem>(contender: &dyn Contender<P>, problem: &P, command: &str) {
    let Support::No(reason) = contender.supports(problem, &device()) else {
        panic!("{command}: supported without a build");
    };
    let whole = format!("`./bazelw run //tools/artifacts -- {command}`");
    assert!(reason.contains(&whole), "{reason}");
    let missing = contender.missing(problem, ARCH);
    assert_eq!(missing.unwrap().join(" "), command);
}

#[test]
fn a_width_of_nobody_has_a_command() {
    let problem = norm(NormOp::RmsNormForward, 5120, DType::Bf16);
    let quack = named(norms(DeviceKind::Cuda), "quack");
    let command = "build quack --arch sm_90a --width 5120";
    check_command(&*quack, &problem, command);
    let wide = norm(NormOp::SoftmaxForward, 65536, DType::Bf16);
    let liger = named(norms(DeviceKind::Cuda), "liger");
    let command = "build liger --arch sm_90a --width 65536";
    check_command(&*liger, &wide, command);
}

#[test]
fn another_release_has_a_command_even_where_the_archives_have_the_kernel() {
    let problem = norm(NormOp::SoftmaxForward, 4096, DType::Bf16);
    let quack = named(norms(DeviceKind::Cuda), "quack");
    let pinned = quack.releases().unwrap();
    assert_eq!(pinned.others, ["0.6.0", "0.6.4"]);
    let command = "pin quack-kernels-VERSION@VERSION --package quack-kernels";
    assert!(pinned.pin.ends_with(command), "{}", pinned.pin);
    let older = quack.at("0.6.4").unwrap();
    assert_eq!(older.identity().name, "quack@0.6.4");
    let own = quack.identity();
    let revision = own.version.strip_prefix(own.release()).unwrap();
    assert_eq!(older.identity().version, format!("0.6.4{revision}"));
    assert_eq!(older.identity().artifact_sha256, None);
    let command = "build quack --arch sm_90a --release 0.6.4 --width 4096";
    check_command(&*older, &problem, command);
    let own = quack.at(quack.identity().release()).unwrap();
    assert_eq!(own.identity().version, quack.identity().version);
    assert_eq!(own.supports(&problem, &device()), Support::Yes);
    for unknown in ["0.1.0", "../0.6.4", "0.6.4+r2", ""] {
        assert!(quack.at(unknown).is_none(), "{unknown}");
    }
}

#[test]
fn a_release_of_another_input_is_none_of_the_library() {
    // Its recipe takes quack-kernels too, of which other releases are pinned.
    let attention = named(prefill(DeviceKind::Cuda), "flash_attention_4");
    assert_eq!(attention.releases().unwrap().others, [""; 0]);
    assert!(attention.at("0.6.4").is_none());
    let own = attention.at(attention.identity().release()).unwrap();
    assert_eq!(own.identity().version, attention.identity().version);
}

#[test]
fn a_product_of_nobody_has_a_command() {
    let deep_gemm = named(gemm(DeviceKind::Cuda), "deep_gemm");
    let grouped = |n, k, dtype| {
        let layout = RowLayout::contiguous(vec![512, 256]);
        let workload = GroupedGemmSuite::custom(layout.groups(), layout.rows, n, k).2;
        GemmProblem::new(GemmShape { n, k }, layout, dtype, workload).unwrap()
    };
    for (dtype, name) in [(DType::Bf16, "bf16"), (DType::F8E4M3, "fp8")] {
        let missing = deep_gemm.missing(&grouped(5120, 1536, dtype), ARCH);
        let command = missing.unwrap().join(" ");
        let start = format!(
            "build deep-gemm --arch sm_90a --n 5120 --k 1536 --kernel {name}-contiguous-128x"
        );
        assert!(command.starts_with(&start), "{command}");
        // Linked, and not for this arch.
        assert_eq!(
            deep_gemm.missing(&grouped(4096, 7168, dtype), "sm_100a"),
            None
        );
    }
    let odd = grouped(5120, 1568, DType::Bf16);
    assert_eq!(deep_gemm.missing(&odd, ARCH), None);
    // Of dense ones on a B200 the tile alone matters: transposed pairs here. bf16 is cuBLASLt's.
    let dense = |dtype| {
        let (shape, layout, workload) = GemmSuite::custom(1500, 5120, 1536);
        GemmProblem::new(shape, layout, dtype, workload).unwrap()
    };
    let command = deep_gemm.missing(&dense(DType::F8E4M3), "sm_100a").unwrap();
    assert_eq!(
        command.join(" "),
        "build deep-gemm --arch sm_100a --n 0 --k 0 --kernel fp8-dense-224x128-6-1x2-transposed"
    );
    assert_eq!(deep_gemm.missing(&dense(DType::Bf16), "sm_100a"), None);
}

#[test]
fn logits_wider_than_a_block_have_a_command() {
    let problem = norm(NormOp::CrossEntropyForwardBackward, 128256, DType::Bf16);
    let liger = named(norms(DeviceKind::Cuda), "liger");
    let command = "build liger --arch sm_90a --width 128256";
    check_command(&*liger, &problem, command);
}

#[test]
fn heads_of_nobody_have_a_command() {
    let (shape, workload) = PrefillSuite::from_sizes([1, 512, 512, 40, 8, 128], None).unwrap();
    let problem = PrefillProblem::new(PrefillOp::Prefill, shape, DType::Bf16, workload);
    let fourth = named(prefill(DeviceKind::Cuda), "flash_attention_4");
    let command = "build flash-attention-4 --arch sm_90a --head-dim 128 --group 5";
    check_command(&*fourth, &problem.unwrap(), command);
    let shape = TrainingShape::Rows(RowShape {
        rows: 64,
        columns: 13824,
    });
    let (shape, workload) = TrainingSuite::custom(shape);
    let op = TrainingOp::Activation(Activation::SwiGlu, Pass::Forward);
    let problem = TrainingProblem::new(op, shape, DType::Bf16, workload);
    let liger = named(training(DeviceKind::Cuda), "liger");
    let command = "build liger --arch sm_90a --width 13824";
    check_command(&*liger, &problem, command);
}

#[test]
fn what_no_recipe_builds_has_a_reason_and_no_command() {
    let quack = named(norms(DeviceKind::Cuda), "quack");
    let liger = named(norms(DeviceKind::Cuda), "liger");
    let half = norm(NormOp::RmsNormForward, 5120, DType::F16);
    let exported = norm(NormOp::RmsNormForward, 4096, DType::Bf16);
    let narrow = norm(NormOp::RmsNormForward, 256, DType::Bf16);
    for (contender, problem, words) in [
        (&quack, &half, "bf16 activations only"),
        (&liger, &half, "exported for bf16 only"),
        (&liger, &narrow, "takes rows together"),
    ] {
        let support = contender.supports(problem, &device());
        assert!(
            matches!(&support, Support::No(reason) if reason.contains(words)),
            "{support:?}"
        );
        assert_eq!(contender.missing(problem, ARCH), None);
    }
    for contender in [&quack, &liger] {
        assert_eq!(contender.supports(&exported, &device()), Support::Yes);
        assert_eq!(contender.missing(&exported, ARCH), None);
    }
    // No recipe exports for it.
    let wide = norm(NormOp::RmsNormForward, 5120, DType::Bf16);
    assert_eq!(quack.missing(&wide, "sm_120a"), None);
}
