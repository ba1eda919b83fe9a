//! The 128 bytes of a CUtensorMap: fields where the driver and `tensormap.replace` put them.

use std::borrow::Cow;

use crate::limits::MOST_SHARED;

/// A tensor in global memory and the boxes that are copied of it, the contiguous dimension first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    pub address: u64,
    /// CUtensorMapDataType as the map stores it.
    pub kind: u32,
    pub sizes: Vec<u64>,
    /// In bytes, of all dimensions but the first.
    pub strides: Vec<u64>,
    pub box_sizes: Vec<u32>,
    pub swizzle: u32,
    /// Elements outside of the tensor are NaN instead of 0.
    pub fills_nan: bool,
}

/// Bits of an element in global memory: u8 u16 u32 s32 u64 s64 f16 f32 f32.ftz f64 bf16 tf32 tf32.ftz b4x16 b4x16_p64
/// b6x16_p32, the last of which is b6p2x16 in a store.
const ELEMENT_BITS: [u32; 16] = [8, 16, 32, 32, 64, 64, 16, 32, 32, 64, 16, 32, 32, 4, 4, 6];

/// 16U4_ALIGN8B: two elements in a byte, in shared memory as well.
const FOUR: u32 = 13;
/// 16U4_ALIGN16B: in shared memory 16 elements take 16 bytes, of which the last 8 are a gap.
const FOUR_APART: u32 = 14;
/// 16U6_ALIGN16B: in shared memory 16 elements take 16 bytes. Loaded, they are packed and leave a gap of 4 bytes; to be
/// stored, each has a byte of its own.
const SIX_APART: u32 = 15;

/// What is in gaps of shared memory, which the documentation calls uninitialised.
const GAP: u8 = 0xff;

pub const BYTES: usize = 128;

impl TensorMap {
    pub fn element_bits(&self) -> u32 {
        ELEMENT_BITS[self.kind as usize]
    }

    fn is_apart(&self) -> bool {
        matches!(self.kind, FOUR_APART | SIX_APART)
    }

    /// Bytes of a box in global memory, which an mbarrier counts.
    pub fn box_bytes(&self) -> u32 {
        self.packed_row_bytes() * self.rows()
    }

    /// Bytes of a box in shared memory.
    pub fn room_bytes(&self) -> u32 {
        self.row_bytes() * self.rows()
    }

    pub fn rows(&self) -> u32 {
        self.box_sizes[1..].iter().product()
    }

    /// A box's row in global memory.
    pub fn packed_row_bytes(&self) -> u32 {
        self.box_sizes[0] * self.element_bits() / 8
    }

    /// A box's row in shared memory.
    pub fn row_bytes(&self) -> u32 {
        if self.is_apart() {
            self.box_sizes[0]
        } else {
            self.packed_row_bytes()
        }
    }

    /// The part of a box's row inside the tensor: where it begins, bytes to skip in the row, bytes.
    pub fn span(&self, at: &[i64; 5], number: u32) -> Option<(u64, usize, usize)> {
        let mut rest = number;
        let mut address = self.address;
        let outer = at.iter().zip(&self.box_sizes).zip(&self.sizes).skip(1);
        for (((corner, box_size), size), stride) in outer.zip(&self.strides) {
            let position = corner + i64::from(rest % box_size);
            rest /= box_size;
            if position < 0 || position >= *size as i64 {
                return None;
            }
            address = address.wrapping_add((position as u64).wrapping_mul(*stride));
        }
        let bytes = |elements: i64| elements * i64::from(self.element_bits()) / 8;
        let first = at[0].max(0);
        let end = (at[0] + i64::from(self.box_sizes[0])).min(self.sizes[0] as i64);
        (first < end).then(|| {
            (
                address.wrapping_add(bytes(first) as u64),
                bytes(first - at[0]) as usize,
                bytes(end - first) as usize,
            )
        })
    }

