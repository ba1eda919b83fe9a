//! Every training primitive, type and kind of shape passes the gate: on the GPU with our kernels,
//! on the CPU with the CPU contenders. Quantisation is bit-exact, even for bad inputs.

use contender::{DeviceKind, Kind, Problem, Support, Tensors};
use device::Device;
use drawn::Draw;
use examine::{cpu, gpu, Rules};
use gate::BufferSet;
use numeric::DType;
use reference::quantize::{
    e2m1_code, mxfp4_scale, nvfp4_scale, nvfp4_scaled, scale_place, tiled_scales,
};
use workloads::{
    RopeShape, RowShape, Scaling, TrainingOp, TrainingProblem, TrainingShape, TrainingSuite,
};

const SEED: u64 = 30;
const RULES: Rules = Rules {
    seed: SEED,
    units: 12,
    units_second: 4,
    adopts_reference: false,
    may_decline: |identity| identity.kind == Kind::Baseline,
};
const RANDOM_SHAPES: u64 = 200;
const TYPES: [DType; 3] = [DType::Bf16, DType::F16, DType::F32];

/// Most elements for the shapes of a device.
const GPU: usize = 1 << 23;
const CPU: usize = 1 << 15;

#[test]
fn cpu_contenders_pass() {
    let device = cpu();
    pass(&*device, random_problems(CPU));
    pass(&*device, suite_problems(&[TrainingSuite::Smoke]));
}

#[test]
fn cpu_quantisation_of_faults_is_exact() {
    let device = cpu();
    faults_are_exact(&*device);
}

#[test]
fn gpu_contenders_pass_random_shapes() {
    if let Some(device) = gpu() {
        pass(&*device, random_problems(GPU));
    }
}

#[test]
fn gpu_contenders_pass_suites() {
    if let Some(device) = gpu() {
        pass(
            &*device,
            suite_problems(&TrainingSuite::all().collect::<Vec<_>>()),
        );
    }
}

#[test]
fn gpu_quantisation_of_faults_is_exact() {
    if let Some(device) = gpu() {
        faults_are_exact(&*device);
    }
}

/// Past 2^31 elements, where 32-bit offsets would wrap around.
#[test]
fn gpu_contenders_pass_beyond_32_bits() {
    if let Some(device) = gpu() {
        let problems = TrainingOp::all().map(|op| {
            let shape = if op.is_rope() {
                TrainingShape::Rope(RopeShape {
                    batch: 33,
                    sequence: 8192,
                    query_heads: 64,
                    key_heads: 2,
                    dim: 128,
                })
            } else {
                TrainingShape::Rows(RowShape {
                    rows: 540_000,
                    columns: 4096,
                })
            };
            problem(op, shape, DType::Bf16)
        });
        pass(&*device, problems.collect());
    }
}

fn problem(op: TrainingOp, shape: TrainingShape, dtype: DType) -> TrainingProblem {
    let (shape, workload) = TrainingSuite::custom(shape);
    TrainingProblem::new(op, shape, dtype, workload)
}

fn random_problems(elements: usize) -> Vec<TrainingProblem> {
    Draw::all(SEED, RANDOM_SHAPES)
        .map(|draw| drawn::training(&draw, elements, &TYPES))
        .collect()
}

fn suite_problems(suites: &[TrainingSuite]) -> Vec<TrainingProblem> {
    let mut problems = Vec::new();
    for op in TrainingOp::all() {
        for (shape, workload) in suites.iter().flat_map(|suite| suite.workloads(op)) {
            // One type is enough if a shape is large.
            let small = workload.suite == "smoke";
            let types = if small { &TYPES[..] } else { &TYPES[..1] };
            for &dtype in types {
                problems.push(TrainingProblem::new(op, shape, dtype, workload.clone()));
            }
        }
    }
    problems
}

fn pass(device: &dyn Device, problems: Vec<TrainingProblem>) {
    let contenders = training_contenders::contenders(device.info().kind);
    let passed = examine::pass(device, &contenders, &problems, &RULES, |problem| {
        format!("{} {} {}", problem.op, problem.shape, problem.dtype())
    });
    // The lock has the CPU's library for this one alone.
    if device.info().kind == DeviceKind::Cpu && cfg!(target_arch = "x86_64") {
        assert!(passed.contains_key("onednn"), "{passed:?}");
    }
}

