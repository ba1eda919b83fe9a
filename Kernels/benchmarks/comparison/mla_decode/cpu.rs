//! CPU contenders: ours on all cores, and plain loops to beat.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use decode_cpu::{plain, Element, Latent};
use half::{bf16, f16};
use numeric::DType;
use workloads::{mla_tensor as at, MlaDecodeProblem};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Threaded,
    Plain,
}

struct CpuMla {
    identity: Identity,
    style: Style,
}

pub fn contenders() -> Vec<Box<dyn Contender<MlaDecodeProblem>>> {
    let contender = |name: &str, kind, style, timed_region: &str| -> Box<dyn Contender<_>> {
        let identity = Identity {
            name: name.to_owned(),
            kind,
            version: "in tree".to_owned(),
            artifact_sha256: None,
            timed_region: timed_region.to_owned(),
        };
        Box::new(CpuMla { identity, style })
    };
    vec![
        contender("ours", Kind::Own, Style::Threaded, "one call on all cores"),
        contender("loop", Kind::Baseline, Style::Plain, "one call on one core"),
    ]
}

impl Contender<MlaDecodeProblem> for CpuMla {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &MlaDecodeProblem, device: &DeviceInfo) -> Support {
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
        problem: &MlaDecodeProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        problem.table.validate().map_err(ContenderError::new)?;
        Ok(Box::new(BoundMla {
            problem: problem.clone(),
            buffers: buffers.to_vec(),
            style: self.style,
        }))
    }
}

struct BoundMla {
    problem: MlaDecodeProblem,
    buffers: Vec<Buffer>,
    style: Style,
}

impl Bound for BoundMla {
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

impl BoundMla {
    fn read<T>(&self, tensor: usize) -> &[T] {
        let Buffer { address, bytes } = self.buffers[tensor];
        // SAFETY: the harness keeps the buffer alive and unaliased while the call that it made
        // runs, aligned to 256 bytes; any bits are a value of the element types used here.
        unsafe { std::slice::from_raw_parts(address as *const T, bytes / size_of::<T>()) }
    }

    fn run<T: Element>(&self) {
        let (problem, shape) = (&self.problem, &self.problem.shape);
        let task = Latent::<T> {
            q_nope: self.read(at::Q_NOPE),
            q_pe: self.read(at::Q_PE),
            ckv: self.read(at::CKV_PAGES),
            kpe: self.read(at::KPE_PAGES),
            batch: shape.batch(),
            q_len: shape.q_len,
            heads: shape.heads,
            scale: problem.scale,
            visible: &|sequence, query| problem.visible(sequence, query),
            row: &|sequence, token| problem.cache_row(sequence, token),
        };
        let Buffer { address, bytes } = self.buffers[at::OUT];
        // SAFETY: as in `read`; nothing else refers to the output.
        let out =
            unsafe { std::slice::from_raw_parts_mut(address as *mut T, bytes / size_of::<T>()) };
        match self.style {
            Style::Threaded => decode_cpu::latent(&task, out),
            Style::Plain => plain::latent(&task, out),
        }
    }
}
