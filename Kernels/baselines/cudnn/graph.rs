//! A graph of operations, and the plan that cuDNN builds from it.

use std::cell::OnceCell;
use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::backend::Descriptor;
use crate::enums::{Attribute, Heuristics, Kind, Pointwise, Reduce};
use crate::library::{library, Handle, Library};
use crate::memory::Memory;
use crate::{DataType, Error};

/// Alignment of tensor addresses, as promised by cuDNN's own frontend.
const ALIGNMENT: i64 = 16;
/// Engine configurations to try; the heuristics list the best first.
const MOST_CONFIGS: usize = 16;

struct HandleGuard {
    library: &'static Library,
    handle: Handle,
}

impl Drop for HandleGuard {
    fn drop(&mut self) {
        // SAFETY: created here; plans that use it hold the guard.
        unsafe { (self.library.functions.destroy)(self.handle) };
    }
}

/// A tensor of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tensor(usize);

/// Extents and strides, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) dimensions: [i64; 4],
    pub(crate) strides: [i64; 4],
}

impl Layout {
    pub(crate) fn dense(dimensions: [i64; 4]) -> Self {
        let [_, b, c, d] = dimensions;
        Self {
            dimensions,
            strides: [b * c * d, c * d, d, 1],
        }
    }
}

/// Where a tensor's contents are when the plan runs.
enum Place {
    /// At this index of a launch's addresses.
    Argument(usize),
    /// Device memory owned by the plan.
    Own(Memory),
    /// A scalar in host memory, which cuDNN reads at launch.
    Host(Box<[u8; 4]>),
}

/// Sequence lengths that replace a matmul's extents.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lengths {
    pub(crate) m: Option<Tensor>,
    pub(crate) n: Option<Tensor>,
    pub(crate) k: Option<Tensor>,
}

/// Operations on tensors, to be planned.
pub struct Graph {
    guard: HandleGuard,
    tensors: Vec<Descriptor>,
    operations: Vec<Descriptor>,
    /// What operations refer to.
    parts: Vec<Descriptor>,
    places: Vec<(i64, Place)>,
}

impl Graph {
    pub(crate) fn new() -> Result<Self, Error> {
        let library = library().map_err(|reason| Error::Cuda {
            what: "cuDNN",
            message: reason.to_owned(),
        })?;
        let mut handle = ptr::null_mut();
        // SAFETY: writes one pointer.
        library.check("cudnnCreate", unsafe {
            (library.functions.create)(&mut handle)
        })?;
        Ok(Self {
            guard: HandleGuard { library, handle },
            tensors: Vec::new(),
            operations: Vec::new(),
            parts: Vec::new(),
            places: Vec::new(),
        })
    }

