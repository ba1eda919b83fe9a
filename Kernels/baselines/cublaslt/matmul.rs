//! One GEMM out[m, n] = a[m, k] * b[n, k]^T of row-major tensors.
//!
//! The library's matrices are column-major: it computes the n x m matrix out^T from b as its A
//! (transposed) and a as its B, the arrangement that its FP8 kernels require.

use std::ffi::c_void;
use std::rc::Rc;

use crate::driver::{Memory, Stopwatch};
use crate::library::{Algorithm, Handle, Library, Proposal, Status};
use crate::types::Type;
use crate::Error;

/// NVIDIA's recommendation for Hopper.
const WORKSPACE_BYTES: usize = 32 << 20;
/// Number of the heuristic's algorithms to try.
const PROPOSALS: usize = 8;
/// Timed runs of each, after one warm-up; the median counts.
const RUNS: usize = 7;
/// Minimum gain of a later candidate over the best before it: less is noise.
const LEAST_GAIN: f64 = 0.02;

// Values of cublasLt.h and library_types.h.
const COMPUTE_F32: i32 = 68;
const F32: i32 = 0;
const TRANSPOSE_A: i32 = 3;
const A_SCALE_POINTER: i32 = 17;
const B_SCALE_POINTER: i32 = 18;
const A_SCALE_MODE: i32 = 31;
const B_SCALE_MODE: i32 = 32;
const POINTER_MODE: i32 = 2;
const POINTER_MODE_DEVICE: i32 = 1;
const MAX_WORKSPACE: i32 = 1;
const ALGORITHM_ID: i32 = 0;
const ALGORITHM_TILE: i32 = 1;
const ALGORITHM_SPLIT_K: i32 = 2;
const ALGORITHM_STAGES: i32 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Product {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub dtype: Type,
}

/// Addresses of the scales. FP8: of `a` [k / 128, m], of `b` [n / 128, k / 128]. MXFP8 and NVFP4: of
/// each operand in tiles of 128 rows by 4.
#[derive(Clone, Copy, Debug)]
pub struct Scales {
    pub a: usize,
    pub b: usize,
    /// NVFP4: the address of a factor of the whole result.
    pub of_tensors: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub struct Operands {
    pub a: usize,
    pub b: usize,
    pub out: usize,
    /// With FP8 and FP4 operands.
    pub scales: Option<Scales>,
}

/// An algorithm and how it was chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chosen {
    algorithm: Algorithm,
    /// Rank in the heuristic's list, and its length.
    pub rank: usize,
    pub proposals: usize,
    /// Tuning times of this one and of the heuristic's first.
    pub us: f64,
    pub first_us: f64,
    pub id: i32,
    pub tile: i32,
    pub stages: i32,
    pub split_k: i32,
    pub workspace_bytes: usize,
}

/// A library object, destroyed on drop.
struct Object {
    handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> Status,
}

impl Object {
    fn new(
        call: &'static str,
        destroy: unsafe extern "C" fn(Handle) -> Status,
        create: impl FnOnce(*mut Handle) -> Status,
    ) -> Result<Self, Error> {
        let mut handle = std::ptr::null_mut();
        check(call, create(&mut handle))?;
        Ok(Self { handle, destroy })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: made by the matching create function, destroyed once.
        let _ = unsafe { (self.destroy)(self.handle) };
    }
}

fn check(call: &'static str, status: Status) -> Result<(), Error> {
    match status {
        0 => Ok(()),
        status => Err(Error::Status { call, status }),
    }
}

/// Shared by GEMMs that run one after another: a library handle, a workspace and a zero.
pub struct Session {
    library: &'static Library,
    context: Object,
    workspace: Memory,
    zero: Memory,
}

