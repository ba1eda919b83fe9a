//! CPU contenders: our threaded implementation, and a plain loop to beat.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Stream,
    Support,
};
use half::{bf16, f16};
use nsa_cpu::{plain, Element, Selected};
use numeric::DType;
use workloads::{nsa_tensor, NsaProblem};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Threaded,
    Plain,
}

struct CpuNsa {
    identity: Identity,
    style: Style,
}

pub fn contenders() -> Vec<Box<dyn Contender<NsaProblem>>> {
    let contender = |name: &str, kind, style, timed_region: &str| -> Box<dyn Contender<_>> {
        let identity = Identity {
            name: name.to_owned(),
            kind,
            version: "in tree".to_owned(),
            artifact_sha256: None,
            timed_region: timed_region.to_owned(),
        };
        Box::new(CpuNsa { identity, style })
    };
    vec![
        contender("ours", Kind::Own, Style::Threaded, "one call on all cores"),
        contender("loop", Kind::Baseline, Style::Plain, "one call on one core"),
    ]
}

impl Contender<NsaProblem> for CpuNsa {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &NsaProblem, device: &DeviceInfo) -> Support {
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
        problem: &NsaProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        Ok(Box::new(BoundNsa {
            problem: problem.clone(),
            buffers: buffers.to_vec(),
            style: self.style,
        }))
    }
}

struct BoundNsa {
    problem: NsaProblem,
    buffers: Vec<Buffer>,
    style: Style,
}

impl Bound for BoundNsa {
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

impl BoundNsa {
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
        // SAFETY: as in `read`; and no operation names a written tensor twice.
        unsafe { std::slice::from_raw_parts_mut(address as *mut T, bytes / size_of::<T>()) }
    }

    fn run<T: Element>(&self) {
        let shape = self.problem.shape;
        let input = Selected::<T> {
            queries: self.read(nsa_tensor::QUERIES),
            keys: self.read(nsa_tensor::KEYS),
            values: self.read(nsa_tensor::VALUES),
            blocks: self.read(nsa_tensor::BLOCKS),
            sequence: shape.sequence,
            heads: shape.heads,
            groups: shape.groups,
            dim: shape.dim,
            block: shape.block,
            selected: shape.selected,
            scale: self.problem.scale,
        };
        let (out, lse) = (self.write(nsa_tensor::OUT), self.write(nsa_tensor::LSE));
        match self.style {
            Style::Threaded => nsa_cpu::attend(&input, out, lse),
            Style::Plain => plain::attend(&input, out, lse),
        }
    }
}
