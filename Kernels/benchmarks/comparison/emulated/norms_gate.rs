//! The row operations under the interpreter, against the oracles.

use contender::Problem;
use machine::{Schedule, Watch};
use norms::{Norm, Tensor};
use numeric::DType;
use reference::layernorm::Statistics;
use reference::{layernorm, rmsnorm};
use runtime::Memory;
use support::kinds::assert_right_on_every_kind;
use support::{
    assert_caught, assert_close, assert_mutants, assert_race, assert_too_early, download, forms_of,
    inputs, is_blackwell, of_type, room, run, under, under_every_schedule, upload, Dtype, Kind,
    Survivor, Variant, BF16,
};
use tensor::TensorSpec;
use workloads::{NormOp, NormProblem, NormSuite, NormTypes, RowShape};

fn run_norm(
    op: &str,
    rows: usize,
    columns: usize,
    tensors: &[(&str, &Memory)],
) -> Result<(), String> {
    run_norm_of(Dtype::Bf16, op, rows, columns, tensors)
}

fn run_norm_of(
    dtype: Dtype,
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
        dtype,
        weight_dtype: dtype,
        epsilon: 1e-6,
        tensors: tensors.iter().map(tensor).collect(),
    };
    // SAFETY: the addresses are those of the tensors.
    run(unsafe { norms::plan(&norm, Variant::Tuned) })
}

fn rmsnorm_of(rows: usize, columns: usize) -> impl Fn() {
    let (x, weight) = (inputs(1, rows * columns), inputs(2, columns));
    let wanted: Vec<f64> = x
        .chunks(columns)
        .flat_map(|row| rmsnorm::forward(row, &weight, 1e-6))
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
    // One block a row, in packets of 32 bytes where the machine has them and without, and one that parks its row;
    // clusters, of one chunk a block and of several; all of these with a ragged end.
    let aligned = [(5, 4096), (5, 4104), (5, 16_392), (2, 65536), (1, 140_000)];
    let ragged = [(3, 1000), (2, 5001), (2, 9001), (1, 70_001)];
    // The latter in words of four and eight bytes: several rows a block, one, one a cluster, and more than run at
    // once.
    let words = [
        (20, 130),
        (3, 1002),
        (2, 9002),
        (20, 132),
        (3, 1004),
        (2, 9004),
        (90, 258),
        (40, 1028),
    ];
    for (rows, columns) in aligned.into_iter().chain(ragged).chain(words) {
        under_every_schedule(rmsnorm_of(rows, columns));
    }
}

#[test]
fn planted_faults() {
    assert_caught(("bar.sync 0;", ""), rmsnorm_of(5, 4096));
    assert_race(
        ("bar.sync 0;", ""),
        "is not ordered with",
        rmsnorm_of(5, 4096),
    );
    assert_too_early(
        ("barrier.cluster.wait.acquire.aligned;", ""),
        rmsnorm_of(2, 65536),
    );
}

/// Blackwell moves 32 bytes at once where rows are whole pieces of them.
#[test]
fn packets_of_16_and_32_bytes() {
    for (columns, fits) in [(4096, true), (4104, false)] {
        let forms = forms_of(rmsnorm_of(2, columns));
        for form in ["ld.global.v8", "st.global.v8"] {
            let ran = forms.iter().any(|ran| ran.starts_with(form));
            assert_eq!(ran, fits && is_blackwell(), "{form} of {columns} columns");
        }
    }
}

#[test]
fn softmax_forward() {
    // The last three by clusters that hold their rows; a single one by 16 blocks, whose warps send each other what
    // they have, or are so many that each block's meet first.
    for (rows, columns) in [(4, 3000), (4, 3008), (3, 40_000), (1, 61_448), (1, 66_000)] {
        under_every_schedule(softmax_forward_of(rows, columns));
    }
}

fn softmax_forward_of(rows: usize, columns: usize) -> impl Fn() {
    let x: Vec<f64> = inputs(3, rows * columns)
        .iter()
        .map(|value| 8.0 * value)
        .collect();
    let wanted: Vec<f64> = x
        .chunks(columns)
        .flat_map(reference::softmax::forward)
        .collect();
    move || {
        let (x, out) = (upload(&x), room(rows * columns));
        let tensors = [("x", &x), ("out", &out)];
        run_norm("softmax_fwd", rows, columns, &tensors).unwrap();
        assert_close("out", &download(&out), &wanted, BF16, 1e-6);
    }
}