    pub(crate) fn library(&self) -> &'static Library {
        self.guard.library
    }

    /// A tensor in device memory, passed to each launch; `ragged` gives the starts of its parts.
    pub(crate) fn argument(
        &mut self,
        place: usize,
        data_type: DataType,
        layout: &Layout,
        ragged: Option<Tensor>,
    ) -> Result<Tensor, Error> {
        let tensor = self.tensor(data_type, layout, ragged, |_| Ok(()))?;
        self.places.push((identity(tensor), Place::Argument(place)));
        Ok(tensor)
    }

    /// Integers along the first dimension, owned by the plan.
    pub(crate) fn numbers(&mut self, values: &[i32]) -> Result<Tensor, Error> {
        self.numbers_shaped(values, &Layout::dense([values.len() as i64, 1, 1, 1]))
    }

    /// The same in another shape.
    pub(crate) fn numbers_shaped(
        &mut self,
        values: &[i32],
        layout: &Layout,
    ) -> Result<Tensor, Error> {
        let tensor = self.tensor(DataType::I32, layout, None, |_| Ok(()))?;
        let memory = Memory::of(values)?;
        self.places.push((identity(tensor), Place::Own(memory)));
        Ok(tensor)
    }

    pub(crate) fn float(&mut self, value: f32) -> Result<Tensor, Error> {
        self.scalar(DataType::F32, value.to_ne_bytes())
    }

    pub(crate) fn number(&mut self, value: i32) -> Result<Tensor, Error> {
        self.scalar(DataType::I32, value.to_ne_bytes())
    }

    fn scalar(&mut self, data_type: DataType, bytes: [u8; 4]) -> Result<Tensor, Error> {
        let tensor = self.tensor(data_type, &Layout::dense([1; 4]), None, |descriptor| {
            descriptor.set_one(Attribute::TensorIsByValue, true)
        })?;
        self.places
            .push((identity(tensor), Place::Host(Box::new(bytes))));
        Ok(tensor)
    }

    /// A tensor between two operations, which need not exist in memory.
    pub(crate) fn between(
        &mut self,
        data_type: DataType,
        layout: &Layout,
    ) -> Result<Tensor, Error> {
        self.tensor(data_type, layout, None, |descriptor| {
            descriptor.set_one(Attribute::TensorIsVirtual, true)
        })
    }

    fn tensor(
        &mut self,
        data_type: DataType,
        layout: &Layout,
        ragged: Option<Tensor>,
        more: impl FnOnce(&Descriptor) -> Result<(), Error>,
    ) -> Result<Tensor, Error> {
        let tensor = Tensor(self.tensors.len());
        let descriptor = Descriptor::new(self.library(), Kind::Tensor)?;
        descriptor.set_one(Attribute::TensorType, data_type)?;
        descriptor.set(Attribute::TensorDimensions, &layout.dimensions)?;
        descriptor.set(Attribute::TensorStrides, &layout.strides)?;
        descriptor.set_one(Attribute::TensorId, identity(tensor))?;
        descriptor.set_one(Attribute::TensorAlignment, ALIGNMENT)?;
        if let Some(starts) = ragged {
            descriptor
                .set_descriptors(Attribute::TensorRaggedOffset, &[&self.tensors[starts.0]])?;
        }
        more(&descriptor)?;
        descriptor.finalize("a tensor")?;
        self.tensors.push(descriptor);
        Ok(tensor)
    }

    /// `inputs` are one or two operands and, for a selection, the mask.
    pub(crate) fn pointwise(
        &mut self,
        mode: Pointwise,
        inputs: &[Tensor],
        precision: DataType,
        axis: Option<i64>,
        out: Tensor,
    ) -> Result<(), Error> {
        let part = Descriptor::new(self.library(), Kind::Pointwise)?;
        part.set_one(Attribute::PointwiseMode, mode)?;
        part.set_one(Attribute::PointwisePrecision, precision)?;
        if let Some(axis) = axis {
            part.set_one(Attribute::PointwiseAxis, axis)?;
        }
        part.finalize("a pointwise mode")?;
        let places = [
            Attribute::OperationPointwiseX,
            Attribute::OperationPointwiseB,
            Attribute::OperationPointwiseMask,
        ];
        let mut tensors = vec![(Attribute::OperationPointwiseY, out)];
        tensors.extend(places.into_iter().zip(inputs.iter().copied()));
        self.operation(
            Kind::OperationPointwise,
            Some((Attribute::OperationPointwise, part)),
            &tensors,
            |_| Ok(()),
        )
    }

    /// out = a * b; `padding` is the value beyond the lengths.
    pub(crate) fn matmul(
        &mut self,
        a: Tensor,
        b: Tensor,
        out: Tensor,
        lengths: Lengths,
        padding: Option<f64>,
    ) -> Result<(), Error> {
        let part = Descriptor::new(self.library(), Kind::Matmul)?;
        part.set_one(Attribute::MatmulType, DataType::F32)?;
        if let Some(padding) = padding {
            part.set_one(Attribute::MatmulPadding, padding)?;
        }
        part.finalize("a matmul's type")?;
        let mut tensors = vec![
            (Attribute::OperationMatmulA, a),
            (Attribute::OperationMatmulB, b),
            (Attribute::OperationMatmulC, out),
        ];
        let optional = [
            (Attribute::OperationMatmulM, lengths.m),
            (Attribute::OperationMatmulN, lengths.n),
            (Attribute::OperationMatmulK, lengths.k),
        ];
        tensors.extend(
            optional
                .into_iter()
                .filter_map(|(attribute, tensor)| Some((attribute, tensor?))),
        );
        self.operation(
            Kind::OperationMatmul,
            Some((Attribute::OperationMatmul, part)),
            &tensors,
            |_| Ok(()),
        )
    }

    pub(crate) fn reduce(&mut self, how: Reduce, x: Tensor, out: Tensor) -> Result<(), Error> {
        let part = Descriptor::new(self.library(), Kind::Reduction)?;
        part.set_one(Attribute::ReductionOperator, how)?;
        part.set_one(Attribute::ReductionType, DataType::F32)?;
        part.finalize("a reduction's type")?;
        self.operation(
            Kind::OperationReduction,
            Some((Attribute::OperationReduction, part)),
            &[
                (Attribute::OperationReductionX, x),
                (Attribute::OperationReductionY, out),
            ],
            |_| Ok(()),
        )
    }

    /// Keys or values as if contiguous, from the pages in a table.
    pub(crate) fn load_pages(
        &mut self,
        pages: Tensor,
        table: Tensor,
        lengths: Tensor,
        out: Tensor,
    ) -> Result<(), Error> {
        self.operation(
            Kind::OperationPagedCacheLoad,
            None,
            &[
                (Attribute::PagedCacheLoadContainer, pages),
                (Attribute::PagedCacheLoadPageTable, table),
                (Attribute::PagedCacheLoadSequence, lengths),
                (Attribute::PagedCacheLoadY, out),
            ],
            |_| Ok(()),
        )
    }

    /// Any operation: its descriptors, tensors, and other attributes.
    pub(crate) fn operation(
        &mut self,
        kind: Kind,
        part: Option<(Attribute, Descriptor)>,
        tensors: &[(Attribute, Tensor)],
        more: impl FnOnce(&Descriptor) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let operation = Descriptor::new(self.library(), kind)?;
        for &(attribute, tensor) in tensors {
            operation.set_descriptors(attribute, &[&self.tensors[tensor.0]])?;
        }
        if let Some((attribute, part)) = part {
            operation.set_descriptors(attribute, &[&part])?;
            self.parts.push(part);
        }
        more(&operation)?;
        operation.finalize("an operation")?;
        self.operations.push(operation);
        Ok(())
    }

    /// The first of cuDNN's choices that can be built.
    pub fn plan(self) -> Result<Plan, Error> {
        let begin = Instant::now();
        let (library, handle) = (self.guard.library, self.guard.handle);
        let graph = Descriptor::new(library, Kind::OperationGraph)?;
        graph.set_handle(Attribute::GraphHandle, handle)?;
        let operations: Vec<&Descriptor> = self.operations.iter().collect();
        graph.set_descriptors(Attribute::GraphOperations, &operations)?;
        graph.finalize("the graph")?;
        let mut last = String::from("the heuristics have none");
        for mode in [Heuristics::A, Heuristics::Fallback] {
            let configs = match configs(library, &graph, mode) {
                Ok(configs) => configs,
                Err(error) => {
                    last = error.to_string();
                    continue;
                }
            };
            for config in configs {
                let plan = Descriptor::new(library, Kind::ExecutionPlan)?;
                plan.set_handle(Attribute::PlanHandle, handle)?;
                plan.set_descriptors(Attribute::PlanConfig, &[&config])?;
                if let Err(error) = plan.finalize("the plan") {
                    last = error.to_string();
                    continue;
                }
                let bytes = plan.get_i64(Attribute::PlanWorkspaceSize)?;
                let bytes = usize::try_from(bytes).unwrap_or(0);
                return Ok(Plan {
                    workspace: OnceCell::new(),
                    workspace_bytes: bytes,
                    build_time: begin.elapsed(),
                    was_written: false,
                    plan,
                    places: self.places,
                    _kept: (
                        vec![graph, config],
                        self.operations,
                        self.parts,
                        self.tensors,
                    ),
                    guard: self.guard,
                });
            }
        }
        Err(Error::NoEngine {
            version: library.version().to_owned(),
            last,
        })
    }
}

