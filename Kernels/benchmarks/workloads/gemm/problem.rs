//! GEMMs: dense, and grouped with one matrix per group of rows.
//!
//! out[r, c] = sum over i of a[r, i] * b[group of r, c, i]; k is contiguous in both operands. With
//! FP8 operands there is one scale per 128 elements of k in a row of `a`, and one per 128 x 128 block
//! of `b`; those of fp8_ue8m0 are powers of two. MXFP8 and MXFP4 operands have one per 32 elements of k in
//! each row of both, NVFP4 ones per 16. The operands come quantised: quantising is a separate operation with
//! its own rows.

use std::sync::Arc;

use contender::{Cost, Family, Math, Piece, Problem, Slice, Statement, Workload};
use numeric::{bits, index_below, DType};
use tensor::{Fill, Inputs, Shaped, Slots, TensorSpec, DEAD};

use super::answers;
use super::block_scales::{self, Format};
use super::shape::{GemmShape, GroupKind, RowLayout, SCALE_BLOCK};
use crate::kinds::{outlier_columns, scattered, DRIFT, OUTLIERS, UNEVEN_ROWS};

/// Random stream of the scales, separate from those of tensors.
const SCALE_STREAM: u32 = 0x5CA1E;

/// One product; see the file's comment. Besides a, b and out there are, with FP8,
///
/// - a_scales: f32 [k / 128, rows rounded up to 4], masked [groups, k / 128, the same of one group]. Rows
///   are contiguous, so that the scales of a tile's rows are one piece, and lines are of whole 16 bytes.
/// - b_scales: f32 [groups, ceil(n / 128), k / 128].
///
/// With fp8_ue8m0, MXFP8, NVFP4 and MXFP4, a_scales and b_scales are tiles of e8m0, of NVFP4 e4m3, as tensor cores
/// read them (`reference::quantize::scale_place`), whole ones for each group of b and of a masked a; with fp8_ue8m0
/// each of the 128 rows of a block of b has its scale. FP4's a and b are pairs, and NVFP4 has a tensor_scale: f32
/// [1], the product of both operands' own.
///
/// And with groups there is the index that [`RowLayout::index_name`] names.
#[derive(Clone, Debug)]
pub struct GemmProblem {
    pub shape: GemmShape,
    pub layout: RowLayout,
    statement: Statement,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGemm {
    #[error(
        "{0} operands are not supported; use bf16, f16, fp8_e4m3, fp8_ue8m0, mxfp8, nvfp4 or mxfp4"
    )]
    DType(DType),
    #[error("k is {0}; with FP8 and FP4 operands it must be a multiple of 128")]
    Depth(usize),
}

impl GemmProblem {
    /// Operands are of `dtype`; the result of FP8 and FP4 is bf16, others keep their type.
    pub fn new(
        shape: GemmShape,
        layout: RowLayout,
        dtype: DType,
        workload: Workload,
    ) -> Result<Self, BadGemm> {
        Self::seeded(shape, layout, dtype, workload, 0)
    }

    /// The same with scales of a seed.
    pub fn seeded(
        shape: GemmShape,
        layout: RowLayout,
        dtype: DType,
        workload: Workload,
        seed: u64,
    ) -> Result<Self, BadGemm> {
        let format = Format::of(dtype);
        let out_dtype = match dtype {
            DType::Bf16 | DType::F16 => dtype,
            _ if (format.is_some() || dtype == DType::F8E4M3)
                && !shape.k.is_multiple_of(SCALE_BLOCK) =>
            {
                return Err(BadGemm::Depth(shape.k))
            }
            _ if format.is_some() || dtype == DType::F8E4M3 => DType::Bf16,
            other => return Err(BadGemm::DType(other)),
        };
        let GemmShape { n, k } = shape;
        let (rows, groups) = (layout.rows, layout.groups());
        let mut out = TensorSpec::output("out", out_dtype, &[rows, n]);
        if layout.used_rows() < rows {
            out = out.written_only(written_ranges(&layout, n));
        }
        let mut tensors = vec![
            TensorSpec::input("a", dtype, &[rows, k]).filled(rows_of_a(&layout, k, &[ONE])),
            TensorSpec::input("b", dtype, &[groups, n, k]).filled(matrices(&layout, shape, ONE)),
            out,
        ];
        if let Some(format) = format {
            block_scales::state(format, &mut tensors, &layout, shape, seed);
        }
        if dtype == DType::F8E4M3 {
            let (deep, wide) = (k / SCALE_BLOCK, n.div_ceil(SCALE_BLOCK));
            let (rooms, line) = layout.scale_lines();
            tensors.push(scales("a_scales", &[rooms, deep, line], seed, 0));
            tensors.push(scales("b_scales", &[groups, wide, deep], seed, 1));
        }
        let indices = match layout.kind {
            GroupKind::Masked => layout.tokens.iter().map(|&rows| rows as i32).collect(),
            _ => layout.group_of_rows(),
        };
        if let Some(name) = layout.index_name() {
            tensors.push(TensorSpec::indices(name, &[indices.len()], &indices));
        }
        let mut statement = Statement {
            op: match layout.kind {
                GroupKind::Dense => "gemm",
                GroupKind::Contiguous => "grouped_gemm",
                GroupKind::Masked => "masked_grouped_gemm",
            },
            dtype,
            workload,
            tensors,
        };
        statement.axis("out_dtype", out_dtype.to_string());
        Ok(Self {
            shape,
            layout,
            statement,
        })
    }

