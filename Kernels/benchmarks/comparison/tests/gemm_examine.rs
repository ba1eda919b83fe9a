//! Shared by both gate tests of matrix products.

use contender::{DeviceKind, Problem};
use device::Device;
use examine::Rules;
use numeric::DType;
use workloads::GemmProblem;

pub const SEED: u64 = 20;

const RULES: Rules = Rules {
    seed: SEED,
    units: 24,
    units_second: 8,
    adopts_reference: false,
    may_decline: |identity| identity.name != "ours",
};

pub fn pass(device: &dyn Device, problems: &[GemmProblem]) {
    let contenders = gemm_contenders::contenders(device.info().kind);
    let passed = examine::pass(device, &contenders, problems, &RULES, |problem| {
        let (op, name) = (problem.op(), &problem.workload().name);
        let (dtype, tokens) = (problem.dtype(), &problem.layout.tokens);
        format!("{op} {name} {dtype} of tokens {tokens:?}")
    });
    // The lock has the CPU's libraries for this one alone, and they have no block scales.
    let known = problems.iter().any(|each| each.dtype() == DType::Bf16);
    if known && device.info().kind == DeviceKind::Cpu && cfg!(target_arch = "x86_64") {
        for library in ["onednn", "openblas"] {
            assert!(passed.contains_key(library), "{passed:?}");
        }
    }
}
