//! The routines that rewritten kernels call, as PTX for sm_90a.

use std::fmt::Write;

use crate::{Options, When};

const MEMORY: &str = include_str!("emulation/memory.ptx");
const PRODUCT: &str = include_str!("emulation/product.ptx");
const COPY: &str = include_str!("emulation/copy.ptx");
const QUEUE: &str = include_str!("emulation/queue.ptx");

/// What a kernel did wrong, as the driver prints it with block, thread and line of the PTX.
const MESSAGES: [(&str, &str); 9] = [
    ("file", "PTX for sm_100a"),
    ("name", "tcgen05"),
    (
        "alloc_message",
        "columns of tensor memory are a power of two from 32 to 512, before the permit is relinquished",
    ),
    ("dealloc_message", "columns of tensor memory are freed as they were allocated"),
    ("descriptor_message", "the descriptors are of a product that is known"),
    ("columns_message", "the accumulator's columns of tensor memory are allocated"),
    ("map_message", "the tensor map is tiled, of the instruction's dimensions and of elements of whole bytes"),
    ("shift_message", "a shift begins at a multiple of 32 lanes and ends within tensor memory"),
    ("mask_message", "no lanes of tensor memory are disabled"),
];

pub fn text(options: &Options) -> String {
    let mut out = String::from("\n");
    for (name, message) in MESSAGES {
        let bytes: Vec<String> = message
            .bytes()
            .chain([0])
            .map(|byte| byte.to_string())
            .collect();
        let _ = writeln!(
            out,
            ".global .align 1 .b8 emulated_{name}[{}] = {{{}}};",
            bytes.len(),
            bytes.join(", ")
        );
    }
    out.push_str(MEMORY);
    out.push_str(
        &PRODUCT
            .replace("CLEAR_SUMS\n", &clear_sums())
            .replace("MULTIPLY\n", &multiply())
            .replace("WRITE_SUMS\n", &write_sums()),
    );
    out.push_str(&COPY.replace("DIMENSIONS\n", &dimensions()));
    if options.when == When::Late {
        out.push_str(QUEUE);
    }
    // The longer factors first: one is the beginning of another.
    for factor in [1_048_576, 65_536, 24_576, 4u64] {
        let total = u64::from(options.slots) * factor;
        out = out.replace(&format!("SLOTS_TIMES_{factor}"), &total.to_string());
    }
    out = out.replace("SLOTS", &options.slots.to_string());
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    out.lines()
        .filter(|line| !is_comment(line))
        .flat_map(|line| [line, "\n"])
        .collect()
}

const ROWS: usize = 4;
const COLUMNS: usize = 8;

fn clear_sums() -> String {
    (0..ROWS * COLUMNS)
        .map(|at| format!("    mov.f32 sum{at}, 0f00000000;\n"))
        .collect()
}

// Four steps of depth.
fn multiply() -> String {
    let mut out = String::new();
    for step in 0..4 {
        let _ = writeln!(
            out,
            "    ld.global.v4.f32 {{av0, av1, av2, av3}}, [a_at+{}];\n    \
             ld.global.v4.f32 {{bv0, bv1, bv2, bv3}}, [b_at];\n    \
             ld.global.v4.f32 {{bv4, bv5, bv6, bv7}}, [b_at+16];\n    \
             add.u64 b_at, b_at, b_step;",
            512 * step
        );
        for (row, column) in (0..ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column)))
        {
            let sum = row * COLUMNS + column;
            let _ = writeln!(
                out,
                "    fma.rn.f32 sum{sum}, av{row}, bv{column}, sum{sum};"
            );
        }
    }
    out + "    add.u64 a_at, a_at, 2048;\n"
}

// old * scale + sign * sum, in singles or in the lower halves of words.
fn write_sums() -> String {
    let mut out = String::new();
    for column in 0..COLUMNS {
        let offset = 512 * column;
        let _ = writeln!(
            out,
            "    @adds ld.relaxed.gpu.global.v4.b32 {{old0, old1, old2, old3}}, [p64+{offset}];"
        );
        for row in 0..ROWS {
            let sum = row * COLUMNS + column;
            let _ = writeln!(
                out,
                "    mov.b32 before, old{row};\n    \
                 mov.b32 {{narrow, upper}}, old{row};\n    \
                 @halves cvt.f32.f16 before, narrow;\n    \
                 mul.rn.f32 before, before, s;\n    \
                 mul.rn.f32 sum{sum}, sum{sum}, f;\n    \
                 add.rn.f32 before, before, sum{sum};\n    \
                 cvt.rn.f16.f32 narrow, before;\n    \
                 cvt.u32.u16 bits, narrow;\n    \
                 mov.b32 new{row}, before;\n    \
                 selp.b32 new{row}, bits, new{row}, halves;"
            );
        }
        let _ = writeln!(
            out,
            "    st.relaxed.gpu.global.v4.b32 [p64+{offset}], {{new0, new1, new2, new3}};"
        );
    }
    out
}

// Of a row of a box: whether it is inside of the tensor, and its address.
fn dimensions() -> String {
    (1..5)
        .map(|at| {
            format!(
                "    rem.u32 x, rest, box{at};\n    \
                 div.u32 rest, rest, box{at};\n    \
                 add.s32 x, x, corner{at};\n    \
                 setp.lt.s32 p, x, 0;\n    \
                 setp.gt.or.u32 p, x, size{at}, p;\n    \
                 @p mov.pred inside, 0;\n    \
                 cvt.s64.s32 x64, x;\n    \
                 mul.lo.s64 x64, x64, stride{at};\n    \
                 add.s64 row_address, row_address, x64;\n"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the registers of a function's arguments `ptxas` passes those of its calls, so that an argument that is
    /// loaded later may be another one's.
    #[test]
    fn arguments_are_loaded_before_the_first_call_and_outside_of_loops() {
        let options = Options {
            when: When::Late,
            ..Options::default()
        };
        let text = text(&options);
        let mut checked = 0;
        for function in text.split("\n.func").skip(1) {
            let (head, body) = function.split_once("\n{").expect("a body");
            let body = body.split("\n}").next().expect("its end");
            if !body.contains("call ") {
                continue;
            }
            let is_label = |line: &&str| line.ends_with(':') || line.contains("call ");
            let later = body.lines().skip_while(|line| !is_label(line));
            for line in later.filter(|line| line.contains("ld.param")) {
                for load in line.split("ld.param.").skip(1) {
                    let name = load.split(['[', ']']).nth(1).expect("an address");
                    let is_argument =
                        head.contains(&format!(" {name},")) || head.contains(&format!(" {name})"));
                    assert!(!is_argument, "{}: {name}", head.trim());
                }
            }
            checked += 1;
        }
        assert!(checked >= 8, "{checked} functions call others");
    }
}
