//! Arithmetic and accesses that Hopper has in smaller pieces only.

use syntax::Operand;

use crate::code::Code;

type Result<T> = std::result::Result<T, String>;

pub fn named<const N: usize>(code: &Code, operands: &[Operand]) -> Result<[String; N]> {
    let names = operands
        .iter()
        .map(|operand| code.name(operand))
        .collect::<Result<Vec<_>>>()?;
    names
        .try_into()
        .map_err(|_| "another number of operands".to_owned())
}

pub fn packed(code: &mut Code, opcode: &str, operands: &[Operand]) -> Result<()> {
    let single = opcode.replace("f32x2", "f32");
    let mut halves = [Vec::new(), Vec::new()];
    for operand in &operands[1..] {
        let whole = code.wide(operand)?;
        let parts = [code.register("f32"), code.register("f32")];
        code.line(format!("mov.b64 {{{}, {}}}, {whole};", parts[0], parts[1]));
        for (half, part) in halves.iter_mut().zip(parts) {
            half.push(part);
        }
    }
    let results = [code.register("f32"), code.register("f32")];
    for (result, half) in results.iter().zip(&halves) {
        code.line(format!("{single} {result}, {};", half.join(", ")));
    }
    let target = code.name(&operands[0])?;
    code.line(format!(
        "mov.b64 {target}, {{{}, {}}};",
        results[0], results[1]
    ));
    Ok(())
}

// Halves before the last operand become singles.
pub fn mixed(code: &mut Code, opcode: &str, operands: &[Operand]) -> Result<()> {
    let Some((single, narrow)) = opcode.rsplit_once('.') else {
        return Err("no type".to_owned());
    };
    let Some((last, inner)) = operands[1..].split_last() else {
        return Err("another number of operands".to_owned());
    };
    let mut sources = Vec::new();
    for operand in inner {
        let (name, source) = (code.name(operand)?, code.register("f32"));
        code.line(format!("cvt.f32.{narrow} {source}, {name};"));
        sources.push(source);
    }
    sources.push(code.name(last)?);
    let target = code.name(&operands[0])?;
    code.line(format!("{single} {target}, {};", sources.join(", ")));
    Ok(())
}

// Through integers of the same order; NaN is the end that never wins, or the one that always does.
pub fn redux(
    code: &mut Code,
    operands: &[Operand],
    largest: bool,
    absolute: bool,
    nan: bool,
) -> Result<()> {
    let [target, source, members] = named(code, operands)?;
    let [key, sign] = ["b32"; 2].map(|ty| code.register(ty));
    let (value, is_nan) = (code.register("f32"), code.register("pred"));
    let end = if largest == nan {
        "0x7fffffff"
    } else {
        "0x80000000"
    };
    code.line(format!("mov.b32 {key}, {source};"));
    if absolute {
        code.line(format!("and.b32 {key}, {key}, 0x7fffffff;"));
    }
    code.line(format!("mov.b32 {value}, {key};"));
    code.line(format!("setp.nan.f32 {is_nan}, {value}, {value};"));
    let turn = |code: &mut Code| {
        code.line(format!("shr.s32 {sign}, {key}, 31;"));
        code.line(format!("and.b32 {sign}, {sign}, 0x7fffffff;"));
        code.line(format!("xor.b32 {key}, {key}, {sign};"));
    };
    turn(code);
    code.line(format!("selp.b32 {key}, {end}, {key}, {is_nan};"));
    let order = if largest { "max" } else { "min" };
    code.line(format!("redux.sync.{order}.s32 {key}, {key}, {members};"));
    code.line(format!("setp.eq.u32 {is_nan}, {key}, {end};"));
    turn(code);
    code.line(format!("selp.b32 {key}, 0x7fffffff, {key}, {is_nan};"));
    code.line(format!("mov.b32 {target}, {key};"));
    Ok(())
}

// Two accesses of 128 bits.
pub fn wide(code: &mut Code, opcode: &str, operands: &[Operand]) -> Result<()> {
    let loads = opcode.starts_with("ld");
    let (list, address) = if loads { (0, 1) } else { (1, 0) };
    let (Operand::Vector(parts), Operand::Address { base, offset, more }) =
        (&operands[list], &operands[address])
    else {
        return Err("operands of another kind".to_owned());
    };
    if !more.is_empty() || operands.len() != 2 {
        return Err("operands of another kind".to_owned());
    }
    let narrow = if opcode.contains(".v8") {
        opcode.replace(".v8", ".v4")
    } else {
        opcode.replace(".v4", ".v2")
    };
    let base = code.name(base)?;
    let ty = opcode.rsplit('.').next().unwrap_or_default();
    let mut copies = Vec::new();
    for (number, half) in parts.chunks(parts.len() / 2).enumerate() {
        let names = half
            .iter()
            .map(|part| match part {
                // Half of them may be sinks alone, which ptxas does not take.
                Operand::Sink => Ok(code.register(ty)),
                part => code.name(part),
            })
            .collect::<Result<Vec<_>>>()?;
        copies.push((
            format!("{{{}}}", names.join(", ")),
            offset + 16 * number as i64,
        ));
    }
    // The base may be among the registers that a load writes.
    let at = code.register("b64");
    code.line(format!("mov.b64 {at}, {base};"));
    for (names, offset) in copies {
        if loads {
            code.line(format!("{narrow} {names}, [{at}+{offset}];"));
        } else {
            code.line(format!("{narrow} [{at}+{offset}], {names};"));
        }
    }
    Ok(())
}
