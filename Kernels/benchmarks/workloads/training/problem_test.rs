use contender::Problem;
use numeric::DType;
use reference::quantize::e2m1_value;
use tensor::Inputs;

use super::{TrainingOp, TrainingProblem, TrainingSuite};
use crate::testing::{
    assert_honest_is_near, assert_honest_on_families, assert_units_cover_outputs_once,
};

fn problems(dtype: DType) -> impl Iterator<Item = TrainingProblem> {
    TrainingOp::all().flat_map(move |op| {
        let workloads = TrainingSuite::Smoke.workloads(op).into_iter();
        workloads.map(move |(shape, workload)| TrainingProblem::new(op, shape, dtype, workload))
    })
}

#[test]
fn cost_counts_every_tensor_once() {
    let named = |name: &str| {
        let cost = problems(DType::Bf16)
            .find(|problem| problem.op() == name)
            .unwrap()
            .cost();
        (cost.read_bytes, cost.written_bytes)
    };
    let matrix = 2.0 * 3.0 * 1001.0;
    assert_eq!(named("gelu_fwd"), (matrix, matrix));
    assert_eq!(named("swiglu_bwd"), (3.0 * matrix, 2.0 * matrix));
    let quantized = 131.0 * 336.0;
    assert_eq!(
        named("quantize_1x128"),
        (2.0 * quantized, quantized + 131.0 * 3.0 * 4.0)
    );
    assert_eq!(
        named("dequantize_128x128"),
        (quantized + 2.0 * 3.0 * 4.0, 2.0 * quantized)
    );
    assert_eq!(
        named("rmsnorm_quantize_1x128"),
        (2.0 * quantized + 2.0 * 336.0, quantized + 131.0 * 3.0 * 4.0)
    );
    let heads = 2.0 * 14.0 * 4.0 * 96.0;
    assert_eq!(named("rope_fwd"), (heads + 2.0 * 7.0 * 48.0 * 4.0, heads));
}

#[test]
fn units_cover_every_output_element_once() {
    for problem in problems(DType::Bf16) {
        assert_units_cover_outputs_once(&problem);
    }
}

#[test]
fn honest_values_are_near_the_oracle_and_representable() {
    for dtype in [DType::Bf16, DType::F16, DType::F32] {
        for problem in problems(dtype) {
            let units = [0, problem.units() / 2, problem.units() - 1];
            assert_honest_is_near(&problem, &units, 8.0);
            assert_honest_on_families(&problem, &units, 64.0);
        }
    }
}

#[test]
fn power_of_two_scales_are_stored_as_such() {
    let is_it = |problem: &TrainingProblem| problem.op() == "quantize_1x128_ue8m0";
    let problem = problems(DType::Bf16).find(is_it).unwrap();
    assert_eq!(problem.statement().tensor("scales").dtype, DType::F8E8M0);
    let inputs = Inputs::new(problem.tensors(), 1);
    let slices = problem.oracle(&inputs, 5);
    let scale = slices.last().unwrap().values[0];
    assert_eq!(scale.log2().fract(), 0.0);
    let largest = slices[0]
        .values
        .iter()
        .fold(0.0, |m: f64, v| m.max(v.abs()));
    assert!((224.0..=448.0).contains(&largest));
}

#[test]
fn mxfp4_has_pairs_and_powers_of_two_in_tiles() {
    let is_it = |problem: &TrainingProblem| problem.op() == "quantize_mxfp4";
    let problem = problems(DType::Bf16).find(is_it).unwrap();
    let tensor = |name| problem.statement().tensor(name);
    assert_eq!(tensor("quantized").elements(), 131 * 336 / 2);
    assert_eq!(tensor("scales").dtype, DType::F8E8M0);
    // 11 scales of 131 rows in tiles of 4 and of 128.
    assert_eq!(tensor("scales").elements(), 12 * 256);
    let inputs = Inputs::new(problem.tensors(), 1);
    let slices = problem.oracle(&inputs, 12);
    // The second group of the second row.
    assert_eq!((slices[0].start, slices[0].values.len()), (168 + 16, 16));
    assert_eq!(slices[1].start, 16 + 1);
    assert_eq!(slices[1].values[0].log2().fract(), 0.0);
    // With scales rounded up the largest of a group is above 3, which rounds to 4 or stays 3.
    let largest = |pair: &f64| (*pair as u8 & 7).max(*pair as u8 >> 4 & 7);
    assert!(slices[0].values.iter().map(largest).max().unwrap() >= 5);
}

