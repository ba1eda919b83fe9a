//! CPU contenders: our threaded implementation, and a plain loop to beat.

use attention_cpu::{plain_prefill, prefill, Batch, Element};
use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use half::{bf16, f16};
use numeric::DType;
use workloads::PrefillProblem;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Threaded,
    Plain,
}

struct CpuPrefill {
    identity: Identity,
    style: Style,
}

pub fn contenders() -> Vec<Box<dyn Contender<PrefillProblem>>> {
    let contender = |name: &str, kind, style, timed_region: &str| -> Box<dyn Contender<_>> {
        let identity = Identity {
            name: name.to_owned(),
            kind,
            version: "in tree".to_owned(),
            artifact_sha256: None,
            timed_region: timed_region.to_owned(),
        };
        Box::new(CpuPrefill { identity, style })
    };
    vec![
        contender("ours", Kind::Own, Style::Threaded, "one call on all cores"),
        contender("loop", Kind::Baseline, Style::Plain, "one call on one core"),
    ]
}

impl Contender<PrefillProblem> for CpuPrefill {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &PrefillProblem, device: &DeviceInfo) -> Support {
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
        problem: &PrefillProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        Ok(Box::new(BoundPrefill {
            problem: problem.clone(),
            buffers: buffers.to_vec(),
            style: self.style,
        }))
    }
}

struct BoundPrefill {
    problem: PrefillProblem,
    buffers: Vec<Buffer>,
    style: Style,
}

impl Bound for BoundPrefill {
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

impl BoundPrefill {
    fn read<T>(&self, tensor: usize) -> &[T] {
        let Buffer { address, bytes } = self.buffers[tensor];
        // SAFETY: the harness keeps the buffer alive and unaliased while the call that it made
        // runs, aligned to 256 bytes; any bits are a value of the element types used here.
        unsafe { std::slice::from_raw_parts(address as *const T, bytes / size_of::<T>()) }
    }

    #[expect(
        clippy::mut_from_ref,
        reason = "each tensor is another buffer, named once per call"
    )]
    fn write<T>(&self, tensor: usize) -> &mut [T] {
        let Buffer { address, bytes } = self.buffers[tensor];
        // SAFETY: as in `read`; and no output is named twice.
        unsafe { std::slice::from_raw_parts_mut(address as *mut T, bytes / size_of::<T>()) }
    }

    /// Tensor numbers are places in the problem's list.
    fn run<T: Element>(&self) {
        let shape = &self.problem.shape;
        let batch = Batch::<T> {
            q: self.read(0),
            k: self.read(1),
            v: self.read(2),
            starts_q: self.read(3),
            starts_kv: self.read(4),
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            causal: shape.causal,
            scale: self.problem.scale,
        };
        let lse = self.problem.op.has_lse().then(|| self.write(6));
        match self.style {
            Style::Threaded => prefill(&batch, self.write(5), lse),
            Style::Plain => plain_prefill(&batch, self.write(5), lse),
        }
    }
}
