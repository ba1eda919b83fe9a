//! FP4 e2m1: codes of 4 bits, the sign in the highest.

/// The magnitude of each code without its sign.
pub const VALUES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// To nearest, ties to the even code; saturates. A NaN, for which there is no code, becomes +6.
pub fn encode(value: f32) -> u8 {
    if value.is_nan() {
        return 7;
    }
    let magnitude = value.abs();
    let code = u8::from(magnitude > 0.25)
        + u8::from(magnitude >= 0.75)
        + u8::from(magnitude > 1.25)
        + u8::from(magnitude >= 1.75)
        + u8::from(magnitude > 2.5)
        + u8::from(magnitude >= 3.5)
        + u8::from(magnitude > 5.0);
    code | u8::from(value.is_sign_negative()) << 3
}

/// Of the low 4 bits.
pub fn decode(code: u8) -> f32 {
    let magnitude = VALUES[usize::from(code & 7)];
    if code & 8 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// Two codes as one byte, the first in the low bits.
pub fn encode_pair(first: f32, second: f32) -> u8 {
    encode(first) | encode(second) << 4
}

pub fn decode_pair(pair: u8) -> [f32; 2] {
    [decode(pair), decode(pair >> 4)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back() {
        for pair in 0..=u8::MAX {
            let [first, second] = decode_pair(pair);
            assert_eq!(encode_pair(first, second), pair, "{pair:#x}");
        }
    }

    #[test]
    fn between_two_codes_the_nearest_wins_and_ties_go_to_even() {
        for code in 0..7 {
            let middle = (decode(code) + decode(code + 1)) / 2.0;
            let even = code + code % 2;
            assert_eq!(encode(middle), even, "{middle}");
            assert_eq!(encode(-middle), even | 8);
            assert_eq!(encode(f32::from_bits(middle.to_bits() - 1)), code);
            assert_eq!(encode(f32::from_bits(middle.to_bits() + 1)), code + 1);
        }
    }

    #[test]
    fn what_is_too_large_saturates_and_small_keeps_its_sign() {
        for value in [6.1, 1e30, f32::INFINITY] {
            assert_eq!((encode(value), encode(-value)), (7, 15));
        }
        assert_eq!((encode(f32::NAN), encode(-f32::NAN)), (7, 7));
        assert_eq!((encode(-0.0), encode(-1e-40), encode(1e-40)), (8, 8, 0));
    }
}
