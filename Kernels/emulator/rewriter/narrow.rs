//! Conversions to and from elements of fewer than 8 bits, and scales that are powers of two, in whole numbers.

use machine::Narrow;
use syntax::{Operand, Type};

use crate::code::Code;

type Result<T> = std::result::Result<T, String>;

/// A sign, an exponent and a fraction; neither infinities nor NaN.
#[derive(Clone, Copy)]
struct Format {
    fraction: u32,
    bias: i32,
    largest: f32,
    /// All bits but the sign, which is the pattern of the largest value.
    ones: u32,
    /// From the first element to the second.
    step: u32,
}

fn format(ty: Type) -> Option<Format> {
    let (exponent, fraction, largest, step) = match ty {
        Type::E2m1x2 => (2u32, 1, 6.0, 4),
        Type::E2m3x2 => (2, 3, 7.5, 8),
        Type::E3m2x2 => (3, 2, 28.0, 8),
        _ => return None,
    };
    Some(Format {
        fraction,
        bias: (1 << (exponent - 1)) - 1,
        largest,
        ones: (1 << (exponent + fraction)) - 1,
        step,
    })
}

fn single(value: f32) -> String {
    format!("0f{:08x}", value.to_bits())
}

pub fn narrow(code: &mut Code, conversion: Narrow, operands: &[Operand]) -> Result<()> {
    let Narrow { to, from, relu, up } = conversion;
    let target = code.name(&operands[0])?;
    match (format(to), format(from), operands) {
        (Some(format), None, [_, high, low]) if from == Type::F32 => {
            let part = |code: &mut Code, operand: &_| encode(code, format, relu, operand);
            let word = pair(code, [high, low], format.step, part)?;
            let bits = if to == Type::E2m1x2 { 8 } else { 16 };
            code.line(format!("cvt.u{bits}.u32 {target}, {word};"));
        }
        (None, None, [_, high, low]) if to == Type::Ue8m0x2 && from == Type::F32 => {
            let part = |code: &mut Code, operand: &_| exponent(code, up, operand);
            let word = pair(code, [high, low], 8, part)?;
            code.line(format!("cvt.u16.u32 {target}, {word};"));
        }
        (None, Some(format), [_, source]) if to == Type::F16x2 => {
            let word = elements(code, from, source)?;
            let [high, low] =
                [format.step, 0].map(|shift| decode(code, format, relu, &word, shift));
            code.line(format!("cvt.rn.f16x2.f32 {target}, {high}, {low};"));
        }
        (None, None, [_, source]) if to == Type::Bf16x2 && from == Type::Ue8m0x2 => {
            let word = elements(code, from, source)?;
            let [high, low] = [8, 0].map(|shift| power_of_two(code, &word, shift));
            code.line(format!("shl.b32 {high}, {high}, 16;"));
            code.line(format!("or.b32 {target}, {high}, {low};"));
        }
        _ => return Err("a conversion that is not rewritten".to_owned()),
    }
    Ok(())
}

/// Two elements in a word.
fn elements(code: &mut Code, from: Type, source: &Operand) -> Result<String> {
    let name = code.name(source)?;
    let word = code.register("b32");
    let bits = if from == Type::E2m1x2 { 8 } else { 16 };
    code.line(format!("cvt.u32.u{bits} {word}, {name};"));
    Ok(word)
}

/// The pattern of a single, to nearest and even, the largest one beyond it and for NaN.
fn encode(code: &mut Code, format: Format, relu: bool, operand: &Operand) -> Result<String> {
    let Format { fraction, bias, .. } = format;
    let value = code.name(operand)?;
    let [small, is_nan, negative] = ["pred"; 3].map(|ty| code.register(ty));
    let [magnitude, units] = ["f32"; 2].map(|ty| code.register(ty));
    let [bits, odd, few] = ["b32"; 3].map(|ty| code.register(ty));
    let shift = 23 - fraction;
    let least = 2f32.powi(1 - bias);
    let unit = 2f32.powi(1 - bias - fraction as i32);
    code.line(format!("setp.nan.f32 {is_nan}, {value}, {value};"));
    code.line(format!("mov.b32 {odd}, {value};"));
    code.line(format!("setp.lt.s32 {negative}, {odd}, 0;"));
    code.line(format!("abs.f32 {magnitude}, {value};"));
    code.line(format!(
        "min.f32 {magnitude}, {magnitude}, {};",
        single(format.largest)
    ));
    code.line(format!(
        "setp.lt.f32 {small}, {magnitude}, {};",
        single(least)
    ));
    code.line(format!(
        "mul.rn.f32 {units}, {magnitude}, {};",
        single(1.0 / unit)
    ));
    code.line(format!("cvt.rni.u32.f32 {few}, {units};"));
    code.line(format!("mov.b32 {bits}, {magnitude};"));
    code.line(format!("bfe.u32 {odd}, {bits}, {shift}, 1;"));
    code.line(format!("add.u32 {bits}, {bits}, {odd};"));
    code.line(format!(
        "add.u32 {bits}, {bits}, {};",
        (1 << (shift - 1)) - 1
    ));
    code.line(format!("shr.u32 {bits}, {bits}, {shift};"));
    code.line(format!(
        "sub.u32 {bits}, {bits}, {};",
        (127 - bias) << fraction
    ));
    code.line(format!("selp.b32 {bits}, {few}, {bits}, {small};"));
    let (sign, ones) = (format.ones + 1, format.ones);
    code.line(format!("@{negative} or.b32 {bits}, {bits}, {sign};"));
    if relu {
        // A zero keeps its sign.
        code.line(format!("setp.lt.f32 {negative}, {value}, 0f00000000;"));
        code.line(format!("selp.b32 {bits}, 0, {bits}, {negative};"));
    }
    code.line(format!("selp.b32 {bits}, {ones}, {bits}, {is_nan};"));
    Ok(bits)
}

