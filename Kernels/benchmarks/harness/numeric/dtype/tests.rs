//! Properties of encoding and decoding, over all codes and random values.

use super::*;
use proptest::prelude::*;

const SMALL: [DType; 8] = [
    DType::F16,
    DType::Bf16,
    DType::F8E4M3,
    DType::F8E8M0,
    DType::Mxfp8,
    DType::Nvfp4,
    DType::Mxfp4,
    DType::Fp8Ue8m0,
];

/// Every finite value of a small type, in ascending order of value.
fn finite_values(dtype: DType) -> Vec<f64> {
    let codes = 1u32 << (8 * dtype.size_bytes());
    let mut values: Vec<f64> = (0..codes)
        .map(|code| dtype.decode_one(&code.to_le_bytes()))
        .filter(|value| value.is_finite())
        .collect();
    values.sort_by(f64::total_cmp);
    values
}

fn code(dtype: DType, value: f64) -> u32 {
    let mut bytes = [0; 8];
    dtype.encode_one(value, &mut bytes);
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

#[test]
fn names_round_trip() {
    for (dtype, name, aliases) in NAMES {
        assert_eq!(dtype.to_string(), name);
        assert_eq!(name.parse(), Ok(dtype));
        assert_eq!(
            serde_json::to_string(&dtype).unwrap(),
            format!("\"{name}\"")
        );
        for alias in aliases {
            assert_eq!(alias.parse(), Ok(dtype));
        }
    }
    assert!("float"
        .parse::<DType>()
        .unwrap_err()
        .to_string()
        .contains("'float'"));
}

#[test]
fn every_code_round_trips() {
    for dtype in SMALL {
        for code in 0..1u32 << (8 * dtype.size_bytes()) {
            let value = dtype.decode_one(&code.to_le_bytes());
            let mut back = [0; 4];
            dtype.encode_one(value, &mut back);
            if value.is_nan() {
                assert!(dtype.decode_one(&back).is_nan(), "{dtype} {code:#x}");
            } else {
                assert_eq!(u32::from_le_bytes(back), code, "{dtype}");
            }
        }
    }
}

#[test]
fn ties_go_to_the_even_code() {
    for dtype in SMALL {
        for pair in finite_values(dtype)
            .windows(2)
            .filter(|pair| pair[0] < pair[1])
        {
            let middle = (pair[0] + pair[1]) / 2.0;
            assert_eq!(
                code(dtype, middle) % 2,
                0,
                "{dtype} between {} and {}",
                pair[0],
                pair[1]
            );
            let rounded = dtype.round(middle);
            assert!(
                rounded == pair[0] || rounded == pair[1],
                "{dtype}: {middle} -> {rounded}"
            );
        }
    }
}

#[test]
fn limits_are_the_documented_ones() {
    assert_eq!(DType::F16.max_finite(), 65504.0);
    assert_eq!(DType::Bf16.max_finite(), f64::from(half::bf16::MAX));
    assert_eq!(DType::F8E4M3.max_finite(), 448.0);
    assert_eq!(DType::F8E8M0.max_finite(), 2f64.powi(127));
    assert_eq!(DType::F16.round(65520.0), f64::INFINITY);
    assert_eq!(DType::F16.round(65519.9), 65504.0);
    assert_eq!(DType::F8E4M3.round(1e9), 448.0);
    assert_eq!(DType::F8E4M3.round(f64::NEG_INFINITY), -448.0);
    assert_eq!(DType::F8E4M3.round(0.0), 0.0);
    assert_eq!(DType::F8E8M0.round(0.0), 2f64.powi(-127));
    assert_eq!(DType::F8E8M0.round(f64::INFINITY), 2f64.powi(127));
    assert!(DType::F8E8M0.round(-1.0).is_nan());
    assert_eq!(DType::I32.round(2.5), 2.0);
    assert_eq!(DType::Nvfp4.round(300.0), DType::Nvfp4.max_finite());
    assert_eq!(DType::Nvfp4.round(-1.0), 0.0);
    assert_eq!(DType::I32.round(1e12), DType::I32.max_finite());
}

/// The poison byte 0xFF must read as NaN in every float type.
#[test]
fn all_ones_is_nan() {
    for (dtype, ..) in NAMES.iter().filter(|(dtype, ..)| dtype.is_float()) {
        assert!(dtype.decode_one(&[0xFF; 8]).is_nan(), "{dtype}");
    }
}

#[test]
fn f16_and_bf16_agree_with_the_half_crate() {
    for code in 0..=u16::MAX {
        let (f16, bf16) = (half::f16::from_bits(code), half::bf16::from_bits(code));
        if !f16.is_nan() {
            assert_eq!(DType::F16.decode_one(&code.to_le_bytes()), f16.to_f64());
        }
        if !bf16.is_nan() {
            assert_eq!(DType::Bf16.decode_one(&code.to_le_bytes()), bf16.to_f64());
        }
    }
}

proptest! {
    #[test]
    fn f32_values_round_as_the_half_crate_rounds(bits in any::<u32>()) {
        let value = f32::from_bits(bits);
        prop_assume!(!value.is_nan());
        let bf16 = u32::from(half::bf16::from_f32(value).to_bits());
        let f16 = u32::from(half::f16::from_f32(value).to_bits());
        prop_assert_eq!(code(DType::Bf16, value.into()), bf16);
        prop_assert_eq!(code(DType::F16, value.into()), f16);
    }

    #[test]
    fn rounding_is_to_nearest(value in -500.0f64..500.0) {
        let rounded = DType::F8E4M3.round(value);
        let best = finite_values(DType::F8E4M3)
            .into_iter()
            .map(|candidate| (candidate - value).abs())
            .fold(f64::INFINITY, f64::min);
        prop_assert_eq!((rounded - value).abs(), best);
    }

    #[test]
    fn rounding_is_monotone(a in any::<f64>(), b in any::<f64>()) {
        prop_assume!(!a.is_nan() && !b.is_nan());
        let (low, high) = (a.min(b), a.max(b));
        for dtype in [DType::F32, DType::F16, DType::Bf16, DType::F8E4M3, DType::I32, DType::I64] {
            prop_assert!(dtype.round(low) <= dtype.round(high), "{} {} {}", dtype, low, high);
        }
    }

    #[test]
    fn relative_error_is_within_the_unit_roundoff(value in 0.1f64..400.0) {
        for dtype in [DType::F32, DType::F16, DType::Bf16, DType::F8E4M3, DType::F8E8M0] {
            let error = (dtype.round(value) - value).abs();
            prop_assert!(error <= dtype.unit_roundoff() * value, "{} {}", dtype, value);
        }
    }
}
