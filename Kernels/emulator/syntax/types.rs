//! Fundamental and packed types, and state spaces.

/// A type as instructions and declarations name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    Bf16,
    F32,
    F64,
    Tf32,
    E4m3,
    E5m2,
    E3m2,
    E2m3,
    E2m1,
    Ue8m0,
    Pred,
    F16x2,
    Bf16x2,
    F32x2,
    U16x2,
    S16x2,
    E4m3x2,
    E5m2x2,
    E3m2x2,
    E2m3x2,
    E2m1x2,
    Ue8m0x2,
}

impl Type {
    /// The type of a name without its dot.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "b8" => Self::B8,
            "b16" => Self::B16,
            "b32" => Self::B32,
            "b64" => Self::B64,
            "b128" => Self::B128,
            "u8" => Self::U8,
            "u16" => Self::U16,
            "u32" => Self::U32,
            "u64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "tf32" => Self::Tf32,
            "e4m3" => Self::E4m3,
            "e5m2" => Self::E5m2,
            "e3m2" => Self::E3m2,
            "e2m3" => Self::E2m3,
            "e2m1" => Self::E2m1,
            "ue8m0" => Self::Ue8m0,
            "pred" => Self::Pred,
            "f16x2" => Self::F16x2,
            "bf16x2" => Self::Bf16x2,
            "f32x2" => Self::F32x2,
            "u16x2" => Self::U16x2,
            "s16x2" => Self::S16x2,
            "e4m3x2" => Self::E4m3x2,
            "e5m2x2" => Self::E5m2x2,
            "e3m2x2" => Self::E3m2x2,
            "e2m3x2" => Self::E2m3x2,
            "e2m1x2" => Self::E2m1x2,
            "ue8m0x2" => Self::Ue8m0x2,
            _ => return None,
        })
    }

    /// Bits in a register or in memory; 1 for a predicate.
    pub fn bits(self) -> u32 {
        match self {
            Self::Pred => 1,
            Self::B8 | Self::U8 | Self::S8 | Self::E4m3 | Self::E5m2 | Self::Ue8m0 => 8,
            Self::E3m2 | Self::E2m3 => 6,
            Self::E2m1 => 4,
            Self::E2m1x2 => 8,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 16,
            Self::E4m3x2 | Self::E5m2x2 | Self::E3m2x2 | Self::E2m3x2 | Self::Ue8m0x2 => 16,
            Self::B32 | Self::U32 | Self::S32 | Self::F32 | Self::Tf32 => 32,
            Self::F16x2 | Self::Bf16x2 | Self::U16x2 | Self::S16x2 => 32,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 | Self::F32x2 => 64,
            Self::B128 => 128,
        }
    }

    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }
}

/// Where a variable lies. Generic addresses name none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    Global,
    Constant,
    Shared,
    Local,
    Parameter,
}
