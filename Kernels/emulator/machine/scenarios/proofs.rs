//! One exact result for every form of arithmetic and comparison that our kernels use.

use super::{execute, kernel, threads};

/// Runs one instruction. `r`, `d`, `h` and `p` with a number are registers of 32, 64 and 16 bits and predicates: 0 is
/// the result, 1 and up are the inputs.
fn result(template: &str, inputs: &[u64]) -> u64 {
    let mut text = String::new();
    let mut outcome = String::new();
    let mut body = String::new();
    for word in template.split_inclusive([' ', ',', '|', '}']) {
        let name = word.trim_end_matches([' ', ',', '|', '}']);
        let mut letters = name.trim_start_matches(['{', '[']).chars();
        let class = letters.next().unwrap_or(' ');
        let number = letters.as_str().parse::<usize>();
        let Some(number) = number.ok().filter(|_| "rdhp".contains(class)) else {
            body += word;
            continue;
        };
        let register = format!(
            "%{class}{}",
            40 - if class == 'r' { 0 } else { 38 } + number
        );
        body += &word.replace(&format!("{class}{number}"), &register);
        let place = format!("[%d20+{}]", 8 * number);
        match (number, class) {
            (0, 'd') => outcome = format!("st.global.u64 [%d21], {register};"),
            (0, 'h') => {
                outcome = format!("cvt.u32.u16 %r9, {register}; st.global.u32 [%d21], %r9;")
            }
            (0, 'p') => {
                outcome = format!("selp.u32 %r9, 1, 0, {register}; st.global.u32 [%d21], %r9;")
            }
            (0, _) => outcome = format!("st.global.u32 [%d21], {register};"),
            (_, 'd') => text += &format!("ld.global.u64 {register}, {place};"),
            (_, 'h') => text += &format!("ld.global.u16 {register}, {place};"),
            (_, 'p') => {
                text += &format!("ld.global.u32 %r9, {place}; setp.ne.u32 {register}, %r9, 0;")
            }
            _ => text += &format!("ld.global.u32 {register}, {place};"),
        }
    }
    let text = kernel(
        2,
        &format!("ld.param.u64 %d20, [p0]; ld.param.u64 %d21, [p1]; {text} {body}; {outcome}"),
    );
    let mut words = vec![0; 2];
    words.extend(
        inputs
            .iter()
            .flat_map(|input| [*input as u32, (input >> 32) as u32]),
    );
    let mut buffers = [words, vec![0; 2]];
    execute(&text, &threads(1), &mut buffers).unwrap_or_else(|error| panic!("{template}: {error}"));
    u64::from(buffers[1][0]) | u64::from(buffers[1][1]) << 32
}

fn f(value: f32) -> u64 {
    value.to_bits().into()
}

fn e(value: f64) -> u64 {
    value.to_bits()
}

fn w(value: i32) -> u64 {
    u64::from(value as u32)
}

fn l(value: i64) -> u64 {
    value as u64
}

const NAN: u64 = 0x7fc0_0000;

