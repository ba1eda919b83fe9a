//! Element types of tensors.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::format::{e8m0, BF16, F16, F8E4M3};

/// The type of one element. All are little-endian in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DType {
    #[serde(rename = "f32", alias = "fp32")]
    F32,
    #[serde(rename = "f16", alias = "fp16")]
    F16,
    #[serde(rename = "bf16")]
    Bf16,
    /// The "fn" variant: no infinity, largest finite value 448, encoding saturates.
    #[serde(rename = "fp8_e4m3")]
    F8E4M3,
    /// A power of two without sign, used as a block scale.
    #[serde(rename = "e8m0")]
    F8E8M0,
    #[serde(rename = "i32")]
    I32,
    #[serde(rename = "i64")]
    I64,
    /// e4m3 elements that share a power of two per 32 along a row: the scales are a tensor of their own.
    #[serde(rename = "mxfp8")]
    Mxfp8,
    /// Two e2m1 elements per byte, the first in the low bits. As one element the byte is its code, 0 to 255; the
    /// e4m3 scales, one per 16 elements along a row, are a tensor of their own.
    #[serde(rename = "nvfp4")]
    Nvfp4,
    /// The same pairs; the scales are powers of two, one per 32 elements along a row.
    #[serde(rename = "mxfp4")]
    Mxfp4,
    /// e4m3 elements that share a power of two per 128 along a row: the scales are a tensor of their own.
    #[serde(rename = "fp8_ue8m0")]
    Fp8Ue8m0,
}

/// Each type with its name and other accepted spellings.
const NAMES: [(DType, &str, &[&str]); 11] = [
    (DType::F32, "f32", &["fp32"]),
    (DType::F16, "f16", &["fp16"]),
    (DType::Bf16, "bf16", &[]),
    (DType::F8E4M3, "fp8_e4m3", &["fp8"]),
    (DType::F8E8M0, "e8m0", &[]),
    (DType::I32, "i32", &[]),
    (DType::I64, "i64", &[]),
    (DType::Mxfp8, "mxfp8", &[]),
    (DType::Nvfp4, "nvfp4", &[]),
    (DType::Mxfp4, "mxfp4", &[]),
    (DType::Fp8Ue8m0, "fp8_ue8m0", &[]),
];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown dtype '{0}'; use one of f32, f16, bf16, fp8_e4m3, fp8_ue8m0, mxfp8, nvfp4, mxfp4, e8m0, i32, i64"
)]
pub struct UnknownDType(pub String);

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(NAMES[*self as usize].1)
    }
}

impl FromStr for DType {
    type Err = UnknownDType;

    fn from_str(text: &str) -> Result<Self, UnknownDType> {
        NAMES
            .iter()
            .find(|(_, name, aliases)| *name == text || aliases.contains(&text))
            .map(|(dtype, ..)| *dtype)
            .ok_or_else(|| UnknownDType(text.to_owned()))
    }
}

impl DType {
    pub fn size_bytes(self) -> usize {
        match self {
            DType::F8E4M3
            | DType::F8E8M0
            | DType::Mxfp8
            | DType::Nvfp4
            | DType::Mxfp4
            | DType::Fp8Ue8m0 => 1,
            DType::F16 | DType::Bf16 => 2,
            DType::F32 | DType::I32 => 4,
            DType::I64 => 8,
        }
    }

    /// Whether an element is a byte with two numbers.
    pub fn is_pair(self) -> bool {
        matches!(self, DType::Nvfp4 | DType::Mxfp4)
    }

    /// Whether an element is one number; false for integers and for pairs of numbers.
    pub fn is_float(self) -> bool {
        !matches!(self, DType::I32 | DType::I64) && !self.is_pair()
    }

    /// Largest relative error of rounding a value in range to this type; 0 for integers and codes.
    pub fn unit_roundoff(self) -> f64 {
        match self {
            DType::F32 => 2f64.powi(-24),
            DType::F16 => 2f64.powi(-11),
            DType::Bf16 => 2f64.powi(-8),
            DType::F8E4M3 | DType::Mxfp8 | DType::Fp8Ue8m0 => 2f64.powi(-4),
            // 1.5 is halfway between 1 and 2.
            DType::F8E8M0 => 0.5,
            DType::I32 | DType::I64 | DType::Nvfp4 | DType::Mxfp4 => 0.0,
        }
    }

