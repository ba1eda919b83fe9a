//! Matrix descriptors: where an element of an operand lies in shared memory.

/// How eight rows are interleaved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swizzle {
    None,
    B32,
    B64,
    B128,
    /// 128 bytes in atoms of 32.
    B128Atom32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub start: u32,
    pub leading: u32,
    pub stride: u32,
    pub swizzle: Swizzle,
}

impl Descriptor {
    fn fields(bits: u64, swizzle: Swizzle) -> Self {
        let field = |shift: u32| ((bits >> shift) as u32 & 0x3fff) << 4;
        Self {
            start: field(0),
            leading: field(16),
            stride: field(32),
            swizzle,
        }
    }

    /// A descriptor of wgmma.
    pub fn hopper(bits: u64) -> Result<Self, String> {
        let base = bits >> 49 & 7;
        if base != 0 {
            return Err(format!("a matrix descriptor with base offset {base}"));
        }
        let swizzle =
            [Swizzle::None, Swizzle::B128, Swizzle::B64, Swizzle::B32][(bits >> 62) as usize];
        Ok(Self::fields(bits, swizzle))
    }

    /// A descriptor of tcgen05.
    pub fn blackwell(bits: u64) -> Result<Self, String> {
        let swizzle = match bits >> 61 {
            0 => Swizzle::None,
            1 => Swizzle::B128Atom32,
            2 => Swizzle::B128,
            4 => Swizzle::B64,
            6 => Swizzle::B32,
            other => return Err(format!("a matrix descriptor with layout {other}")),
        };
        if bits >> 49 & 7 != 0 || bits >> 52 & 1 != 0 {
            return Err(
                "a matrix descriptor with a base offset or absolute leading offset".to_owned(),
            );
        }
        if bits >> 46 & 3 != 1 {
            return Err(format!("a matrix descriptor of version {}", bits >> 46 & 3));
        }
        Ok(Self::fields(bits, swizzle))
    }

    fn span(&self) -> u32 {
        match self.swizzle {
            Swizzle::None => 16,
            Swizzle::B32 => 32,
            Swizzle::B64 => 64,
            Swizzle::B128 | Swizzle::B128Atom32 => 128,
        }
    }

    fn swizzled(&self, address: u32) -> u32 {
        let address = match self.swizzle {
            Swizzle::None => address,
            Swizzle::B32 => address ^ address >> 3 & 0x10,
            Swizzle::B64 => address ^ address >> 3 & 0x30,
            Swizzle::B128 => address ^ address >> 3 & 0x70,
            Swizzle::B128Atom32 => address ^ (address >> 7 & 3) << 5,
        };
        address & 0x3_ffff
    }

    /// Depth is contiguous: the address of a byte along it in a row.
    pub fn along_depth(&self, row: u32, byte: u32) -> u32 {
        let span = self.span();
        let rows = self.start + row / 8 * self.stride + row % 8 * span;
        self.swizzled(rows + byte / span * self.leading + byte % span)
    }

    /// Rows are contiguous: the address of a byte along them at a depth.
    pub fn along_rows(&self, byte: u32, depth: u32) -> u32 {
        let span = self.span();
        if self.swizzle == Swizzle::None {
            return (self.start
                + byte / 16 * self.stride
                + byte % 16
                + depth % 8 * 16
                + depth / 8 * self.leading)
                & 0x3_ffff;
        }
        let deep = if self.swizzle == Swizzle::B128Atom32 {
            4
        } else {
            8
        };
        self.swizzled(
            self.start
                + byte / span * self.leading
                + byte % span
                + depth % deep * span
                + depth / deep * self.stride,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_128_bytes_is_swizzled_by_its_number() {
        let bits = 0x1000u64 >> 4 | (1024 >> 4) << 32 | 1 << 62;
        let descriptor = Descriptor::hopper(bits).unwrap();
        assert_eq!(descriptor.along_depth(0, 0), 0x1000);
        assert_eq!(descriptor.along_depth(1, 0), 0x1000 + 128 + 16);
        assert_eq!(descriptor.along_depth(7, 16), 0x1000 + 7 * 128 + 6 * 16);
        assert_eq!(descriptor.along_depth(8, 32), 0x1000 + 1024 + 32);
        assert!(Descriptor::hopper(bits | 1 << 49).is_err());
        assert!(Descriptor::blackwell(bits).is_err());
    }

    #[test]
    fn without_a_swizzle_cores_lie_apart() {
        let bits = 0x800u64 >> 4 | (256 >> 4) << 16 | (128 >> 4) << 32;
        let descriptor = Descriptor::hopper(bits).unwrap();
        assert_eq!(descriptor.along_depth(9, 17), 0x800 + 128 + 16 + 256 + 1);
    }
}
