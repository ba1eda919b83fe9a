//! flash-linear-attention's Triton kernels, with the grid and arguments of `parallel_nsa_fwd` and
//! `parallel_nsa_compression_fwd`.

use std::cell::RefCell;
use std::collections::BTreeMap;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};
use numeric::DType;
use triton::{Archive, Argument, Library, Loaded};
use workloads::{nsa_tensor, NsaOp, NsaProblem};

/// The kernel that was fastest, by operation and workload.
type Choices = RefCell<BTreeMap<String, String>>;

struct Fla {
    identity: Identity,
    choices: Choices,
}

pub fn contender() -> Box<dyn Contender<NsaProblem>> {
    Box::new(Fla {
        identity: Identity {
            name: "fla".to_owned(),
            kind: Kind::Baseline,
            version: "fla-core 0.6.0, triton 3.6.0".to_owned(),
            artifact_sha256: None,
            libraries: Vec::new(),
            timed_region: "the op's one kernel, launched through the driver; warps are chosen by \
                           time beforehand"
                .to_owned(),
        },
        choices: Choices::default(),
    })
}

/// What the names of the kernels for a shape begin with; the number of warps follows.
fn prefix(problem: &NsaProblem) -> Option<String> {
    let (shape, dtype) = (problem.shape, problem.dtype);
    let (branch, selected) = match problem.op {
        NsaOp::Selected => ("selected", format!("k{}", shape.selected)),
        NsaOp::Compressed => ("compressed", String::new()),
        NsaOp::Sliding | NsaOp::Gated => return None,
    };
    let (heads, groups, dim, block) = (shape.heads, shape.groups, shape.dim, shape.block);
    Some(format!(
        "{branch}_{dtype}_h{heads}g{groups}d{dim}n{block}{selected}_w"
    ))
}

impl Contender<NsaProblem> for Fla {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &NsaProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        if problem.dtype != DType::Bf16 {
            return Support::No(format!("no {}; exported for bf16 only", problem.dtype));
        }
        if !problem.shape.sequence.is_multiple_of(16) {
            return Support::No("exported for sequences of multiples of 16".to_owned());
        }
        let Some(prefix) = prefix(problem) else {
            return Support::No(format!("the library has no kernel for {}", problem.op));
        };
        match triton::archive(Library::FlaNsa, &device.arch) {
            Err(error) => Support::No(error.to_string()),
            Ok(archive) => {
                let kernels = archive.kernels().iter();
                if kernels.filter(|k| k.name.starts_with(&prefix)).count() == 0 {
                    Support::No("exported for the suites' sizes only".to_owned())
                } else {
                    Support::Yes
                }
            }
        }
    }

    fn bind(
        &self,
        problem: &NsaProblem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let archive =
            triton::archive(Library::FlaNsa, &device.arch).map_err(ContenderError::new)?;
        let prefix = prefix(problem).ok_or_else(|| ContenderError::new("no such kernel"))?;
        let shape = problem.shape;
        let int = |value: usize| {
            let fits = i32::try_from(value);
            fits.map_err(|_| ContenderError::new(format!("{value} does not fit in 32 bits")))
        };
        let (sequence, programs) = (int(shape.sequence)?, int(shape.batch * shape.groups)?);
        let grid = [sequence as u32, 1, programs as u32];
        let at = |tensor: usize| Argument::Pointer(buffers[tensor].address);
        let mut arguments = vec![
            at(nsa_tensor::QUERIES),
            at(nsa_tensor::KEYS),
            at(nsa_tensor::VALUES),
            at(nsa_tensor::OUT),
            at(nsa_tensor::LSE),
            Argument::F32(problem.scale),
        ];
        if problem.op == NsaOp::Selected {
            arguments.push(at(nsa_tensor::BLOCKS));
        }
        arguments.extend([Argument::I32(sequence), Argument::I32(sequence)]);
        let key = format!("{} {}", problem.op, problem.workload().name);
        let kernel = self.choose(key, &archive, &prefix, grid, &arguments)?;
        Ok(Box::new(BoundFla {
            kernel,
            grid,
            arguments,
        }))
    }
}

impl Fla {
    /// Triton's tuner does the same on a first call: it runs each and takes the fastest. All sets of
    /// buffers get the first one's choice. Waits for the device.
    fn choose(
        &self,
        key: String,
        archive: &Archive,
        prefix: &str,
        grid: [u32; 3],
        arguments: &[Argument],
    ) -> Result<Loaded, ContenderError> {
        /// The device's own: nothing else is on it while contenders are bound.
        const STREAM: usize = 0;
        let load = |kernel| Loaded::new(archive, kernel).map_err(ContenderError::new);
        let chosen = self.choices.borrow().get(&key).cloned();
        if let Some(kernel) = chosen.and_then(|name| archive.find(&name)) {
            return load(kernel);
        }
        let kernels = archive.kernels().iter();
        let candidates = kernels
            .filter(|kernel| kernel.name.starts_with(prefix))
            .map(load)
            .collect::<Result<Vec<Loaded>, _>>()?;
        let fastest =
            triton::fastest(candidates, grid, arguments, STREAM).map_err(ContenderError::new)?;
        let (best, _) = fastest.ok_or_else(|| ContenderError::new("no kernel to choose from"))?;
        let name = best.kernel().name.clone();
        self.choices.borrow_mut().insert(key, name);
        Ok(best)
    }
}

struct BoundFla {
    kernel: Loaded,
    grid: [u32; 3],
    arguments: Vec<Argument>,
}

impl Bound for BoundFla {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        self.kernel
            .launch(self.grid, &self.arguments, stream)
            .map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        let name = self.kernel.kernel().name.clone();
        Facts::from([("kernel".to_owned(), name.into())])
    }
}
