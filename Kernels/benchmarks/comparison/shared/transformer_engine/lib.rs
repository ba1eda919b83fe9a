//! Shared by Transformer Engine's contenders: a function of the library, and the tensors it takes.

use std::time::Instant;

use contender::{
    bound, contender as of_functions, Binding, Contender, ContenderError, DeviceInfo, DeviceKind,
    Facts, Identity, Problem, Tensors, PLAN_US,
};
use numeric::DType;
use transformer_engine::{DataType, Function, Prepared, Tensor};

/// Problems in the library's terms.
pub struct Operation<P> {
    pub timed_region: &'static str,
    /// Or why it has none.
    pub function: fn(&P) -> Result<Function, String>,
    /// Tensors in the function's order. Those that the problem lacks are statistics, one f32 per row, which the
    /// function writes in any case.
    pub arguments: fn(Function) -> &'static [&'static str],
    /// Of a norm.
    pub epsilon: fn(&P) -> f32,
}

pub fn contender<P: Problem>(operation: Operation<P>) -> Box<dyn Contender<P>> {
    let library = transformer_engine::library();
    let libraries = library.map_or(Vec::new(), |library| library.records().to_vec());
    let identity = Identity::loaded("transformer_engine", libraries, operation.timed_region);
    let function = operation.function;
    of_functions(
        identity,
        DeviceKind::Cuda,
        move |problem, device| absent(device).or_else(|| function(problem).err()),
        move |problem, tensors, device| bind(&operation, problem, tensors, device),
    )
}

/// Why the library is not available, if so.
fn absent(device: &DeviceInfo) -> Option<String> {
    let obstacle = device.obstacle_to_machine_code();
    obstacle.or_else(|| transformer_engine::library().err().map(str::to_owned))
}

/// Its type for elements.
pub fn data_type(dtype: DType) -> Result<DataType, String> {
    match dtype {
        DType::F32 => Ok(DataType::F32),
        DType::F16 => Ok(DataType::F16),
        DType::Bf16 => Ok(DataType::Bf16),
        other => Err(format!("{other} is not supported")),
    }
}

fn bind<P: Problem>(
    operation: &Operation<P>,
    problem: &P,
    tensors: &Tensors,
    device: &DeviceInfo,
) -> Binding {
    let begin = Instant::now();
    let function = (operation.function)(problem).map_err(ContenderError::new)?;
    let rows = tensors.specs()[0].shape[0];
    let (mut arguments, mut memory) = (Vec::new(), Vec::new());
    for &name in (operation.arguments)(function) {
        let specs = tensors.specs().iter();
        let (address, dtype, shape) = match specs.into_iter().find(|spec| spec.name == name) {
            Some(spec) => (tensors.address(name)?, spec.dtype, &*spec.shape),
            None => {
                let statistic = column_sums::allocate_workspace(rows * size_of::<f32>());
                memory.push(statistic.map_err(ContenderError::new)?);
                (memory[memory.len() - 1].address(), DType::F32, &[rows][..])
            }
        };
        arguments.push(Tensor {
            address,
            dtype: data_type(dtype).map_err(ContenderError::new)? as i32,
            rows: shape[0],
            columns: shape.get(1).copied().unwrap_or(0),
        });
    }
    let epsilon = (operation.epsilon)(problem);
    let prepared = Prepared::new(function, &arguments, epsilon, device.multiprocessors);
    let prepared = prepared.map_err(ContenderError::new)?;
    libraries::only_recorded().map_err(ContenderError::new)?;
    let bytes = prepared.workspace_bytes();
    if bytes > 0 {
        let workspace = column_sums::allocate_workspace(bytes).map_err(ContenderError::new)?;
        let set = prepared.set_workspace(workspace.address());
        set.map_err(ContenderError::new)?;
        memory.push(workspace);
    }
    let micros = begin.elapsed().as_micros() as u64;
    let facts = Facts::from([
        (PLAN_US.to_owned(), micros.into()),
        ("workspace_bytes".to_owned(), bytes.into()),
    ]);
    Ok(bound(facts, move |stream| {
        let _alive = &memory;
        prepared.enqueue(stream)
    }))
}