/// The backward pass of a norm; in place, the gradient of x overwrites that of the output.
fn backward(centred: bool, rows: usize, columns: usize, in_place: bool) -> impl Fn() {
    backward_of(Dtype::Bf16, centred, rows, columns, in_place)
}

fn backward_of(
    dtype: Dtype,
    centred: bool,
    rows: usize,
    columns: usize,
    in_place: bool,
) -> impl Fn() {
    let (element, name) = match dtype {
        Dtype::F32 => (DType::F32, "f32"),
        _ => (DType::Bf16, "bf16"),
    };
    let (x, weight, gradient) = (
        inputs(4, rows * columns),
        inputs(5, columns),
        inputs(6, rows * columns),
    );
    // What a forward pass saves, rounded as it is stored; RMSNorm has no mean.
    let saved: Vec<Statistics<f64>> = inputs(7, rows)
        .iter()
        .map(|value| Statistics {
            mean: f64::from(if centred { 0.1 * *value as f32 } else { 0.0 }),
            rstd: f64::from((1.7 + 0.1 * value) as f32),
        })
        .collect();
    let row = |values: &[f64], at: usize| values[at * columns..][..columns].to_vec();
    let mut wanted = Vec::new();
    let mut sums = vec![vec![0.0; columns]; 2];
    for (at, saved) in saved.iter().enumerate() {
        let (x, gradient) = (row(&x, at), row(&gradient, at));
        wanted.extend(if centred {
            layernorm::backward(&x, &weight, &gradient, *saved)
        } else {
            rmsnorm::backward(&x, &weight, &gradient, saved.rstd)
        });
        for column in 0..columns {
            sums[0][column] += layernorm::weight_gradient_term(x[column], gradient[column], *saved);
            sums[1][column] += gradient[column];
        }
    }
    move || {
        let floats = |of: fn(&Statistics<f64>) -> f64| {
            let bytes = saved
                .iter()
                .flat_map(|saved| (of(saved) as f32).to_le_bytes());
            Memory::from_bytes(&bytes.collect::<Vec<u8>>())
        };
        let (mean, rstd) = (floats(|saved| saved.mean), floats(|saved| saved.rstd));
        let upload = |values: &[f64]| of_type(name, Memory::from_bytes(&element.encode(values)));
        let room = |count: usize| of_type(name, Memory::new(count * element.size_bytes()));
        let download = |memory: &Memory| element.decode(&memory.to_bytes());
        let (x, weight, out_gradient) = (upload(&x), upload(&weight), upload(&gradient));
        let (other, weight_gradient, bias_gradient) =
            (room(rows * columns), room(columns), room(columns));
        let x_gradient = if in_place { &out_gradient } else { &other };
        let tensors = [
            ("x", &x),
            ("weight", &weight),
            ("out_gradient", &out_gradient),
            ("mean", &mean),
            ("rstd", &rstd),
            ("x_gradient", x_gradient),
            ("weight_gradient", &weight_gradient),
            ("bias_gradient", &bias_gradient),
        ];
        let op = if centred {
            "layernorm_bwd"
        } else {
            "rmsnorm_bwd"
        };
        run_norm_of(dtype, op, rows, columns, &tensors).unwrap();
        assert_close("x_gradient", &download(x_gradient), &wanted, BF16, 1e-2);
        assert_close(
            "weight_gradient",
            &download(&weight_gradient),
            &sums[0],
            BF16,
            1e-2,
        );
        if centred {
            assert_close(
                "bias_gradient",
                &download(&bias_gradient),
                &sums[1],
                BF16,
                1e-2,
            );
        }
    }
}

#[test]
fn backward_of_few_rows() {
    // One row, a ragged last block of columns, more rows than threads add up at once, two and four
    // packets per thread, enough rows that blocks of columns come first, and rows at any address.
    for (rows, columns) in [
        (1, 2048),
        (6, 1032),
        (70, 264),
        (3, 12288),
        (200, 136),
        (5, 1001),
        (9, 333),
        (2, 9218),
    ] {
        for centred in [false, true] {
            under_every_schedule(backward(centred, rows, columns, false));
        }
    }
}

