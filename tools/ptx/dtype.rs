//! Types of the elements of a buffer.

use half::{bf16, f16};
use serde::Deserialize;

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    U8,
    I32,
    F32,
    F16,
    Bf16,
}

impl Dtype {
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::F32 => 4,
        }
    }

    /// Whether integers are in range; floats round.
    pub fn holds(self, value: f64) -> bool {
        let range = match self {
            Self::U8 => 0.0..=f64::from(u8::MAX),
            Self::I32 => f64::from(i32::MIN)..=f64::from(i32::MAX),
            Self::F32 | Self::F16 | Self::Bf16 => return true,
        };
        range.contains(&value) && value.fract() == 0.0
    }

    pub fn encode(self, value: f64) -> Vec<u8> {
        match self {
            Self::U8 => vec![value as u8],
            Self::I32 => (value as i32).to_le_bytes().to_vec(),
            Self::F32 => (value as f32).to_le_bytes().to_vec(),
            Self::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
            Self::Bf16 => bf16::from_f64(value).to_le_bytes().to_vec(),
        }
    }

    pub fn decode(self, bytes: &[u8]) -> f64 {
        let four = || [bytes[0], bytes[1], bytes[2], bytes[3]];
        match self {
            Self::U8 => bytes[0].into(),
            Self::I32 => i32::from_le_bytes(four()).into(),
            Self::F32 => f32::from_le_bytes(four()).into(),
            Self::F16 => f16::from_le_bytes([bytes[0], bytes[1]]).into(),
            Self::Bf16 => bf16::from_le_bytes([bytes[0], bytes[1]]).into(),
        }
    }

    /// CUtensorMapDataType as a map stores it.
    pub fn map_kind(self) -> u32 {
        match self {
            Self::U8 => 0,
            Self::I32 => 3,
            Self::F16 => 6,
            Self::F32 => 7,
            Self::Bf16 => 10,
        }
    }
}
