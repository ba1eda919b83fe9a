//! A described kernel as a contender like any other.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use contender::{
    Binding, Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity,
    Kind, Problem, Stream, Support,
};
use serde_json::json;

use crate::description::{Code, DescriptionError, Kernel};
use crate::launch::{Module, Prepared};
use crate::plan::{obstacle, Names, Plan};

pub struct KernelFile {
    identity: Identity,
    kernel: Kernel,
    /// Loaded when it is first needed, into the process that measures.
    module: RefCell<Option<Rc<Module>>>,
}

impl KernelFile {
    /// Reads the description and the code, but runs nothing.
    pub fn new(name: &str, path: &Path) -> Result<Self, DescriptionError> {
        let kernel = Kernel::read(path)?;
        let timed = format!("one launch of {}", kernel.description.entry);
        Ok(Self {
            identity: Identity {
                version: format!("sha256 {}", &kernel.code_sha256[..12]),
                artifact_sha256: Some(kernel.code_sha256.clone()),
                ..Identity::in_tree(name, Kind::Own, &timed)
            },
            kernel,
            module: RefCell::default(),
        })
    }

    fn module(&self) -> Result<Rc<Module>, String> {
        if let Some(module) = &*self.module.borrow() {
            return Ok(module.clone());
        }
        let module = Module::load(&self.kernel.code, &self.kernel.description.entry)?;
        let module = Rc::new(module);
        *self.module.borrow_mut() = Some(module.clone());
        Ok(module)
    }

    fn ready(
        &self,
        problem: &dyn Problem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Ready, String> {
        let description = &self.kernel.description;
        let plan = Plan::new(description, &Names::of(problem, device), buffers, device)?;
        let module = self.module()?;
        plan.check_parameters(&description.entry, &module.parameters()?)?;
        Ok(Ready {
            prepared: module.prepare(&plan)?,
            module,
            facts: Facts::from([
                (
                    "isolation".into(),
                    json!(["no code on the host: the harness launches it"]),
                ),
                (
                    "launch".into(),
                    json!({
                        "entry": description.entry,
                        "grid": plan.grid,
                        "block": plan.block,
                        "cluster": plan.cluster,
                        "shared_bytes": plan.shared_bytes,
                        "description_sha256": self.kernel.description_sha256,
                    }),
                ),
            ]),
        })
    }
}

impl Contender<dyn Problem> for KernelFile {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &dyn Problem, device: &DeviceInfo) -> Support {
        let code = match &self.kernel.code {
            Code::Cubin(_) => device.obstacle_to_machine_code(),
            // The build's own kernels are rewritten where they are compiled.
            Code::Ptx(_) if device.emulated && device.kind == DeviceKind::Cuda => {
                Some("PTX that is not rewritten for this card".to_owned())
            }
            Code::Ptx(_) => None,
        };
        let obstacle = device
            .obstacle_to(DeviceKind::Cuda)
            .or(code)
            .or_else(|| obstacle(&self.kernel.description, problem));
        obstacle.map_or(Support::Yes, Support::No)
    }

    fn bind(&self, problem: &dyn Problem, buffers: &[Buffer], device: &DeviceInfo) -> Binding {
        let ready = self.ready(problem, buffers, device);
        Ok(Box::new(ready.map_err(ContenderError)?))
    }
}

struct Ready {
    prepared: Prepared,
    module: Rc<Module>,
    facts: Facts,
}

impl Bound for Ready {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        let launched = self.prepared.launch(&self.module, stream);
        launched.map_err(ContenderError)
    }

    fn facts(&self) -> Facts {
        self.facts.clone()
    }
}
