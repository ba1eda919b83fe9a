//! Shared by cuDNN's contenders: plans, whose support only cuDNN can decide, and their launches.

use std::fmt::Debug;

use contender::{
    bound, Binding, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity,
    Problem, Support, Tensors, PLAN_US,
};
use cudnn::{Graph, Plans};

/// Problems in cuDNN's terms.
pub struct Operation<P, O> {
    pub timed_region: &'static str,
    /// The tensors that the plan takes.
    pub arguments: fn(&P) -> Vec<&'static str>,
    /// Or why cuDNN has none.
    pub of: fn(&P) -> Result<O, String>,
    pub graph: fn(&O) -> Result<Graph, cudnn::Error>,
}

pub fn contender<P, O>(operation: Operation<P, O>) -> Box<dyn Contender<P>>
where
    P: Problem,
    O: Clone + Debug + PartialEq + 'static,
{
    let libraries = cudnn::library().map_or(Vec::new(), |library| library.records().to_vec());
    Box::new(OperationContender {
        identity: Identity::loaded("cudnn", libraries, operation.timed_region),
        operation,
        plans: Plans::default(),
    })
}

struct OperationContender<P, O> {
    identity: Identity,
    operation: Operation<P, O>,
    plans: Plans<O>,
}

impl<P: Problem, O: Clone + Debug + PartialEq> Contender<P> for OperationContender<P, O> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Builds the plan, because only cuDNN knows what it supports.
    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        if let Some(reason) = absent(device) {
            return Support::No(reason);
        }
        let planned = (self.operation.of)(problem).and_then(|operation| {
            let plan = self.plans.of(&operation, self.operation.graph);
            plan.map_err(|error| error.to_string())
        });
        match planned {
            Ok(_) => Support::Yes,
            Err(reason) => Support::No(reason),
        }
    }

    fn plan_name(&self, problem: &P, device: &DeviceInfo) -> Option<String> {
        match absent(device) {
            Some(_) => None,
            None => Some(format!("{:?}", (self.operation.of)(problem).ok()?)),
        }
    }

    fn write_plan(&self, problem: &P) -> Option<String> {
        let operation = (self.operation.of)(problem).ok()?;
        self.plans.write((self.operation.graph)(&operation))
    }

    fn take_plan(&self, problem: &P, plan: &str) {
        if let Ok(operation) = (self.operation.of)(problem) {
            self.plans.take(operation, plan);
        }
    }

    fn bind(&self, problem: &P, buffers: &[Buffer], _device: &DeviceInfo) -> Binding {
        let operation = (self.operation.of)(problem).map_err(ContenderError::new)?;
        let plan = self.plans.of(&operation, self.operation.graph);
        let plan = plan.map_err(ContenderError::new)?;
        libraries::only_recorded().map_err(ContenderError::new)?;
        let tensors = Tensors::new(problem, buffers)?;
        let arguments = (self.operation.arguments)(problem).into_iter();
        let addresses = arguments
            .map(|name| tensors.address(name))
            .collect::<Result<Vec<_>, _>>()?;
        let launch = plan.launch(&addresses).map_err(ContenderError::new)?;
        let micros = plan.build_time().as_micros() as u64;
        let facts = Facts::from([
            (PLAN_US.to_owned(), micros.into()),
            ("planned_ahead".to_owned(), plan.was_written().into()),
            ("workspace_bytes".to_owned(), plan.workspace_bytes().into()),
        ]);
        Ok(bound(facts, move |stream| launch.enqueue(stream)))
    }
}

/// Why cuDNN is not available, if so.
fn absent(device: &DeviceInfo) -> Option<String> {
    let obstacle = device
        .obstacle_to(DeviceKind::Cuda)
        .or_else(|| device.obstacle_to_machine_code());
    obstacle.or_else(|| cudnn::library().err().map(str::to_owned))
}