/// The single that an element stands for.
fn decode(code: &mut Code, format: Format, relu: bool, word: &str, shift: u32) -> String {
    let [bits, sign] = ["b32"; 2].map(|ty| code.register(ty));
    let value = code.register("f32");
    let wide = format.ones.count_ones();
    code.line(format!("bfe.u32 {bits}, {word}, {shift}, {wide};"));
    code.line(format!("shl.b32 {bits}, {bits}, {};", 23 - format.fraction));
    code.line(format!("mov.b32 {value}, {bits};"));
    // Its exponent has another bias: what is too small for it is a subnormal single until then.
    let power = single(2f32.powi(127 - format.bias));
    code.line(format!("mul.rn.f32 {value}, {value}, {power};"));
    code.line(format!("bfe.u32 {sign}, {word}, {}, 1;", shift + wide));
    code.line(format!("shl.b32 {sign}, {sign}, 31;"));
    code.line(format!("mov.b32 {bits}, {value};"));
    code.line(format!("or.b32 {bits}, {bits}, {sign};"));
    code.line(format!("mov.b32 {value}, {bits};"));
    if relu {
        let negative = code.register("pred");
        code.line(format!("setp.lt.f32 {negative}, {value}, 0f00000000;"));
        code.line(format!(
            "selp.f32 {value}, 0f00000000, {value}, {negative};"
        ));
    }
    value
}

/// The exponent of a single's magnitude, as a scale.
fn exponent(code: &mut Code, up: bool, operand: &Operand) -> Result<String> {
    let value = code.name(operand)?;
    let [is_nan, more] = ["pred"; 2].map(|ty| code.register(ty));
    let [bits, rest, few] = ["b32"; 3].map(|ty| code.register(ty));
    code.line(format!("setp.nan.f32 {is_nan}, {value}, {value};"));
    code.line(format!("mov.b32 {bits}, {value};"));
    code.line(format!("and.b32 {rest}, {bits}, 0x7fffff;"));
    code.line(format!("bfe.u32 {bits}, {bits}, 23, 8;"));
    if up {
        // Half of the smallest normal number is the value of exponent 0.
        code.line(format!("setp.eq.u32 {more}, {bits}, 0;"));
        code.line(format!("selp.u32 {few}, 0x400000, 0, {more};"));
        code.line(format!("setp.gt.u32 {more}, {rest}, {few};"));
        code.line(format!("@{more} add.u32 {bits}, {bits}, 1;"));
    }
    code.line(format!("min.u32 {bits}, {bits}, 0xfe;"));
    code.line(format!("selp.b32 {bits}, 0xff, {bits}, {is_nan};"));
    Ok(bits)
}

/// Two elements, the first operand's above the other's.
fn pair(
    code: &mut Code,
    operands: [&Operand; 2],
    step: u32,
    part: impl Fn(&mut Code, &Operand) -> Result<String>,
) -> Result<String> {
    let [high, low] = operands.map(|operand| part(code, operand));
    let (high, low) = (high?, low?);
    code.line(format!("shl.b32 {high}, {high}, {step};"));
    code.line(format!("or.b32 {low}, {low}, {high};"));
    Ok(low)
}

/// The pattern in bf16 of a scale.
fn power_of_two(code: &mut Code, word: &str, shift: u32) -> String {
    let end = code.register("pred");
    let [bits, exponent] = ["b32"; 2].map(|ty| code.register(ty));
    code.line(format!("bfe.u32 {exponent}, {word}, {shift}, 8;"));
    code.line(format!("shl.b32 {bits}, {exponent}, 7;"));
    code.line(format!("setp.eq.u32 {end}, {exponent}, 0;"));
    code.line(format!("selp.b32 {bits}, 0x40, {bits}, {end};"));
    code.line(format!("setp.eq.u32 {end}, {exponent}, 255;"));
    code.line(format!("selp.b32 {bits}, 0x7fff, {bits}, {end};"));
    bits
}
