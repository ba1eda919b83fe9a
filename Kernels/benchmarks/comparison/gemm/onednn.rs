//! oneDNN's matmul on the CPU, one primitive per group.

use contender::{
    bound, contender, Binding, ContenderError, Contenders, DeviceKind, Facts, Problem, Tensors,
};
use onednn::{Operation, Primitive, Product};
use onednn_contender::{data_type, facts, identity, obstacle};
use workloads::GemmProblem;

pub fn contenders() -> Contenders<GemmProblem> {
    let region = "one matmul per group on as many threads as ours, operands as they are";
    vec![contender(
        identity(region),
        DeviceKind::Cpu,
        |problem: &GemmProblem, _device| {
            // Groups differ in their rows alone, on which support does not depend.
            let rows = problem.layout.used_ranges().next();
            rows.and_then(|(_, rows)| obstacle(operation(problem, rows.len())))
        },
        |problem, tensors, _device| bind(problem, tensors),
    )]
}

fn operation(problem: &GemmProblem, m: usize) -> Result<Operation, String> {
    let dtype = data_type(problem.dtype())?;
    let (n, k) = (problem.shape.n, problem.shape.k);
    Ok(Operation::Matmul(Product { m, n, k, dtype }))
}

fn bind(problem: &GemmProblem, tensors: &Tensors) -> Binding {
    let (n, k) = (problem.shape.n, problem.shape.k);
    let bytes = problem.dtype().size_bytes();
    let [a, b, out] = tensors.addresses(["a", "b", "out"])?;
    let threads = host::threads();
    let (mut calls, mut shown) = (Vec::new(), Facts::new());
    for (group, rows) in problem.layout.used_ranges() {
        let operation = operation(problem, rows.len()).map_err(ContenderError::new)?;
        let primitive = Primitive::new(&operation).map_err(ContenderError::new)?;
        if calls.is_empty() {
            shown = facts(&primitive, threads);
        }
        let addresses = [
            a + rows.start * k * bytes,
            b + group * n * k * bytes,
            out + rows.start * n * bytes,
        ];
        // SAFETY: rows and matrix of the group, inside of the problem's tensors, which are host memory
        // and outlive what is bound to them; while it runs, the harness does not touch them.
        let call = unsafe { primitive.bind(&addresses, threads) };
        calls.push(call.map_err(ContenderError::new)?);
    }
    libraries::only_recorded().map_err(ContenderError::new)?;
    Ok(bound(shown, move |_stream| {
        calls.iter().try_for_each(|call| call.run())
    }))
}
