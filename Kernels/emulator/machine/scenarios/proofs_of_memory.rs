//! One exact result for every form of load and store that our kernels use.

use super::{execute, kernel, threads};

/// What a form moves: bytes of an element, and how many.
fn shape(form: &str) -> (usize, usize, bool) {
    let last = form.rsplit('.').next().unwrap_or_default();
    let bytes = last[1..].parse::<usize>().unwrap_or(32) / 8;
    let count = ["v8", "v4", "v2"]
        .iter()
        .find(|word| form.contains(&format!(".{word}.")));
    (
        bytes,
        count.map_or(1, |word| word[1..].parse().unwrap_or(1)),
        last.starts_with('s'),
    )
}

fn registers(bytes: usize, count: usize) -> String {
    let class = match bytes {
        8 => 'd',
        1 | 2 => 'h',
        _ => 'r',
    };
    let names: Vec<String> = (0..count).map(|at| format!("%{class}{}", 2 + at)).collect();
    match count {
        1 => names[0].clone(),
        _ => format!("{{{}}}", names.join(", ")),
    }
}

const SPACES: &str =
    ".shared .align 32 .b8 room[64]; .local .align 32 .b8 own[64]; ld.param.u64 %d20, [p0];
    ld.param.u64 %d21, [p1]; mov.u32 %r20, room;";

fn space(form: &str) -> &'static str {
    match form.split('.').nth(1) {
        Some("shared") => "%r20",
        Some("local") => "own",
        _ => "%d22",
    }
}

pub fn loads() {
    let forms = [
        "ld.global.cg.v2.f32",
        "ld.global.cg.v4.f32",
        "ld.global.f32",
        "ld.global.nc.L1::evict_last.v4.u32",
        "ld.global.nc.f32",
        "ld.global.nc.s32",
        "ld.global.nc.u32",
        "ld.global.nc.u8",
        "ld.global.nc.v2.f32",
        "ld.global.nc.v2.u32",
        "ld.global.nc.v4.u32",
        "ld.global.s32",
        "ld.global.u16",
        "ld.global.u32",
        "ld.global.u64",
        "ld.global.u8",
        "ld.global.v2.f32",
        "ld.global.v2.u32",
        "ld.global.v4.u16",
        "ld.global.v4.u32",
        "ld.local.f32",
        "ld.local.v2.f32",
        "ld.local.v4.f32",
        "ld.shared.f32",
        "ld.shared.f64",
        "ld.shared.u16",
        "ld.shared.u32",
        "ld.shared.u64",
        "ld.shared.v2.f32",
        "ld.shared.v2.u32",
        "ld.shared.v4.f32",
        "ld.shared.v4.u32",
        "ld.global.v8.f32",
        "ld.global.v4.u64",
        "ld.global.nc.v8.b32",
        "ld.global.cs.v4.f32",
        "ld.global.nc.v4.f32",
        "ld.global.v4.f32",
    ];
    let words: Vec<u32> = (0..16u32)
        .map(|at| (at + 1).wrapping_mul(0x9e37_79b9))
        .collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for form in forms {
        let (each, count, signed) = shape(form);
        let list = registers(each, count);
        // Everything to the other spaces first, one word at a time.
        let fill: String = (0..16)
            .map(|at| {
                let at = 4 * at;
                format!("ld.global.u32 %r1, [%d20+{at}]; st.shared.u32 [%r20+{at}], %r1; st.local.u32 [own+{at}], %r1;")
            })
            .collect();
        let narrow = each < 4;
        let stores: String = (0..count)
            .map(|at| match each {
                8 => format!("st.global.u64 [%d21+{}], %d{};", 8 * at, 2 + at),
                4 => format!("st.global.u32 [%d21+{}], %r{};", 8 * at, 2 + at),
                _ => format!(
                    "cvt.u32.u16 %r2, %h{}; st.global.u32 [%d21+{}], %r2;",
                    2 + at,
                    8 * at
                ),
            })
            .collect();
        let text = kernel(
            2,
            &format!(
                "{SPACES} {fill} mov.b64 %d22, %d20; {form} {list}, [{}+32]; {stores}",
                space(form)
            ),
        );
        let mut buffers = [words.clone(), vec![0; 16]];
        execute(&text, &threads(1), &mut buffers).unwrap_or_else(|error| panic!("{form}: {error}"));
        for at in 0..count {
            let mut wanted = [0; 8];
            wanted[..each].copy_from_slice(&bytes[32 + each * at..][..each]);
            let found = u64::from(buffers[1][2 * at]) | u64::from(buffers[1][2 * at + 1]) << 32;
            assert!(!signed || !narrow);
            assert_eq!(found, u64::from_le_bytes(wanted), "{form}");
        }
    }
}

pub fn stores() {
    let forms = [
        "st.global.f32",
        "st.global.u16",
        "st.global.u32",
        "st.global.u8",
        "st.global.v2.f32",
        "st.global.v2.u32",
        "st.global.v4.f32",
        "st.global.v4.u32",
        "st.local.f32",
        "st.local.u64",
        "st.local.v2.f32",
        "st.local.v4.f32",
        "st.shared.f32",
        "st.shared.f64",
        "st.shared.u16",
        "st.shared.u32",
        "st.shared.u64",
        "st.shared.v2.f32",
        "st.shared.v2.u32",
        "st.shared.v4.f32",
        "st.shared.v4.u32",
        "st.global.v8.f32",
        "st.global.v4.u64",
        "st.global.cs.v4.f32",
        "st.v4.u32",
    ];
    for form in forms {
        let (each, count, _) = shape(form);
        let list = registers(each, count);
        let fill: String = (0..count)
            .map(|at| match each {
                8 => format!("ld.global.u64 %d{}, [%d20+{}];", 2 + at, 8 * at),
                4 => format!("ld.global.u32 %r{}, [%d20+{}];", 2 + at, 8 * at),
                _ => format!("ld.global.u16 %h{}, [%d20+{}];", 2 + at, 8 * at),
            })
            .collect();
        let zero: String = (0..16)
            .map(|at| {
                format!(
                    "st.shared.u32 [%r20+{0}], 0; st.local.u32 [own+{0}], 0;",
                    4 * at
                )
            })
            .collect();
        // Global memory is the result itself; others are copied there.
        let place = space(form);
        let copy: String = (0..16)
            .filter(|_| place != "%d22")
            .map(|at| {
                let space = if place == "own" { "local" } else { "shared" };
                format!(
                    "ld.{space}.u32 %r1, [{place}+{0}]; st.global.u32 [%d21+{0}], %r1;",
                    4 * at
                )
            })
            .collect();
        let text = kernel(
            2,
            &format!(
                "{SPACES} {zero} {fill} mov.b64 %d22, %d21; {form} [{place}+32], {list}; {copy}"
            ),
        );
        let words: Vec<u32> = (0..16u32)
            .map(|at| (at + 1).wrapping_mul(0x9e37_79b9))
            .collect();
        let mut buffers = [words.clone(), vec![0; 16]];
        execute(&text, &threads(1), &mut buffers).unwrap_or_else(|error| panic!("{form}: {error}"));
        let found: Vec<u8> = buffers[1]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let mut wanted = [0; 64];
        for at in 0..count {
            let value = u64::from(words[2 * at]) | u64::from(words[2 * at + 1]) << 32;
            wanted[32 + each * at..][..each].copy_from_slice(&value.to_le_bytes()[..each]);
        }
        assert_eq!(found, wanted, "{form}");
    }
}

#[test]
fn every_row_is_exact() {
    loads();
    stores();
}
