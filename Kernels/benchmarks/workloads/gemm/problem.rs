//! Matrix products: dense, and of groups of rows with a matrix for each group.
//!
//! out[r, c] = sum over i of a[r, i] * b[group of r, c, i]; both operands have k contiguous. With
//! FP8 operands every 128 of k of a row of `a`, and every 128 x 128 block of `b`, has a scale. The
//! operands are given quantised: making them is another operation with rows of its own.

use std::sync::Arc;

use contender::{Cost, Math, Problem, Slice, Workload};
use numeric::{bits, index_below, DType};
use serde_json::Value;
use tensor::{Fill, Inputs, TensorSpec};

use super::answers;
use super::layout::{GroupKind, RowLayout};

/// Elements along k, and columns of `b`, that share one scale.
pub const SCALE_BLOCK: usize = 128;
/// Columns of one unit of the gate: a piece of one row.
pub(crate) const UNIT_COLUMNS: usize = 16;
/// Stream of the scales' random bits, apart from all tensors'.
const SCALE_STREAM: u32 = 0x5CA1E;

/// Columns of the result, and length of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmShape {
    pub n: usize,
    pub k: usize,
}

/// One product; see the file's comment. Tensors: a, b, out, then with FP8 a_scales and b_scales,
/// then with groups their index.
#[derive(Clone, Debug)]
pub struct GemmProblem {
    pub shape: GemmShape,
    pub layout: RowLayout,
    /// Of the operands; FP8 has a bf16 result, the others one of their own type.
    pub dtype: DType,
    workload: Workload,
    tensors: Vec<TensorSpec>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGemm {
    #[error("no {0} operands; use bf16, f16 or fp8_e4m3")]
    DType(DType),
    #[error("k is {0}; with FP8 operands it must be a multiple of 128, because scales are")]
    Depth(usize),
}

impl GemmProblem {
    pub const A: usize = 0;
    pub const B: usize = 1;
    pub const OUT: usize = 2;
    /// f32 [k / 128, rows rounded up to 4], masked [groups, k / 128, the same of one group]: rows
    /// are contiguous, so that the scales of a tile's rows are one piece, and lines are of whole 16
    /// bytes.
    pub const A_SCALES: usize = 3;
    /// f32 [groups, ceil(n / 128), k / 128].
    pub const B_SCALES: usize = 4;

    pub fn new(
        shape: GemmShape,
        layout: RowLayout,
        dtype: DType,
        mut workload: Workload,
    ) -> Result<Self, BadGemm> {
        let out_dtype = match dtype {
            DType::Bf16 | DType::F16 => dtype,
            DType::F8E4M3 if !shape.k.is_multiple_of(SCALE_BLOCK) => {
                return Err(BadGemm::Depth(shape.k))
            }
            DType::F8E4M3 => DType::Bf16,
            other => return Err(BadGemm::DType(other)),
        };
        let GemmShape { n, k } = shape;
        let (rows, groups) = (layout.rows, layout.groups());
        let mut out = TensorSpec::output("out", out_dtype, &[rows, n]);
        if layout.used_rows() < rows {
            out = out.written_only(written_ranges(&layout, n));
        }
        let mut tensors = vec![
            TensorSpec::input("a", dtype, &[rows, k]),
            TensorSpec::input("b", dtype, &[groups, n, k]),
            out,
        ];
        if dtype == DType::F8E4M3 {
            let (deep, wide) = (k / SCALE_BLOCK, n.div_ceil(SCALE_BLOCK));
            let (rooms, line) = scale_lines(&layout);
            tensors.push(scales("a_scales", &[rooms, deep, line], 0));
            tensors.push(scales("b_scales", &[groups, wide, deep], 1));
        }
        let exact = |name, values: Vec<i32>| {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            TensorSpec::input(name, DType::I32, &[values.len()]).filled(Fill::Bytes(bytes.into()))
        };
        match layout.kind {
            GroupKind::Dense => {}
            GroupKind::Contiguous => tensors.push(exact("group_of_row", layout.group_of_rows())),
            GroupKind::Masked => {
                let counts = layout.tokens.iter().map(|&rows| rows as i32).collect();
                tensors.push(exact("rows_of_group", counts));
            }
        }
        let axes = &mut workload.axes;
        axes.insert("out_dtype".to_owned(), Value::from(out_dtype.to_string()));
        Ok(Self {
            shape,
            layout,
            dtype,
            workload,
            tensors,
        })
    }

