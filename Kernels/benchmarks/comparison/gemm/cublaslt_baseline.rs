//! cuBLASLt: dense products with the fastest algorithm of its heuristic's list and with the first of
//! it, groups one by one.

use std::cell::RefCell;
use std::collections::HashMap;

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, DeviceKind, Facts, Identity, Kind,
    Problem, Stream, Support,
};
use cublaslt::{Chosen, Library, Matmul, Operands, Product, Scales, Session, Type};
use numeric::DType;
use workloads::{GemmProblem, GroupKind, SCALE_BLOCK};

struct CublasLt {
    identity: Identity,
    /// Whether dense products run the fastest of the heuristic's list, or its first.
    chooses: bool,
    /// Choosing takes many runs: once per product, not once per set of buffers.
    chosen: RefCell<HashMap<Product, Chosen>>,
}

/// Dense products with the fastest of what the heuristic proposes; groups.
pub fn contender() -> Box<dyn Contender<GemmProblem>> {
    of("cublaslt", true)
}

/// Dense products with the heuristic's first, which frameworks run: `torch.matmul`, for one.
pub fn first_contender() -> Box<dyn Contender<GemmProblem>> {
    of("cublaslt_first", false)
}

fn of(name: &str, chooses: bool) -> Box<dyn Contender<GemmProblem>> {
    let libraries = Library::get().map_or(Vec::new(), |library| library.records().to_vec());
    Box::new(CublasLt {
        identity: Identity {
            name: name.to_owned(),
            kind: Kind::Baseline,
            version: Identity::version_of(&libraries),
            artifact_sha256: Identity::artifact_of(&libraries),
            libraries,
            timed_region: "the product's kernels, one call a group; choice of the algorithm and \
                           FP8 operands and scales come before"
                .to_owned(),
        },
        chooses,
        chosen: RefCell::default(),
    })
}

fn dtype(problem: &GemmProblem) -> Type {
    match problem.dtype {
        DType::F16 => Type::F16,
        DType::F8E4M3 => Type::Fp8,
        _ => Type::Bf16,
    }
}

impl Contender<GemmProblem> for CublasLt {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &GemmProblem, device: &DeviceInfo) -> Support {
        if device.kind != DeviceKind::Cuda {
            return Support::No("runs on CUDA only".to_owned());
        }
        if let Err(error) = Library::get() {
            return Support::No(error.to_string());
        }
        if !self.chooses && problem.layout.kind != GroupKind::Dense {
            return Support::No("groups run the heuristic's first as cublaslt already".to_owned());
        }
        if !problem.is_scaled() {
            return Support::Yes;
        }
        let hopper = matches!(device.compute_capability, Some((9, _)));
        let blocks = problem.shape.k / SCALE_BLOCK;
        if problem.layout.kind != GroupKind::Dense {
            Support::No("a group's scales lie apart; it wants them in one piece".to_owned())
        } else if !hopper {
            Support::No("block scales in fp32 exist on Hopper only".to_owned())
        } else if !blocks.is_multiple_of(4) || !problem.layout.rows.is_multiple_of(4) {
            Support::No(format!(
                "lines of {blocks} and {} scales; multiples of 4 only",
                problem.layout.rows
            ))
        } else {
            Support::Yes
        }
    }

    fn bind(
        &self,
        problem: &GemmProblem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let cache_bytes = device.l2_bytes as usize;
        let (n, k) = (problem.shape.n, problem.shape.k);
        let operand = problem.dtype.size_bytes();
        let out = problem.tensors()[GemmProblem::OUT].dtype.size_bytes();
        let at = |tensor: usize| buffers[tensor].address;
        let dense = problem.layout.kind == GroupKind::Dense;
        let session = Session::new().map_err(ContenderError::new)?;
        let mut calls = Vec::new();
        for (group, rows) in problem.layout.used_ranges() {
            let product = Product {
                m: rows.len(),
                n,
                k,
                dtype: dtype(problem),
            };
            let operands = Operands {
                a: at(GemmProblem::A) + rows.start * k * operand,
                b: at(GemmProblem::B) + group * n * k * operand,
                out: at(GemmProblem::OUT) + rows.start * n * out,
                scales: problem.is_scaled().then(|| Scales {
                    a: at(GemmProblem::A_SCALES),
                    b: at(GemmProblem::B_SCALES),
                }),
            };
            let matmul = Matmul::new(&session, product, operands).map_err(ContenderError::new)?;
            let known = self.chosen.borrow().get(&product).copied();
            let chosen = match known {
                Some(chosen) => chosen,
                None if dense && self.chooses => {
                    matmul.choose(cache_bytes).map_err(ContenderError::new)?
                }
                None => matmul.first().map_err(ContenderError::new)?,
            };
            self.chosen.borrow_mut().insert(product, chosen);
            calls.push((matmul, chosen));
        }
        libraries::only_recorded().map_err(ContenderError::new)?;
        Ok(Box::new(BoundGemm { calls, dense }))
    }
}

struct BoundGemm {
    calls: Vec<(Matmul, Chosen)>,
    dense: bool,
}

impl Bound for BoundGemm {
    fn enqueue(&mut self, Stream(stream): Stream) -> Result<(), ContenderError> {
        for (matmul, chosen) in &self.calls {
            matmul
                .enqueue(chosen, stream)
                .map_err(ContenderError::new)?;
        }
        Ok(())
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::from([("calls".to_owned(), self.calls.len().into())]);
        let Some((_, chosen)) = self.calls.first().filter(|_| self.dense) else {
            return facts;
        };
        facts.extend([
            ("algorithm".to_owned(), chosen.id.into()),
            ("tile_id".to_owned(), chosen.tile.into()),
            ("stages_id".to_owned(), chosen.stages.into()),
            ("split_k".to_owned(), chosen.split_k.into()),
            ("rank".to_owned(), chosen.rank.into()),
            ("proposals".to_owned(), chosen.proposals.into()),
            ("choosing_us".to_owned(), chosen.us.into()),
            ("choosing_first_us".to_owned(), chosen.first_us.into()),
            ("workspace_bytes".to_owned(), chosen.workspace_bytes.into()),
        ]);
        facts
    }
}
