//! Arguments of a launch: numbers, addresses, tensor maps, structs, bytes.

use std::collections::BTreeMap;

use machine::TensorMap;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Argument {
    Buffer(String),
    U8(u8),
    I32(i32),
    U32(u32),
    I64(i64),
    U64(u64),
    F32(f32),
    F64(f64),
    #[serde(rename = "tensor_map")]
    Map(Map),
    /// Members one after the other, as C lays them out.
    Struct(Vec<Argument>),
    /// Bytes, and where in them addresses of buffers belong.
    Raw(Raw),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    hex: String,
    pointers: Vec<Pointer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pointer {
    at: usize,
    buffer: String,
    offset: u64,
}

impl Raw {
    fn bytes(&self) -> Result<Vec<u8>, String> {
        let digits = self.hex.as_bytes().chunks(2);
        let bytes = digits.map(|pair| {
            let pair = std::str::from_utf8(pair).ok();
            pair.filter(|pair| pair.len() == 2)
                .and_then(|pair| u8::from_str_radix(pair, 16).ok())
                .ok_or_else(|| format!("{:?} is not bytes in hexadecimal", self.hex))
        });
        bytes.collect()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    buffer: String,
    sizes: Vec<u64>,
    /// In bytes, of all dimensions but the first.
    strides: Vec<u64>,
    #[serde(rename = "box")]
    box_sizes: Vec<u32>,
    /// 0, 32, 64 or 128 bytes.
    #[serde(default)]
    swizzle: u32,
    /// Of fewer bits than the buffer's.
    #[serde(default)]
    elements: Option<Packed>,
}

/// Elements below 8 bits, as the driver calls them.
#[derive(Clone, Copy, Deserialize)]
enum Packed {
    #[serde(rename = "16u4_align8b")]
    Four = 13,
    #[serde(rename = "16u4_align16b")]
    FourApart = 14,
    #[serde(rename = "16u6_align16b")]
    SixApart = 15,
}

impl Argument {
    /// Its bytes where buffers have these addresses; `kind_of` is the type of a buffer as a map stores it.
    pub fn bytes(
        &self,
        addresses: &BTreeMap<&str, u64>,
        kind_of: &dyn Fn(&str) -> u32,
    ) -> Result<Vec<u8>, String> {
        let address = |name: &str| {
            addresses
                .get(name)
                .copied()
                .ok_or_else(|| format!("there is no buffer {name}"))
        };
        Ok(match self {
            Self::Buffer(name) => address(name)?.to_le_bytes().to_vec(),
            Self::U8(value) => vec![*value],
            Self::I32(value) => value.to_le_bytes().to_vec(),
            Self::U32(value) => value.to_le_bytes().to_vec(),
            Self::I64(value) => value.to_le_bytes().to_vec(),
            Self::U64(value) => value.to_le_bytes().to_vec(),
            Self::F32(value) => value.to_le_bytes().to_vec(),
            Self::F64(value) => value.to_le_bytes().to_vec(),
            Self::Map(map) => {
                let swizzle = match map.swizzle {
                    0 => 0,
                    32 => 1,
                    64 => 2,
                    128 => 3,
                    other => {
                        return Err(format!(
                            "a swizzle of {other} bytes; 0, 32, 64 and 128 exist"
                        ))
                    }
                };
                let tensor = TensorMap {
                    address: address(&map.buffer)?,
                    kind: map
                        .elements
                        .map_or_else(|| kind_of(&map.buffer), |packed| packed as u32),
                    sizes: map.sizes.clone(),
                    strides: map.strides.clone(),
                    box_sizes: map.box_sizes.clone(),
                    swizzle,
                    fills_nan: false,
                };
                tensor.encode()?.to_vec()
            }
            Self::Raw(raw) => {
                let mut bytes = raw.bytes()?;
                for pointer in &raw.pointers {
                    let address = address(&pointer.buffer)?.wrapping_add(pointer.offset);
                    let size = bytes.len();
                    let place = pointer
                        .at
                        .checked_add(8)
                        .and_then(|end| bytes.get_mut(pointer.at..end));
                    let place = place
                        .ok_or_else(|| format!("a pointer at {} of {size} bytes", pointer.at))?;
                    place.copy_from_slice(&address.to_le_bytes());
                }
                bytes
            }
            Self::Struct(members) => {
                let mut bytes = Vec::new();
                for member in members {
                    let value = member.bytes(addresses, kind_of)?;
                    bytes.resize(bytes.len().next_multiple_of(member.alignment()), 0);
                    bytes.extend(value);
                }
                bytes.resize(bytes.len().next_multiple_of(self.alignment()), 0);
                bytes
            }
        })
    }

    fn alignment(&self) -> usize {
        match self {
            Self::U8(_) => 1,
            Self::I32(_) | Self::U32(_) | Self::F32(_) => 4,
            Self::Buffer(_) | Self::I64(_) | Self::U64(_) | Self::F64(_) => 8,
            Self::Map(_) => 128,
            Self::Raw(_) => 1,
            Self::Struct(members) => members.iter().map(Self::alignment).max().unwrap_or(1),
        }
    }
}
