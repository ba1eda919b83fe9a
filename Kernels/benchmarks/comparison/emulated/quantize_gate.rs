//! Quantization to e4m3 and e2m1 under the interpreter: scales against the oracle, values there and back.

use contender::{Problem, Slice};
use numeric::DType;
use quantize::{NormQuantization, Quantization, Scaling};
use reference::quantize::{
    e2m1_code, mxfp4_scale, nvfp4_scale, nvfp4_scaled, scale, scale_place, scaled, tiled_scales,
    ScaleFormat,
};
use runtime::Memory;
use support::kinds::assert_right_on_every_kind;
use support::{
    assert_caught, assert_close, assert_race, assert_value_mutants, download, forms_of, inputs,
    is_blackwell, room, room_for_singles, run, under_every_schedule, upload, Dtype, Kind, Survivor,
    Variant,
};
use tensor::Inputs;
use workloads::{RowShape, TrainingOp, TrainingProblem, TrainingShape, TrainingSuite};

const COLUMNS: usize = 400;

/// Quantised as the plain kernel does, to the scales of the oracle, and back to within a step.
fn there_and_back(scaling: Scaling, rows: usize) -> impl Fn() {
    let x: Vec<f64> = inputs(1, rows * COLUMNS)
        .iter()
        .map(|value| 4.0 * value)
        .collect();
    move || {
        let quantize = |inverse, x: &Memory, (quantized, scales): (&Memory, &Memory), variant| {
            let given = Quantization {
                inverse,
                scaling,
                dtype: Dtype::Bf16,
                rows,
                columns: COLUMNS,
                x: x.address(),
                quantized: quantized.address(),
                scales: scales.address(),
                tensor_scale: 0,
            };
            // SAFETY: the addresses are those of the tensors.
            run(unsafe { quantize::plan(&given, variant) }).unwrap();
        };
        let device = upload(&x);
        // Room for the finest scales; a row has four groups.
        let [tuned, plain] = [Variant::Tuned, Variant::Plain].map(|variant| {
            let (quantized, scales) = (Memory::new(rows * COLUMNS), room_for_singles(rows * 4));
            quantize(false, &device, (&quantized, &scales), variant);
            (quantized, scales)
        });
        assert_eq!(tuned.0.to_bytes(), plain.0.to_bytes(), "{scaling:?}");
        assert_eq!(tuned.1.to_bytes(), plain.1.to_bytes(), "{scaling:?}");
        if scaling == Scaling::Row {
            let wanted: Vec<u8> = x
                .chunks(COLUMNS)
                .map(|row| scale(ScaleFormat::F32, row.iter().map(|value| *value as f32)))
                .flat_map(f32::to_le_bytes)
                .collect();
            assert_eq!(tuned.1.to_bytes()[..4 * rows], wanted);
        }
        let out = room(rows * COLUMNS);
        quantize(true, &out, (&tuned.0, &tuned.1), Variant::Tuned);
        // Three bits of mantissa, and the smallest step of the largest scale.
        assert_close(
            &format!("{scaling:?}"),
            &download(&out),
            &x,
            1.0 / 14.0,
            3e-5,
        );
    }
}

#[test]
fn every_scaling() {
    for scaling in [
        Scaling::Row,
        Scaling::Group,
        Scaling::GroupUe8m0,
        Scaling::Block,
    ] {
        under_every_schedule(there_and_back(scaling, 130));
    }
}

/// A problem of workloads, all of it against the oracle: quantised bit for bit.
fn right_on_every_kind(op: TrainingOp, dtype: DType) {
    // A last tile of scales with one row, a last group of 32 with half its elements.
    let shape = RowShape {
        rows: 129,
        columns: 176,
    };
    let (shape, workload) = TrainingSuite::custom(TrainingShape::Rows(shape));
    let problem = TrainingProblem::new(op, shape, dtype, workload);
    for variant in [Variant::Tuned, Variant::Plain] {
        assert_right_on_every_kind(&problem, |address| {
            let given = tiled(
                op,
                address,
                (129, 176),
                Dtype::named(&dtype.to_string()).unwrap(),
            );
            // SAFETY: the addresses are those of the tensors.
            unsafe { quantize::plan(&given, variant) }
        });
    }
}

