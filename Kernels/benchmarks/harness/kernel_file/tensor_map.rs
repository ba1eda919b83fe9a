//! Tensor maps among a kernel's arguments: descriptors of tensors that the hardware copies boxes of.

use contender::Buffer;
use numeric::DType;
use serde::Deserialize;
use tensor::TensorSpec;

use crate::expression::Expression;

const RANK_MAX: usize = 5;
const BOX_MAX: i64 = 256;
/// What the hardware wants strides, and rows of boxes, to be multiples of.
const GRAIN_BYTES: u64 = 16;

/// What `cuTensorMapEncodeTiled` is asked for. Sizes are in the order of the tensor's shape, the contiguous one last.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapDescription {
    pub tensor: String,
    /// The tensor seen in another shape of as many elements.
    pub shape: Option<Vec<Expression>>,
    #[serde(rename = "box")]
    pub box_sizes: Vec<Expression>,
    #[serde(default)]
    pub swizzle: Swizzle,
}

/// The span in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Swizzle {
    #[default]
    #[serde(rename = "none")]
    None,
    #[serde(rename = "32B")]
    Bytes32,
    #[serde(rename = "64B")]
    Bytes64,
    #[serde(rename = "128B")]
    Bytes128,
}

impl Swizzle {
    /// `CUtensorMapSwizzle`.
    pub fn code(self) -> u32 {
        self as u32
    }

    fn span_bytes(self) -> Option<u64> {
        match self {
            Swizzle::None => None,
            Swizzle::Bytes32 => Some(32),
            Swizzle::Bytes64 => Some(64),
            Swizzle::Bytes128 => Some(128),
        }
    }
}

/// A map of one problem, as CUDA has it: the contiguous dimension is first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    pub address: usize,
    /// `CUtensorMapDataType`.
    pub kind: u32,
    pub sizes: Vec<u64>,
    /// In bytes, of all dimensions but the first.
    pub strides: Vec<u64>,
    pub box_sizes: Vec<u32>,
    pub swizzle: Swizzle,
}

impl Map {
    pub fn new(
        description: &MapDescription,
        spec: &TensorSpec,
        buffer: Buffer,
        value: &dyn Fn(&Expression) -> Result<i64, String>,
    ) -> Result<Self, String> {
        let name = &description.tensor;
        let refuse = |reason: String| Err(format!("tensor map of '{name}': {reason}"));
        let elements: usize = spec.shape.iter().product();
        let shape: Vec<u64> = match &description.shape {
            None => spec.shape.iter().map(|size| *size as u64).collect(),
            Some(shape) => {
                let sizes: Result<Vec<i64>, String> = shape.iter().map(value).collect();
                let sizes = sizes?;
                let positive = sizes
                    .iter()
                    .map(|size| u64::try_from(*size).ok().filter(|size| *size > 0));
                let Some(sizes) = positive.collect::<Option<Vec<u64>>>() else {
                    return refuse(format!("shape {sizes:?} has a size that is not positive"));
                };
                let seen = sizes
                    .iter()
                    .try_fold(1u64, |all, size| all.checked_mul(*size));
                if seen != Some(elements as u64) {
                    return refuse(format!(
                        "shape {sizes:?} is not of {elements} elements, as the tensor is"
                    ));
                }
                sizes
            }
        };
        let rank = shape.len();
        if !(1..=RANK_MAX).contains(&rank) {
            return refuse(format!("{rank} dimensions: expected 1 to {RANK_MAX}"));
        }
        if description.box_sizes.len() != rank {
            let sizes = description.box_sizes.len();
            return refuse(format!("box has {sizes} sizes for {rank} dimensions"));
        }
        let boxes: Result<Vec<i64>, String> = description.box_sizes.iter().map(value).collect();
        let boxes = boxes?;
        if let Some(size) = boxes.iter().find(|size| !(1..=BOX_MAX).contains(*size)) {
            return refuse(format!(
                "a box of {size}: expected 1 to {BOX_MAX} elements a side"
            ));
        }
        let element = spec.dtype.size_bytes() as u64;
        let row_bytes = boxes[rank - 1] as u64 * element;
        if !row_bytes.is_multiple_of(GRAIN_BYTES) {
            return refuse(format!(
                "rows of its box have {row_bytes} bytes: expected a multiple of {GRAIN_BYTES}"
            ));
        }
        if let Some(span) = description
            .swizzle
            .span_bytes()
            .filter(|span| row_bytes > *span)
        {
            return refuse(format!(
                "rows of its box have {row_bytes} bytes, more than the {span} of its swizzle"
            ));
        }
        let mut strides = Vec::new();
        let mut stride = element;
        for size in shape.iter().skip(1).rev() {
            stride *= size;
            if !stride.is_multiple_of(GRAIN_BYTES) {
                return refuse(format!(
                    "a stride of {stride} bytes: expected a multiple of {GRAIN_BYTES}"
                ));
            }
            strides.push(stride);
        }
        Ok(Self {
            address: buffer.address,
            kind: kind(spec.dtype),
            sizes: shape.into_iter().rev().collect(),
            strides,
            box_sizes: boxes.into_iter().rev().map(|size| size as u32).collect(),
            swizzle: description.swizzle,
        })
    }
}

/// `CUtensorMapDataType` of an element; codes are bytes.
fn kind(dtype: DType) -> u32 {
    match dtype {
        DType::F8E4M3
        | DType::F8E8M0
        | DType::Mxfp8
        | DType::Nvfp4
        | DType::Mxfp4
        | DType::Fp8Ue8m0 => 0,
        DType::I32 => 3,
        DType::I64 => 5,
        DType::F16 => 6,
        DType::F32 => 7,
        DType::Bf16 => 9,
    }
}