#[test]
fn backward_of_wide_rows() {
    // Shares of a row in two blocks, the second shorter, and in four.
    for centred in [false, true] {
        under_every_schedule(backward(centred, 5, 16_392, false));
        under_every_schedule(backward(centred, 9, 16_392, false));
        under(Schedule::AtOnce, backward(centred, 4, 32_776, false));
        // Several clusters on an SM.
        under(Schedule::AtOnce, backward(centred, 26, 17_936, false));
    }
}

#[test]
fn backward_at_any_address() {
    // More rows than one launch takes, through a ring: whole and ragged warps, an even and an odd
    // shift, and a last row that ends within a packet.
    for (rows, columns) in [(513, 258), (514, 301)] {
        for centred in [false, true] {
            under_every_schedule(backward(centred, rows, columns, false));
        }
    }
    // Four packets per thread.
    under(Schedule::AtOnce, backward(true, 513, 4099, false));
}

/// Rows of singles that are whole packets, or not, but never whole pairs of them.
#[test]
fn backward_of_singles() {
    for (rows, columns) in [(7, 1028), (40, 516), (513, 132), (513, 270)] {
        for in_place in [false, true] {
            under_every_schedule(backward_of(Dtype::F32, true, rows, columns, in_place));
        }
    }
}

#[test]
fn backward_in_place() {
    // Rows straight to registers, through a ring in shared memory, and rows so long that a thread has
    // four packets, and LayerNorm's sums for the bias are in shared memory too; and rows that share
    // packets.
    for (rows, columns) in [(6, 2048), (40, 2048), (14, 9216), (40, 1001)] {
        for centred in [false, true] {
            under_every_schedule(backward(centred, rows, columns, true));
        }
    }
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

#[test]
fn every_kind_of_inputs() {
    for op in NormOp::all() {
        for (rows, columns) in [(7, 1000), (3, 8192), (2, 9001), (3, 9002), (7, 1004)] {
            right_on_every_kind(op, rows, columns);
        }
    }
}

/// Rows of a vocabulary: in chunks, held, and by blocks that never meet.
#[test]
fn every_kind_of_long_rows() {
    right_on_every_kind(NormOp::CrossEntropyForward, 1, 140_000);
    right_on_every_kind(NormOp::CrossEntropyForwardBackward, 3, 80_000);
    right_on_every_kind(NormOp::CrossEntropyBackward, 2, 40_008);
    right_on_every_kind(NormOp::LayerNormForward, 5, 16_392);
    // Two rows, in the registers of a cluster.
    right_on_every_kind(NormOp::SoftmaxBackward, 5, 17_936);
    right_on_every_kind(NormOp::FusedAddRmsNorm, 5, 17_936);
}

fn right_on_every_kind(op: NormOp, rows: usize, columns: usize) {
    let (shape, workload) = NormSuite::custom(RowShape { rows, columns });
    let types = NormTypes {
        activation: DType::Bf16,
        weight: DType::Bf16,
    };
    let problem = NormProblem::new(op, shape, types, workload);
    assert_right_on_every_kind(&problem, |address| {
        let tensor = |spec: &TensorSpec| Tensor {
            name: spec.name.to_owned(),
            address: address(spec.name),
        };
        let norm = Norm {
            op: op.name().to_owned(),
            rows,
            columns,
            dtype: Dtype::Bf16,
            weight_dtype: Dtype::Bf16,
            epsilon: problem.epsilon,
            tensors: problem.tensors().iter().map(tensor).collect(),
        };
        // SAFETY: the addresses are those of the tensors.
        unsafe { norms::plan(&norm, Variant::Tuned) }
    });
}

#[test]
fn mutants() {
    assert_mutants("block", (2, 1), Watch::All, &[], rmsnorm_of(5, 4096));
    let second = Survivor {
        kind: Kind::ArriveCount,
        count: 1,
        why: "a second mbarrier is for a second reduction",
    };
    let fenced = Survivor {
        kind: Kind::DropInitFence,
        count: 1,
        why: "the fence after the mbarriers of the row's chunks is enough",
    };
    let again = Survivor {
        kind: Kind::DropPhaseWait,
        count: 1,
        why: "what is read once more has been waited for",
    };
    assert_mutants(
        "cluster",
        (2, 3),
        Watch::All,
        &[second],
        rmsnorm_of(2, 65536),
    );
    let held = softmax_forward_of(1, 262_144);
    assert_mutants("held", (2, 9), Watch::All, &[fenced, again], held);
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
