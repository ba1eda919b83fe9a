//! CPU contenders: ours on all cores, and plain loops to beat.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use decode_cpu::{plain, Decode, Element};
use half::{bf16, f16};
use numeric::DType;
use workloads::{decode_tensor as at, DecodeProblem};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Threaded,
    Plain,
}

struct CpuDecode {
    identity: Identity,
    style: Style,
}

pub fn contenders() -> Vec<Box<dyn Contender<DecodeProblem>>> {
    let contender = |name: &str, kind, style, timed_region: &str| -> Box<dyn Contender<_>> {
        let identity = Identity {
            name: name.to_owned(),
            kind,
            version: "in tree".to_owned(),
            artifact_sha256: None,
            timed_region: timed_region.to_owned(),
        };
        Box::new(CpuDecode { identity, style })
    };
    vec![
        contender("ours", Kind::Own, Style::Threaded, "one call on all cores"),
        contender("loop", Kind::Baseline, Style::Plain, "one call on one core"),
    ]
}

impl Contender<DecodeProblem> for CpuDecode {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &DecodeProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cpu {
            Support::No("runs on the CPU only".to_owned())
        } else if !matches!(problem.dtype, DType::F32 | DType::F16 | DType::Bf16) {
            Support::No(format!("no {}; f32, f16 and bf16 only", problem.dtype))
        } else {
            Support::Yes
        }
    }

    fn bind(
        &self,
        problem: &DecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        problem.table.validate().map_err(ContenderError::new)?;
        Ok(Box::new(BoundDecode {
            problem: problem.clone(),
            buffers: buffers.to_vec(),
            style: self.style,
        }))
    }
}

struct BoundDecode {
    problem: DecodeProblem,
    buffers: Vec<Buffer>,
    style: Style,
}

impl Bound for BoundDecode {
    fn enqueue(&mut self, _stream: Stream) -> Result<(), ContenderError> {
        match self.problem.dtype {
            DType::F32 => self.run::<f32>(),
            DType::F16 => self.run::<f16>(),
            DType::Bf16 => self.run::<bf16>(),
            other => return Err(ContenderError::new(format!("no {other}"))),
        }
        Ok(())
    }
}

impl BoundDecode {
    fn read<T>(&self, tensor: usize) -> &[T] {
        let Buffer { address, bytes } = self.buffers[tensor];
        // SAFETY: the harness keeps the buffer alive and unaliased while the call that it made
        // runs, aligned to 256 bytes; any bits are a value of the element types used here.
        unsafe { std::slice::from_raw_parts(address as *const T, bytes / size_of::<T>()) }
    }

    fn run<T: Element>(&self) {
        let (problem, shape) = (&self.problem, &self.problem.shape);
        let task = Decode::<T> {
            q: self.read(at::Q),
            keys: self.read(at::K_PAGES),
            values: self.read(at::V_PAGES),
            batch: shape.batch(),
            q_len: shape.q_len,
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            dim: shape.head_dim,
            scale: problem.scale,
            visible: &|sequence, query| problem.visible(sequence, query),
            row: &|sequence, token, head| problem.cache_row(sequence, token, head),
        };
        let Buffer { address, bytes } = self.buffers[at::OUT];
        // SAFETY: as in `read`; nothing else refers to the output.
        let out =
            unsafe { std::slice::from_raw_parts_mut(address as *mut T, bytes / size_of::<T>()) };
        match self.style {
            Style::Threaded => decode_cpu::decode(&task, out),
            Style::Plain => plain::decode(&task, out),
        }
    }
}