    /// fp32 scales of blocks of 128.
    pub fn is_scaled(&self) -> bool {
        self.dtype() == DType::F8E4M3
    }

    /// Scales in tiles, which tensor cores apply.
    pub fn is_block_scaled(&self) -> bool {
        Format::of(self.dtype()).is_some()
    }

    /// Bytes before the tiles of a group, in a_scales and in b_scales: from there on they are those of a product of its
    /// own. 0 without tiles.
    pub fn scale_tiles_before(&self, group: usize) -> [usize; 2] {
        let Some(format) = Format::of(self.dtype()) else {
            return [0, 0];
        };
        let (n, blocks) = (self.shape.n, self.shape.k / format.block());
        let (a, b) = (self.layout.tiles_of_a(), self.layout.tiles_of_b(n));
        [
            a.place(self.layout.starts[group], 0, blocks),
            b.place(group * n, 0, blocks),
        ]
    }

    /// The product of some rows, and where its tensors are in the whole.
    fn piece(&self, rows: std::ops::Range<usize>) -> Piece {
        let (GemmShape { n, k }, workload) = (self.shape, self.workload().clone());
        let layout = RowLayout::dense(rows.len());
        let piece = Self::new(self.shape, layout.clone(), self.dtype(), workload);
        let mut piece = piece.expect("a part of a valid product is one");
        if self.is_scaled() {
            let place = tensor::place(&piece.statement.tensors, "a_scales");
            let spec = &mut piece.statement.tensors[place];
            let inputs = Inputs::new(self.tensors(), 0);
            let (whole, deep) = (inputs.tensor("a_scales"), k / SCALE_BLOCK);
            let mut scales = vec![1.0; spec.elements()];
            for block in 0..deep {
                for row in rows.clone() {
                    let scale = whole.get(self.layout.a_scale_index(deep, block, 0, row));
                    scales[layout.a_scale_index(deep, block, 0, row - rows.start)] = scale;
                }
            }
            let bytes = spec.dtype.encode(&scales);
            *spec = spec.clone().filled(Fill::Bytes(bytes.into()));
        }
        if let Some(format) = Format::of(self.dtype()) {
            block_scales::copy_rows(
                format,
                self.tensors(),
                rows.clone(),
                k,
                &mut piece.statement,
            );
        }
        let packing = Format::of(self.dtype()).map_or(1, Format::packing);
        let first = |name: &str| match name {
            "a" => Some(rows.start * k / packing),
            "out" => Some(rows.start * n),
            "a_scales" => None,
            _ => Some(0),
        };
        let tensors = self.tensors().iter().enumerate();
        let places = tensors
            .map(|(tensor, spec)| first(spec.name).map(|first| (tensor, first)))
            .collect();
        Piece {
            problem: Box::new(piece),
            places,
        }
    }
}

/// Operations of one piece: few enough that several are computed.
const PIECE_FLOPS: f64 = 2e11;

/// Elements of the result that are not padding; adjacent groups without padding form one range.
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

/// The range of ordinary elements.
const ONE: (f32, f32) = (-1.0, 1.0);

/// Rows of `a` in one of these ranges each; padding, which belongs to no group, is dead.
fn rows_of_a(layout: &RowLayout, k: usize, ranges: &[(f32, f32)]) -> Fill {
    let dead = ranges.len() as u8;
    let mut levels = vec![dead; layout.rows];
    for row in layout.used_ranges().flat_map(|(_, rows)| rows) {
        levels[row] = scattered(row, ranges.len());
    }
    let ranges: Vec<_> = ranges.iter().copied().chain([DEAD]).collect();
    Shaped::by_slot(Slots::rows(k), levels, &ranges).into()
}

