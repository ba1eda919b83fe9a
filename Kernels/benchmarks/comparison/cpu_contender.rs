//! What CPU contenders share: a threaded implementation of ours, and a plain loop to beat.

use std::mem::size_of;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Problem,
    Stream, Support,
};
use half::{bf16, f16};
use host::Element;
use numeric::DType;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Threaded,
    Plain,
}

/// A problem that is solved on the CPU.
pub trait CpuOp: Problem + Clone + 'static {
    /// Why the implementations do not take the problem, other than its type.
    fn unsupported(&self) -> Option<String> {
        None
    }

    /// Refuses what must not be run, such as a page table that leads out of the cache.
    fn validate(&self) -> Result<(), ContenderError> {
        Ok(())
    }

    /// Does the work once, `T` being the problem's type.
    fn run<T: Element>(&self, tensors: &Tensors, style: Style);
}

/// `ours` and `loop`.
pub fn contenders<P: CpuOp>() -> Vec<Box<dyn Contender<P>>> {
    let contender = |name: &str, kind, style, timed_region: &str| -> Box<dyn Contender<P>> {
        let identity = Identity::in_tree(name, kind, timed_region);
        Box::new(CpuContender { identity, style })
    };
    vec![
        contender("ours", Kind::Own, Style::Threaded, "one call on all cores"),
        contender("loop", Kind::Baseline, Style::Plain, "one call on one core"),
    ]
}

struct CpuContender {
    identity: Identity,
    style: Style,
}

impl<P: CpuOp> Contender<P> for CpuContender {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cpu {
            Support::No("runs on the CPU only".to_owned())
        } else if !matches!(problem.dtype(), DType::F32 | DType::F16 | DType::Bf16) {
            Support::No(format!("no {}; f32, f16 and bf16 only", problem.dtype()))
        } else {
            problem.unsupported().map_or(Support::Yes, Support::No)
        }
    }

    fn bind(
        &self,
        problem: &P,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        problem.validate()?;
        Ok(Box::new(BoundOp {
            problem: problem.clone(),
            tensors: Tensors(buffers.to_vec()),
            style: self.style,
        }))
    }
}

struct BoundOp<P> {
    problem: P,
    tensors: Tensors,
    style: Style,
}

impl<P: CpuOp> Bound for BoundOp<P> {
    fn enqueue(&mut self, _stream: Stream) -> Result<(), ContenderError> {
        let (tensors, style) = (&self.tensors, self.style);
        match self.problem.dtype() {
            DType::F32 => self.problem.run::<f32>(tensors, style),
            DType::F16 => self.problem.run::<f16>(tensors, style),
            DType::Bf16 => self.problem.run::<bf16>(tensors, style),
            other => return Err(ContenderError::new(format!("no {other}"))),
        }
        Ok(())
    }
}

/// The buffers of a problem, by place in its list of tensors.
pub struct Tensors(Vec<Buffer>);

impl Tensors {
    pub fn read<T>(&self, tensor: usize) -> &[T] {
        let Buffer { address, bytes } = self.0[tensor];
        // SAFETY: the harness keeps the buffer alive and unaliased while the call that it made
        // runs, aligned to 256 bytes; any bits are a value of the element types used here.
        unsafe { std::slice::from_raw_parts(address as *const T, bytes / size_of::<T>()) }
    }

    #[expect(
        clippy::mut_from_ref,
        reason = "each tensor is another buffer, named once per call"
    )]
    pub fn write<T>(&self, tensor: usize) -> &mut [T] {
        let Buffer { address, bytes } = self.0[tensor];
        // SAFETY: as in `read`; and no operation names a written tensor twice.
        unsafe { std::slice::from_raw_parts_mut(address as *mut T, bytes / size_of::<T>()) }
    }
}