    /// Place of the groups' index in the list of tensors.
    pub fn index_tensor(&self) -> Option<usize> {
        (self.layout.kind != GroupKind::Dense).then_some(self.tensors.len() - 1)
    }

    pub fn is_scaled(&self) -> bool {
        self.dtype == DType::F8E4M3
    }

    /// Place of a scale of `a`: of 128 of k, of a row of a group.
    pub fn a_scale_index(&self, block: usize, group: usize, row: usize) -> usize {
        let (_, line) = scale_lines(&self.layout);
        let deep = self.shape.k / SCALE_BLOCK;
        match self.layout.kind {
            GroupKind::Masked => (group * deep + block) * line + row - self.layout.starts[group],
            _ => block * line + row,
        }
    }

    /// Elements from the scales of 128 of k to those of the next.
    pub fn a_scale_line(&self) -> usize {
        scale_lines(&self.layout).1
    }

    fn units_per_row(&self) -> usize {
        self.shape.n.div_ceil(UNIT_COLUMNS)
    }

    /// Row, group and columns of a unit.
    pub(crate) fn unit(&self, unit: usize) -> (usize, usize, std::ops::Range<usize>) {
        let (group, row) = self.layout.used_row(unit / self.units_per_row());
        let first = unit % self.units_per_row() * UNIT_COLUMNS;
        (row, group, first..self.shape.n.min(first + UNIT_COLUMNS))
    }
}

/// How many tensors of scales of `a` there are, and the length of their lines.
fn scale_lines(layout: &RowLayout) -> (usize, usize) {
    let rooms = match layout.kind {
        GroupKind::Masked => layout.groups(),
        _ => 1,
    };
    (rooms, (layout.rows / rooms).next_multiple_of(4))
}

/// Elements of the result that are no padding; groups without padding between them are one range.
fn written_ranges(layout: &RowLayout, n: usize) -> Vec<std::ops::Range<usize>> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    for (_, rows) in layout.used_ranges() {
        let range = rows.start * n..rows.end * n;
        match ranges.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    ranges
}

/// Powers of two from 1/4 to 2, the same for every seed: a type for scales that holds only powers
/// of two (UE8M0) and f32 then hold the same values, and multiplying by them is exact.
fn scales(name: &'static str, shape: &[usize], tensor: u32) -> TensorSpec {
    let count: usize = shape.iter().product();
    let bytes: Arc<[u8]> = (0..count as u64)
        .flat_map(|index| {
            let exponent = index_below(bits(0, SCALE_STREAM + tensor, index), 4) as i32 - 2;
            2f32.powi(exponent).to_le_bytes()
        })
        .collect();
    TensorSpec::input(name, DType::F32, shape).filled(Fill::Bytes(bytes))
}

impl Problem for GemmProblem {
    fn op(&self) -> &str {
        match self.layout.kind {
            GroupKind::Dense => "gemm",
            GroupKind::Contiguous => "grouped_gemm",
            GroupKind::Masked => "masked_grouped_gemm",
        }
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// Used rows and the matrices of groups that have some, each once: padding and the matrices of
    /// empty groups are nobody's work.
    fn cost(&self) -> Cost {
        let GemmShape { n, k } = self.shape;
        let (rows, groups) = (self.layout.used_rows(), self.layout.used_groups());
        let operand = self.dtype.size_bytes();
        let mut read = (rows + groups * n) * k * operand;
        if self.is_scaled() {
            read += (rows + groups * n.div_ceil(SCALE_BLOCK)) * (k / SCALE_BLOCK) * 4;
        }
        if let Some(index) = self.index_tensor() {
            read += self.tensors[index].bytes();
        }
        Cost {
            flops: 2.0 * rows as f64 * n as f64 * k as f64,
            read_bytes: read as f64,
            written_bytes: (rows * n * self.tensors[Self::OUT].dtype.size_bytes()) as f64,
            math: Math::TensorCore(self.dtype),
        }
    }

    /// Pieces of rows.
    fn units(&self) -> usize {
        self.layout.used_rows() * self.units_per_row()
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::oracle(self, inputs, unit)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::honest(self, inputs, unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::GemmSuite;
    use crate::testing::assert_units_cover_outputs_once;

    fn problem(layout: RowLayout, n: usize, k: usize, dtype: DType) -> GemmProblem {
        let workload = GemmSuite::custom(layout.rows, n, k).2;
        GemmProblem::new(GemmShape { n, k }, layout, dtype, workload).unwrap()
    }

    fn layouts() -> [RowLayout; 3] {
        [
            RowLayout::dense(5),
            RowLayout::contiguous(vec![3, 0, 128, 1]),
            RowLayout::masked(vec![0, 2, 4], 4),
        ]
    }

    #[test]
    fn cost_leaves_padding_and_empty_groups_out() {
        let layout = RowLayout::contiguous(vec![3, 0, 1]);
        let cost = problem(layout, 8, 128, DType::F8E4M3).cost();
        assert_eq!(cost.flops, 2.0 * 4.0 * 8.0 * 128.0);
        assert_eq!(cost.written_bytes, 4.0 * 8.0 * 2.0);
        let (operands, scales, index) = ((4 + 2 * 8) * 128, (4 + 2) * 4, 256 * 4);
        assert_eq!(cost.read_bytes, (operands + scales + index) as f64);
    }

    #[test]
    fn units_cover_every_written_element_once() {
        for layout in layouts() {
            for dtype in [DType::Bf16, DType::F16, DType::F8E4M3] {
                assert_units_cover_outputs_once(&problem(layout.clone(), 40, 128, dtype));
            }
        }
    }

    #[test]
    fn honest_values_are_near_the_oracle_and_representable() {
        for layout in layouts() {
            for dtype in [DType::Bf16, DType::F16, DType::F8E4M3] {
                let problem = problem(layout.clone(), 24, 1024, dtype);
                let inputs = Inputs::new(problem.tensors(), 3);
                let out = problem.tensors()[GemmProblem::OUT].dtype;
                for unit in [0, problem.units() - 1] {
                    let oracle = problem.oracle(&inputs, unit).remove(0);
                    let honest = problem.honest(&inputs, unit).remove(0);
                    assert_eq!(
                        (oracle.start, oracle.values.len()),
                        (honest.start, honest.values.len())
                    );
                    let scale = oracle.values.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                    for (right, rounded) in oracle.values.iter().zip(&honest.values) {
                        assert_eq!(out.round(*rounded), *rounded);
                        let limit = 2.0 * out.unit_roundoff() * scale;
                        assert!((right - rounded).abs() <= limit, "{right} and {rounded}");
                    }
                }
            }
        }
    }

    #[test]
    fn scales_are_powers_of_two_and_applied() {
        let problem = problem(RowLayout::dense(2), 130, 256, DType::F8E4M3);
        let inputs = Inputs::new(problem.tensors(), 1);
        let b_scales = inputs.range(GemmProblem::B_SCALES, 0, 4);
        assert!(b_scales
            .iter()
            .all(|scale| [0.25, 0.5, 1.0, 2.0].contains(scale)));
        // Column 129 lies in the second block of columns.
        let (row, column) = (1, 129);
        let a = inputs.range(GemmProblem::A, row * 256, 256);
        let b = inputs.range(GemmProblem::B, column * 256, 256);
        // Lines of two rows are four scales long.
        let a_scales = [1, 5].map(|index| inputs.get(GemmProblem::A_SCALES, index));
        let expected: f64 = (0..256)
            .map(|i| a[i] * b[i] * a_scales[i / 128] * b_scales[2 + i / 128])
            .sum();
        let unit = problem.units() - 1;
        let slice = problem.oracle(&inputs, unit).remove(0);
        assert_eq!(slice.start + slice.values.len(), 2 * 130);
        assert!((slice.values.last().unwrap() - expected).abs() < 1e-9);
    }

    #[test]
    fn refuses_what_no_contender_could_do() {
        let (shape, layout) = (GemmShape { n: 8, k: 100 }, RowLayout::dense(4));
        let workload = GemmSuite::custom(4, 8, 100).2;
        let new = |dtype| GemmProblem::new(shape, layout.clone(), dtype, workload.clone());
        assert_eq!(new(DType::F8E4M3).unwrap_err(), BadGemm::Depth(100));
        assert_eq!(new(DType::F32).unwrap_err(), BadGemm::DType(DType::F32));
    }
}
