//! Every kind of inputs of a problem, through a kernel, against the problem's own answers.

use std::fmt::Display;

use bridge::{Plan, UniquePtr};
use contender::Problem;
use machine::Schedule;
use numeric::DType;
use runtime::Memory;
use tensor::{Inputs, TensorSpec};

use crate::{of_type, run, under};

const SEED: u64 = 3;

/// Plans with the addresses of the tensors, by name, 0 for those that the problem lacks, and runs on
/// the inputs that are timed and on all other kinds. Every unit must be as near the oracle as four
/// honest errors and a rounding.
pub fn assert_right_on_every_kind<E: Display>(
    problem: &impl Problem,
    plan: impl Fn(&dyn Fn(&str) -> usize) -> Result<UniquePtr<Plan>, E>,
) {
    check(problem, problem.inputs(), problem.tensors(), &plan);
    for family in problem.families() {
        check(problem, family.name, &family.tensors, &plan);
    }
}

fn check<E: Display>(
    problem: &impl Problem,
    kind: &str,
    specs: &[TensorSpec],
    plan: impl Fn(&dyn Fn(&str) -> usize) -> Result<UniquePtr<Plan>, E>,
) {
    let memories: Vec<Memory> = specs.iter().enumerate().map(filled).collect();
    under(Schedule::AtOnce, || {
        let place = |name: &str| specs.iter().position(|spec| spec.name == name);
        let address = |name: &str| place(name).map_or(0, |place| memories[place].address());
        run(plan(&address)).unwrap_or_else(|error| panic!("{kind}: {error}"));
    });
    let inputs = Inputs::new(specs, SEED);
    let outputs: Vec<Vec<f64>> = specs
        .iter()
        .zip(&memories)
        .map(|(spec, memory)| spec.dtype.decode(&memory.to_bytes()[..spec.bytes()]))
        .collect();
    for unit in 0..problem.units() {
        let (oracle, honest) = (problem.oracle(&inputs, unit), problem.honest(&inputs, unit));
        for (right, honest) in oracle.iter().zip(&honest) {
            let (name, dtype) = (specs[right.tensor].name, specs[right.tensor].dtype);
            let found = &outputs[right.tensor][right.start..][..right.values.len()];
            let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
            let terms = problem.magnitude(right.tensor);
            let scale = largest(&mut right.values.iter().map(|value| value.abs())).max(terms);
            let pairs = honest.values.iter().zip(&right.values);
            let error = largest(&mut pairs.map(|(honest, right)| (honest - right).abs()));
            // In f32 the order of sums matters.
            let roundings = if dtype == DType::F32 { 32.0 } else { 2.0 };
            let allowed = 4.0 * error + roundings * dtype.unit_roundoff() * scale;
            for (at, (found, right)) in found.iter().zip(&right.values).enumerate() {
                assert!(
                    (found - right).abs() <= allowed,
                    "{kind}, unit {unit}: {name}[{at}] is {found}, not {right} within {allowed}"
                );
            }
        }
    }
}

/// An input's contents, or NaN.
fn filled((tensor, spec): (usize, &TensorSpec)) -> Memory {
    let mut bytes = vec![0xFF; spec.bytes()];
    if spec.role.is_read() {
        tensor::fill_into(spec, tensor as u32, SEED, 0, &mut bytes);
    }
    let dtype = match spec.dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::I32 => "i32",
        DType::F8E4M3 | DType::F8E8M0 | DType::Mxfp8 | DType::I64 => "u8",
        DType::Nvfp4 | DType::Mxfp4 | DType::Fp8Ue8m0 => "u8",
    };
    of_type(dtype, Memory::from_bytes(&bytes))
}
