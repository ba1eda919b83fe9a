//! Tensor memory to and from registers, and instructions of every thread.

use super::{kernel, noise, threads, Case, BRAIN};

#[test]
fn every_shape_of_loads_and_stores() {
    for (shape, each) in [("32x32b", 1), ("16x64b", 1), ("16x128b", 2), ("16x256b", 4)] {
        for repeat in [1, 16] {
            let registers: Vec<String> = (0..each * repeat)
                .map(|n| format!("%r{}", n + 100))
                .collect();
            let list = registers.join(",");
            let bytes = 4 * registers.len();
            let (mut loads, mut stores) = (String::new(), String::new());
            for (at, register) in registers.iter().enumerate() {
                loads += &format!("ld.global.u32 {register}, [%d3+{}];\n", 4 * at);
                stores += &format!("st.global.u32 [%d4+{}], {register};\n", 4 * at);
            }
            // Written in one shape, read in it and as rows.
            let text = kernel(
                2,
                &format!(
                    ".shared .align 4 .b32 base; mov.u32 %r92, base; mov.u32 %r1, %tid.x; setp.lt.u32 %p2, %r1, 32;
                     mov.u32 %r5, 256; @!%p2 bra MADE;
                     tcgen05.alloc.cta_group::1.sync.aligned.b32 [base], %r5; MADE: bar.sync 0;
                     ld.shared.u32 %r7, [%r92]; shr.u32 %r9, %r1, 5; shl.b32 %r9, %r9, 21; add.u32 %r10, %r7, %r9;
                     ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mad.wide.u32 %d3, %r1, {bytes}, %d1;
                     mad.wide.u32 %d4, %r1, {bytes}, %d2; {loads}
                     tcgen05.st.sync.aligned.{shape}.x{repeat}.b32 [%r10+32], {{{list}}};
                     tcgen05.wait::st.sync.aligned;
                     tcgen05.ld.sync.aligned.{shape}.x{repeat}.b32 {{{list}}}, [%r10+32];
                     tcgen05.wait::ld.sync.aligned; {stores}
                     mad.wide.u32 %d4, %r1, 64, %d2; tcgen05.ld.sync.aligned.32x32b.x16.b32 {{{rows}}}, [%r10+36];
                     tcgen05.wait::ld.sync.aligned; {more}
                     bar.sync 0; @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, %r5;",
                    rows = (0..16).map(|n| format!("%r{}", n + 20)).collect::<Vec<_>>().join(","),
                    more = (0..16)
                        .map(|n| format!("st.global.u32 [%d4+{}], %r{};\n", 32768 + 4 * n, n + 20))
                        .collect::<String>()
                ),
            )
            .replace("[base], %r5", "[%r92], %r5")
            .replace("sync.aligned.b32 [%r92]", "sync.aligned.shared::cta.b32 [%r92]");
            let words = 128 * registers.len();
            let buffers = vec![noise(words, (u32::MAX, 0)), vec![0; 16384]];
            Case {
                text,
                launch: threads(128),
                buffers,
                map: None,
            }
            .agrees();
        }
    }
}

#[test]
fn results_that_go_nowhere() {
    let text = kernel(
        2,
        "mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mad.wide.u32 %d3, %r1, 32, %d1;
         mad.wide.u32 %d4, %r1, 32, %d2;
         ld.global.v8.b32 {%r10, _, %r12, %r13, _, %r15, %r16, _}, [%d3];
         ld.global.v8.b32 {_, _, _, _, %r20, %r21, _, _}, [%d3]; ld.global.v4.b64 {_, %d10, _, %d11}, [%d3];
         mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, _, %f2, _}, {%r10, %r12, %r13, %r15},
         {%r20, %r21}, {0f00000000, 0f00000000, 0f00000000, 0f00000000};
         st.global.v2.b64 [%d4], {%d10, %d11}; st.global.v2.f32 [%d4+16], {%f1, %f2};
         st.global.v2.b32 [%d4+24], {%r20, %r21};",
    );
    Case {
        text,
        launch: threads(32),
        buffers: vec![noise(256, BRAIN), vec![0; 256]],
        map: None,
    }
    .agrees();
}