impl Session {
    pub fn new() -> Result<Rc<Self>, Error> {
        let library = Library::get()?;
        let context = Object::new("cublasLtCreate", library.destroy, |to| {
            // SAFETY: `to` is valid for the call, and a context is current.
            unsafe { (library.create)(to) }
        })?;
        Ok(Rc::new(Self {
            library,
            context,
            workspace: Memory::new(WORKSPACE_BYTES)?,
            zero: Memory::zeroed(size_of::<f32>())?,
        }))
    }
}

/// A GEMM with its descriptors, ready to run.
pub struct Matmul {
    session: Rc<Session>,
    description: Object,
    a: Object,
    b: Object,
    out: Object,
    operands: Operands,
}

impl Matmul {
    pub fn new(session: &Rc<Session>, product: Product, operands: Operands) -> Result<Self, Error> {
        let library = session.library;
        let Product { m, n, k, dtype } = product;
        let layout = |columns: usize, rows: usize, dtype: i32| {
            // Column-major: lines of `columns` elements, one per row of the row-major tensor.
            Object::new("cublasLtMatrixLayoutCreate", library.layout_destroy, |to| {
                // SAFETY: `to` is valid for the call; the sizes describe the caller's tensor.
                unsafe {
                    (library.layout_create)(to, dtype, columns as u64, rows as u64, columns as i64)
                }
            })
        };
        let matmul = Self {
            session: session.clone(),
            description: Object::new(
                "cublasLtMatmulDescCreate",
                library.description_destroy,
                // SAFETY: `to` is valid for the call.
                |to| unsafe { (library.description_create)(to, COMPUTE_F32, F32) },
            )?,
            a: layout(k, m, dtype.operand())?,
            b: layout(k, n, dtype.operand())?,
            out: layout(n, m, dtype.out())?,
            operands,
        };
        const TRANSPOSED: i32 = 1;
        matmul.describe(TRANSPOSE_A, TRANSPOSED)?;
        if let (Some(scales), Some(modes)) = (operands.scales, dtype.scale_modes()) {
            // Its A is our b.
            matmul.describe(A_SCALE_MODE, modes.b)?;
            matmul.describe(B_SCALE_MODE, modes.a)?;
            matmul.describe(A_SCALE_POINTER, scales.b)?;
            matmul.describe(B_SCALE_POINTER, scales.a)?;
            if scales.of_tensors.is_some() {
                matmul.describe(POINTER_MODE, POINTER_MODE_DEVICE)?;
            }
        }
        Ok(matmul)
    }

    fn describe<T>(&self, attribute: i32, value: T) -> Result<(), Error> {
        // SAFETY: the attributes used have values of T's size, which are copied in the call.
        check("cublasLtMatmulDescSetAttribute", unsafe {
            (self.session.library.description_set)(
                self.description.handle,
                attribute,
                (&raw const value).cast(),
                size_of::<T>(),
            )
        })
    }

    /// What the heuristic proposes, best first.
    fn proposals(&self) -> Result<Vec<Proposal>, Error> {
        let preference = Object::new(
            "cublasLtMatmulPreferenceCreate",
            self.session.library.preference_destroy,
            // SAFETY: `to` is valid for the call.
            |to| unsafe { (self.session.library.preference_create)(to) },
        )?;
        let bytes = WORKSPACE_BYTES;
        let mut found = [Proposal::default(); PROPOSALS];
        let mut count = 0;
        // SAFETY: all handles are alive; `found` has room for what is asked.
        unsafe {
            check(
                "cublasLtMatmulPreferenceSetAttribute",
                (self.session.library.preference_set)(
                    preference.handle,
                    MAX_WORKSPACE,
                    (&raw const bytes).cast(),
                    size_of::<usize>(),
                ),
            )?;
            check(
                "cublasLtMatmulAlgoGetHeuristic",
                (self.session.library.heuristic)(
                    self.session.context.handle,
                    self.description.handle,
                    self.b.handle,
                    self.a.handle,
                    self.out.handle,
                    self.out.handle,
                    preference.handle,
                    PROPOSALS as i32,
                    found.as_mut_ptr(),
                    &mut count,
                ),
            )?;
        }
        let usable = found[..count as usize].iter().filter(|p| p.status == 0);
        Ok(usable.copied().collect())
    }