fn tiled(
    op: TrainingOp,
    address: &dyn Fn(&str) -> usize,
    (rows, columns): (usize, usize),
    dtype: Dtype,
) -> Quantization {
    let (inverse, scaling) = match op {
        TrainingOp::Quantize(scaling) => (false, scaling),
        TrainingOp::Dequantize(scaling) => (true, scaling),
        other => panic!("{other} does not quantise"),
    };
    Quantization {
        inverse,
        scaling: match scaling {
            workloads::Scaling::Mxfp8 => Scaling::Mxfp8,
            workloads::Scaling::Mxfp4 => Scaling::Mxfp4,
            _ => Scaling::Nvfp4,
        },
        dtype,
        rows,
        columns,
        x: address(if inverse { "out" } else { "x" }),
        quantized: address("quantized"),
        scales: address("scales"),
        tensor_scale: address("tensor_scale"),
    }
}

#[test]
fn scales_in_tiles() {
    for scaling in [
        workloads::Scaling::Mxfp8,
        workloads::Scaling::Nvfp4,
        workloads::Scaling::Mxfp4,
    ] {
        for dtype in [DType::Bf16, DType::F32] {
            right_on_every_kind(TrainingOp::Quantize(scaling), dtype);
            right_on_every_kind(TrainingOp::Dequantize(scaling), dtype);
        }
    }
}

/// MXFP8 of a tensor that begins at an element: whether 32 bytes are loaded at once, and the values.
fn quantised_from(start: usize) -> (bool, Vec<u8>) {
    let (rows, columns) = (4, 64);
    let x: Vec<f64> = vec![0.0; start]
        .into_iter()
        .chain(inputs(1, rows * columns))
        .collect();
    let (device, quantized) = (upload(&x), Memory::new(rows * columns));
    // One tile of scales.
    let scales = Memory::new(512);
    let given = Quantization {
        inverse: false,
        scaling: Scaling::Mxfp8,
        dtype: Dtype::Bf16,
        rows,
        columns,
        x: device.address() + 2 * start,
        quantized: quantized.address(),
        scales: scales.address(),
        tensor_scale: 0,
    };
    // SAFETY: the addresses are those of the tensors.
    let forms = forms_of(|| run(unsafe { quantize::plan(&given, Variant::Tuned) }).unwrap());
    let wide = forms.iter().any(|form| form.starts_with("ld.global.v8"));
    (wide, quantized.to_bytes())
}

#[test]
fn packets_of_16_and_32_bytes() {
    let (is_wide, values) = quantised_from(0);
    assert_eq!(is_wide, is_blackwell());
    assert_eq!(quantised_from(8), (false, values));
}

/// Zeros, the smallest and largest, NaN and infinity, and every tie between two codes of e2m1.
fn special_rows() -> (Vec<f32>, usize) {
    const COLUMNS: usize = 64;
    let specials = [
        0.0,
        -0.0,
        f32::MIN_POSITIVE / 8.0,
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        1e-30,
        448.0,
        449.0,
    ];
    let rows = specials.iter().flat_map(|&special| {
        (0..COLUMNS).map(move |column| match column {
            20 => special,
            16..32 => (column as f32 - 24.0) * 0.25,
            48.. => special,
            // 6 is the largest: with a scale of 1 these are the ties.
            40 => 6.0,
            _ => [0.25, -0.75, 1.25, 1.75, -2.5, 3.5, 5.0, -0.25][column % 8],
        })
    });
    (rows.collect(), COLUMNS)
}

