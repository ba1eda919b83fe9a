//! Pairs of blocks.

use machine::{Launch, TensorMap};

use super::{descriptor, instruction, kernel, noise, threads, Case, BRAIN};

/// Two blocks: each loads its rows of A and its columns of B by TMA, which signals the first block; the first block's
/// product is of both, its commit tells both.
fn pair((rows, columns): (u32, u32), column: i32, multicast: bool) -> String {
    let registers: Vec<String> = (0..64).map(|n| format!("%r{}", n + 100)).collect();
    let part = |at: usize| {
        let stores: String = (0..64)
            .map(|n| format!("st.global.u32 [%d9+{}], %r{};\n", 256 * at + 4 * n, n + 100))
            .collect();
        format!(
            "tcgen05.ld.sync.aligned.32x32b.x64.b32 {{{}}}, [%r10+{}]; tcgen05.wait::ld.sync.aligned; {stores}",
            registers.join(","),
            64 * at
        )
    };
    let (a, b) = (
        descriptor(0, 16, 1024, 2) as i64,
        descriptor(16384, 16, 1024, 2) as i64,
    );
    let load =
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes";
    let b_load = if multicast {
        format!("@%p5 {load}.multicast::cluster [%r20], [%d2, {{%r21, %r25}}], [%r94], %h1;")
    } else {
        format!("{load} [%r20], [%d2, {{%r21, %r25}}], [%r94];")
    };
    kernel(
        3,
        &format!(
            ".shared .align 1024 .b8 room[24576]; .shared .align 8 .b64 full; .shared .align 8 .b64 done;
             .shared .align 4 .b32 base;
             mov.u32 %r90, room; mov.u32 %r91, done; mov.u32 %r93, full; mov.u32 %r92, base; mov.u32 %r1, %tid.x;
             mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p5, %r2, 0; mapa.shared::cluster.u32 %r94, %r93, 0;
             setp.lt.u32 %p2, %r1, 32; @!%p2 bra MADE; mov.u32 %r5, 128;
             tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r92], %r5;
             tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
             MADE: setp.eq.u32 %p3, %r1, 0; @!%p3 bra READY; mov.u32 %r6, 1;
             mbarrier.init.shared::cta.b64 [%r93], %r6; mbarrier.init.shared::cta.b64 [%r91], %r6;
             fence.mbarrier_init.release.cluster;
             @%p5 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r93], 49152;
             READY: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
             ld.shared.u32 %r7, [%r92]; ld.param.u64 %d2, [p2];
             and.pred %p6, %p3, %p5; @!%p3 bra WAIT;
             mov.u32 %r21, {column}; shl.b32 %r22, %r2, 7; add.u32 %r23, %r22, 64; add.u32 %r24, %r90, 8192;
             mad.lo.u32 %r25, %r2, 64, 256; add.u32 %r20, %r90, 16384; mov.u16 %h1, 3;
             {load} [%r90], [%d2, {{%r21, %r22}}], [%r94];
             {load} [%r24], [%d2, {{%r21, %r23}}], [%r94];
             {b_load}
             @!%p6 bra WAIT;
             FULL: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r93], 0; @!%p1 bra FULL;
             tcgen05.fence::after_thread_sync;
             cvt.u64.u32 %d5, %r90; and.b64 %d5, %d5, 0x3ffff; shr.u64 %d5, %d5, 4;
             mov.b64 %d6, {a}; add.s64 %d6, %d6, %d5; mov.b64 %d7, {b}; add.s64 %d7, %d7, %d5;
             mov.u32 %r8, {bits}; mov.pred %p4, 0; mov.u32 %r30, 0;
             STEP: tcgen05.mma.cta_group::2.kind::f16 [%r7], %d6, %d7, %r8, %p4;
             mov.pred %p4, 1; add.s64 %d6, %d6, 2; add.s64 %d7, %d7, 2; add.u32 %r30, %r30, 1;
             setp.lt.u32 %p1, %r30, 2; @%p1 bra STEP;
             tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r91], %h1;
             WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r91], 0; @!%p1 bra WAIT;
             tcgen05.fence::after_thread_sync; shr.u32 %r9, %r1, 5; shl.b32 %r9, %r9, 21; add.u32 %r10, %r7, %r9;
             ld.param.u64 %d8, [p1]; mad.lo.u32 %r31, %r2, 128, %r1; mad.wide.u32 %d9, %r31, 512, %d8;
             {first} {second}
             barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
             @!%p2 bra GONE; mov.u32 %r5, 128;
             tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r7, %r5; GONE:",
            bits = instruction(rows, columns, 1, 1, 0),
            first = part(0),
            second = part(1),
        ),
    )
}

