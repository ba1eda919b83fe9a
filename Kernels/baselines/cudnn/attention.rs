//! Scaled dot-product attention over packed sequences, as the graph that cuDNN's own frontend builds:
//! matmul, scale, masks, softmax, matmul. cuDNN recognises it and runs one fused kernel.

use crate::enums::{Pointwise, Reduce};
use crate::graph::{Graph, Layout, Lengths, Tensor};
use crate::{DataType, Error};

/// Addresses of a launch: q, k, v, out, and lse if requested.
///
/// | tensor | shape |
/// |---|---|
/// | q | [sum of q_lens, heads, head_dim] |
/// | k | [sum of kv_lens, kv_heads, head_dim] |
/// | v | [sum of kv_lens, kv_heads, value_dim] |
/// | out | [sum of q_lens, heads, value_dim] |
/// | lse | f32 [sum of q_lens, heads], natural logarithms |
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    pub q_lens: Vec<usize>,
    pub kv_lens: Vec<usize>,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub value_dim: usize,
    /// The last query of a sequence sees its last key.
    pub causal: bool,
    pub scale: f32,
    pub data_type: DataType,
    pub with_lse: bool,
}

const ROWS: Option<i64> = Some(2);
const COLUMNS: Option<i64> = Some(3);

/// The graph under construction, with what most steps need.
pub(crate) struct Builder {
    pub(crate) graph: Graph,
    /// Shape of the scores.
    pub(crate) layout: Layout,
    /// Real lengths of queries and keys, if sequences differ.
    pub(crate) lengths: Option<(Tensor, Tensor)>,
    pub(crate) masked: f32,
}

impl Attention {
    pub fn graph(&self) -> Result<Graph, Error> {
        let longest = |lengths: &[usize]| lengths.iter().copied().max().unwrap_or(0);
        let (longest_q, longest_kv) = (longest(&self.q_lens), longest(&self.kv_lens));
        let ragged = self.q_lens.iter().any(|&length| length != longest_q)
            || self.kv_lens.iter().any(|&length| length != longest_kv);
        let mut graph = Graph::new()?;
        let lengths = match ragged {
            true => Some((
                graph.numbers(&numbers(&self.q_lens)?)?,
                graph.numbers(&numbers(&self.kv_lens)?)?,
            )),
            false => None,
        };
        let batch = self.q_lens.len() as i64;
        let (rows, columns) = (longest_q as i64, longest_kv as i64);
        let (heads, kv_heads) = (self.heads as i64, self.kv_heads as i64);
        let (dim, value_dim) = (self.head_dim as i64, self.value_dim as i64);
        let masked = graph.library().masked();
        let mut builder = Builder {
            graph,
            layout: Layout::dense([batch, heads, rows, columns]),
            lengths,
            masked,
        };

        let packed = |heads: i64, length: i64, dim: i64| Layout {
            dimensions: [batch, heads, length, dim],
            strides: [length * heads * dim, dim, heads * dim, 1],
        };
        let queries = packed(heads, rows, dim);
        let (values, outputs) = (
            packed(kv_heads, columns, value_dim),
            packed(heads, rows, value_dim),
        );
        let transposed = Layout {
            dimensions: [batch, kv_heads, dim, columns],
            strides: [columns * kv_heads * dim, dim, 1, kv_heads * dim],
        };
        let starts_q = builder.starts(&self.q_lens, self.heads * self.head_dim)?;
        let starts_kv = builder.starts(&self.kv_lens, self.kv_heads * self.head_dim)?;
        let (starts_out, starts_values) = match self.value_dim == self.head_dim {
            true => (starts_q, starts_kv),
            false => (
                builder.starts(&self.q_lens, self.heads * self.value_dim)?,
                builder.starts(&self.kv_lens, self.kv_heads * self.value_dim)?,
            ),
        };
        let data_type = self.data_type;
        let q = builder.graph.argument(0, data_type, &queries, starts_q)?;
        let k = builder
            .graph
            .argument(1, data_type, &transposed, starts_kv)?;
        let v = builder
            .graph
            .argument(2, data_type, &values, starts_values)?;
        let out = builder.graph.argument(3, data_type, &outputs, starts_out)?;
        let per_row = Layout {
            dimensions: [batch, heads, rows, 1],
            strides: [heads * rows, rows, 1, 1],
        };
        let lse = if self.with_lse {
            let layout = Layout {
                dimensions: per_row.dimensions,
                strides: [rows * heads, 1, heads, 1],
            };
            let starts = builder.starts(&self.q_lens, self.heads)?;
            builder.graph.argument(4, DataType::F32, &layout, starts)?
        } else {
            builder.graph.between(DataType::F32, &per_row)?
        };

        let mut scores = builder.scores(q, k, self.scale)?;
        if ragged {
            scores = builder.mask_padding(scores)?;
        }
        if self.causal {
            let shifted = self.q_lens != self.kv_lens;
            scores = builder.mask_future(scores, shifted)?;
        }
        let shares = builder.softmax(scores, &per_row, lse, data_type)?;
        let (m, k) = builder.lengths.unzip();
        let lengths = Lengths { m, n: None, k };
        builder.graph.matmul(shares, v, out, lengths, None)?;
        Ok(builder.graph)
    }
}