impl Graph {
    /// The plan that [`Plan::text`] serialised from the same graph on the same kind of GPU, which took
    /// this long to build.
    pub fn plan_of(self, text: &[u8], build_time: Duration) -> Result<Plan, Error> {
        let (library, handle) = (self.guard.library, self.guard.handle);
        let plan = Descriptor::new(library, Kind::ExecutionPlan)?;
        plan.set_handle(Attribute::PlanHandle, handle)?;
        plan.set(Attribute::PlanText, text)?;
        plan.finalize("the serialised plan")?;
        let bytes = plan.get_i64(Attribute::PlanWorkspaceSize)?;
        Ok(Plan {
            workspace: OnceCell::new(),
            workspace_bytes: usize::try_from(bytes).unwrap_or(0),
            build_time,
            was_written: true,
            plan,
            places: self.places,
            _kept: (Vec::new(), self.operations, self.parts, self.tensors),
            guard: self.guard,
        })
    }
}

fn identity(tensor: Tensor) -> i64 {
    tensor.0 as i64 + 1
}

fn configs(
    library: &'static Library,
    graph: &Descriptor,
    mode: Heuristics,
) -> Result<Vec<Descriptor>, Error> {
    let heuristics = Descriptor::new(library, Kind::EngineHeuristics)?;
    heuristics.set_descriptors(Attribute::HeuristicsGraph, &[graph])?;
    heuristics.set_one(Attribute::HeuristicsMode, mode)?;
    heuristics.finalize("the heuristics")?;
    heuristics.get_descriptors(
        Attribute::HeuristicsResults,
        Kind::EngineConfig,
        MOST_CONFIGS,
    )
}