#[test]
fn pairs_of_blocks() {
    let map = TensorMap {
        address: 0,
        kind: 10,
        sizes: vec![64, 384],
        strides: vec![128],
        box_sizes: vec![64, 64],
        swizzle: 3,
        fills_nan: false,
    };
    let launch = Launch {
        grid: [2, 1, 1],
        cluster: [2, 1, 1],
        ..threads(128)
    };
    for (shape, column, multicast) in [
        ((128, 128), 8, false),
        ((256, 128), -3, true),
        ((128, 16), 8, false),
        ((256, 48), 8, false),
    ] {
        let case = Case {
            text: pair(shape, column, multicast),
            launch: launch.clone(),
            buffers: vec![noise(384 * 32, BRAIN), vec![0; 2 * 128 * 128], vec![0; 32]],
            map: Some(map.clone()),
        };
        case.agrees();
        let commit = "tcgen05.commit.cta_group::2";
        let shift = format!("tcgen05.shift.cta_group::2.down [%r7+5];\n{commit}");
        let text = case.text.replace(commit, &shift);
        Case { text, ..case }.agrees();
    }
}

/// D = A * transposed(B) in tiles of 256 by 128 for pairs of blocks, one stage of 64 along k at a time. A and B are
/// rows of one tensor of bf16; D is in singles.
fn gemm(m: u32, n: u32, k: u32) -> String {
    let registers: Vec<String> = (0..64).map(|at| format!("%r{}", at + 100)).collect();
    let part = |at: usize| {
        let stores: String = (0..64)
            .map(|column| {
                format!(
                    "st.global.u32 [%d9+{}], %r{};\n",
                    256 * at + 4 * column,
                    column + 100
                )
            })
            .collect();
        format!(
            "tcgen05.ld.sync.aligned.32x32b.x64.b32 {{{}}}, [%r10+{}]; tcgen05.wait::ld.sync.aligned; {stores}",
            registers.join(","),
            64 * at
        )
    };
    let load =
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes";
    kernel(
        3,
        &format!(
            ".shared .align 1024 .b8 room[24576]; .shared .align 8 .b64 full; .shared .align 8 .b64 done;
             .shared .align 8 .b64 last; .shared .align 4 .b32 base;
             mov.u32 %r90, room; mov.u32 %r91, done; mov.u32 %r93, full; mov.u32 %r95, last; mov.u32 %r92, base;
             mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p5, %r2, 0;
             and.b32 %r94, %r93, 0xfeffffff;
             mov.u32 %r40, %clusterid.x; rem.u32 %r41, %r40, {m_tiles}; div.u32 %r42, %r40, {m_tiles};
             setp.lt.u32 %p2, %r1, 32; @!%p2 bra MADE; mov.u32 %r5, 128;
             tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r92], %r5;
             tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
             MADE: setp.eq.u32 %p3, %r1, 0; @!%p3 bra READY; mov.u32 %r6, 1;
             mbarrier.init.shared::cta.b64 [%r93], %r6; mbarrier.init.shared::cta.b64 [%r91], %r6;
             mbarrier.init.shared::cta.b64 [%r95], %r6; fence.mbarrier_init.release.cluster;
             READY: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
             ld.shared.u32 %r7, [%r92]; ld.param.u64 %d2, [p2]; mov.u16 %h1, 3; @!%p3 bra WAIT;
             mad.lo.u32 %r22, %r41, 256, 0; mad.lo.u32 %r22, %r2, 128, %r22; add.u32 %r23, %r22, 64;
             mad.lo.u32 %r25, %r42, 128, {m}; mad.lo.u32 %r25, %r2, 64, %r25;
             add.u32 %r24, %r90, 8192; add.u32 %r20, %r90, 16384; mov.u32 %r21, 0; mov.u32 %r43, 0; mov.pred %p4, 0;
             mov.u32 %r8, {bits};
             STAGE: @%p5 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r93], 49152;
             {load} [%r90], [%d2, {{%r21, %r22}}], [%r94];
             {load} [%r24], [%d2, {{%r21, %r23}}], [%r94];
             {load} [%r20], [%d2, {{%r21, %r25}}], [%r94];
             @!%p5 bra USED;
             FULL: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r93], %r43; @!%p1 bra FULL;
             tcgen05.fence::after_thread_sync;
             cvt.u64.u32 %d5, %r90; and.b64 %d5, %d5, 0x3ffff; shr.u64 %d5, %d5, 4;
             mov.b64 %d6, {a}; add.s64 %d6, %d6, %d5; mov.b64 %d7, {b}; add.s64 %d7, %d7, %d5; mov.u32 %r30, 0;
             STEP: tcgen05.mma.cta_group::2.kind::f16 [%r7], %d6, %d7, %r8, %p4;
             mov.pred %p4, 1; add.s64 %d6, %d6, 2; add.s64 %d7, %d7, 2; add.u32 %r30, %r30, 1;
             setp.lt.u32 %p1, %r30, 4; @%p1 bra STEP;
             tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r91], %h1;
             USED: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r91], %r43; @!%p1 bra USED;
             xor.b32 %r43, %r43, 1; add.u32 %r21, %r21, 64; setp.lt.u32 %p1, %r21, {k}; @%p1 bra STAGE;
             @%p5 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r95], %h1;
             WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r95], 0; @!%p1 bra WAIT;
             tcgen05.fence::after_thread_sync; shr.u32 %r9, %r1, 5; shl.b32 %r9, %r9, 21; add.u32 %r10, %r7, %r9;
             ld.param.u64 %d8, [p1]; mad.lo.u32 %r31, %r41, 256, %r1; mad.lo.u32 %r31, %r2, 128, %r31;
             mul.lo.u32 %r31, %r31, {n}; mad.lo.u32 %r31, %r42, 128, %r31; mad.wide.u32 %d9, %r31, 4, %d8;
             {first} {second}
             barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
             @!%p2 bra GONE; mov.u32 %r5, 128;
             tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r7, %r5; GONE:",
            m_tiles = m / 256,
            bits = instruction(256, 128, 1, 1, 0),
            a = descriptor(0, 16, 1024, 2) as i64,
            b = descriptor(16384, 16, 1024, 2) as i64,
            first = part(0),
            second = part(1),
        ),
    )
}

#[test]
fn stages_of_a_gemm() {
    let (m, n, k) = (256, 128, 128);
    let case = Case {
        text: gemm(m, n, k),
        launch: Launch {
            grid: [m / 256 * (n / 128) * 2, 1, 1],
            cluster: [2, 1, 1],
            ..threads(128)
        },
        buffers: vec![
            noise(((m + n) * k / 2) as usize, BRAIN),
            vec![0; (m * n) as usize],
            vec![0; 32],
        ],
        map: Some(TensorMap {
            address: 0,
            kind: 10,
            sizes: vec![k.into(), (m + n).into()],
            strides: vec![2 * u64::from(k)],
            box_sizes: vec![64, 64],
            swizzle: 3,
            fills_nan: false,
        }),
    };
    case.agrees();
}
