//! What cuDNN's attention contenders share: a plan that only cuDNN can say whether it has, and its
//! launch.

use contender::{Bound, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind, Stream};
use cudnn::{DataType, Launch};
use numeric::DType;
use serde_json::Value;

pub fn identity() -> Identity {
    Identity {
        name: "cudnn".to_owned(),
        kind: Kind::Baseline,
        version: cudnn::library().map_or("absent".to_owned(), |library| library.version()),
        artifact_sha256: None,
        timed_region: "all kernels of the plan".to_owned(),
    }
}

/// Why there is no cuDNN here, if there is none.
pub fn absent(device: &DeviceInfo) -> Option<String> {
    if device.kind != DeviceKind::Cuda {
        return Some("runs on CUDA only".to_owned());
    }
    cudnn::library().err().map(str::to_owned)
}

pub fn data_type(dtype: DType) -> Result<DataType, String> {
    match dtype {
        DType::F16 => Ok(DataType::F16),
        DType::Bf16 => Ok(DataType::Bf16),
        other => Err(format!("no {other}; f16 or bf16")),
    }
}

pub struct BoundLaunch(pub Launch);

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
