//! Launches of a small problem.

use super::*;
use contender::DeviceKind;
use faults::Scaled;
use serde_json::json;

fn device() -> DeviceInfo {
    DeviceInfo {
        kind: DeviceKind::Ptx,
        name: "test".into(),
        uuid: None,
        arch: "sm_90a".into(),
        compute_capability: Some((9, 0)),
        multiprocessors: 132,
        l2_bytes: 0,
        memory_bytes: 0,
        shared_bytes_per_block: 232_448,
        emulated: true,
    }
}

fn description(field: &str, value: Value) -> Description {
    let mut file = json!({
        "kernel_version": 1,
        "code": "kernel.ptx",
        "entry": "scaled",
        "ops": ["scaled"],
        "dtypes": ["f32"],
        "multiples_of": {"n": 4},
        "grid": ["ceil_div(m, 16)", 2],
        "block": [32, "min(n, 4)"],
        "cluster": [2],
        "shared_bytes": "n * 4",
        "arguments": [
            {"tensor": "y"},
            {"axis": ["n", "i64"]},
            {"expression": ["multiprocessors * 2", "u32"]},
            {"value": [-0.5, "f32"]},
            {"tensor_map": {"tensor": "x", "box": [8, 32], "swizzle": "128B"}},
        ],
    });
    file[field] = value;
    Description::parse(&file.to_string()).expect("it is sound")
}

/// The plan for 64 rows of 96 numbers.
fn plan(field: &str, value: Value) -> Result<Plan, String> {
    let (problem, device) = (Scaled::new(64, 96), device());
    let place = |place: usize| Buffer {
        address: 4096 * (place + 1),
        bytes: 64 * 96 * 4,
    };
    let buffers: Vec<Buffer> = (0..problem.tensors().len()).map(place).collect();
    let description = description(field, value);
    Plan::new(
        &description,
        &Names::of(&problem, &device),
        &buffers,
        &device,
    )
}

#[test]
fn sizes_and_arguments_are_those_of_the_problem() {
    let plan = plan("kernel_version", json!(1)).unwrap();
    assert_eq!((plan.grid, plan.block), ([4, 2, 1], [32, 4, 1]));
    assert_eq!((plan.cluster, plan.shared_bytes), ([2, 1, 1], 384));
    let sizes: Vec<usize> = plan.arguments.iter().map(Passed::bytes).collect();
    assert_eq!(sizes, [8, 8, 4, 4, 128]);
    assert_eq!(
        plan.arguments[1],
        Passed::Bytes(96u64.to_le_bytes().to_vec())
    );
    assert_eq!(
        plan.arguments[2],
        Passed::Bytes(264u32.to_le_bytes().to_vec())
    );
    let Passed::Map(map) = &plan.arguments[4] else {
        panic!("a map");
    };
    assert_eq!((&*map.sizes, &*map.strides), (&[96, 64][..], &[384][..]));
    assert_eq!((&*map.box_sizes, map.kind), (&[32, 8][..], 7));
    assert_eq!(plan.check_parameters("scaled", &[8, 8, 4, 4, 128]), Ok(()));
    let error = plan.check_parameters("scaled", &[8]).unwrap_err();
    assert_eq!(error, "'scaled' takes 1 parameters, and arguments has 5");
    let error = plan
        .check_parameters("scaled", &[8, 4, 4, 4, 128])
        .unwrap_err();
    assert_eq!(
        error,
        "parameter 1 of 'scaled' has 4 bytes, and its argument has 8"
    );
}

#[test]
fn what_cannot_be_launched_is_said() {
    let map = |field: &str, value: Value| {
        let mut map = json!({"tensor": "x", "box": [8, 32], "swizzle": "128B"});
        map[field] = value;
        json!([{"tensor_map": map}])
    };
    for (field, value, reason) in [
        (
            "grid",
            json!(["m / (n - n)"]),
            "grid: 'm / (n - n)' divides by zero",
        ),
        (
            "grid",
            json!(["m - 64"]),
            "grid: 'm - 64' is 0, not within 1 to 2147483647",
        ),
        (
            "grid",
            json!(["k"]),
            "no whole number 'k'; there are m, n, multiprocessors",
        ),
        ("grid", json!([2, 65536]), "not within 1 to 65535"),
        (
            "grid",
            json!(["m * m * m * m * m * m * m * m * m * m * m"]),
            "more than 64 bits hold",
        ),
        (
            "grid",
            json!([3]),
            "grid has 3 blocks along a side that clusters of 2 do not divide",
        ),
        ("block", json!([64, 32]), "block has 2048 threads"),
        ("block", json!([1, 1, 65]), "not within 1 to 64"),
        ("cluster", json!([4, 2, 4]), "cluster has 32 blocks"),
        (
            "shared_bytes",
            json!("n * 4096"),
            "shared_bytes is 393216: this device has 0 to 232448 per block",
        ),
        ("shared_bytes", json!("1 - n"), "shared_bytes is -95"),
        (
            "arguments",
            json!([{"tensor": "z"}]),
            "there is no tensor 'z'; scaled has x, w, y",
        ),
        (
            "arguments",
            json!([{"axis": ["k", "i32"]}]),
            "there is no axis 'k'; scaled has m, n",
        ),
        (
            "arguments",
            json!([{"value": [0.5, "i32"]}]),
            "0.5 is not a whole number",
        ),
        (
            "arguments",
            json!([{"expression": ["m * m * m * m * m * m", "i32"]}]),
            "does not fit i32",
        ),
        (
            "arguments",
            map("tensor", json!("z")),
            "there is no tensor 'z'",
        ),
        (
            "arguments",
            map("box", json!([8])),
            "tensor map of 'x': box has 1 sizes for 2 dimensions",
        ),
        ("arguments", map("box", json!([8, 257])), "a box of 257"),
        (
            "arguments",
            map("box", json!([8, 2])),
            "rows of its box have 8 bytes",
        ),
        (
            "arguments",
            map("box", json!([8, 64])),
            "more than the 128 of its swizzle",
        ),
        (
            "arguments",
            map("shape", json!([7])),
            "shape [7] is not of 6144 elements",
        ),
        ("arguments", map("shape", json!(["0 - 1"])), "not positive"),
        (
            "arguments",
            map("shape", json!([2048, 3])),
            "a stride of 12 bytes",
        ),
    ] {
        let error = plan(field, value).unwrap_err();
        assert!(
            error.contains(reason),
            "{field}: '{error}' lacks '{reason}'"
        );
    }
    assert!(plan("arguments", map("shape", json!(["m / 2", 2, "n"]))).is_err());
}

#[test]
fn problems_that_it_does_not_solve_are_told_from_mistakes() {
    let says =
        |field: &str, value: Value, problem: Scaled| obstacle(&description(field, value), &problem);
    let small = || Scaled::new(64, 96);
    assert_eq!(says("ops", json!(["scaled"]), small()), None);
    let op = says("ops", json!(["gemm"]), small()).unwrap();
    assert_eq!(op, "solves gemm, not scaled");
    let dtype = says("dtypes", json!(["bf16"]), small()).unwrap();
    assert_eq!(dtype, "takes bf16, not f32");
    let odd = says("ops", json!(["scaled"]), Scaled::new(64, 97)).unwrap();
    assert_eq!(odd, "needs n to be a multiple of 4; it is 97");
    let none = says("multiples_of", json!({"k": 4}), small()).unwrap();
    assert_eq!(
        none,
        "needs k to be a multiple of 4; scaled has no such axis"
    );
}
