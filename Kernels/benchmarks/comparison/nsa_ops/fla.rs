//! flash-linear-attention's Triton kernel, with the grid and arguments of `parallel_nsa_fwd`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};
use numeric::DType;
use triton::{Archive, Argument, Library, Loaded};
use workloads::{nsa_tensor, NsaProblem};

/// The kernel that was fastest on a workload, by the workload's name.
type Choices = Rc<RefCell<BTreeMap<String, String>>>;

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
            timed_region: "the op's one kernel, launched through the driver; warps are chosen on \
                           the first, untimed call"
                .to_owned(),
        },
        choices: Choices::default(),
    })
}

fn archive(device: &DeviceInfo) -> Result<Archive, String> {
    let missing = || format!("no kernels for {} in this build", device.arch);
    triton::archive(Library::FlaNsa, &device.arch)
        .map_err(|error| error.to_string())?
        .ok_or_else(missing)
}

/// What the names of the kernels for a shape begin with; the number of warps follows.
fn prefix(problem: &NsaProblem) -> String {
    let shape = problem.shape;
    format!(
        "selected_{}_h{}g{}d{}n{}k{}_w",
        problem.dtype, shape.heads, shape.groups, shape.dim, shape.block, shape.selected
    )
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
        let prefix = prefix(problem);
        match archive(device) {
            Err(reason) => Support::No(reason),
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
        let archive = archive(device).map_err(ContenderError::new)?;
        let workload = problem.workload().name.clone();
        let prefix = prefix(problem);
        let chosen = self.choices.borrow().get(&workload).cloned();
        let wanted = |name: &str| match &chosen {
            Some(chosen) => name == chosen,
            None => name.starts_with(&prefix),
        };
        let kernels = archive.kernels().iter().filter(|k| wanted(&k.name));
        let candidates = kernels
            .map(|kernel| Loaded::new(&archive, kernel).map_err(ContenderError::new))
            .collect::<Result<Vec<Loaded>, _>>()?;
        let shape = problem.shape;
        let int = |value: usize| {
            let fits = i32::try_from(value);
            fits.map_err(|_| ContenderError::new(format!("{value} does not fit in 32 bits")))
        };
        let (sequence, programs) = (int(shape.sequence)?, int(shape.batch * shape.groups)?);
        let at = |tensor: usize| Argument::Pointer(buffers[tensor].address);
        Ok(Box::new(BoundFla {
            candidates,
            grid: [sequence as u32, 1, programs as u32],
            arguments: vec![
                at(nsa_tensor::QUERIES),
                at(nsa_tensor::KEYS),
                at(nsa_tensor::VALUES),
                at(nsa_tensor::OUT),
                at(nsa_tensor::LSE),
                Argument::F32(problem.scale),
                at(nsa_tensor::BLOCKS),
                Argument::I32(sequence),
                Argument::I32(sequence),
            ],
            workload,
            choices: Rc::clone(&self.choices),
        }))
    }
}

struct BoundFla {
    /// All that may be chosen, until the first call; then the one that was.
    candidates: Vec<Loaded>,
    grid: [u32; 3],
    arguments: Vec<Argument>,
    workload: String,
    choices: Choices,
}

impl BoundFla {
    /// Triton's tuner does the same on a first call. It waits for the device: the gate's first call,
    /// which is never timed, comes here, and later buffers find its choice.
    fn choose(&mut self, stream: usize) -> Result<(), ContenderError> {
        let candidates = std::mem::take(&mut self.candidates);
        let fastest = triton::fastest(candidates, self.grid, &self.arguments, stream)
            .map_err(ContenderError::new)?;
        let (best, _) = fastest.ok_or_else(|| ContenderError::new("no kernel to choose from"))?;
        let name = best.kernel().name.clone();
        self.choices
            .borrow_mut()
            .insert(self.workload.clone(), name);
        self.candidates = vec![best];
        Ok(())
    }
}

impl Bound for BoundFla {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        if self.candidates.len() != 1 {
            self.choose(stream)?;
        }
        self.candidates[0]
            .launch(self.grid, &self.arguments, stream)
            .map_err(ContenderError::new)
    }

    fn facts(&self) -> Facts {
        let chosen = self.choices.borrow().get(&self.workload).cloned();
        let chosen = chosen.map(|name| ("kernel".to_owned(), name.into()));
        chosen.into_iter().collect()
    }
}
