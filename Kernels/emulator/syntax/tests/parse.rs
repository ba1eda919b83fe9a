//! What the parser accepts, what it refuses, and that nothing makes it panic.

use proptest::prelude::*;
use syntax::{parse, Axis, Location, Operand, Space, Special, Symbol, Type};

const KERNEL: &str = r#"
.version 9.0
.target sm_90a, debug
.address_size 64
.file 1 "kernel.cu"
.extern .shared .align 16 .b8 staging[];
.global .align 4 .f32 table[3] = {0f3F800000, 2.0, 0};
.visible .func (.param .b32 out) twice(.param .b32 in)
{
	.reg .b32 %r<3>;
	ld.param.u32 %r1, [in];
	add.s32 %r2, %r1, %r1;
	st.param.b32 [out+0], %r2;
	ret;
}
.visible .entry kernel(
	.param .u64 .ptr .global .align 16 data,
	.param .align 128 .b8 map[128]
)
.maxntid 128, 1, 1
.reqnctapercluster 2
{
	.local .align 8 .b8 depot[16];
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<4>;
	.loc 1 7 3
	mov.u32 %r1, %tid.x;
	.loc 1 9 5, function_name $L__info_string0+4, inlined_at 1 20 1
	setp.lt.u32 %p1|%p0, %r1, -4;
	@!%p1 bra $END;
	{
	.reg .b32 %r2; // its own
	mov.b32 %r2, {%r3, %r4};
	ld.shared.v2.u32 {%r5, _}, [staging+16];
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
	}
	{ .param .b32 p0; .param .b32 r0;
	call.uni (r0), twice, (p0);
	}
	choices: .branchtargets $A, $END;
	brx.idx %r1, choices;
$A:	/* nothing
	here */
$END:
	ret;
}
"#;

#[test]
fn names_are_resolved_and_lines_kept() {
    let module = parse(KERNEL).unwrap();
    assert_eq!((module.version, module.target.as_str()), ((9, 0), "sm_90a"));
    assert_eq!(module.files[&1], "kernel.cu");
    assert!(module.variables[0].is_unsized && module.variables[0].space == Space::Shared);
    let bits = [1f32, 2.0, 0.0].map(f32::to_le_bytes).concat();
    assert_eq!(module.variables[1].initial, bits);
    let kernel = module.function("kernel").unwrap();
    assert!(kernel.is_entry);
    assert_eq!(
        (kernel.parameters[1].bytes, kernel.parameters[1].align),
        (128, 128)
    );
    assert_eq!(kernel.directives["maxntid"], [128, 1, 1]);
    assert_eq!(kernel.directives["reqnctapercluster"], [2]);
    let code = &kernel.instructions;
    assert_eq!(code[0].operands[1], Operand::Special(Special::Tid(Axis::X)));
    assert_eq!(code[1].operands[2], Operand::Integer(4u64.wrapping_neg()));
    assert!(matches!(&code[1].operands[0], Operand::Pair(_)));
    assert_eq!(code[1].line, 30);
    let location = kernel.locations[code[1].location.unwrap() as usize];
    assert_eq!(
        location,
        Location {
            file: 1,
            line: 9,
            inlined_at: Some((1, 20))
        }
    );
    assert!(code[2].guard.unwrap().negated);
    // The inner %r2 is another register than the outer.
    let Operand::Register(inner) = code[3].operands[0] else {
        panic!("{:?}", code[3])
    };
    assert_eq!(
        (
            kernel.registers[inner as usize].name.as_str(),
            inner as usize
        ),
        ("%r2", kernel.registers.len() - 1)
    );
    let Operand::Address { base, offset, .. } = &code[4].operands[1] else {
        panic!("{:?}", code[4])
    };
    assert_eq!(
        (&**base, *offset),
        (&Operand::Symbol(Symbol::Module(0)), 16)
    );
    let Operand::Address { more, .. } = &code[5].operands[1] else {
        panic!("{:?}", code[5])
    };
    assert!(matches!(&more[0], Operand::Vector(list) if list.len() == 2));
    assert_eq!(code[6].operands[1], Operand::Function("twice".to_owned()));
    assert_eq!(kernel.tables, [[8, 8]]);
    assert_eq!(code[2].operands[0], Operand::Label(8));
    assert_eq!(kernel.registers[0].ty, Type::Pred);
}