#[test]
fn special_values() {
    let (x, columns) = special_rows();
    let rows = x.len() / columns;
    let bytes: Vec<u8> = x.iter().flat_map(|value| value.to_le_bytes()).collect();
    let formats = [
        (Scaling::Mxfp8, 32),
        (Scaling::Nvfp4, 16),
        (Scaling::Mxfp4, 32),
    ];
    for (scaling, group) in formats {
        let blocks = columns / group;
        under_every_schedule(|| {
            let x_memory = Memory::from_bytes(&bytes);
            let of_tensor = Memory::from_bytes(&1f32.to_le_bytes());
            let results = [Variant::Tuned, Variant::Plain].map(|variant| {
                let quantized = Memory::new(x.len());
                let scales = Memory::new(tiled_scales(rows, blocks));
                let given = Quantization {
                    inverse: false,
                    scaling,
                    dtype: Dtype::F32,
                    rows,
                    columns,
                    x: x_memory.address(),
                    quantized: quantized.address(),
                    scales: scales.address(),
                    tensor_scale: of_tensor.address(),
                };
                // SAFETY: the addresses are those of the tensors.
                run(unsafe { quantize::plan(&given, variant) }).unwrap();
                (quantized.to_bytes(), scales.to_bytes())
            });
            assert_eq!(results[0], results[1], "{scaling:?}");
            let (codes, scales) = &results[0];
            for (index, values) in x.chunks(group).enumerate() {
                let (row, block) = (index / blocks, index % blocks);
                let code = scales[scale_place(row, block, blocks)];
                let values = values.iter().copied();
                if scaling != Scaling::Nvfp4 {
                    let wanted = match scaling {
                        Scaling::Mxfp4 => mxfp4_scale(values.clone()),
                        _ => scale(ScaleFormat::Ue8m0, values.clone()),
                    };
                    let exponent = if wanted.is_nan() {
                        0xff
                    } else {
                        wanted.to_bits() >> 23
                    };
                    assert_eq!(u32::from(code), exponent, "row {row}, group {block}");
                    if scaling == Scaling::Mxfp4 {
                        for (at, value) in values.enumerate() {
                            let place = index * group + at;
                            let code = codes[place / 2] >> (place % 2 * 4) & 15;
                            let wanted = e2m1_code(scaled(value, wanted));
                            assert_eq!(code, wanted, "row {row}, element {at} of group {block}");
                        }
                    }
                    continue;
                }
                let wanted = DType::F8E4M3.round(f64::from(nvfp4_scale(1.0, values.clone())));
                let found = DType::F8E4M3.decode_one(&[code]);
                assert!(
                    found == wanted || (found.is_nan() && wanted.is_nan()),
                    "row {row}, group {block}: {found}, not {wanted}"
                );
                for (at, value) in values.enumerate() {
                    let place = index * group + at;
                    let code = codes[place / 2] >> (place % 2 * 4) & 15;
                    let wanted = e2m1_code(nvfp4_scaled(value, wanted as f32, 1.0));
                    assert_eq!(code, wanted, "row {row}, element {at} of group {block}");
                }
            }
        });
    }
}

/// The scales of rows and codes of e4m3 as the oracle has them.
fn rows_to_e4m3(rows: usize, columns: usize) -> impl Fn() {
    let x: Vec<f64> = inputs(1, rows * columns)
        .iter()
        .map(|value| 4.0 * value)
        .collect();
    move || {
        let (device, quantized) = (upload(&x), Memory::new(rows * columns));
        let scales = room_for_singles(rows);
        let given = Quantization {
            inverse: false,
            scaling: Scaling::Row,
            dtype: Dtype::Bf16,
            rows,
            columns,
            x: device.address(),
            quantized: quantized.address(),
            scales: scales.address(),
            tensor_scale: 0,
        };
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { quantize::plan(&given, Variant::Tuned) }).unwrap();
        let codes = quantized.to_bytes();
        for (at, row) in x.chunks(columns).enumerate() {
            let wanted = scale(ScaleFormat::F32, row.iter().map(|value| *value as f32));
            assert_eq!(scales.to_bytes()[4 * at..][..4], wanted.to_le_bytes());
            for (code, value) in codes[at * columns..].iter().zip(row) {
                let value = DType::F8E4M3.round(f64::from(scaled(*value as f32, wanted)));
                assert_eq!(DType::F8E4M3.decode_one(&[*code]), value, "row {at}");
            }
        }
    }
}

#[test]
fn planted_faults() {
    let case = rows_to_e4m3(3, 4096);
    under_every_schedule(&case);
    // Warps of a row tell each other their largest through shared memory.
    assert_caught(("bar.sync 0;", ""), &case);
    assert_race(("bar.sync 0;", ""), "is not ordered with", &case);
    assert_caught(("max.u32", "min.u32"), &case);
    assert_caught(("setp.lt.s32", "setp.le.s32"), &case);
}

#[test]
fn mutants() {
    let survivors = [
        Survivor {
            kind: Kind::Offset,
            count: 1,
            why: "an element that is not the largest of its row is left out of the maximum",
        },
        Survivor {
            kind: Kind::Bound,
            count: 1,
            why:
                "the first lets threads without elements leave early; every packet is checked again",
        },
    ];
    assert_value_mutants("row", (2, 6), &survivors, there_and_back(Scaling::Row, 3));
}

