//! The 128 bytes of a CUtensorMap: fields where the driver and `tensormap.replace` put them.

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

/// Bytes of an element: u8 u16 u32 s32 u64 s64 f16 f32 f32.ftz f64 bf16 tf32 tf32.ftz.
const ELEMENT_BYTES: [u32; 13] = [1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4];

pub const BYTES: usize = 128;

impl TensorMap {
    pub fn element_bytes(&self) -> u32 {
        ELEMENT_BYTES[self.kind as usize]
    }

    pub fn box_bytes(&self) -> u32 {
        self.box_sizes.iter().product::<u32>() * self.element_bytes()
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
        if rank > 5 || kind as usize >= ELEMENT_BYTES.len() || flags >> 11 & 3 != 0 {
            return Err("not a tiled tensor map of a known type".to_owned());
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
        Ok(Self {
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
        })
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
        if self.kind as usize >= ELEMENT_BYTES.len() {
            return Err(format!("data type {}", self.kind));
        }
        if !self.address.is_multiple_of(16) {
            return Err("a tensor that is not aligned to 16 bytes".to_owned());
        }
        if let Some(stride) = self
            .strides
            .iter()
            .find(|stride| **stride % 16 != 0 || **stride >= 1 << 40)
        {
            return Err(format!(
                "a stride of {stride} bytes, which is no multiple of 16 below 2^40"
            ));
        }
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
        let row = self.box_sizes[0] * self.element_bytes();
        let widest = match self.swizzle {
            0 => u32::MAX,
            swizzle @ 1..=3 => 16 << swizzle,
            other => return Err(format!("swizzle {other}")),
        };
        if row > widest || !row.is_multiple_of(16) {
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
            (|map| map.kind = 13, "type"),
        ];
        for (change, word) in wrong {
            let mut map = map();
            change(&mut map);
            assert!(map.encode().unwrap_err().contains(word), "{word}");
        }
        assert!(TensorMap::decode(&[0xff; BYTES]).is_err());
    }
}
