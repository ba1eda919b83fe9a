//! What cuDNN's attention contenders share: a plan that only cuDNN can say whether it has, and its
//! launch.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};
use cudnn::{DataType, LastPlan, Launch, Plan};
use numeric::DType;
use serde_json::Value;

/// A problem as cuDNN sees it.
pub trait Operation<P>: Clone + PartialEq + 'static {
    /// What the plan takes, as places in the problem's list of tensors. An output that only some of
    /// the problems have comes last.
    const ARGUMENTS: &'static [usize];

    /// Or why cuDNN has none.
    fn of(problem: &P) -> Result<Self, String>;

    fn plan(&self) -> Result<Plan, cudnn::Error>;
}

pub fn contender<P: Problem, O: Operation<P>>() -> Box<dyn Contender<P>> {
    Box::new(OperationContender::<O> {
        identity: Identity {
            name: "cudnn".to_owned(),
            kind: Kind::Baseline,
            version: cudnn::library().map_or("absent".to_owned(), |library| library.version()),
            artifact_sha256: None,
            timed_region: "all kernels of the plan".to_owned(),
        },
        last: LastPlan::default(),
    })
}

struct OperationContender<O> {
    identity: Identity,
    last: LastPlan<O>,
}

impl<P: Problem, O: Operation<P>> Contender<P> for OperationContender<O> {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Makes the plan, because only cuDNN knows what it can do.
    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        if let Err(reason) = cudnn::library() {
            return Support::No(reason.to_owned());
        }
        let planned = O::of(problem).and_then(|operation| {
            let plan = self.last.of(&operation, O::plan);
            plan.map_err(|error| error.to_string())
        });
        match planned {
            Ok(_) => Support::Yes,
            Err(reason) => Support::No(reason),
        }
    }

    fn bind(
        &self,
        problem: &P,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let operation = O::of(problem).map_err(ContenderError::new)?;
        let plan = self.last.of(&operation, O::plan);
        let plan = plan.map_err(ContenderError::new)?;
        let arguments = O::ARGUMENTS
            .iter()
            .filter_map(|&tensor| buffers.get(tensor));
        let addresses: Vec<usize> = arguments.map(|buffer| buffer.address).collect();
        let launch = plan.launch(&addresses).map_err(ContenderError::new)?;
        Ok(Box::new(BoundLaunch(launch)))
    }
}

pub fn data_type(dtype: DType) -> Result<DataType, String> {
    match dtype {
        DType::F16 => Ok(DataType::F16),
        DType::Bf16 => Ok(DataType::Bf16),
        other => Err(format!("no {other}; f16 or bf16")),
    }
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
            (
                "workspace_bytes".to_owned(),
                Value::from(plan.workspace_bytes()),
            ),
        ])
    }
}
