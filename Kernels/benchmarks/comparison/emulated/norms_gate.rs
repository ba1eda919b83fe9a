//! The row operations under the interpreter, against the oracles.

use machine::Schedule;
use norms::{Norm, Tensor};
use runtime::Memory;
use support::{
    assert_caught, assert_close, download, inputs, room, run, under, under_every_schedule, upload,
    Dtype, Variant, BF16,
};

fn run_norm(
    op: &str,
    rows: usize,
    columns: usize,
    tensors: &[(&str, &Memory)],
) -> Result<(), String> {
    let tensor = |&(name, memory): &(&str, &Memory)| Tensor {
        name: name.to_owned(),
        address: memory.address(),
    };
    let norm = Norm {
        op: op.to_owned(),
        rows,
        columns,
        dtype: Dtype::Bf16,
        weight_dtype: Dtype::Bf16,
        epsilon: 1e-6,
        tensors: tensors.iter().map(tensor).collect(),
    };
    // SAFETY: the addresses are those of the tensors.
    run(unsafe { norms::plan(&norm, Variant::Tuned) })
}

fn rmsnorm(rows: usize, columns: usize) -> impl Fn() {
    let (x, weight) = (inputs(1, rows * columns), inputs(2, columns));
    let wanted: Vec<f64> = x
        .chunks(columns)
        .flat_map(|row| reference::rmsnorm::forward(row, &weight, 1e-6))
        .collect();
    move || {
        let (x, weight, out) = (upload(&x), upload(&weight), room(rows * columns));
        let tensors = [("x", &x), ("weight", &weight), ("out", &out)];
        run_norm("rmsnorm_fwd", rows, columns, &tensors).unwrap();
        assert_close("out", &download(&out), &wanted, BF16, 1e-5);
    }
}

#[test]
fn rmsnorm_forward() {
    // One block a row, rows with a ragged end, and a row for a cluster.
    for (rows, columns) in [(5, 4096), (3, 1000), (2, 65536)] {
        under_every_schedule(rmsnorm(rows, columns));
    }
}

#[test]
fn planted_faults() {
    assert_caught(("bar.sync 0;", ""), rmsnorm(5, 4096));
    assert_caught(
        ("barrier.cluster.wait.acquire.aligned;", ""),
        rmsnorm(2, 65536),
    );
}

#[test]
fn softmax_forward() {
    let (rows, columns) = (4, 3000);
    let x: Vec<f64> = inputs(3, rows * columns)
        .iter()
        .map(|value| 8.0 * value)
        .collect();
    let wanted: Vec<f64> = x
        .chunks(columns)
        .flat_map(reference::softmax::forward)
        .collect();
    under_every_schedule(|| {
        let (x, out) = (upload(&x), room(rows * columns));
        let tensors = [("x", &x), ("out", &out)];
        run_norm("softmax_fwd", rows, columns, &tensors).unwrap();
        assert_close("out", &download(&out), &wanted, BF16, 1e-6);
    });
}

#[test]
fn rmsnorm_backward() {
    let (rows, columns) = (6, 2048);
    let (x, weight, gradient) = (
        inputs(4, rows * columns),
        inputs(5, columns),
        inputs(6, rows * columns),
    );
    let rstd: Vec<f64> = x
        .chunks(columns)
        .map(|row| f64::from(reference::rmsnorm::rstd(row, 1e-6) as f32))
        .collect();
    let row = |values: &[f64], at: usize| values[at * columns..][..columns].to_vec();
    let wanted: Vec<f64> = (0..rows)
        .flat_map(|at| {
            reference::rmsnorm::backward(&row(&x, at), &weight, &row(&gradient, at), rstd[at])
        })
        .collect();
    let weight_wanted: Vec<f64> = (0..columns)
        .map(|column| {
            (0..rows)
                .map(|at| {
                    let (x, gradient) = (x[at * columns + column], gradient[at * columns + column]);
                    reference::rmsnorm::weight_gradient_term(x, gradient, rstd[at])
                })
                .sum()
        })
        .collect();
    under_every_schedule(|| {
        let rstd: Vec<u8> = rstd
            .iter()
            .flat_map(|value| (*value as f32).to_le_bytes())
            .collect();
        let (x, weight, gradient, rstd) = (
            upload(&x),
            upload(&weight),
            upload(&gradient),
            Memory::from_bytes(&rstd),
        );
        let (x_gradient, weight_gradient) = (room(rows * columns), room(columns));
        let tensors = [
            ("x", &x),
            ("weight", &weight),
            ("out_gradient", &gradient),
            ("rstd", &rstd),
            ("x_gradient", &x_gradient),
            ("weight_gradient", &weight_gradient),
        ];
        run_norm("rmsnorm_bwd", rows, columns, &tensors).unwrap();
        assert_close("x_gradient", &download(&x_gradient), &wanted, BF16, 1e-2);
        assert_close(
            "weight_gradient",
            &download(&weight_gradient),
            &weight_wanted,
            BF16,
            1e-2,
        );
    });
}

#[test]
fn a_tensor_that_is_too_small_is_found_out() {
    under(Schedule::AtOnce, || {
        let (rows, columns) = (2, 1024);
        let (x, weight) = (
            upload(&inputs(1, rows * columns)),
            upload(&inputs(2, columns)),
        );
        let out = room(rows * columns - 8);
        let tensors = [("x", &x), ("weight", &weight), ("out", &out)];
        let text = run_norm("rmsnorm_fwd", rows, columns, &tensors).unwrap_err();
        assert!(
            text.contains("out of bounds") && text.contains("PTX line") && text.contains(".cuh:"),
            "{text}"
        );
    });
}
