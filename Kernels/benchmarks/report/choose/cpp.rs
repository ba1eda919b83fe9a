//! The dispatch table as a C++17 header: a struct per operation and type, and a constexpr `choose` for each.

use super::{Rule, Table};
use std::collections::{BTreeMap, BTreeSet};

const HEAD: &str = "\
#pragma once

#include <cstdint>
#include <string_view>

namespace head_to_head {

struct Choice {
  std::string_view contender;
  // At most this much slower than the fastest on the region's measured shapes; 0.01 is 1 %.
  double slower_by;
  // Measured shapes in the region.
  int shapes;
};
";

/// Words that are not names in C++17.
const KEYWORDS: [&str; 40] = [
    "alignas", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "const",
    "continue", "default", "delete", "do", "double", "else", "enum", "explicit", "export",
    "extern", "float", "for", "friend", "if", "inline", "int", "long", "new", "not", "or",
    "private", "short", "signed", "static", "struct", "this", "union", "void", "while",
];

/// The header; `choose` returns a null pointer for a shape outside of every region.
pub fn to_cpp(table: &Table) -> String {
    let mut groups: BTreeMap<(&str, &str), Vec<&Rule>> = BTreeMap::new();
    for rule in &table.rules {
        groups
            .entry((&rule.op, &rule.dtype))
            .or_default()
            .push(rule);
    }
    let mut text = format!(
        "// The fastest contenders by shape, measured on {}.\n",
        comment(&table.device)
    );
    text += "// Written by 'report choose --table cpp'.\n";
    text += HEAD;
    let mut taken = BTreeSet::new();
    for ((op, dtype), rules) in groups {
        let mut name = type_name(&format!("{op}_{dtype}"));
        while !taken.insert(name.clone()) {
            name += "_";
        }
        text += &group(&name, &rules);
    }
    text + "\n}  // namespace head_to_head\n"
}

fn group(name: &str, rules: &[&Rule]) -> String {
    let exact: BTreeSet<&String> = rules.iter().flat_map(|rule| rule.exact.keys()).collect();
    let sizes: BTreeSet<&String> = rules.iter().flat_map(|rule| rule.sizes.keys()).collect();
    let mut fields: BTreeMap<&String, String> = BTreeMap::new();
    for axis in sizes.iter().chain(&exact) {
        let mut field = field_name(axis);
        while fields.values().any(|known| *known == field) {
            field += "_";
        }
        fields.insert(axis, field);
    }
    // An axis is a number if it is one in every rule that has it, and no rule lacks it.
    let number = |axis: &String| {
        rules
            .iter()
            .all(|rule| rule.exact.get(axis).is_some_and(|value| whole(value)))
    };
    let kind = |axis: &String| {
        if number(axis) {
            "std::int64_t"
        } else {
            "std::string_view"
        }
    };
    let mut text = format!("\nstruct {name} {{\n");
    for axis in &sizes {
        text += &format!("  std::int64_t {};\n", fields[*axis]);
    }
    for axis in &exact {
        text += &format!("  {} {};\n", kind(axis), fields[*axis]);
    }
    text += &format!("}};\n\nnamespace detail {{\nstruct {name}Rule {{\n");
    for axis in &sizes {
        text += &format!("  std::int64_t {0}_low, {0}_high;\n", fields[*axis]);
    }
    for axis in &exact {
        text += &format!("  {} {};\n", kind(axis), fields[*axis]);
    }
    text += &format!("  Choice choice;\n}};\ninline constexpr {name}Rule k{name}[] = {{\n");
    for rule in rules {
        let mut values: Vec<String> = Vec::new();
        for axis in &sizes {
            // A shape without this size has it as zero.
            let [low, high] = rule.sizes.get(*axis).copied().unwrap_or([0, 0]);
            values.extend([low.to_string(), high.to_string()]);
        }
        for axis in &exact {
            let value = rule.exact.get(*axis).map_or("", String::as_str);
            values.push(if number(axis) {
                value.to_owned()
            } else {
                literal(value)
            });
        }
        values.push(format!(
            "{{{}, {:?}, {}}}",
            literal(&rule.contender),
            rule.slower_by,
            rule.shapes
        ));
        text += &format!("    {{{}}},\n", values.join(", "));
    }
    text += &format!(
        "}};\n}}  // namespace detail\n\n// Null if no region has the shape.\n\
         constexpr const Choice* choose(const {name}& shape) {{\n  for (const auto& rule : detail::k{name}) {{\n"
    );
    let within = sizes.iter().map(|axis| {
        let field = &fields[*axis];
        format!("rule.{field}_low <= shape.{field} && shape.{field} <= rule.{field}_high")
    });
    let equal = exact
        .iter()
        .map(|axis| format!("rule.{0} == shape.{0}", fields[*axis]));
    let conditions: Vec<String> = within.chain(equal).collect();
    let conditions = if conditions.is_empty() {
        "true".to_owned()
    } else {
        conditions.join(" &&\n        ")
    };
    text + &format!("    if ({conditions}) {{\n      return &rule.choice;\n    }}\n  }}\n  return nullptr;\n}}\n")
}

fn whole(text: &str) -> bool {
    text.parse::<i64>()
        .is_ok_and(|number| number.to_string() == text)
}

/// `gemm_bf16` as `GemmBf16`.
fn type_name(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    let name: String = words.map(capital).collect();
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => name,
        _ => format!("Op{name}"),
    }
}

fn field_name(axis: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    let name: String = axis.chars().map(plain).collect();
    let name = name.trim_matches('_').replace("__", "_");
    match name.chars().next() {
        Some(first)
            if first.is_ascii_alphabetic() && !KEYWORDS.contains(&&*name) && name != "choice" =>
        {
            name
        }
        _ => format!("axis_{name}"),
    }
}

fn literal(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            // No trigraphs: they are gone only since C++17.
            b' '..=b'~' if byte != b'?' => quoted.push(char::from(byte)),
            byte => quoted += &format!("\\{byte:03o}"),
        }
    }
    quoted + "\""
}

/// Text for a comment of one line.
fn comment(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_ascii_graphic() && c != '\\' || c == ' ' {
                c
            } else {
                '?'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_becomes_a_name_or_a_literal() {
        assert_eq!(type_name("gemm_fp8_e4m3"), "GemmFp8E4m3");
        assert_eq!(type_name("4 <wild>"), "Op4Wild");
        assert_eq!(
            ["q len", "int", "9", ""].map(field_name),
            ["q_len", "axis_int", "axis_9", "axis_"]
        );
        assert_eq!(
            literal("a\"\\\n??µ"),
            "\"a\\\"\\\\\\012\\077\\077\\302\\265\""
        );
        assert_eq!(comment("H200\n#error \\"), "H200?#error ?");
    }
}
