//! Types of operands: their codes, their scales, and the devices that multiply them.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Bf16,
    F16,
    /// e4m3 with fp32 scales and a bf16 result.
    Fp8,
    /// e4m3 with a UE8M0 scale per 32 of k and a bf16 result.
    Mxfp8,
    /// e2m1 in pairs with a UE4M3 scale per 16 of k and a bf16 result.
    Nvfp4,
}

/// `cublasLtMatmulMatrixScale_t` of each operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScaleModes {
    pub a: i32,
    pub b: i32,
}

impl Type {
    /// As `cudaDataType`.
    pub(crate) fn operand(self) -> i32 {
        match self {
            Type::Bf16 => 14,
            Type::F16 => 2,
            Type::Fp8 | Type::Mxfp8 => 28,
            Type::Nvfp4 => 33,
        }
    }

    pub(crate) fn out(self) -> i32 {
        match self {
            Type::Fp8 | Type::Mxfp8 | Type::Nvfp4 => Type::Bf16.operand(),
            same => same.operand(),
        }
    }

    pub(crate) fn scale_modes(self) -> Option<ScaleModes> {
        const VECTOR_16_UE4M3: i32 = 1;
        const VECTOR_32_UE8M0: i32 = 2;
        const VECTOR_128_F32: i32 = 4;
        const BLOCK_128_F32: i32 = 5;
        let (a, b) = match self {
            Type::Bf16 | Type::F16 => return None,
            Type::Fp8 => (VECTOR_128_F32, BLOCK_128_F32),
            Type::Mxfp8 => (VECTOR_32_UE8M0, VECTOR_32_UE8M0),
            Type::Nvfp4 => (VECTOR_16_UE4M3, VECTOR_16_UE4M3),
        };
        Some(ScaleModes { a, b })
    }

    /// Why a device does not multiply them, if it does not.
    pub fn obstacle(self, compute_capability: Option<(u32, u32)>) -> Option<&'static str> {
        let major = compute_capability.map_or(0, |(major, _)| major);
        match self {
            Type::Bf16 | Type::F16 => None,
            Type::Fp8 => (major != 9).then_some("fp32 block scales are supported only on Hopper"),
            Type::Mxfp8 | Type::Nvfp4 => {
                (major < 10).then_some("scales of MXFP8 and NVFP4 are supported from sm_100 on")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_belong_to_a_generation() {
        let refuses =
            |dtype: Type| [8, 9, 10, 12].map(|major| dtype.obstacle(Some((major, 0))).is_some());
        assert_eq!(refuses(Type::Bf16), [false; 4]);
        assert_eq!(refuses(Type::Fp8), [true, false, true, true]);
        assert_eq!(refuses(Type::Mxfp8), [true, true, false, false]);
        assert_eq!(refuses(Type::Nvfp4), [true, true, false, false]);
        assert!(Type::Nvfp4.obstacle(None).is_some());
    }

    #[test]
    fn whoever_has_scales_writes_bf16() {
        for dtype in [Type::Bf16, Type::F16, Type::Fp8, Type::Mxfp8, Type::Nvfp4] {
            let scaled = dtype.scale_modes().is_some();
            let out = if scaled { Type::Bf16 } else { dtype };
            assert_eq!(dtype.out(), out.operand());
        }
        assert_eq!(Type::Nvfp4.scale_modes(), Some(ScaleModes { a: 1, b: 1 }));
        assert_eq!(Type::Mxfp8.scale_modes(), Some(ScaleModes { a: 2, b: 2 }));
    }
}
