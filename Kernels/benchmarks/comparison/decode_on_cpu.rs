//! What the CPU contenders of both kinds of decode share: ours on all cores, and plain loops to beat.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Identity, Kind, Problem,
    Stream, Support,
};
use decode_cpu::Element;
use half::{bf16, f16};
use numeric::DType;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Threaded,
    Plain,
}

/// A step of decode that the CPU can do.
pub trait Step: Problem + Clone + 'static {
    /// Refuses a page table that must not be read through.
    fn validate(&self) -> Result<(), ContenderError>;
    fn run<T: Element>(&self, tensors: &Tensors, style: Style);
}

/// The harness' buffers while a call runs.
pub struct Tensors(Vec<Buffer>);

impl Tensors {
    pub fn read<T>(&self, tensor: usize) -> &[T] {
        let Buffer { address, bytes } = self.0[tensor];
        // SAFETY: the harness keeps the buffer alive and unaliased while the call that it made
        // runs, aligned to 256 bytes; any bits are a value of the element types used here.
        unsafe { std::slice::from_raw_parts(address as *const T, bytes / size_of::<T>()) }
    }

    /// Of an output; once a call.
    #[expect(clippy::mut_from_ref, reason = "the memory is the harness', not ours")]
    pub fn write<T>(&self, tensor: usize) -> &mut [T] {
        let Buffer { address, bytes } = self.0[tensor];
        // SAFETY: as in `read`; nothing else refers to the output.
        unsafe { std::slice::from_raw_parts_mut(address as *mut T, bytes / size_of::<T>()) }
    }
}

struct OnCpu {
    identity: Identity,
    style: Style,
}

pub fn contenders<P: Step>() -> Vec<Box<dyn Contender<P>>> {
    let contender = |name: &str, kind, style, timed_region: &str| -> Box<dyn Contender<P>> {
        let identity = Identity {
            name: name.to_owned(),
            kind,
            version: "in tree".to_owned(),
            artifact_sha256: None,
            timed_region: timed_region.to_owned(),
        };
        Box::new(OnCpu { identity, style })
    };
    vec![
        contender("ours", Kind::Own, Style::Threaded, "one call on all cores"),
        contender("loop", Kind::Baseline, Style::Plain, "one call on one core"),
    ]
}

impl<P: Step> Contender<P> for OnCpu {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cpu {
            Support::No("runs on the CPU only".to_owned())
        } else if !matches!(problem.dtype(), DType::F32 | DType::F16 | DType::Bf16) {
            Support::No(format!("no {}; f32, f16 and bf16 only", problem.dtype()))
        } else {
            Support::Yes
        }
    }

    fn bind(
        &self,
        problem: &P,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        problem.validate()?;
        Ok(Box::new(BoundStep {
            problem: problem.clone(),
            tensors: Tensors(buffers.to_vec()),
            style: self.style,
        }))
    }
}

struct BoundStep<P> {
    problem: P,
    tensors: Tensors,
    style: Style,
}

impl<P: Step> Bound for BoundStep<P> {
    fn enqueue(&mut self, _stream: Stream) -> Result<(), ContenderError> {
        match self.problem.dtype() {
            DType::F32 => self.problem.run::<f32>(&self.tensors, self.style),
            DType::F16 => self.problem.run::<f16>(&self.tensors, self.style),
            DType::Bf16 => self.problem.run::<bf16>(&self.tensors, self.style),
            other => return Err(ContenderError::new(format!("no {other}"))),
        }
        Ok(())
    }
}