/// Rows of zeros, of subnormals, of the largest values, and rows that hold a NaN or an infinity:
/// cases that the gate's finite inputs never cover.
fn faults_are_exact(device: &dyn Device) {
    const COLUMNS: usize = 256;
    let specials = [
        0.0,
        -0.0,
        f64::from(f32::MIN_POSITIVE) / 8.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        1e-30,
    ];
    for dtype in TYPES {
        // A special value in the second group of a row of small ones; then rows full of it.
        let row = |special: f64, full: bool| {
            (0..COLUMNS).map(move |column| match column {
                _ if full => special,
                200 => special,
                _ => f64::from(column as u32 % 7) - 3.0,
            })
        };
        let special_of = |special: f64| match special {
            value if value == f64::MAX => dtype.max_finite(),
            value => value,
        };
        let x: Vec<f64> = specials
            .iter()
            .flat_map(|&special| {
                row(special_of(special), false).chain(row(special_of(special), true))
            })
            .collect();
        let bytes = dtype.encode(&x);
        let x = dtype.decode(&bytes);
        for op in TrainingOp::all() {
            let TrainingOp::Quantize(scaling) = op else {
                continue;
            };
            let shape = RowShape {
                rows: x.len() / COLUMNS,
                columns: COLUMNS,
            };
            let problem = problem(op, TrainingShape::Rows(shape), dtype);
            let (codes, scales) = expected(&x, shape, scaling);
            let of_tensor = problem
                .tensors()
                .iter()
                .any(|spec| spec.name == "tensor_scale");
            for contender in training_contenders::contenders(device.info().kind) {
                let name = format!("{} {op} {dtype}", contender.identity().name);
                if contender.supports(&problem, device.info()) != Support::Yes {
                    continue;
                }
                let set = BufferSet::new(device, problem.tensors(), SEED).unwrap();
                let buffers = set.buffers();
                let tensors = Tensors::new(&problem, buffers).unwrap();
                device.write(tensors.address("x").unwrap(), &bytes).unwrap();
                if of_tensor {
                    let address = tensors.address("tensor_scale").unwrap();
                    device.write(address, &TENSOR_SCALE.to_le_bytes()).unwrap();
                }
                let mut bound = contender.bind(&problem, buffers, device.info()).unwrap();
                bound.enqueue(device.stream()).unwrap();
                device.synchronize().unwrap();
                for (tensor, expected) in [("quantized", &codes), ("scales", &scales)] {
                    let spec = problem.statement().tensor(tensor);
                    let mut bytes = vec![0; spec.bytes()];
                    let address = tensors.address(tensor).unwrap();
                    device.read(address, &mut bytes).unwrap();
                    assert_same(
                        &spec.dtype.decode(&bytes),
                        expected,
                        &format!("{name} {tensor}"),
                    );
                }
            }
        }
    }
}

/// Of NVFP4: small ones of the values below have the scale 0, the largest saturate.
const TENSOR_SCALE: f32 = 0.01;

/// The reference's values (of FP4: bytes) and scales.
fn expected(x: &[f64], shape: RowShape, scaling: Scaling) -> (Vec<f64>, Vec<f64>) {
    let (rows, columns) = scaling.tile(shape.columns);
    let (down, across) = (shape.rows.div_ceil(rows), shape.columns.div_ceil(columns));
    let zero = if scaling == Scaling::Nvfp4 {
        0.0
    } else {
        2f64.powi(-127)
    };
    let count = match scaling.is_tiled() {
        true => tiled_scales(down, across),
        false => down * across,
    };
    let (mut values, mut scales) = (vec![0.0; x.len()], vec![zero; count]);
    for tile in 0..down * across {
        let inside = |&index: &usize| {
            index / shape.columns / rows == tile / across
                && index % shape.columns / columns == tile % across
        };
        let group: Vec<usize> = (0..x.len()).filter(inside).collect();
        let of_group = group.iter().map(|&index| x[index] as f32);
        let place = match scaling.is_tiled() {
            true => scale_place(tile / across, tile % across, across),
            false => tile,
        };
        let Some(format) = scaling.format() else {
            let scale = DType::F8E4M3.round(f64::from(nvfp4_scale(TENSOR_SCALE, of_group)));
            scales[place] = scale;
            for index in group {
                let scaled = nvfp4_scaled(x[index] as f32, scale as f32, TENSOR_SCALE);
                values[index] = f64::from(e2m1_code(scaled));
            }
            continue;
        };
        let scale = match scaling.is_paired() {
            true => mxfp4_scale(of_group),
            false => reference::quantize::scale(format, of_group),
        };
        for index in group {
            let scaled = reference::quantize::scaled(x[index] as f32, scale);
            values[index] = match scaling.is_paired() {
                true => f64::from(e2m1_code(scaled)),
                false => DType::F8E4M3.round(f64::from(scaled)),
            };
        }
        scales[place] = f64::from(scale);
    }
    if scaling.is_paired() {
        let pairs = values.chunks(2);
        values = pairs.map(|pair| pair[0] + 16.0 * pair[1]).collect();
    }
    (values, scales)
}

fn assert_same(actual: &[f64], expected: &[f64], what: &str) {
    assert_eq!(actual.len(), expected.len());
    for (index, (a, e)) in actual.iter().zip(expected).enumerate() {
        let same = a == e || (a.is_nan() && e.is_nan());
        assert!(same, "{what}[{index}] is {a}, expected {e}");
    }
}
