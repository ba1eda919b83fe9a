//! cuDNN's norm operations.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Stream, Support,
};
use cudnn::{DataType, LastPlan, Launch, Norm, NormBackward, NormForward, NormKind};
use numeric::DType;
use serde_json::Value;
use workloads::{NormOp, NormProblem};

/// An operation as cuDNN sees it.
#[derive(Clone, Copy, PartialEq)]
enum Op {
    Forward(NormForward),
    Backward(NormBackward),
}

impl Op {
    /// Or why there is none.
    fn of(problem: &NormProblem) -> Result<Self, String> {
        let (kind, forward) = match problem.op {
            NormOp::RmsNormForward => (NormKind::Rms, true),
            NormOp::RmsNormBackward => (NormKind::Rms, false),
            NormOp::LayerNormForward => (NormKind::Layer, true),
            NormOp::LayerNormBackward => (NormKind::Layer, false),
            other => return Err(format!("cuDNN has no {other} as one operation")),
        };
        let norm = Norm {
            kind,
            rows: problem.shape.rows,
            columns: problem.shape.columns,
            activation: data_type(problem.types.activation)?,
            weight: data_type(problem.types.weight)?,
        };
        let epsilon = problem.epsilon;
        Ok(match forward {
            true => Op::Forward(NormForward { norm, epsilon }),
            false => Op::Backward(NormBackward { norm }),
        })
    }

    fn plan(&self) -> Result<cudnn::Plan, cudnn::Error> {
        match self {
            Op::Forward(forward) => forward.plan(),
            Op::Backward(backward) => backward.plan(),
        }
    }
}

fn data_type(dtype: DType) -> Result<DataType, String> {
    match dtype {
        DType::F32 => Ok(DataType::F32),
        DType::F16 => Ok(DataType::F16),
        DType::Bf16 => Ok(DataType::Bf16),
        other => Err(format!("no {other} here")),
    }
}

struct CudnnNorms {
    identity: Identity,
    last: LastPlan<Op>,
}

pub fn contender() -> Box<dyn Contender<NormProblem>> {
    let version = cudnn::library().map_or("absent".to_owned(), |library| library.version());
    Box::new(CudnnNorms {
        identity: Identity {
            name: "cudnn".to_owned(),
            kind: Kind::Baseline,
            version,
            artifact_sha256: None,
            timed_region: "all kernels of the plan; weight gradients with their final sum"
                .to_owned(),
        },
        last: LastPlan::default(),
    })
}

impl Contender<NormProblem> for CudnnNorms {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Makes the plan, because only cuDNN knows what it can do.
    fn supports(&self, problem: &NormProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        if let Err(reason) = cudnn::library() {
            return Support::No(reason.to_owned());
        }
        let planned = Op::of(problem).and_then(|op| {
            self.last
                .of(&op, Op::plan)
                .map_err(|error| error.to_string())
        });
        match planned {
            Ok(_) => Support::Yes,
            Err(reason) => Support::No(reason),
        }
    }

    fn bind(
        &self,
        problem: &NormProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let op = Op::of(problem).map_err(ContenderError::new)?;
        let plan = self.last.of(&op, Op::plan).map_err(ContenderError::new)?;
        // Tensors come in the order of the problem, which is the plan's too.
        let addresses: Vec<usize> = buffers.iter().map(|buffer| buffer.address).collect();
        let launch = plan.launch(&addresses).map_err(ContenderError::new)?;
        Ok(Box::new(BoundNorms { launch }))
    }
}

struct BoundNorms {
    launch: Launch,
}

impl Bound for BoundNorms {
    fn enqueue(&mut self, stream: Stream) -> Result<(), ContenderError> {
        self.launch.enqueue(stream.0).map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        let plan = self.launch.plan();
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
