//! Numbers as PTX writes them.

use crate::Type;

/// A decimal, hexadecimal, octal or binary integer, with an optional U.
pub fn integer(word: &str) -> Option<u64> {
    let word = word.strip_suffix('U').unwrap_or(word);
    let lower = word.get(..2).unwrap_or_default();
    match lower {
        "0x" | "0X" => u64::from_str_radix(&word[2..], 16).ok(),
        "0b" | "0B" => u64::from_str_radix(&word[2..], 2).ok(),
        _ if word.len() > 1 && word.starts_with('0') => u64::from_str_radix(&word[1..], 8).ok(),
        _ => word.parse().ok(),
    }
}

/// The bits of a float written as them: `letter` and so many hexadecimal digits.
pub fn float_bits(word: &str, letter: char, digits: usize) -> Option<u64> {
    let rest = word.strip_prefix('0')?;
    let rest = rest.strip_prefix([letter, letter.to_ascii_uppercase()])?;
    (rest.len() == digits).then(|| u64::from_str_radix(rest, 16).ok())?
}

/// The bits of a literal in memory of a type.
pub fn literal_bits(word: &str, ty: Type) -> Option<u64> {
    if let Some(bits) = float_bits(word, 'f', 8) {
        return match ty {
            Type::F64 => Some(f64::from(f32::from_bits(bits as u32)).to_bits()),
            _ => Some(bits),
        };
    }
    if let Some(bits) = float_bits(word, 'd', 16) {
        return match ty {
            Type::F32 => Some(u64::from((f64::from_bits(bits) as f32).to_bits())),
            _ => Some(bits),
        };
    }
    match ty {
        Type::F32 if word.contains('.') => word.parse::<f32>().ok().map(|v| u64::from(v.to_bits())),
        Type::F64 if word.contains('.') => word.parse::<f64>().ok().map(f64::to_bits),
        _ => integer(word),
    }
}
