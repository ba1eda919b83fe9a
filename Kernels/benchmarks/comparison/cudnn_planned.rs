//! What cuDNN's contenders share: plans that only cuDNN can say whether it has, and their launches.

use std::fmt::Debug;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};
use cudnn::{Graph, Launch, Plans};
use serde_json::Value;

/// A problem as cuDNN sees it.
pub trait Operation<P>: Clone + Debug + PartialEq + 'static {
    /// What the plan takes, as places in the problem's list of tensors. An output that only some of
    /// the problems have comes last.
    const ARGUMENTS: &'static [usize];
    const TIMED_REGION: &'static str = "all kernels of the plan";

    /// Or why cuDNN has none.
    fn of(problem: &P) -> Result<Self, String>;

    fn graph(&self) -> Result<Graph, cudnn::Error>;
}

pub fn contender<P: Problem, O: Operation<P>>() -> Box<dyn Contender<P>> {
    let libraries = cudnn::library().map_or(Vec::new(), |library| library.records().to_vec());
    Box::new(OperationContender::<O> {
        identity: Identity {
            name: "cudnn".to_owned(),
            kind: Kind::Baseline,
            version: Identity::version_of(&libraries),
            artifact_sha256: Identity::artifact_of(&libraries),
            libraries,
            timed_region: O::TIMED_REGION.to_owned(),
        },
        plans: Plans::default(),
    })
}

struct OperationContender<O> {
    identity: Identity,
    plans: Plans<O>,
}

impl<P: Problem, O: Operation<P>> Contender<P> for OperationContender<O> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Makes the plan, because only cuDNN knows what it can do.
    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        if let Some(reason) = absent(device) {
            return Support::No(reason);
        }
        let planned = O::of(problem).and_then(|operation| {
            let plan = self.plans.of(&operation, O::graph);
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
            None => Some(format!("{:?}", O::of(problem).ok()?)),
        }
    }

    fn write_plan(&self, problem: &P) -> Option<String> {
        self.plans.write(O::of(problem).ok()?.graph())
    }

    fn take_plan(&self, problem: &P, plan: &str) {
        if let Ok(operation) = O::of(problem) {
            self.plans.take(operation, plan);
        }
    }

    fn bind(
        &self,
        problem: &P,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let operation = O::of(problem).map_err(ContenderError::new)?;
        let plan = self.plans.of(&operation, O::graph);
        let plan = plan.map_err(ContenderError::new)?;
        libraries::only_recorded().map_err(ContenderError::new)?;
        let arguments = O::ARGUMENTS
            .iter()
            .filter_map(|&tensor| buffers.get(tensor));
        let addresses: Vec<usize> = arguments.map(|buffer| buffer.address).collect();
        let launch = plan.launch(&addresses).map_err(ContenderError::new)?;
        Ok(Box::new(BoundLaunch(launch)))
    }
}

/// Why there is no cuDNN here, if there is none.
fn absent(device: &DeviceInfo) -> Option<String> {
    if device.kind != DeviceKind::Cuda {
        return Some("runs on CUDA only".to_owned());
    }
    cudnn::library().err().map(str::to_owned)
}

struct BoundLaunch(Launch);

impl Bound for BoundLaunch {
    fn enqueue(&mut self, stream: Stream) -> Result<(), ContenderError> {
        self.0.enqueue(stream.0).map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        let plan = self.0.plan();
        let micros = plan.build_time().as_micros() as u64;
        Facts::from([
            ("plan_us".to_owned(), Value::from(micros)),
            ("planned_ahead".to_owned(), Value::from(plan.was_written())),
            (
                "workspace_bytes".to_owned(),
                Value::from(plan.workspace_bytes()),
            ),
        ])
    }
}