pub fn arithmetic() {
    let third = 1.0f32 / 3.0;
    let rows: &[(&str, &[u64], u64)] = &[
        ("abs.f32 r0, r1", &[f(-2.5)], f(2.5)),
        ("abs.s32 r0, r1", &[w(-7)], 7),
        (
            "add.f32 r0, r1, r2",
            &[f(16_777_216.0), f(1.0)],
            f(16_777_216.0),
        ),
        (
            "add.f64 d0, d1, d2",
            &[e(9_007_199_254_740_992.0), e(3.0)],
            e(9_007_199_254_740_996.0),
        ),
        ("div.rn.f64 d0, d1, d2", &[e(1.0), e(3.0)], e(1.0 / 3.0)),
        ("rcp.rn.f64 d0, d1", &[e(3.0)], e(1.0 / 3.0)),
        ("sqrt.rn.f64 d0, d1", &[e(2.0)], e(std::f64::consts::SQRT_2)),
        // The product's last bits, which a rounded one would lose.
        (
            "fma.rn.f64 d0, d1, d2, d3",
            &[
                e(1.0 + f64::EPSILON),
                e(1.0 + f64::EPSILON),
                e(-1.0 - 2.0 * f64::EPSILON),
            ],
            e(f64::EPSILON * f64::EPSILON),
        ),
        ("mov.f64 d0, d1", &[e(-0.0)], e(-0.0)),
        ("cvt.f64.f32 d0, r1", &[f(third)], e(third.into())),
        ("cvt.rn.f32.f64 r0, d1", &[e(1.0 / 3.0)], f(third)),
        ("cvt.rn.f64.s32 d0, r1", &[w(-7)], e(-7.0)),
        ("add.s16 h0, h1, h2", &[0x7fff, 1], 0x8000),
        ("add.s32 r0, r1, r2", &[w(i32::MAX), 1], w(i32::MIN)),
        ("add.s64 d0, d1, d2", &[u64::MAX, 2], 1),
        ("add.u64 d0, d1, d2", &[1 << 32, 1 << 32], 1 << 33),
        ("sub.f32 r0, r1, r2", &[f(1.0), f(third)], f(1.0 - third)),
        ("sub.s16 h0, h1, h2", &[3, 5], 0xfffe),
        ("sub.s32 r0, r1, r2", &[3, 5], w(-2)),
        ("sub.s64 d0, d1, d2", &[3, 5], l(-2)),
        (
            "mul.f32 r0, r1, r2",
            &[f(third), f(third)],
            f(third * third),
        ),
        ("mul.rn.f32 r0, r1, r2", &[f(third), f(3.0)], f(third * 3.0)),
        ("mul.hi.s32 r0, r1, r2", &[w(-1 << 20), w(1 << 20)], w(-256)),
        ("mul.hi.u32 r0, r1, r2", &[w(-1), w(-1)], w(-2)),
        (
            "mad.lo.s64 d0, d1, d2, d3",
            &[l(-3), 1 << 40, 5],
            l((-3 << 40) + 5),
        ),
        ("mov.b16 h0, h1", &[80], 80),
        ("div.u16 h0, h1, h2", &[0xffff, 7], 9362),
        ("max.s64 d0, d1, d2", &[l(-1), 1], 1),
        (
            "shf.l.wrap.b32 r0, r1, r2, r3",
            &[0x89ab_cdef, 0x0123_4567, 8],
            0x2345_6789,
        ),
        (
            "shf.r.wrap.b32 r0, r1, r2, r3",
            &[0x89ab_cdef, 0x0123_4567, 8],
            0x6789_abcd,
        ),
        ("mul.hi.u16 h0, h1, h2", &[0xffff, 0xffff], 0xfffe),
        ("mul.lo.s16 h0, h1, h2", &[0xfffd, 7], 0xffeb),
        ("mul.wide.u16 r0, h1, h2", &[0xffff, 2], 0x1_fffe),
        ("shr.u16 h0, h1, r2", &[0x8001, 4], 0x800),
        ("shr.s16 h0, h1, r2", &[0x8001, 4], 0xf800),
        ("shl.b16 h0, h1, r2", &[0x8011, 4], 0x110),
        ("mul.wide.s16 r0, h1, h2", &[0xffff, 2], w(-2)),
        ("mul.lo.s32 r0, r1, r2", &[w(-3), 7], w(-21)),
        ("mul.lo.s64 d0, d1, d2", &[l(-3), 1 << 40], l(-3 << 40)),
        ("mul.wide.s32 d0, r1, r2", &[w(-3), w(1 << 30)], l(-3 << 30)),
        ("mul.wide.u32 d0, r1, r2", &[w(-1), 2], 0x1_ffff_fffe),
        ("mad.lo.s32 r0, r1, r2, r3", &[w(-3), 7, 1], w(-20)),
        (
            "fma.rn.f32 r0, r1, r2, r3",
            &[f(third), f(3.0), f(-1.0)],
            f(third.mul_add(3.0, -1.0)),
        ),
        // The exact sum lies above 1 by less than half a unit: down is 1, and so is below 1 its neighbour.
        (
            "fma.rm.f32 r0, r1, r2, r3",
            &[f(1e-10), f(1.0), f(1.0)],
            f(1.0),
        ),
        (
            "fma.rm.f32 r0, r1, r2, r3",
            &[f(-1e-10), f(1.0), f(1.0)],
            0x3f7f_ffff,
        ),
        ("div.rn.f32 r0, r1, r2", &[f(1.0), f(3.0)], f(third)),
        ("div.s32 r0, r1, r2", &[w(-7), 2], w(-3)),
        ("div.u32 r0, r1, r2", &[w(-1), 2], 0x7fff_ffff),
        ("div.s64 d0, d1, d2", &[l(-7), 2], l(-3)),
        ("rem.s32 r0, r1, r2", &[w(-7), 4], w(-3)),
        ("rem.u32 r0, r1, r2", &[w(-1), 10], 5),
        ("rem.s64 d0, d1, d2", &[l(-7), 4], l(-3)),
        ("neg.f32 r0, r1", &[f(0.0)], f(-0.0)),
        ("neg.s32 r0, r1", &[5], w(-5)),
        ("neg.s64 d0, d1", &[5], l(-5)),
        ("min.s32 r0, r1, r2", &[w(-1), 1], w(-1)),
        ("min.u32 r0, r1, r2", &[w(-1), 1], 1),
        ("min.s64 d0, d1, d2", &[l(-1), 1], l(-1)),
        ("max.f32 r0, r1, r2", &[NAN, f(-1.0)], f(-1.0)),
        ("max.s32 r0, r1, r2", &[w(-1), 1], 1),
        ("max.u32 r0, r1, r2", &[w(-1), 1], w(-1)),
        (
            "max.u16x2 r0, r1, r2",
            &[0x0001_ffff, 0x0002_0001],
            0x0002_ffff,
        ),
        (
            "max.bf16x2 r0, r1, r2",
            &[0xbf80_4000, 0x3f80_3f80],
            0x3f80_4000,
        ),
        (
            "max.f16x2 r0, r1, r2",
            &[0xbc00_4000, 0x3c00_3c00],
            0x3c00_4000,
        ),
        ("and.b16 h0, h1, h2", &[0xff0f, 0x0ff0], 0x0f00),
        ("and.b32 r0, r1, r2", &[12, 10], 8),
        ("and.b64 d0, d1, d2", &[12 << 40, 10 << 40], 8 << 40),
        ("and.pred p0, p1, p2", &[1, 0], 0),
        ("or.b16 h0, h1, h2", &[0x800c, 10], 0x800e),
        ("or.b32 r0, r1, r2", &[12, 10], 14),
        ("or.b64 d0, d1, d2", &[12 << 40, 10 << 40], 14 << 40),
        ("or.pred p0, p1, p2", &[1, 0], 1),
        ("xor.b32 r0, r1, r2", &[12, 10], 6),
        ("xor.pred p0, p1, p2", &[1, 1], 0),
        ("not.b32 r0, r1", &[5], w(!5)),
        ("not.b64 d0, d1", &[5], !5),
        ("not.pred p0, p1", &[1], 0),
        // Shifts by more than the width.
        ("shl.b32 r0, r1, r2", &[3, 33], 0),
        ("shl.b64 d0, d1, r2", &[3, 33], 3 << 33),
        ("shr.s32 r0, r1, r2", &[w(-8), 40], w(-1)),
        ("shr.u32 r0, r1, r2", &[w(-8), 1], 0x7fff_fffc),
        ("shr.s64 d0, d1, r2", &[l(-8), 1], l(-4)),
        ("shr.u64 d0, d1, r2", &[l(-8), 60], 15),
        ("popc.b32 r0, r1", &[0xf0f], 8),
        ("clz.b32 r0, r1", &[1], 31),
        ("brev.b32 r0, r1", &[1], 1 << 31),
        ("bfind.shiftamt.u32 r0, r1", &[1 << 20], 11),
        ("bfi.b32 r0, r1, r2, 8, 4", &[0xff, 0], 0xf00),
        ("bfi.b64 d0, d1, d2, 40, 8", &[0x1ff, 1], 0xff << 40 | 1),
        (
            "prmt.b32 r0, r1, r2, 0x7610",
            &[0x3322_1100, 0x7766_5544],
            0x7766_1100,
        ),
        ("copysign.f32 r0, r1, r2", &[f(-1.0), f(2.0)], f(-2.0)),
        ("mov.b32 r0, r1", &[77], 77),
        ("mov.f32 r0, r1", &[f(1.5)], f(1.5)),
        ("mov.u32 r0, r1", &[78], 78),
        ("mov.u16 h0, h1", &[79], 79),
        ("mov.b64 d0, {r1, r2}", &[1, 2], 2 << 32 | 1),
        ("mov.u64 d0, d1", &[1 << 50], 1 << 50),
        ("mov.pred p0, p1", &[1], 1),
        ("selp.b16 h0, h1, h2, p3", &[1, 2, 0], 2),
        ("selp.b32 r0, r1, r2, p3", &[1, 2, 0], 2),
        ("selp.b64 d0, d1, d2, p3", &[1 << 40, 2, 1], 1 << 40),
        ("selp.f32 r0, r1, r2, p3", &[1, 2, 1], 1),
        ("selp.s32 r0, r1, r2, p3", &[1, 2, 0], 2),
        ("selp.u16 h0, h1, h2, p3", &[1, 2, 1], 1),
        ("selp.u32 r0, r1, r2, p3", &[1, 2, 0], 2),
        // Exact where the function is.
        ("ex2.approx.ftz.f32 r0, r1", &[f(-3.0)], f(0.125)),
        ("rcp.approx.ftz.f32 r0, r1", &[f(8.0)], f(0.125)),
        ("rcp.rn.f32 r0, r1", &[f(3.0)], f(third)),
        ("rsqrt.approx.f32 r0, r1", &[f(16.0)], f(0.25)),
        ("sqrt.rn.f32 r0, r1", &[f(2.0)], f(2f32.sqrt())),
        ("cvt.f32.bf16 r0, h1", &[0x3fc0], f(1.5)),
        ("cvt.f32.f16 r0, h1", &[0x3e00], f(1.5)),
        // Half way: to even.
        ("cvt.rn.bf16.f32 h0, r1", &[0x3f80_8000], 0x3f80),
        (
            "cvt.rn.bf16x2.f32 r0, r1, r2",
            &[0x3f81_8000, f(1.0)],
            0x3f82_3f80,
        ),
        ("cvt.rn.f16.f32 h0, r1", &[f(2049.0)], 0x6800),
        (
            "cvt.rn.f16x2.f32 r0, r1, r2",
            &[f(2051.0), f(1.0)],
            0x6802_3c00,
        ),
        ("cvt.rn.f16x2.e4m3x2 r0, h1", &[0x7e01], 0x5f00_1800),
        (
            "cvt.rn.satfinite.e4m3x2.f32 h0, r1, r2",
            &[f(1000.0), f(-1.0)],
            0x7eb8,
        ),
        // A tie to even, and the first source in the upper half; what is too large saturates, and NaN is +6.
        (
            "cvt.rn.satfinite.e2m1x2.f32 h0, r1, r2",
            &[f(-2.5), f(1.75)],
            0xc4,
        ),
        (
            "cvt.rn.satfinite.e2m1x2.f32 h0, r1, r2",
            &[f(-100.0), f(f32::NAN)],
            0xf7,
        ),
        ("cvt.u32.u8 r0, h1", &[0x1234], 0x34),
        ("cvt.s16.s8 h0, h1", &[0x1281], 0xff81),
        ("cvt.s8.s32 h0, r1", &[0x1281], 0xff81),
        ("cvt.s8.s64 h0, d1", &[0x1281], 0xff81),
        ("cvt.u16.u64 h0, d1", &[0x5_0001_2345], 0x2345),
        ("cvt.rn.f32.s32 r0, r1", &[w(-16_777_217)], f(-16_777_216.0)),
        ("cvt.s64.s32 d0, r1", &[w(-2)], l(-2)),
        ("cvt.sat.f32.f32 r0, r1", &[f(-0.5)], f(0.0)),
        ("cvt.u16.u32 h0, r1", &[0x1_2345], 0x2345),
        ("cvt.u32.u64 r0, d1", &[0x5_0000_0007], 7),
        ("cvt.u64.u32 d0, r1", &[w(-1)], 0xffff_ffff),
        // Pairs of singles, and what else Blackwell adds.
        (
            "add.rn.f32x2 d0, d1, d2",
            &[f(1.0) << 32 | f(third), f(2.0) << 32 | f(1.0)],
            f(3.0) << 32 | f(third + 1.0),
        ),
        (
            "add.rm.f32x2 d0, d1, d2",
            &[f(1.0) << 32 | f(1.0), f(1e-9) << 32 | f(-1e-9)],
            f(1.0) << 32 | f(1.0 - f32::EPSILON / 2.0),
        ),
        (
            "mul.rn.f32x2 d0, d1, d2",
            &[f(1.5) << 32 | f(third), f(2.0) << 32 | f(3.0)],
            f(3.0) << 32 | f(third * 3.0),
        ),
        (
            "fma.rn.f32x2 d0, d1, d2, d3",
            &[
                f(1.5) << 32 | f(third),
                f(2.0) << 32 | f(3.0),
                f(1.0) << 32 | f(-1.0),
            ],
            f(4.0) << 32 | f(third.mul_add(3.0, -1.0)),
        ),
        ("max.f32 r0, r1, r2, r3", &[f(1.0), f(3.0), f(2.0)], f(3.0)),
        (
            "min.f32 r0, r1, r2, r3",
            &[f(1.0), f(-3.0), f(2.0)],
            f(-3.0),
        ),
        ("cvt.rn.f16x2.e5m2x2 r0, h1", &[0x3c40], 0x3c00_4000),
        (
            "cvt.rp.satfinite.ue8m0x2.f32 h0, r1, r2",
            &[f(3.0), f(1.0)],
            0x817f,
        ),
        (
            "cvt.rz.satfinite.ue8m0x2.f32 h0, r1, r2",
            &[f(3.0), f(1.0)],
            0x807f,
        ),
        ("cvt.rn.bf16x2.ue8m0x2 r0, h1", &[0x807f], 0x4000_3f80),
    ];
    for (template, inputs, wanted) in rows {
        let found = result(template, inputs);
        assert_eq!(found, *wanted, "{template}: {found:#x}, not {wanted:#x}");
    }
}