#[test]
fn nvfp4_has_pairs_scales_in_tiles_and_a_scale_of_the_tensor() {
    let is_it = |problem: &TrainingProblem| problem.op() == "quantize_nvfp4";
    let problem = problems(DType::Bf16).find(is_it).unwrap();
    let tensor = |name| problem.statement().tensor(name);
    assert_eq!(tensor("quantized").elements(), 131 * 336 / 2);
    // 21 scales of 131 rows in tiles of 4 and of 128.
    assert_eq!(tensor("scales").elements(), 24 * 256);
    let inputs = Inputs::new(problem.tensors(), 1);
    let slices = problem.oracle(&inputs, 22);
    // The second group of the second row.
    assert_eq!((slices[0].start, slices[0].values.len()), (168 + 8, 8));
    assert_eq!(slices[1].start, 16 + 1);
    // The largest of a group is 6 or, as scales are rounded, 4.
    let largest = |pair: &f64| (*pair as u8 & 7).max(*pair as u8 >> 4 & 7);
    assert!(slices[0].values.iter().map(largest).max().unwrap() >= 6);
}

#[test]
fn a_quantised_norm_is_the_norm_times_its_scales() {
    let is_it = |problem: &TrainingProblem| problem.op() == "rmsnorm_quantize_1x128";
    let problem = problems(DType::Bf16).find(is_it).unwrap();
    assert_eq!(problem.workload().axes["epsilon"], "0.000001");
    let inputs = Inputs::new(problem.tensors(), 1);
    let [codes, scales] = <[_; 2]>::try_from(problem.oracle(&inputs, 130)).unwrap();
    assert_eq!((codes.start, codes.values.len()), (130 * 336, 336));
    assert_eq!((scales.start, scales.values.len()), (130 * 3, 3));
    let (x, weight) = (inputs.tensor("x"), inputs.tensor("weight"));
    let x = x.range(130 * 336, 336);
    let square = x.iter().map(|x| x * x).sum::<f64>() / 336.0;
    let rms = (square + f64::from(1e-6f32)).sqrt();
    for (at, code) in codes.values.iter().enumerate() {
        let wanted = x[at] * weight.get(at) / rms;
        assert!((code * scales.values[at / 128] - wanted).abs() < 1e-9);
    }
    for group in codes.values.chunks(128) {
        let largest = group
            .iter()
            .fold(0.0, |most: f64, code| most.max(code.abs()));
        assert!((largest - 448.0).abs() < 1e-9);
    }
}

#[test]
fn norms_with_rounded_scales_are_quantised_bit_for_bit() {
    for (name, group) in [
        ("rmsnorm_quantize_mxfp8", 32),
        ("rmsnorm_quantize_nvfp4", 16),
    ] {
        let is_it = |problem: &TrainingProblem| problem.op() == name;
        let problem = problems(DType::Bf16).find(is_it).unwrap();
        assert!(problem.is_exact(0));
        assert_eq!(problem.workload().axes["epsilon"], "0.000001");
        let inputs = Inputs::new(problem.tensors(), 1);
        let x = inputs.tensor("x").range(130 * 336, 336);
        let square = x.iter().map(|x| x * x).sum::<f64>() / 336.0;
        let rms = (square + f64::from(1e-6f32)).sqrt();
        let slices = problem.oracle(&inputs, 130);
        let of = |name: &str| {
            let place = tensor::place(problem.tensors(), name);
            slices.iter().filter(move |slice| slice.tensor == place)
        };
        let codes: Vec<f64> = of("quantized").flat_map(|s| s.values.clone()).collect();
        let scales: Vec<f64> = of("scales").map(|slice| slice.values[0]).collect();
        let of_tensor = match group {
            16 => inputs.tensor("tensor_scale").get(0),
            _ => 1.0,
        };
        // The scales of the row; others are zeros of the padding. Each is near the largest of its group.
        let used: Vec<f64> = scales.into_iter().filter(|scale| *scale > 1e-30).collect();
        assert_eq!(used.len(), 336usize.div_ceil(group), "{name}");
        for at in 0..336 {
            let code = match group {
                16 => {
                    let pair = codes[at / 2] as u8;
                    f64::from(e2m1_value(pair >> (at % 2 * 4) & 15))
                }
                _ => codes[at],
            };
            let found = code * used[at / group] * of_tensor;
            let wanted = x[at] * inputs.tensor("weight").get(at) / rms;
            // Half a step of the largest elements: a quarter of e2m1's 4, and a 32nd of 448.
            let step = used[at / group] * of_tensor * [1.01, 16.01][usize::from(group == 32)];
            assert!(
                (found - wanted).abs() <= step,
                "{name}: {found}, not {wanted}"
            );
        }
    }
}