    /// A row as a load leaves it in shared memory.
    pub fn spread<'a>(&self, packed: &'a [u8]) -> Cow<'a, [u8]> {
        if !self.is_apart() {
            return packed.into();
        }
        let filled = 2 * self.element_bits() as usize;
        let groups = packed.chunks_exact(filled);
        groups
            .flat_map(|group| group.iter().copied().chain((filled..16).map(|_| GAP)))
            .collect()
    }

    /// A row of shared memory as a store leaves it in global memory.
    pub fn pack<'a>(&self, row: &'a [u8]) -> Cow<'a, [u8]> {
        if self.kind != SIX_APART {
            return row.into();
        }
        let packed = |four: &[u8]| {
            let each = four.iter().enumerate();
            let bits: u32 = each
                .map(|(at, byte)| u32::from(byte & 63) << (6 * at))
                .sum();
            bits.to_le_bytes().into_iter().take(3)
        };
        row.chunks_exact(4).flat_map(packed).collect()
    }

    /// What the documentation forbids in a copy that begins at this element of the first dimension.
    ///
    /// # Errors
    ///
    /// Where it forbids it, or says nothing about it.
    pub fn check_copy(&self, first: i64, loads: bool) -> Result<(), String> {
        if !loads && self.kind == FOUR_APART {
            return Err("a tensor store of type 16U4_ALIGN16B, which is for loads".to_owned());
        }
        let step = match self.kind {
            FOUR_APART | SIX_APART => 128,
            FOUR => 2,
            _ => 1,
        };
        if first % step != 0 {
            return Err(format!(
                "a first coordinate of {first}, which is no multiple of {step} elements of {} bits",
                self.element_bits()
            ));
        }
        Ok(())
    }

    /// Reads a map as the hardware would.
    ///
    /// # Errors
    ///
    /// Where the bytes are no tiled map of a kind that is known.
    pub fn decode(bytes: &[u8; BYTES]) -> Result<Self, String> {
        let word = |at: usize| {
            u32::from_le_bytes([
                bytes[4 * at],
                bytes[4 * at + 1],
                bytes[4 * at + 2],
                bytes[4 * at + 3],
            ])
        };
        let flags = word(2);
        let rank = (flags >> 4 & 7) as usize + 1;
        let kind = flags >> 7 & 15;
        if rank > 5 || flags >> 11 & 3 != 0 {
            return Err("not a tiled tensor map".to_owned());
        }
        if word(13) & 0x7fff != 0 {
            return Err("a tensor map with element strides".to_owned());
        }
        let boxes = [
            word(13) >> 24,
            word(14) & 255,
            word(14) >> 8 & 255,
            word(14) >> 16 & 255,
            word(14) >> 24,
        ];
        let map = Self {
            address: u64::from(word(0)) | u64::from(word(1)) << 32,
            kind,
            sizes: (0..rank).map(|at| u64::from(word(8 + at)) + 1).collect(),
            strides: (0..rank - 1)
                .map(|at| {
                    (u64::from(word(3 + at)) | u64::from(word(7) >> (4 * at) & 15) << 32) << 4
                })
                .collect(),
            box_sizes: boxes[..rank].iter().map(|size| size + 1).collect(),
            swizzle: flags >> 13 & 3,
            fills_nan: flags >> 15 & 1 == 1,
        };
        let sizes = map.box_sizes.iter().map(|size| u64::from(*size));
        let bytes = sizes.product::<u64>() * u64::from(map.element_bits()) / 8;
        if bytes > u64::from(MOST_SHARED) {
            return Err(format!(
                "a tensor map with a box of {bytes} bytes; a block has {MOST_SHARED} of shared memory"
            ));
        }
        Ok(map)
    }

    /// Writes the map, as cuTensorMapEncodeTiled would, after its checks.
    ///
    /// # Errors
    ///
    /// Where the driver would refuse: the sentence says why.
    pub fn encode(&self) -> Result<[u8; BYTES], String> {
        let rank = self.sizes.len();
        if !(1..=5).contains(&rank)
            || self.strides.len() != rank - 1
            || self.box_sizes.len() != rank
        {
            return Err(format!(
                "{rank} dimensions with {} strides and a box of {}",
                self.strides.len(),
                self.box_sizes.len()
            ));
        }
        if self.kind as usize >= ELEMENT_BITS.len() {
            return Err(format!("data type {}", self.kind));
        }
        let alignment = if self.is_apart() { 32 } else { 16 };
        if !self.address.is_multiple_of(alignment) {
            return Err(format!("a tensor that is not aligned to {alignment} bytes"));
        }
        if let Some(stride) = self
            .strides
            .iter()
            .find(|stride| !stride.is_multiple_of(alignment) || **stride >= 1 << 40)
        {
            return Err(format!(
                "a stride of {stride} bytes, which is no multiple of {alignment} below 2^40"
            ));
        }
        self.check_packed()?;
        if let Some(size) = self
            .sizes
            .iter()
            .find(|size| **size == 0 || **size > 1 << 32)
        {
            return Err(format!("a dimension of {size}"));
        }
        if let Some(size) = self
            .box_sizes
            .iter()
            .find(|size| **size == 0 || **size > 256)
        {
            return Err(format!("a box of {size} elements in one dimension"));
        }
        let row = self.packed_row_bytes();
        let widest = match self.swizzle {
            0 => u32::MAX,
            swizzle @ 1..=3 => 16 << swizzle,
            other => return Err(format!("swizzle {other}")),
        };
        let whole = (self.box_sizes[0] * self.element_bits()).is_multiple_of(128);
        if row > widest || !whole {
            return Err(format!(
                "a box of {row} bytes in the first dimension with swizzle {}",
                self.swizzle
            ));
        }
        let mut words = [0u32; 32];
        words[0] = self.address as u32;
        words[1] = (self.address >> 32) as u32;
        words[2] = (rank as u32 - 1) << 4
            | self.kind << 7
            | self.swizzle << 13
            | u32::from(self.fills_nan) << 15;
        for (at, stride) in self.strides.iter().enumerate() {
            words[3 + at] = (stride >> 4) as u32;
            words[7] |= ((stride >> 36) as u32 & 15) << (4 * at);
        }
        for (at, size) in self.sizes.iter().enumerate() {
            words[8 + at] = (size - 1) as u32;
        }
        words[13] = (self.box_sizes[0] - 1) << 24;
        for (at, size) in self.box_sizes.iter().skip(1).enumerate() {
            words[14] |= (size - 1) << (8 * at);
        }
        let mut bytes = [0; BYTES];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        Ok(bytes)
    }

    /// What is asked of elements below 8 bits alone.
    fn check_packed(&self) -> Result<(), String> {
        let (size, box_size) = (self.sizes[0], self.box_sizes[0]);
        let step = match self.kind {
            FOUR => 2,
            FOUR_APART | SIX_APART => 128,
            _ => return Ok(()),
        };
        if !size.is_multiple_of(step) {
            return Err(format!(
                "a first dimension of {size} elements, which is no multiple of {step}"
            ));
        }
        if self.fills_nan {
            return Err("NaN outside of a tensor of elements below 8 bits".to_owned());
        }
        if self.is_apart() && box_size != 128 {
            return Err(format!(
                "a box of {box_size} elements in the first dimension, which has to be of 128"
            ));
        }
        if self.is_apart() && !matches!(self.swizzle, 0 | 3) {
            return Err(format!(
                "swizzle {} of elements with gaps, which have none or that of 128 bytes",
                self.swizzle
            ));
        }
        Ok(())
    }

    /// The address of a byte of a box in shared memory: the pattern repeats in memory, not in the box.
    pub fn swizzled(&self, address: u32) -> u32 {
        match self.swizzle {
            1 => address ^ address >> 3 & 0x10,
            2 => address ^ address >> 3 & 0x30,
            3 => address ^ address >> 3 & 0x70,
            _ => address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            address: 0x7f12_3456_7890,
            kind: 10,
            sizes: vec![4096, 1 << 32, 7],
            strides: vec![8192, (1 << 39) + 16],
            box_sizes: vec![64, 128, 2],
            swizzle: 3,
            fills_nan: true,
        }
    }

    #[test]
    fn a_map_survives_its_bytes() {
        let bytes = map().encode().unwrap();
        assert_eq!(TensorMap::decode(&bytes).unwrap(), map());
    }

    #[test]
    fn what_the_driver_refuses_is_refused() {
        type Change = (fn(&mut TensorMap), &'static str);
        let wrong: [Change; 6] = [
            (|map| map.address += 8, "aligned"),
            (|map| map.strides[0] += 8, "stride"),
            (|map| map.box_sizes[1] = 257, "box"),
            (|map| map.box_sizes[0] = 128, "swizzle"),
            (|map| map.sizes[2] = 0, "dimension"),
            (|map| map.kind = 16, "type"),
        ];
        for (change, word) in wrong {
            let mut map = map();
            change(&mut map);
            assert!(map.encode().unwrap_err().contains(word), "{word}");
        }
        assert!(TensorMap::decode(&[0xff; BYTES]).is_err());
        // The driver takes a box that no block has room for; a copy cannot.
        let mut large = map();
        (large.box_sizes, large.swizzle) = (vec![256; 3], 0);
        let error = TensorMap::decode(&large.encode().unwrap()).unwrap_err();
        assert!(error.contains("a box of 33554432 bytes"), "{error}");
    }

    fn packed(kind: u32) -> TensorMap {
        TensorMap {
            address: 0x7f12_3456_7880,
            kind,
            sizes: vec![512, 300],
            strides: vec![384],
            box_sizes: vec![128, 8],
            swizzle: 3,
            fills_nan: false,
        }
    }

    #[test]
    fn elements_below_eight_bits_have_rules_of_their_own() {
        for kind in [FOUR, FOUR_APART, SIX_APART] {
            let bytes = packed(kind).encode().unwrap();
            assert_eq!(TensorMap::decode(&bytes).unwrap(), packed(kind));
        }
        type Change = (fn(&mut TensorMap), &'static str);
        let apart: [Change; 6] = [
            (|map| map.address += 16, "aligned to 32"),
            (|map| map.strides[0] += 16, "multiple of 32"),
            (|map| map.sizes[0] += 64, "multiple of 128"),
            (|map| map.box_sizes[0] = 64, "of 128"),
            (|map| map.swizzle = 2, "swizzle 2"),
            (|map| map.fills_nan = true, "NaN"),
        ];
        for kind in [FOUR_APART, SIX_APART] {
            for (change, words) in apart {
                let mut map = packed(kind);
                change(&mut map);
                let error = map.encode().unwrap_err();
                assert!(error.contains(words), "{words}: {error}");
            }
        }
        // Without gaps the driver asks for less: whole bytes in a row, and 16 of them in a box's.
        let mut map = packed(FOUR);
        (map.address, map.strides[0], map.sizes[0]) = (0x7f12_3456_7890, 400, 510);
        (map.box_sizes[0], map.swizzle) = (96, 2);
        map.encode().unwrap();
        let close: [Change; 4] = [
            (|map| map.sizes[0] = 511, "multiple of 2"),
            (|map| map.box_sizes[0] = 80, "40 bytes"),
            (|map| map.box_sizes[0] = 160, "80 bytes"),
            (|map| map.fills_nan = true, "NaN"),
        ];
        for (change, words) in close {
            let mut map = map.clone();
            change(&mut map);
            let error = map.encode().unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