pub fn comparisons() {
    let pairs: [(u64, u64); 5] = [(1, 2), (2, 2), (l(-1), 1), (f(1.5), NAN), (f(-0.0), f(0.0))];
    let forms = [
        "eq.b32", "ne.b32", "eq.f32", "ge.f32", "gt.f32", "lt.f32", "geu.f32", "gtu.f32",
        "leu.f32", "ltu.f32", "ne.f32", "neu.f32", "eq.s16", "ne.s16", "eq.s32", "ne.s32",
        "ge.s32", "gt.s32", "le.s32", "lt.s32", "ge.u32", "gt.u32", "lt.u32", "eq.s64", "ne.s64",
        "ge.s64", "gt.s64", "le.s64", "lt.s64", "lt.u64", "ge.u64", "gt.u64", "le.u64", "le.u32",
        "eq.b64", "le.f32", "equ.f32", "nan.f32",
    ];
    for form in forms {
        let (name, ty) = form.split_at(form.len() - 4);
        let (name, ty) = (name.trim_end_matches('.'), ty.trim_start_matches('.'));
        for (a, b) in pairs {
            let order = match ty {
                "f32" => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
                "s16" => (a as i16).partial_cmp(&(b as i16)),
                "s64" => (a as i64).partial_cmp(&(b as i64)),
                "u64" | "b64" => a.partial_cmp(&b),
                "s32" => (a as i32).partial_cmp(&(b as i32)),
                _ => (a as u32).partial_cmp(&(b as u32)),
            };
            let unordered = name.len() == 3;
            let wanted = match (order, &name[..2]) {
                (None, other) => unordered || other == "ne" && ty != "f32",
                // nan: whether either is one.
                (Some(_), "na") => false,
                (Some(order), "eq") => order.is_eq(),
                (Some(order), "ne") => order.is_ne(),
                (Some(order), "lt") => order.is_lt(),
                (Some(order), "le") => order.is_le(),
                (Some(order), "gt") => order.is_gt(),
                (Some(order), _) => order.is_ge(),
            };
            let class = match ty {
                "s16" => 'h',
                "s64" | "u64" | "b64" => 'd',
                _ => 'r',
            };
            let found = result(&format!("setp.{form} p0, {class}1, {class}2"), &[a, b]);
            assert_eq!(found, u64::from(wanted), "setp.{form} of {a:#x} and {b:#x}");
        }
    }
}

#[test]
fn every_row_is_exact() {
    arithmetic();
    comparisons();
}