/// The matrices of `b`; those of empty groups are dead.
fn matrices(layout: &RowLayout, GemmShape { n, k }: GemmShape, range: (f32, f32)) -> Shaped {
    let levels = layout.tokens.iter().map(|&rows| u8::from(rows == 0));
    Shaped::by_slot(Slots::rows(n * k), levels.collect(), &[range, DEAD])
}

/// Powers of two from 1/4 to 2, by the seed: UE8M0, which holds only powers of two, and f32 then hold
/// the same values, and multiplying by them is exact.
fn scales(name: &'static str, shape: &[usize], seed: u64, tensor: u32) -> TensorSpec {
    let count: usize = shape.iter().product();
    let bytes: Arc<[u8]> = (0..count as u64)
        .flat_map(|index| {
            let exponent = index_below(bits(seed, SCALE_STREAM + tensor, index), 4) as i32 - 2;
            2f32.powi(exponent).to_le_bytes()
        })
        .collect();
    TensorSpec::input(name, DType::F32, shape).filled(Fill::Bytes(bytes))
}

impl Problem for GemmProblem {
    fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Used rows, and the matrices of non-empty groups once each: padding and the matrices of empty
    /// groups are not work.
    fn cost(&self) -> Cost {
        let GemmShape { n, k } = self.shape;
        let (rows, groups) = (self.layout.used_rows(), self.layout.used_groups());
        let operand = self.dtype().size_bytes();
        let format = Format::of(self.dtype());
        let mut read = (rows + groups * n) * k * operand / format.map_or(1, Format::packing);
        if let Some(format) = format {
            // Without padding, and those that rows share once; and the tensor's.
            let of_b = groups * n.div_ceil(format.block_rows());
            read += (rows + of_b) * (k / format.block());
            let of_tensor = self
                .tensors()
                .iter()
                .find(|spec| spec.name == "tensor_scale");
            read += of_tensor.map_or(0, TensorSpec::bytes);
        }
        if self.is_scaled() {
            read += (rows + groups * n.div_ceil(SCALE_BLOCK)) * (k / SCALE_BLOCK) * 4;
        }
        if let Some(index) = self.layout.index_name() {
            read += self.statement.tensor(index).bytes();
        }
        Cost {
            flops: 2.0 * rows as f64 * n as f64 * k as f64,
            read_bytes: read as f64,
            written_bytes: (rows * n * self.statement.tensor("out").dtype.size_bytes()) as f64,
            math: Math::TensorCore(match format {
                // Tensor cores multiply these as fast as e4m3 without scales.
                Some(Format::Fp8Ue8m0) => DType::F8E4M3,
                _ => self.dtype(),
            }),
        }
    }

    /// Rows of a product without groups.
    fn pieces(&self) -> Vec<Piece> {
        if self.layout.kind != GroupKind::Dense {
            return Vec::new();
        }
        let row = 2.0 * self.shape.n as f64 * self.shape.k as f64;
        let step = ((PIECE_FLOPS / row) as usize).clamp(1, self.layout.rows);
        let starts = (0..self.layout.rows).step_by(step);
        starts
            .map(|first| self.piece(first..self.layout.rows.min(first + step)))
            .collect()
    }

    fn families(&self) -> Vec<Family> {
        let (layout, k) = (&self.layout, self.shape.k);
        if let Some(format) = Format::of(self.dtype()) {
            return block_scales::families(format, &self.statement, layout, self.shape);
        }
        let uneven = [ONE, (-64.0, 64.0), (0.0, 0.0), (0.75, 0.75)];
        let outliers = matrices(layout, self.shape, ONE).times(outlier_columns(k, 32.0));
        // Sums of terms of one sign grow until the end.
        let (rising, positive) = (
            rows_of_a(layout, k, &[(0.0, 1.0)]),
            matrices(layout, self.shape, (0.0, 1.0)),
        );
        vec![
            self.statement
                .family(UNEVEN_ROWS, vec![("a", rows_of_a(layout, k, &uneven))]),
            self.statement
                .family(OUTLIERS, vec![("b", outliers.into())]),
            self.statement
                .family(DRIFT, vec![("a", rising), ("b", positive.into())]),
        ]
    }

    fn units(&self) -> usize {
        answers::units(self.shape, &self.layout)
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::oracle(self.shape, &self.layout, inputs, unit)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        answers::honest(self.shape, &self.layout, inputs, unit)
    }
}

#[cfg(test)]
#[path = "problem_test.rs"]
mod tests;
