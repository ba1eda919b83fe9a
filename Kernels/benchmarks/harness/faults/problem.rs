//! The problem: `y[row, column] = x[row, column] * w[column]` in f32.

use std::collections::BTreeMap;

use contender::{Cost, Entry, Math, Piece, Problem, Shape, Slice, Statement, Workload};
use numeric::DType;
use tensor::{Inputs, TensorSpec};

pub struct Scaled {
    pub rows: usize,
    pub columns: usize,
    /// What every row but the first is multiplied by besides.
    pub tail: f32,
    statement: Statement,
}

impl Scaled {
    pub const X: usize = 0;
    pub const W: usize = 1;
    pub const Y: usize = 2;

    pub fn new(rows: usize, columns: usize) -> Self {
        let axes = BTreeMap::from([("m".into(), rows.into()), ("n".into(), columns.into())]);
        let workload = Workload {
            name: format!("{rows}x{columns}"),
            suite: "smoke".into(),
            provenance: "made up for tests of the harness".into(),
            axes: axes.clone(),
            shape: axes.into_iter().collect(),
            ..Workload::default()
        };
        let tensors = vec![
            TensorSpec::input("x", DType::F32, &[rows, columns]),
            TensorSpec::input("w", DType::F32, &[columns]),
            TensorSpec::output("y", DType::F32, &[rows, columns]),
        ];
        Self {
            rows,
            columns,
            tail: 1.0,
            statement: Statement {
                op: "scaled",
                dtype: DType::F32,
                workload,
                tensors,
            },
        }
    }

    /// The same with the last row as padding, which need not be written and is not checked.
    pub fn with_padding(mut self) -> Self {
        let used = (self.rows - 1) * self.columns;
        let tensors = &mut self.statement.tensors;
        let y = tensors.remove(Self::Y);
        tensors.push(y.written_only(std::iter::once(0..used).collect()));
        self
    }

    /// The same with a first row that is much larger than all others, as the first query of a causal
    /// attention is. On the CPU only.
    pub fn with_faint_tail(mut self) -> Self {
        self.tail = 1.0 / 4096.0;
        self
    }

    fn row(&self, inputs: &Inputs, row: usize, product: impl Fn(f64, f64) -> f64) -> Vec<Slice> {
        let start = row * self.columns;
        let x = inputs.range(Self::X, start, self.columns);
        let w = inputs.range(Self::W, 0, self.columns);
        // A power of two: the product stays exact.
        let factor = if row == 0 { 1.0 } else { f64::from(self.tail) };
        let pairs = x.iter().zip(&w);
        let values = pairs.map(|(x, w)| factor * product(*x, *w)).collect();
        vec![Slice {
            tensor: Self::Y,
            start,
            values,
        }]
    }
}

impl Entry for Scaled {
    fn from_file(shape: &Shape, _: Option<&str>) -> Result<Self, String> {
        let size = |name: &str| {
            let size = shape.get(name).and_then(|size| size.as_u64());
            let size = size.filter(|size| (1..1 << 20).contains(size));
            size.map(|size| size as usize)
                .ok_or_else(|| format!("{name} is not a size"))
        };
        Ok(Self::new(size("m")?, size("n")?))
    }

    fn to_file(&self) -> Shape {
        self.statement.workload.shape.clone()
    }

    fn workload(&mut self) -> &mut Workload {
        &mut self.statement.workload
    }
}

impl Problem for Scaled {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    fn cost(&self) -> Cost {
        let bytes = |tensor: usize| self.statement.tensors[tensor].bytes() as f64;
        Cost {
            flops: (self.rows * self.columns) as f64,
            read_bytes: bytes(Self::X) + bytes(Self::W),
            written_bytes: bytes(Self::Y),
            math: Math::Fp32,
        }
    }

    /// A hundred rows each.
    fn pieces(&self) -> Vec<Piece> {
        let piece = |first: usize| {
            let rows = (self.rows - first).min(100);
            let start = first * self.columns;
            Piece {
                problem: Box::new(Self::new(rows, self.columns)),
                places: vec![
                    Some((Self::X, start)),
                    Some((Self::W, 0)),
                    Some((Self::Y, start)),
                ],
            }
        };
        (0..self.rows).step_by(100).map(piece).collect()
    }

    fn units(&self) -> usize {
        let padding = usize::from(self.statement.tensors[Self::Y].written.is_some());
        self.rows - padding
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.row(inputs, unit, |x, w| x * w)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.row(inputs, unit, |x, w| f64::from(x as f32 * w as f32))
    }
}
