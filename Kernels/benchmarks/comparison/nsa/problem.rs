//! The bench's problem: an operation of native sparse attention, or dense attention on its shape, a
//! separate operation with its own oracle. Their times can be compared; ratios are never mixed.

use contender::{
    Binding, Buffer, Contender, ContenderError, Contenders, Cost, DeviceInfo, Family, Identity,
    Piece, Problem, Slice, Statement, Support, Workload,
};
use numeric::DType;
use tensor::Inputs;
use workloads::{BadPrefill, NsaProblem, NsaShape, PrefillOp, PrefillProblem, PrefillShape};

#[derive(Clone, Debug)]
pub enum SparseOrDense {
    Sparse(NsaProblem),
    Dense(PrefillProblem),
}

impl SparseOrDense {
    /// Dense causal attention on a shape of sparse attention.
    pub fn dense(shape: NsaShape, dtype: DType, workload: Workload) -> Result<Self, BadPrefill> {
        let lengths = vec![shape.sequence; shape.batch];
        let shape = PrefillShape {
            q_lens: lengths.clone(),
            kv_lens: lengths,
            heads: shape.heads,
            kv_heads: shape.groups,
            head_dim: shape.dim,
            value_dim: None,
            causal: true,
        };
        let problem = PrefillProblem::new(PrefillOp::Prefill, shape, dtype, workload)?;
        Ok(Self::Dense(problem.named("dense_attention")))
    }

    fn inner(&self) -> &dyn Problem {
        match self {
            Self::Sparse(problem) => problem,
            Self::Dense(problem) => problem,
        }
    }
}

impl Problem for SparseOrDense {
    fn statement(&self) -> &Statement {
        self.inner().statement()
    }

    fn cost(&self) -> Cost {
        self.inner().cost()
    }

    fn families(&self) -> Vec<Family> {
        self.inner().families()
    }

    fn pieces(&self) -> Vec<Piece> {
        let SparseOrDense::Dense(problem) = self else {
            return Vec::new();
        };
        let dense = |(problem, places)| Piece {
            problem: Box::new(Self::Dense(problem)),
            places,
        };
        problem.cut().into_iter().map(dense).collect()
    }

    fn units(&self) -> usize {
        self.inner().units()
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.inner().oracle(inputs, unit)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.inner().honest(inputs, unit)
    }

    fn magnitude(&self, tensor: usize) -> f64 {
        self.inner().magnitude(tensor)
    }

    fn is_exact(&self, tensor: usize) -> bool {
        self.inner().is_exact(tensor)
    }
}

/// One contender per name, which does both operations if both lists have it.
pub fn join(
    sparse: Contenders<NsaProblem>,
    mut dense: Contenders<PrefillProblem>,
) -> Contenders<SparseOrDense> {
    let mut joined: Contenders<SparseOrDense> = Vec::new();
    for sparse in sparse {
        let name = &sparse.identity().name;
        let place = dense.iter().position(|d| &d.identity().name == name);
        let dense = place.map(|place| dense.remove(place));
        let mut identity = sparse.identity().clone();
        if let Some(dense) = &dense {
            let region = &dense.identity().timed_region;
            identity.timed_region += &format!("; dense_attention: {region}");
        }
        joined.push(Box::new(Joined {
            identity,
            sparse: Some(sparse),
            dense,
        }));
    }
    joined.extend(dense.into_iter().map(|dense| -> Box<dyn Contender<_>> {
        Box::new(Joined {
            identity: dense.identity().clone(),
            sparse: None,
            dense: Some(dense),
        })
    }));
    joined
}

struct Joined {
    identity: Identity,
    sparse: Option<Box<dyn Contender<NsaProblem>>>,
    dense: Option<Box<dyn Contender<PrefillProblem>>>,
}

impl Contender<SparseOrDense> for Joined {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &SparseOrDense, device: &DeviceInfo) -> Support {
        match (problem, &self.sparse, &self.dense) {
            (SparseOrDense::Sparse(problem), Some(sparse), _) => sparse.supports(problem, device),
            (SparseOrDense::Dense(problem), _, Some(dense)) => dense.supports(problem, device),
            _ => Support::No(format!("lacks {}", problem.op())),
        }
    }

    fn bind(&self, problem: &SparseOrDense, buffers: &[Buffer], device: &DeviceInfo) -> Binding {
        match (problem, &self.sparse, &self.dense) {
            (SparseOrDense::Sparse(problem), Some(sparse), _) => {
                sparse.bind(problem, buffers, device)
            }
            (SparseOrDense::Dense(problem), _, Some(dense)) => dense.bind(problem, buffers, device),
            _ => Err(ContenderError::new(format!("lacks {}", problem.op()))),
        }
    }
}
