//! CUDA contenders: our kernels, and the plain one that serves as the gate's full reference.

use std::time::Instant;

use attention::{Dtype, KernelChoice, PrefillPlan, PrefillShape, PrefillTensors, UniquePtr};
use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Stream, Support,
};
use numeric::DType;
use workloads::PrefillProblem;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Tuned(KernelChoice),
    Plain,
}

struct CudaPrefill {
    identity: Identity,
    variant: Variant,
}

/// Pairs of a query and a key that the plain kernel takes on: beyond, it would take seconds.
const MOST_PLAIN_PAIRS: f64 = 2e9;

pub fn contenders() -> Vec<Box<dyn Contender<PrefillProblem>>> {
    let contender = |name: &str, kind, variant, timed_region: &str| -> Box<dyn Contender<_>> {
        let identity = Identity::in_tree(name, kind, timed_region);
        Box::new(CudaPrefill { identity, variant })
    };
    let tuned = "one kernel; the list of tiles is made beforehand (plan_us)";
    vec![
        contender("ours", Kind::Own, Variant::Tuned(KernelChoice::Best), tuned),
        contender(
            "ours_portable",
            Kind::Own,
            Variant::Tuned(KernelChoice::Portable),
            tuned,
        ),
        contender("plain_fp32", Kind::Reference, Variant::Plain, "one kernel"),
    ]
}

fn shape(problem: &PrefillProblem) -> Option<PrefillShape> {
    let shape = &problem.shape;
    let dtype = match problem.dtype {
        DType::F16 => Dtype::F16,
        DType::Bf16 => Dtype::Bf16,
        _ => return None,
    };
    matches!(shape.head_dim, 64 | 128).then(|| PrefillShape {
        total_q: shape.total_q(),
        total_kv: shape.total_kv(),
        longest_kv: shape.kv_lens.iter().copied().max().unwrap_or(0),
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        causal: shape.causal,
        scale: problem.scale,
        dtype,
    })
}

/// Numbers are places in the problem's list of tensors.
fn tensors(problem: &PrefillProblem, buffers: &[Buffer]) -> PrefillTensors {
    let at = |tensor: usize| buffers[tensor].address;
    PrefillTensors {
        q: at(0),
        k: at(1),
        v: at(2),
        starts_q: at(3),
        starts_kv: at(4),
        out: at(5),
        lse: if problem.op.has_lse() { at(6) } else { 0 },
    }
}

fn starts(lengths: &[usize]) -> Vec<i32> {
    let mut total = 0;
    let ends = lengths.iter().map(|&length| {
        total += i32::try_from(length).expect("a valid problem's tokens fit in 31 bits");
        total
    });
    [0].into_iter().chain(ends).collect()
}

impl Contender<PrefillProblem> for CudaPrefill {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &PrefillProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        let Some(shape) = shape(problem) else {
            return Support::No(format!(
                "no {} with head dim {}; f16 and bf16 with 64 and 128 only",
                problem.dtype, problem.shape.head_dim
            ));
        };
        let hopper = device.compute_capability == Some((9, 0));
        let pairs = problem.shape.visible_pairs() * problem.shape.heads as f64;
        match self.variant {
            Variant::Tuned(KernelChoice::Portable)
                if !hopper || !attention::suits_wgmma(&shape).is_ok_and(|suits| suits) =>
            {
                Support::No("the same kernel as 'ours' here".to_owned())
            }
            Variant::Plain if pairs > MOST_PLAIN_PAIRS => Support::No(format!(
                "{pairs:.1e} pairs of queries and keys; {MOST_PLAIN_PAIRS:.1e} at most"
            )),
            _ => Support::Yes,
        }
    }

    fn bind(
        &self,
        problem: &PrefillProblem,
        buffers: &[Buffer],
        _device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let tensors = tensors(problem, buffers);
        let shape = shape(problem).ok_or_else(|| ContenderError::new("unsupported shape"))?;
        let Variant::Tuned(choice) = self.variant else {
            let sequences = problem.shape.batch();
            return Ok(Box::new(BoundPlain {
                tensors,
                shape,
                sequences,
            }));
        };
        let (starts_q, starts_kv) = (
            starts(&problem.shape.q_lens),
            starts(&problem.shape.kv_lens),
        );
        let start = Instant::now();
        let plan = attention::plan_prefill(&shape, choice, &starts_q, &starts_kv)
            .map_err(ContenderError::new)?;
        Ok(Box::new(BoundTuned {
            tensors,
            shape,
            plan,
            plan_us: start.elapsed().as_secs_f64() * 1e6,
        }))
    }
}

struct BoundTuned {
    tensors: PrefillTensors,
    shape: PrefillShape,
    plan: UniquePtr<PrefillPlan>,
    plan_us: f64,
}

impl Bound for BoundTuned {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        attention::prefill(&self.tensors, &self.shape, &self.plan, stream)
            .map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        Facts::from([
            ("config".to_owned(), self.plan.description().into()),
            ("tiles".to_owned(), self.plan.tile_count().into()),
            ("plan_us".to_owned(), self.plan_us.round().into()),
        ])
    }
}

struct BoundPlain {
    tensors: PrefillTensors,
    shape: PrefillShape,
    sequences: usize,
}

impl Bound for BoundPlain {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        attention::plain_prefill(&self.tensors, &self.shape, self.sequences, stream)
            .map_err(ContenderError::new)
    }
}
