//! Matrix products under the interpreter, against plain sums in f64.

use gemm::{Layout, Product};
use support::{
    assert_caught, assert_close, download, inputs, room, run, under_every_schedule, upload, Dtype,
    Variant, BF16,
};

fn product(rows: usize, n: usize, k: usize, variant: Variant) -> impl Fn() {
    let (a, b) = (inputs(1, rows * k), inputs(2, n * k));
    let wanted: Vec<f64> = (0..rows * n)
        .map(|at| {
            let (row, column) = (&a[at / n * k..][..k], &b[at % n * k..][..k]);
            row.iter().zip(column).map(|(a, b)| a * b).sum()
        })
        .collect();
    move || {
        let (a, b, out) = (upload(&a), upload(&b), room(rows * n));
        let product = Product {
            a: a.address(),
            b: b.address(),
            out: out.address(),
            a_scales: 0,
            b_scales: 0,
            index: 0,
            rows,
            n,
            k,
            groups: 1,
            dtype: Dtype::Bf16,
            layout: Layout::Dense,
            expected_rows: 0,
        };
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { gemm::plan(&product, variant) }).unwrap();
        assert_close(
            &format!("{rows}x{n}x{k}"),
            &download(&out),
            &wanted,
            BF16,
            1e-3,
        );
    }
}

#[test]
fn portable() {
    // Steps of depth that are no multiple of the stages, and rows that are no multiple of a tile.
    under_every_schedule(product(200, 256, 320, Variant::Portable));
}

#[test]
fn hopper() {
    // Several tiles a block, then few rows, where blocks of a cluster share k.
    under_every_schedule(product(300, 512, 320, Variant::Tuned));
    under_every_schedule(product(16, 256, 4096, Variant::Tuned));
}

#[test]
fn planted_faults() {
    let portable = product(200, 256, 320, Variant::Portable);
    assert_caught(
        ("cp.async.wait_group 2;", "cp.async.wait_group 3;"),
        &portable,
    );
    assert_caught(("xor.b32", "or.b32"), &portable);
    let hopper = product(300, 512, 320, Variant::Tuned);
    let wait = "wgmma.wait_group.sync.aligned 1;";
    assert_caught((wait, "wgmma.wait_group.sync.aligned 2;"), &hopper);
}
