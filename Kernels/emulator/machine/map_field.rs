//! Single fields of a tensor map, as `tensormap.replace` writes them.

use crate::tensor_map::BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapField {
    GlobalAddress,
    Rank,
    BoxDimension,
    GlobalDimension,
    GlobalStride,
    ElementStride,
    ElementType,
    Interleave,
    Swizzle,
    SwizzleAtomicity,
    Fill,
}

impl MapField {
    /// By the words of PTX.
    pub const NAMES: [(&'static str, Self); 11] = [
        ("global_address", Self::GlobalAddress),
        ("rank", Self::Rank),
        ("box_dim", Self::BoxDimension),
        ("global_dim", Self::GlobalDimension),
        ("global_stride", Self::GlobalStride),
        ("element_stride", Self::ElementStride),
        ("elemtype", Self::ElementType),
        ("interleave_layout", Self::Interleave),
        ("swizzle_mode", Self::Swizzle),
        ("swizzle_atomicity", Self::SwizzleAtomicity),
        ("fill_mode", Self::Fill),
    ];

    /// Whether there is one for each dimension.
    pub fn has_ordinal(self) -> bool {
        matches!(
            self,
            Self::BoxDimension | Self::GlobalDimension | Self::GlobalStride | Self::ElementStride
        )
    }

    pub fn is_wide(self) -> bool {
        matches!(self, Self::GlobalAddress | Self::GlobalStride)
    }

    /// Writes the field, of a dimension where it has one of each.
    ///
    /// # Errors
    ///
    /// Where there is no such dimension, or no map holds the value.
    pub fn write(self, map: &mut [u8; BYTES], ordinal: u32, value: u64) -> Result<(), String> {
        let dimensions = if self == Self::GlobalStride { 4 } else { 5 };
        if self.has_ordinal() && ordinal >= dimensions {
            return Err(format!("{self:?} {ordinal} of a tensor map"));
        }
        let from_one = |most: u64| value.checked_sub(1).filter(|stored| *stored < most);
        let at_most = |most: u64| Some(value).filter(|value| *value <= most);
        // A word, its first bit, how many bits, and what goes there.
        let place = match self {
            Self::GlobalAddress => {
                map[..8].copy_from_slice(&value.to_le_bytes());
                return Ok(());
            }
            Self::GlobalStride => {
                let sixteens =
                    Some(value >> 4).filter(|_| value.is_multiple_of(16) && value < 1 << 40);
                if let Some(sixteens) = sixteens {
                    put(map, (7, 4 * ordinal, 4), sixteens >> 32);
                }
                ((3 + ordinal, 0, 32), sixteens.map(|low| low & 0xffff_ffff))
            }
            Self::GlobalDimension => ((8 + ordinal, 0, 32), from_one(1 << 32)),
            Self::BoxDimension if ordinal == 0 => ((13, 24, 8), from_one(256)),
            Self::BoxDimension => ((14, 8 * (ordinal - 1), 8), from_one(256)),
            Self::ElementStride => ((13, 3 * ordinal, 3), from_one(8)),
            Self::Rank => ((2, 4, 3), at_most(4)),
            Self::ElementType => ((2, 7, 4), at_most(15)),
            Self::Interleave => ((2, 11, 2), at_most(2)),
            Self::Swizzle => ((2, 13, 2), at_most(3)),
            Self::Fill => ((2, 15, 1), at_most(1)),
            Self::SwizzleAtomicity => ((2, 0, 0), at_most(0)),
        };
        let (bits, Some(stored)) = place else {
            return Err(format!("{self:?} {value} in a tensor map"));
        };
        put(map, bits, stored);
        Ok(())
    }
}

fn put(map: &mut [u8; BYTES], (word, first, count): (u32, u32, u32), value: u64) {
    let place = &mut map[4 * word as usize..][..4];
    let old = u32::from_le_bytes([place[0], place[1], place[2], place[3]]);
    let ones = ((1u64 << count) - 1) as u32;
    let new = old & !(ones << first) | (value as u32 & ones) << first;
    place.copy_from_slice(&new.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TensorMap;

    #[test]
    fn a_map_of_fields_is_the_drivers() {
        let map = TensorMap {
            address: 0x7f12_3456_7890,
            kind: 10,
            sizes: vec![4096, 1 << 32, 7],
            strides: vec![8192, (1 << 39) + 16],
            box_sizes: vec![64, 128, 2],
            swizzle: 3,
            fills_nan: true,
        };
        let mut bytes = [0; BYTES];
        let mut write = |field: MapField, ordinal: usize, value: u64| {
            field.write(&mut bytes, ordinal as u32, value)
        };
        write(MapField::GlobalAddress, 0, map.address).unwrap();
        write(MapField::Rank, 0, 2).unwrap();
        write(MapField::ElementType, 0, map.kind.into()).unwrap();
        write(MapField::Interleave, 0, 0).unwrap();
        write(MapField::Swizzle, 0, map.swizzle.into()).unwrap();
        write(MapField::SwizzleAtomicity, 0, 0).unwrap();
        write(MapField::Fill, 0, 1).unwrap();
        for (at, size) in map.sizes.iter().enumerate() {
            write(MapField::GlobalDimension, at, *size).unwrap();
            write(MapField::BoxDimension, at, map.box_sizes[at].into()).unwrap();
            write(MapField::ElementStride, at, 1).unwrap();
        }
        for (at, stride) in map.strides.iter().enumerate() {
            write(MapField::GlobalStride, at, *stride).unwrap();
        }
        for (field, ordinal, value) in [
            (MapField::GlobalStride, 0, 24),
            (MapField::GlobalStride, 4, 16),
            (MapField::BoxDimension, 0, 257),
            (MapField::GlobalDimension, 0, 0),
            (MapField::Rank, 0, 5),
        ] {
            write(field, ordinal, value).unwrap_err();
        }
        assert_eq!(bytes, map.encode().unwrap());
    }
}