type Kept = (
    Vec<Descriptor>,
    Vec<Descriptor>,
    Vec<Descriptor>,
    Vec<Descriptor>,
);

/// A graph ready to run on any addresses.
pub struct Plan {
    plan: Descriptor,
    places: Vec<(i64, Place)>,
    /// Allocated by the first launch: a plan made only to be serialised needs none.
    workspace: OnceCell<Memory>,
    workspace_bytes: usize,
    build_time: Duration,
    was_written: bool,
    /// What the plan was built from; dropped before the handle.
    _kept: Kept,
    guard: HandleGuard,
}

impl Plan {
    pub fn workspace_bytes(&self) -> usize {
        self.workspace_bytes
    }

    /// How long cuDNN took to choose and build it, in whatever process.
    pub fn build_time(&self) -> Duration {
        self.build_time
    }

    /// The plan with its compiled kernels, for another process with the same GPU.
    pub fn text(&self) -> Result<Vec<u8>, Error> {
        self.plan.get_text(Attribute::PlanText)
    }

    /// Whether another process has built it.
    pub fn was_written(&self) -> bool {
        self.was_written
    }

    fn workspace(&self) -> Result<&Memory, Error> {
        if let Some(memory) = self.workspace.get() {
            return Ok(memory);
        }
        let memory = Memory::new(self.workspace_bytes)?;
        Ok(self.workspace.get_or_init(|| memory))
    }

    /// The plan with the addresses of its arguments, in the documented order.
    pub fn launch(self: &Rc<Self>, addresses: &[usize]) -> Result<Launch, Error> {
        let pointer = |place: &Place| match place {
            Place::Argument(place) => addresses[*place] as *mut c_void,
            Place::Own(memory) => memory.address() as *mut c_void,
            Place::Host(bytes) => bytes.as_ptr().cast_mut().cast(),
        };
        let pointers: Vec<*mut c_void> = self.places.iter().map(|(_, p)| pointer(p)).collect();
        let identities: Vec<i64> = self.places.iter().map(|(identity, _)| *identity).collect();
        let pack = Descriptor::new(self.guard.library, Kind::VariantPack)?;
        pack.set(Attribute::PackIds, &identities)?;
        pack.set_pointers(Attribute::PackPointers, &pointers)?;
        let workspace = self.workspace()?.address() as *mut c_void;
        pack.set_pointers(Attribute::PackWorkspace, &[workspace])?;
        pack.finalize("the addresses")?;
        Ok(Launch {
            plan: Rc::clone(self),
            pack,
        })
    }
}

/// A plan and its addresses.
pub struct Launch {
    plan: Rc<Plan>,
    pack: Descriptor,
}

impl Launch {
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Enqueues the plan on a `CUstream`.
    pub fn enqueue(&self, stream: usize) -> Result<(), Error> {
        let (library, handle) = (self.plan.guard.library, self.plan.guard.handle);
        // SAFETY: the caller vouches for the stream and the addresses; plan and pack are final.
        unsafe {
            library.check(
                "cudnnSetStream",
                (library.functions.set_stream)(handle, stream as *mut c_void),
            )?;
            library.check(
                "cudnnBackendExecute",
                (library.functions.execute)(handle, self.plan.plan.raw(), self.pack.raw()),
            )
        }
    }
}