    pub fn max_finite(self) -> f64 {
        match self {
            DType::F32 => f64::from(f32::MAX),
            DType::F16 => F16.max_finite(),
            DType::Bf16 => BF16.max_finite(),
            DType::F8E4M3 | DType::Mxfp8 | DType::Fp8Ue8m0 => F8E4M3.max_finite(),
            DType::F8E8M0 => e8m0::decode(e8m0::MAX_CODE),
            DType::I32 => f64::from(i32::MAX),
            DType::I64 => i64::MAX as f64,
            DType::Nvfp4 | DType::Mxfp4 => f64::from(u8::MAX),
        }
    }

    /// Reads one element from the first `size_bytes()` of `bytes`. An i64 above 2^53 loses its low bits.
    pub fn decode_one(self, bytes: &[u8]) -> f64 {
        match self {
            DType::F32 => f64::from(f32::from_le_bytes(first(bytes))),
            DType::F16 => F16.decode(u32::from(u16::from_le_bytes(first(bytes)))),
            // A bf16 is the upper half of an f32.
            DType::Bf16 => f64::from(f32::from_bits(
                u32::from(u16::from_le_bytes(first(bytes))) << 16,
            )),
            DType::F8E4M3 | DType::Mxfp8 | DType::Fp8Ue8m0 => F8E4M3.decode(u32::from(bytes[0])),
            DType::F8E8M0 => e8m0::decode(bytes[0]),
            DType::I32 => f64::from(i32::from_le_bytes(first(bytes))),
            DType::I64 => i64::from_le_bytes(first(bytes)) as f64,
            DType::Nvfp4 | DType::Mxfp4 => f64::from(bytes[0]),
        }
    }

    /// Writes one element into the first `size_bytes()` of `out`, rounded to nearest even. f32, f16
    /// and bf16 overflow to infinity; all others saturate.
    pub fn encode_one(self, value: f64, out: &mut [u8]) {
        let size = self.size_bytes();
        match self {
            DType::F32 => out[..size].copy_from_slice(&(value as f32).to_le_bytes()),
            DType::F16 => out[..size].copy_from_slice(&(F16.encode(value) as u16).to_le_bytes()),
            DType::Bf16 => out[..size].copy_from_slice(&(BF16.encode(value) as u16).to_le_bytes()),
            DType::F8E4M3 | DType::Mxfp8 | DType::Fp8Ue8m0 => out[0] = F8E4M3.encode(value) as u8,
            DType::Nvfp4 | DType::Mxfp4 => out[0] = value.round_ties_even() as u8,
            DType::F8E8M0 => out[0] = e8m0::encode(value),
            DType::I32 => {
                out[..size].copy_from_slice(&(value.round_ties_even() as i32).to_le_bytes());
            }
            DType::I64 => {
                out[..size].copy_from_slice(&(value.round_ties_even() as i64).to_le_bytes());
            }
        }
    }

    pub fn decode(self, bytes: &[u8]) -> Vec<f64> {
        let size = self.size_bytes();
        assert!(
            bytes.len().is_multiple_of(size),
            "{} bytes are not a whole number of {self} elements",
            bytes.len()
        );
        bytes
            .chunks_exact(size)
            .map(|element| self.decode_one(element))
            .collect()
    }

    pub fn encode(self, values: &[f64]) -> Vec<u8> {
        let size = self.size_bytes();
        let mut bytes = vec![0; values.len() * size];
        for (value, out) in values.iter().zip(bytes.chunks_exact_mut(size)) {
            self.encode_one(*value, out);
        }
        bytes
    }

    /// `value` rounded to this type.
    pub fn round(self, value: f64) -> f64 {
        let mut element = [0; 8];
        self.encode_one(value, &mut element);
        self.decode_one(&element)
    }
}

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes[..N].try_into().expect("the slice has length N")
}

#[cfg(test)]
mod tests;
