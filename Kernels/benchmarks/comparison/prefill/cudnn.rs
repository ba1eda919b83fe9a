//! cuDNN's fused attention.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Stream, Support,
};
use cudnn::{Attention, DataType, LastPlan, Launch};
use numeric::DType;
use serde_json::Value;
use workloads::PrefillProblem;

struct CudnnPrefill {
    identity: Identity,
    last: LastPlan<Attention>,
}

pub fn contenders() -> Vec<Box<dyn Contender<PrefillProblem>>> {
    let version = cudnn::library().map_or("absent".to_owned(), |library| library.version());
    vec![Box::new(CudnnPrefill {
        identity: Identity {
            name: "cudnn".to_owned(),
            kind: Kind::Baseline,
            version,
            artifact_sha256: None,
            timed_region: "all kernels of the plan".to_owned(),
        },
        last: LastPlan::default(),
    })]
}

/// A problem as cuDNN sees it, or why it has none.
fn attention(problem: &PrefillProblem) -> Result<Attention, String> {
    let data_type = match problem.dtype {
        DType::F16 => DataType::F16,
        DType::Bf16 => DataType::Bf16,
        other => return Err(format!("no {other}; f16 or bf16")),
    };
    let shape = &problem.shape;
    Ok(Attention {
        q_lens: shape.q_lens.clone(),
        kv_lens: shape.kv_lens.clone(),
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        causal: shape.causal,
        scale: problem.scale,
        data_type,
        with_lse: problem.op.has_lse(),
    })
}

impl Contender<PrefillProblem> for CudnnPrefill {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Makes the plan, because only cuDNN knows what it can do.
    fn supports(&self, problem: &PrefillProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        if let Err(reason) = cudnn::library() {
            return Support::No(reason.to_owned());
        }
        let planned = attention(problem).and_then(|attention| {
            let plan = self.last.of(&attention, Attention::plan);
            plan.map_err(|error| error.to_string())
        });
        match planned {
            Ok(_) => Support::Yes,
            Err(reason) => Support::No(reason),
        }
    }

    fn bind(
        &self,
        problem: &PrefillProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let attention = attention(problem).map_err(ContenderError::new)?;
        let plan = self.last.of(&attention, Attention::plan);
        let plan = plan.map_err(ContenderError::new)?;
        // The cumulative lengths (3 and 4) are part of the plan.
        let arguments = [0, 1, 2, 5, 6].into_iter();
        let addresses: Vec<usize> = arguments
            .filter_map(|tensor| buffers.get(tensor))
            .map(|buffer| buffer.address)
            .collect();
        let launch = plan.launch(&addresses).map_err(ContenderError::new)?;
        Ok(Box::new(BoundPrefill { launch }))
    }
}

struct BoundPrefill {
    launch: Launch,
}

impl Bound for BoundPrefill {
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