#[test]
fn mutants_of_groups() {
    let survivors = [
        Survivor {
            kind: Kind::Bound,
            count: 2,
            why: "one as of rows; one of a packet that no thread has at this size",
        },
        Survivor {
            kind: Kind::Extreme,
            count: 1,
            why: "of a packet that no thread has at this size",
        },
        Survivor {
            kind: Kind::ShuffleStep,
            count: usize::from(is_blackwell()),
            why: "the same packet",
        },
    ];
    assert_value_mutants(
        "group",
        (2, 6),
        &survivors,
        there_and_back(Scaling::Group, 3),
    );
}

fn norm_problem(
    scaling: workloads::Scaling,
    (rows, columns): (usize, usize),
    dtype: DType,
) -> TrainingProblem {
    let shape = TrainingShape::Rows(RowShape { rows, columns });
    let (shape, workload) = TrainingSuite::custom(shape);
    TrainingProblem::new(TrainingOp::NormQuantize(scaling), shape, dtype, workload)
}

fn of_norm(
    problem: &TrainingProblem,
    (rows, columns): (usize, usize),
    address: &dyn Fn(&str) -> usize,
) -> NormQuantization {
    NormQuantization {
        scaling: match problem.op {
            TrainingOp::NormQuantize(workloads::Scaling::Mxfp8) => Scaling::Mxfp8,
            TrainingOp::NormQuantize(workloads::Scaling::Nvfp4) => Scaling::Nvfp4,
            _ => Scaling::Group,
        },
        dtype: Dtype::named(&problem.dtype().to_string()).unwrap(),
        rows,
        columns,
        epsilon: problem.op.epsilon().unwrap(),
        x: address("x"),
        weight: address("weight"),
        quantized: address("quantized"),
        scales: address("scales"),
        tensor_scale: match problem.op {
            TrainingOp::NormQuantize(workloads::Scaling::Nvfp4) => address("tensor_scale"),
            _ => 0,
        },
    }
}

/// A norm that is quantised: every code is the nearest to the oracle's value, or as near as the sum's rounding lets it
/// be; with rounded scales, the oracle's own.
fn norm_of(
    scaling: workloads::Scaling,
    (rows, columns): (usize, usize),
    dtype: DType,
    variant: Variant,
) -> impl Fn() {
    const SEED: u64 = 5;
    // Of the sum, of the root and of three products in f32.
    const SLACK: f64 = 1e-6;
    let problem = norm_problem(scaling, (rows, columns), dtype);
    let wanted: Vec<Slice> = {
        let inputs = Inputs::new(problem.tensors(), SEED);
        let units = 0..problem.units();
        units
            .flat_map(|unit| problem.oracle(&inputs, unit))
            .collect()
    };
    let filled = |place: usize| {
        let spec = &problem.tensors()[place];
        let mut bytes = vec![0xFF; spec.bytes()];
        if spec.role.is_read() {
            tensor::fill_into(spec, place as u32, SEED, 0, &mut bytes);
        }
        bytes
    };
    let contents: Vec<Vec<u8>> = (0..problem.tensors().len()).map(filled).collect();
    move || {
        let memories: Vec<Memory> = contents
            .iter()
            .map(|bytes| Memory::from_bytes(bytes))
            .collect();
        let place = |name: &str| tensor::place(problem.tensors(), name);
        let address = |name: &str| memories[place(name)].address();
        let given = of_norm(&problem, (rows, columns), &address);
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { quantize::plan_norm(&given, variant) }).unwrap();
        let outputs: Vec<Vec<f64>> = problem
            .tensors()
            .iter()
            .zip(&memories)
            .map(|(spec, memory)| spec.dtype.decode(&memory.to_bytes()[..spec.bytes()]))
            .collect();
        for slice in &wanted {
            let spec = &problem.tensors()[slice.tensor];
            let found = &outputs[slice.tensor][slice.start..][..slice.values.len()];
            for (at, (&found, &wanted)) in found.iter().zip(&slice.values).enumerate() {
                let near = match spec.name {
                    _ if problem.op.is_exact() => found == wanted,
                    "scales" => (found - wanted).abs() <= SLACK * wanted,
                    _ => [1.0 - SLACK, 1.0, 1.0 + SLACK]
                        .map(|factor| spec.dtype.round(wanted * factor))
                        .contains(&found),
                };
                let (name, place) = (spec.name, slice.start + at);
                assert!(
                    near,
                    "{rows}x{columns}: {name}[{place}] is {found}, not {wanted}"
                );
            }
        }
    }
}

