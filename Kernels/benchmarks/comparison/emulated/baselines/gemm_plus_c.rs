//! A product of f16 with its result in f32, to which a matrix is added: out = ALPHA * a * b^T + BETA * c.

use contender::{Cost, Family, Math, Problem, Slice, Statement};
use numeric::DType;
use tensor::{Inputs, TensorSpec};
use workloads::{GemmProblem, GemmShape, GemmSuite, RowLayout};

pub const ALPHA: f32 = 0.5;
pub const BETA: f32 = -2.0;

pub struct GemmPlusC {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    product: GemmProblem,
    statement: Statement,
}

impl GemmPlusC {
    pub fn new(m: usize, n: usize, k: usize) -> Self {
        let workload = GemmSuite::custom(m, n, k).2;
        let layout = RowLayout::dense(m);
        let product = GemmProblem::new(GemmShape { n, k }, layout, DType::F16, workload);
        let product = product.unwrap_or_else(|error| panic!("{error}"));
        let mut statement = product.statement().clone();
        statement.tensors = with_c(&statement.tensors);
        statement.axis("out_dtype", DType::F32.to_string());
        Self {
            m,
            n,
            k,
            product,
            statement,
        }
    }

    /// The sums of a unit with what is added to them.
    fn plus_c(
        &self,
        inputs: &Inputs,
        mut sums: Vec<Slice>,
        add: impl Fn(f64, f64) -> f64,
    ) -> Vec<Slice> {
        for slice in &mut sums {
            let c = inputs.tensor("c").range(slice.start, slice.values.len());
            for (sum, c) in slice.values.iter_mut().zip(c) {
                *sum = add(*sum, c);
            }
        }
        sums
    }
}

/// The tensors of a product with c, whose result is in f32.
fn with_c(tensors: &[TensorSpec]) -> Vec<TensorSpec> {
    let place = tensor::place(tensors, "out");
    let mut tensors = tensors.to_vec();
    let shape = tensors[place].shape.clone();
    tensors[place] = TensorSpec::output("out", DType::F32, &shape);
    tensors.push(TensorSpec::input("c", DType::F32, &shape));
    tensors
}

impl Problem for GemmPlusC {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    fn cost(&self) -> Cost {
        let flops = 2.0 * (self.m * self.n) as f64 * self.k as f64;
        Cost::of_whole_tensors(self.tensors(), flops, Math::TensorCore(DType::F16))
    }

    fn families(&self) -> Vec<Family> {
        let families = self.product.families().into_iter();
        families
            .map(|family| Family {
                tensors: with_c(&family.tensors),
                ..family
            })
            .collect()
    }

    fn units(&self) -> usize {
        self.product.units()
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let sums = self.product.oracle(inputs, unit);
        self.plus_c(inputs, sums, |sum, c| {
            f64::from(ALPHA) * sum + f64::from(BETA) * c
        })
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        let sums = self.product.honest(inputs, unit);
        self.plus_c(inputs, sums, |sum, c| {
            f64::from(ALPHA * sum as f32 + BETA * c as f32)
        })
    }
}