    /// Times the heuristic's proposals on these operands, with caches flushed before each run as in
    /// the race, and picks the fastest. `cache_bytes` is the device's last-level cache.
    pub fn choose(&self, cache_bytes: usize) -> Result<Chosen, Error> {
        let proposals = self.proposals()?;
        let watch = Stopwatch::new(cache_bytes)?;
        let mut best: Option<Chosen> = None;
        let mut first_us = None;
        for (rank, proposal) in proposals.iter().enumerate() {
            let candidate = self.facts(proposal, rank, proposals.len());
            let run = |stream| self.enqueue(&candidate, stream);
            // An algorithm that the heuristic proposes may still fail to run.
            if watch.time(run).is_err() {
                continue;
            }
            let mut runs = [0.0; RUNS];
            for us in &mut runs {
                *us = watch.time(run)?;
            }
            runs.sort_by(f64::total_cmp);
            let us = runs[RUNS / 2];
            let first_us = *first_us.get_or_insert(us);
            if best.is_none_or(|best| us < best.us * (1.0 - LEAST_GAIN)) {
                best = Some(Chosen {
                    us,
                    first_us,
                    ..candidate
                });
            }
        }
        best.ok_or(Error::NoAlgorithm)
    }

    /// The heuristic's first, untimed.
    pub fn first(&self) -> Result<Chosen, Error> {
        let proposals = self.proposals()?;
        let first = proposals.first().ok_or(Error::NoAlgorithm)?;
        Ok(self.facts(first, 0, proposals.len()))
    }

    fn facts(&self, proposal: &Proposal, rank: usize, proposals: usize) -> Chosen {
        let get = |attribute| {
            let (mut value, mut written) = (0i32, 0usize);
            // SAFETY: these attributes are 32 bits wide.
            let status = unsafe {
                (self.session.library.config_get)(
                    &proposal.algorithm,
                    attribute,
                    (&raw mut value).cast(),
                    size_of::<i32>(),
                    &mut written,
                )
            };
            if status == 0 {
                value
            } else {
                -1
            }
        };
        Chosen {
            algorithm: proposal.algorithm,
            rank,
            proposals,
            id: get(ALGORITHM_ID),
            tile: get(ALGORITHM_TILE),
            stages: get(ALGORITHM_STAGES),
            split_k: get(ALGORITHM_SPLIT_K),
            workspace_bytes: proposal.workspace_bytes,
            ..Chosen::default()
        }
    }

    /// Runs it once on a `CUstream`, given by its address.
    pub fn enqueue(&self, chosen: &Chosen, stream: usize) -> Result<(), Error> {
        let (one, zero) = (1f32, 0f32);
        let Operands { a, b, out, scales } = self.operands;
        // Both factors are in memory of the same kind.
        let (product, addend) = match scales.and_then(|scales| scales.of_tensors) {
            Some(scale) => (
                scale as *const c_void,
                self.session.zero.address().cast_const(),
            ),
            None => ((&raw const one).cast(), (&raw const zero).cast()),
        };
        // SAFETY: addresses, layouts and workspace belong together since `new`; scalars of the host are
        // read in the call.
        check("cublasLtMatmul", unsafe {
            (self.session.library.matmul)(
                self.session.context.handle,
                self.description.handle,
                product,
                b as *const c_void,
                self.b.handle,
                a as *const c_void,
                self.a.handle,
                addend,
                out as *const c_void,
                self.out.handle,
                out as *mut c_void,
                self.out.handle,
                &chosen.algorithm,
                self.session.workspace.address(),
                WORKSPACE_BYTES,
                stream as *mut c_void,
            )
        })
    }
}