const GROUP: workloads::Scaling = workloads::Scaling::Group;
const IN_TILES: [workloads::Scaling; 2] = [workloads::Scaling::Mxfp8, workloads::Scaling::Nvfp4];

#[test]
fn quantised_norms() {
    // A warp per row with one packet and with two, the last group with half of its elements; blocks; rows that are
    // read twice.
    for (rows, columns) in [(5, 208), (6, 512), (3, 2000), (2, 4096), (1, 70_000)] {
        for dtype in [DType::Bf16, DType::F32] {
            under_every_schedule(norm_of(GROUP, (rows, columns), dtype, Variant::Tuned));
        }
    }
    under_every_schedule(norm_of(GROUP, (5, 208), DType::F16, Variant::Tuned));
    under_every_schedule(norm_of(GROUP, (3, 2000), DType::Bf16, Variant::Plain));
}

#[test]
fn quantised_norms_with_scales_in_tiles() {
    for scaling in IN_TILES {
        // A second tile of scales with one row; a last group of 32 with half its elements; rows of several warps, and
        // those that are read twice.
        for size in [(129, 176), (3, 2000), (1, 70_000)] {
            under_every_schedule(norm_of(scaling, size, DType::Bf16, Variant::Tuned));
        }
        under_every_schedule(norm_of(scaling, (5, 208), DType::F32, Variant::Tuned));
        under_every_schedule(norm_of(scaling, (5, 208), DType::F16, Variant::Tuned));
        under_every_schedule(norm_of(scaling, (129, 176), DType::Bf16, Variant::Plain));
    }
}

#[test]
fn quantised_norms_of_every_kind_of_inputs() {
    let [mxfp8, nvfp4] = IN_TILES;
    for scaling in [GROUP, mxfp8, nvfp4] {
        for size in [(13, 208), (3, 2000)] {
            let problem = norm_problem(scaling, size, DType::Bf16);
            for variant in [Variant::Tuned, Variant::Plain] {
                assert_right_on_every_kind(&problem, |address| {
                    let given = of_norm(&problem, size, address);
                    // SAFETY: the addresses are those of the tensors.
                    unsafe { quantize::plan_norm(&given, variant) }
                });
            }
        }
    }
}

#[test]
fn planted_faults_of_quantised_norms() {
    let norm = || norm_of(GROUP, (2, 4096), DType::Bf16, Variant::Tuned);
    assert_caught(("bar.sync 0;", ""), norm());
    assert_race(("bar.sync 0;", ""), "is not ordered with", norm());
    // Times the root, not its inverse.
    assert_caught(("rsqrt.approx.f32", "sqrt.approx.f32"), norm());
    for scaling in IN_TILES {
        let norm = || norm_of(scaling, (2, 4096), DType::Bf16, Variant::Tuned);
        assert_race(("bar.sync 0;", ""), "is not ordered with", norm());
        assert_caught(("rcp.rn.f64", "neg.f64"), norm());
        // Scales of a word in each other's places.
        assert_caught(("shfl.sync.bfly.b32", "shfl.sync.up.b32"), norm());
    }
}

#[test]
fn mutants_of_quantised_norms() {
    let survivors = |count, why| {
        [Survivor {
            kind: Kind::Bound,
            count,
            why,
        }]
    };
    let warp = norm_of(GROUP, (3, 208), DType::Bf16, Variant::Tuned);
    let why = "how sums over chunks and warps are unrolled, of which there is one";
    assert_value_mutants("norm of a warp", (8, 6), &survivors(3, why), warp);
    let block = norm_of(GROUP, (2, 2000), DType::Bf16, Variant::Tuned);
    let why =
        "how they are unrolled; the row of a block, which exists; packets that every thread has";
    let count = if is_blackwell() { 7 } else { 6 };
    assert_value_mutants("norm of a block", (8, 6), &survivors(count, why), block);
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