impl Builder {
    /// Starts of packed sequences, in elements; none if all have the same length.
    fn starts(&mut self, lengths: &[usize], elements: usize) -> Result<Option<Tensor>, Error> {
        if self.lengths.is_none() {
            return Ok(None);
        }
        let mut start = 0;
        let mut starts = vec![0];
        for length in lengths {
            start += length * elements;
            starts.push(start);
        }
        Ok(Some(self.graph.numbers(&numbers(&starts)?)?))
    }

    /// One pointwise operation with a new output.
    fn pointwise(
        &mut self,
        mode: Pointwise,
        inputs: &[Tensor],
        precision: DataType,
        axis: Option<i64>,
        out: DataType,
    ) -> Result<Tensor, Error> {
        let out = self.graph.between(out, &self.layout)?;
        self.graph.pointwise(mode, inputs, precision, axis, out)?;
        Ok(out)
    }

    pub(crate) fn scores(&mut self, q: Tensor, k: Tensor, scale: f32) -> Result<Tensor, Error> {
        let products = self.graph.between(DataType::F32, &self.layout)?;
        let (m, n) = self.lengths.unzip();
        let padding = self.lengths.map(|_| 0.0);
        let lengths = Lengths { m, n, k: None };
        self.graph.matmul(q, k, products, lengths, padding)?;
        let scale = self.graph.float(scale)?;
        self.pointwise(
            Pointwise::Multiply,
            &[products, scale],
            DataType::F32,
            None,
            DataType::F32,
        )
    }

    /// The position of every score along an axis.
    fn positions(
        &mut self,
        scores: Tensor,
        axis: Option<i64>,
        precision: DataType,
    ) -> Result<Tensor, Error> {
        self.pointwise(Pointwise::Index, &[scores], precision, axis, DataType::I32)
    }

    fn compare(&mut self, how: Pointwise, a: Tensor, b: Tensor) -> Result<Tensor, Error> {
        self.pointwise(how, &[a, b], DataType::Bool, None, DataType::Bool)
    }

    fn select(&mut self, scores: Tensor, kept: Tensor) -> Result<Tensor, Error> {
        let masked = self.graph.float(self.masked)?;
        self.pointwise(
            Pointwise::Select,
            &[scores, masked, kept],
            DataType::F32,
            None,
            DataType::F32,
        )
    }

    /// Masks scores beyond the real lengths.
    pub(crate) fn mask_padding(&mut self, scores: Tensor) -> Result<Tensor, Error> {
        let Some((length_q, length_kv)) = self.lengths else {
            return Ok(scores);
        };
        let row = self.positions(scores, ROWS, DataType::I32)?;
        let column = self.positions(scores, COLUMNS, DataType::I32)?;
        let row_is_real = self.compare(Pointwise::Less, row, length_q)?;
        let column_is_real = self.compare(Pointwise::Less, column, length_kv)?;
        let real = self.compare(Pointwise::And, row_is_real, column_is_real)?;
        self.select(scores, real)
    }

    /// Masks keys after the query; `shifted` if a sequence has more keys than queries.
    pub(crate) fn mask_future(&mut self, scores: Tensor, shifted: bool) -> Result<Tensor, Error> {
        let mut row = self.positions(scores, ROWS, DataType::F32)?;
        let column = self.positions(scores, COLUMNS, DataType::F32)?;
        if shifted {
            let [_, _, rows, columns] = self.layout.dimensions;
            let (length_q, length_kv) = match self.lengths {
                Some(lengths) => lengths,
                None => (
                    self.graph.number(number(rows)?)?,
                    self.graph.number(number(columns)?)?,
                ),
            };
            for (how, length) in [(Pointwise::Add, length_kv), (Pointwise::Subtract, length_q)] {
                row = self.pointwise(how, &[row, length], DataType::I32, COLUMNS, DataType::I32)?;
            }
        }
        let kept = self.compare(Pointwise::GreaterOrEqual, row, column)?;
        self.select(scores, kept)
    }

    /// Softmax weights of type `out`, and the log-sum-exp of every row into `lse`.
    pub(crate) fn softmax(
        &mut self,
        scores: Tensor,
        per_row: &Layout,
        lse: Tensor,
        out: DataType,
    ) -> Result<Tensor, Error> {
        const F32: DataType = DataType::F32;
        let largest = self.graph.between(F32, per_row)?;
        self.graph.reduce(Reduce::Max, scores, largest)?;
        let relative = self.pointwise(Pointwise::Subtract, &[scores, largest], F32, None, F32)?;
        let exponentials = self.pointwise(Pointwise::Exp, &[relative], F32, None, F32)?;
        let sum = self.graph.between(F32, per_row)?;
        self.graph.reduce(Reduce::Add, exponentials, sum)?;
        let logarithm = self.graph.between(F32, per_row)?;
        self.graph
            .pointwise(Pointwise::Log, &[sum], F32, None, logarithm)?;
        self.graph
            .pointwise(Pointwise::Add, &[largest, logarithm], F32, None, lse)?;
        self.pointwise(Pointwise::Divide, &[exponentials, sum], F32, None, out)
    }
}

fn number(value: i64) -> Result<i32, Error> {
    i32::try_from(value).map_err(|_| Error::TooLarge { value })
}

pub(crate) fn numbers(values: &[usize]) -> Result<Vec<i32>, Error> {
    values.iter().map(|&value| number(value as i64)).collect()
}