#[test]
fn arithmetic_that_hopper_lacks() {
    let text = kernel(
        2,
        "mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mad.wide.u32 %d3, %r1, 32, %d1;
         mad.wide.u32 %d4, %r1, 128, %d2;
         ld.global.v8.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%d3];
         ld.global.v4.b64 {%d10, %d11, %d12, %d13}, [%d3];
         add.rn.f32x2 %d20, %d10, %d11; mul.rn.f32x2 %d21, %d12, %d13; fma.rn.f32x2 %d22, %d10, %d12, %d21;
         sub.rn.ftz.f32x2 %d23, %d20, %d13;
         st.global.v4.b64 [%d4], {%d20, %d21, %d22, %d23};
         max.f32 %f10, %f1, %f2, %f3; min.NaN.f32 %f11, %f4, %f5, %f6;
         mov.b32 {%h1, %h2}, %f1; fma.rn.f32.bf16 %f12, %h1, %h2, %f7; add.rn.f32.bf16 %f13, %h1, %f8;
         redux.sync.max.f32 %f14, %f1, -1; redux.sync.min.abs.NaN.f32 %f15, %f2, 0xffffffff;
         redux.sync.min.f32 %f16, %f3, -1; redux.sync.max.abs.f32 %f17, %f4, -1;
         st.global.v8.f32 [%d4+32], {%f10, %f11, %f12, %f13, %f14, %f15, %f16, %f17};",
    );
    let mut words = noise(256, (0xbfff_ffff, 0));
    let case = |words: &[u32]| Case {
        text: text.clone(),
        launch: threads(32),
        buffers: vec![words.to_vec(), vec![0; 1024]],
        map: None,
    };
    case(&words).agrees();
    // One lane's, then everybody's numbers that go to redux are NaN.
    for lanes in [1, 32] {
        for word in words
            .chunks_exact_mut(8)
            .take(lanes)
            .flat_map(|lane| &mut lane[1..4])
        {
            *word |= 0x7fc0_0000;
        }
        case(&words).agrees();
    }
}

#[test]
fn conversions_that_hopper_lacks() {
    let mut body = String::from(
        "mov.u32 %r1, %tid.x; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mad.wide.u32 %d3, %r1, 8, %d1;
         mad.wide.u32 %d4, %r1, 64, %d2; ld.global.v2.f32 {%f1, %f2}, [%d3]; ld.global.b32 %r2, [%d3];
         cvt.u16.u32 %h1, %r2; { .reg .b8 pair; cvt.u8.u32 pair, %r2;",
    );
    for (number, relu) in ["", ".relu"].into_iter().enumerate() {
        body += &format!(
            "cvt.rn.satfinite{relu}.e2m1x2.f32 pair, %f1, %f2; cvt.u32.u8 %r3, pair;
             st.global.u32 [%d4+{}], %r3;
             cvt.rn.satfinite{relu}.e2m3x2.f32 %h2, %f1, %f2; cvt.rn.satfinite{relu}.e3m2x2.f32 %h3, %f1, %f2;
             st.global.v2.u16 [%d4+{}], {{%h2, %h3}};
             cvt.rn{relu}.f16x2.e2m1x2 %r4, pair; cvt.rn{relu}.f16x2.e2m3x2 %r5, %h2;
             cvt.rn{relu}.f16x2.e3m2x2 %r6, %h3; st.global.v2.u32 [%d4+{}], {{%r4, %r5}};
             st.global.u32 [%d4+{}], %r6;",
            24 * number,
            24 * number + 4,
            24 * number + 8,
            24 * number + 16,
        );
    }
    body += "cvt.rp.satfinite.ue8m0x2.f32 %h4, %f1, %f2; cvt.rz.satfinite.ue8m0x2.f32 %h5, %f1, %f2;
             cvt.rn.bf16x2.ue8m0x2 %r7, %h1; st.global.v2.u16 [%d4+48], {%h4, %h5}; st.global.u32 [%d4+52], %r7; }";
    let text = kernel(2, &body);
    let case = |words: Vec<u32>| Case {
        text: text.clone(),
        launch: threads(32),
        buffers: vec![words, vec![0; 512]],
        map: None,
    };
    // Every pattern, then magnitudes around those of the formats, where halves lie exactly between two of them.
    case(noise(64, (u32::MAX, 0))).agrees();
    for scale in [1.0f32, 0.125, 0.03125] {
        let values = (0..64i32).map(|n| ((n - 32) as f32 * scale * 1.25).to_bits());
        case(values.collect()).agrees();
    }
    let ends = [
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        f32::MIN_POSITIVE,
        f32::MIN_POSITIVE / 2.0,
        f32::MIN_POSITIVE / 4.0,
        f32::MAX,
        6.0,
        -7.6,
        28.0,
        29.9,
        5.0,
        -0.25,
    ];
    let values = ends.iter().cycle().take(64).map(|value| value.to_bits());
    case(values.collect()).agrees();
}
