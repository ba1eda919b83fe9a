//! Faults of the kind that every thread makes by itself: a bound, an address, a term.

use crate::rules::{rule, Around, Rule};
use crate::statement::Statement;
use crate::Kind;

fn off_by_one(statement: &Statement, _: Around) -> Option<String> {
    let words: Vec<&str> = statement.opcode().split('.').collect();
    let ["setp", comparison, "s32" | "u32" | "s64" | "u64"] = words[..] else {
        return None;
    };
    let other = match comparison {
        "lt" => "le",
        "le" => "lt",
        "gt" => "ge",
        "ge" => "gt",
        _ => return None,
    };
    let from = format!(".{comparison}.");
    Some(statement.replaced(&statement.body.replacen(&from, &format!(".{other}."), 1)))
}

fn no_offset(statement: &Statement, _: Around) -> Option<String> {
    let (start, end) = (statement.body.find('[')?, statement.body.find(']')?);
    let plus = start + statement.body[start..end].find('+')?;
    let (before, after) = (&statement.body[..plus], &statement.body[end..]);
    Some(statement.replaced(&format!("{before}{after}")))
}

fn other_sign(statement: &Statement, _: Around) -> Option<String> {
    match statement.opcode() {
        "neg.f32" => copied(statement),
        "sub.f32" | "sub.rn.f32" | "sub.ftz.f32" => {
            Some(statement.replaced(&statement.body.replacen("sub", "add", 1)))
        }
        _ => None,
    }
}

fn copied(statement: &Statement) -> Option<String> {
    let operands = statement.operands();
    let [to, from] = operands[..] else {
        return None;
    };
    Some(statement.replaced(&format!("mov.b32 {to}, {from}")))
}

fn left_out(statement: &Statement, _: Around) -> Option<String> {
    statement
        .opcode()
        .ends_with(".f32")
        .then(|| copied(statement))?
}

fn smaller(statement: &Statement, _: Around) -> Option<String> {
    statement
        .opcode()
        .ends_with("f32")
        .then(|| statement.replaced(&statement.body.replacen("max", "min", 1)))
}

fn other_step(statement: &Statement, _: Around) -> Option<String> {
    let step: u32 = statement.operands().get(2)?.parse().ok()?;
    let other = if step > 1 { step / 2 } else { 2 };
    statement.with_operand(2, &other.to_string())
}

// One more in the exponent; zero and what is no number stay.
fn doubled(statement: &Statement, _: Around) -> Option<String> {
    let operands = statement.operands();
    let found = |text: &&str| {
        let bits = u32::from_str_radix(text.strip_prefix("0f")?, 16).ok()?;
        let value = f32::from_bits(bits);
        (value.is_normal() && (2.0 * value).is_normal()).then_some(2.0 * value)
    };
    let (at, value) = operands
        .iter()
        .enumerate()
        .find_map(|(at, text)| Some((at, found(text)?)))?;
    statement.with_operand(at, &format!("0f{:08X}", value.to_bits()))
}

pub const RULES: &[Rule] = &[
    rule(Kind::Bound, "setp.", off_by_one),
    rule(Kind::Offset, "ld.global", no_offset),
    rule(Kind::Offset, "st.global", no_offset),
    rule(Kind::Sign, "sub.", other_sign),
    rule(Kind::Sign, "neg.f32", other_sign),
    rule(Kind::Extreme, "max.", smaller),
    rule(Kind::Function, "ex2.approx", left_out),
    rule(Kind::Function, "rcp.", left_out),
    rule(Kind::Function, "tanh.approx", left_out),
    rule(Kind::ShuffleStep, "shfl.sync.bfly", other_step),
    rule(Kind::Constant, "mul.", doubled),
    rule(Kind::Constant, "fma.rn", doubled),
];