#[test]
fn every_refusal_names_the_line_and_the_reason() {
    let head = ".version 9.0\n.target sm_90a\n.address_size 64\n";
    for (body, line, reason) in [
        (
            ".entry k() { .reg .b32 %r<2>;\n add.s32 %r1, %r1, %r2;\n}",
            5,
            "neither declared",
        ),
        (".entry k() {\n bra NOWHERE;\n}", 5, "not declared"),
        (
            ".entry k() { .reg .b32 %r<2>;\n ld.global.u32 %r1, [gone];\n}",
            5,
            "not declared",
        ),
        (
            ".entry k() { .reg .b32 %r<2>;\n @%r1 ret;\n}",
            5,
            "not a predicate",
        ),
        (".entry k() { .reg .b31 %r<2>;\n}", 4, "not a type"),
        (".entry k() {\nL: ret;\nL: ret;\n}", 6, "declared twice"),
        (
            ".entry k() { ret;\n}\n.entry k() { ret; }",
            6,
            "defined twice",
        ),
        (".entry k() {\n ret", 5, "end"),
        (
            ".entry k(.param .u32 x, .param .u32 x) { ret; }",
            4,
            "declared twice",
        ),
        (".global .align 3 .b8 x[4];", 4, "power of two"),
        (".global .b8 x[2] = {1, 2, 3};", 4, "initial bytes"),
        (".entry k() { ? }", 4, "character"),
        (
            ".entry k() { .reg .b32 %r<2>;\n mov.b32 %r1 %r0;\n}",
            5,
            "comma or semicolon",
        ),
        ("wrong", 4, "does not begin a declaration"),
        (".entry k() { .reg .b32 %r<4000000>; }", 4, "supported"),
        (
            ".entry k() {\n X: .callprototype _ (.param .b32 _); }",
            5,
            "indirect",
        ),
    ] {
        let error = parse(&format!("{head}{body}")).expect_err(body);
        assert_eq!(error.line, line, "{body}: {error}");
        assert!(error.message.contains(reason), "{body}: {error}");
    }
    assert!(parse("").unwrap_err().message.contains(".target"));
    let bare = head.replace(".version 9.0", "");
    assert!(parse(&bare).unwrap_err().message.contains(".version"));
    // A sentence shows the line as far as anybody reads it.
    let long = parse(&format!("{head}{}", "wrong".repeat(1000))).unwrap_err();
    let length = long.to_string().len();
    assert!(length < 300 && long.text.ends_with("..."), "{long}");
    let unknown = head.replace("sm_90a", "sm_9000");
    let error = parse(&unknown).unwrap_err();
    assert_eq!(
        (error.line, error.message.as_str()),
        (2, "\"sm_9000\" is not an architecture")
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(words in prop::collection::vec(prop::sample::select(vec![
        ".version", "9.0", ".target", "sm_90a", ".entry", "k", "(", ")", "{", "}", ".reg", ".b32", "%r", "<", "9", ">",
        ";", ",", "[", "]", "+", "-", "mov.b32", "%r1", "bra", "L", ":", "@", "!", "|", "=", "0f3F800000", ".param",
        ".global", ".branchtargets", "call", ".loc", "1", "\n", "\"", "/*", "18446744073709551615", "_", "0x", "é",
    ]), 0..60)) {
        let _ = parse(&words.join(" "));
        let _ = parse(&format!(".target sm_90a .entry k() {{ .reg .b32 %r<9>; {}", words.join(" ")));
    }

    #[test]
    fn a_text_that_is_cut_is_refused_where_it_ends(length in 40..KERNEL.len() - 3) {
        prop_assume!(KERNEL.is_char_boundary(length));
        let cut = &KERNEL[..length];
        if let Err(error) = parse(cut) {
            prop_assert!(error.line as usize <= cut.lines().count() + 1);
        } else {
            // Only between declarations.
            prop_assert_eq!(cut.matches('{').count(), cut.matches('}').count());
        }
    }
}
