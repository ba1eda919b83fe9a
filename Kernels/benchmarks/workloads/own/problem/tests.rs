//! Problem files that are sound, and every way in which one may not be.

use super::*;

/// A file that has everything that a file may have.
fn whole() -> String {
    let path = "Kernels/benchmarks/workloads/own/tests/corpus/problem-whole.json";
    std::fs::read_to_string(path).expect("the BUILD file names it")
}

/// The problem of the file's first shape.
fn first(text: &str) -> Result<OwnProblem, String> {
    let file = Arc::new(ProblemFile::parse(text)?);
    let shape = file.shapes().next().expect("a file has shapes");
    OwnProblem::new(&file, &shape, file.dtypes[0], None, "a test")
}

#[test]
fn a_file_says_everything_that_a_problem_does() {
    let problem = first(&whole()).unwrap();
    assert_eq!(
        (problem.op(), problem.dtype()),
        ("gather_scale", DType::Bf16)
    );
    assert_eq!(problem.workload().name, "32x768x100");
    assert_eq!(problem.workload().axes["alpha"], "0.5");
    assert_eq!(problem.units(), 32);
    let shapes: Vec<_> = problem
        .tensors()
        .iter()
        .map(|spec| spec.shape.clone())
        .collect();
    assert_eq!(shapes[0], [100, 768]);
    assert_eq!(shapes[3], [32]);
    let cost = problem.cost();
    assert_eq!(cost.flops, (2 * 32 * 768) as f64);
    assert_eq!(cost.read_bytes, (32 * 768 * 2 + 32 * 4) as f64);
    assert_eq!(cost.written_bytes, (32 * 768 * 2 + 32 * 4) as f64);
    let names: Vec<_> = problem
        .families()
        .iter()
        .map(|family| family.name)
        .collect();
    assert_eq!(names, ["outliers", "uneven_rows", "zeros"]);
    let tolerance = problem.tolerance(2).unwrap();
    assert_eq!((tolerance.relative, tolerance.absolute), (0.02, 0.001));
    assert_eq!(problem.tolerance(3), None);
    let rows = Inputs::new(problem.tensors(), 7).range(1, 0, 32);
    assert!(rows
        .iter()
        .all(|row| (0.0..100.0).contains(row) && row.fract() == 0.0));
}

#[test]
fn integers_may_be_negative() {
    let text = whole().replace(r#"[0, "table"]"#, r#"["0 - 3", 4]"#);
    let problem = first(&text).unwrap();
    let rows = Inputs::new(problem.tensors(), 7).range(1, 0, 32);
    let inside = |row: &f64| (-3.0..=3.0).contains(row) && row.fract() == 0.0;
    assert!(rows.iter().all(inside) && rows.iter().any(|row| *row < 0.0));
}

#[test]
fn sizes_by_hand_follow_the_axes() {
    let file = ProblemFile::parse(&whole()).unwrap();
    let shape = OwnProblem::shape(&file, &[3, 8, 5]).unwrap();
    assert_eq!(shape["columns"], 8);
    let error = OwnProblem::shape(&file, &[3, 8]).unwrap_err();
    assert_eq!(error, "has 2 sizes: expected rowsxcolumnsxtable");
}

#[test]
fn what_is_wrong_is_said_in_a_sentence() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (from, to, reason) in [
        (
            r#""problem_version": 1"#,
            r#""problem_version": 2"#,
            "problem_version is 2",
        ),
        (
            r#""op": "gather_scale""#,
            r#""op": "gather scale""#,
            "is no name for an op",
        ),
        (
            r#""op": "gather_scale""#,
            r#""op": "", "op": """#,
            "duplicate field `op`",
        ),
        (
            r#"["rows", "columns", "table"]"#,
            "[]",
            "axes: there are none",
        ),
        (
            r#"["rows", "columns", "table"]"#,
            r#"["rows", "columns", "rows"]"#,
            "'rows' is the name of something else",
        ),
        (
            r#"["rows", "columns", "table"]"#,
            r#"["rows", "columns", "min"]"#,
            "'min' is the name of something else",
        ),
        (
            r#""alpha": 0.5"#,
            r#""rows": 0.5"#,
            "'rows' is the name of something else",
        ),
        (r#""rows": 32"#, r#""rows": 0"#, "rows is 0"),
        (r#""rows": 32"#, r#""rows": -1"#, "invalid value"),
        (
            r#""rows": 32"#,
            r#""rows": 1, "rows": 2"#,
            "'rows' is there twice",
        ),
        (
            r#""rows": 32"#,
            r#""row": 32"#,
            "a shape has 'row', but the axes are rows, columns, table",
        ),
        (r#""rows": 32, "#, "", "a shape lacks 'rows'"),
        (
            r#""rows": 32"#,
            r#""rows": 9007199254740993"#,
            "expected 1 to 2^40",
        ),
        (
            r#""rows": 32"#,
            r#""rows": 1099511627776"#,
            "more than 2^40 elements",
        ),
        (
            r#""rows": 32"#,
            &format!(r#""rows": {deep}"#),
            "nested more than",
        ),
        (
            r#"["bf16", "f32"]"#,
            r#"["bf16", "bf16"]"#,
            "dtypes has bf16 twice",
        ),
        (
            r#"["bf16", "f32"]"#,
            r#"["nvfp4"]"#,
            "elements of nvfp4 are not numbers",
        ),
        (r#"["bf16", "f32"]"#, "[]", "dtypes: there are none"),
        (
            r#""dtype": "i32""#,
            r#""dtype": "int""#,
            "unknown dtype 'int'; use same",
        ),
        (
            r#""name": "index""#,
            r#""name": "x""#,
            "two tensors are called 'x'",
        ),
        (
            r#"["table", "columns"]"#,
            r#"["table", "depth"]"#,
            "no whole number 'depth'; there are rows, columns, table",
        ),
        (
            r#"["table", "columns"]"#,
            r#"["table / (rows - rows)"]"#,
            "divides by zero",
        ),
        (
            r#"["table", "columns"]"#,
            r#"["table * table * table * table * table * table * table * table * table * 90"]"#,
            "more than 64 bits hold",
        ),
        (
            r#"["table", "columns"]"#,
            r#"["rows - table"]"#,
            "it must be at least 1",
        ),
        (r#"["table", "columns"]"#, "[]", "its shape: there are none"),
        (
            r#"["table", "columns"]"#,
            "[1, 1, 1, 1, 1, 1, 1, 1, 1]",
            "its shape: 9 are more than 8",
        ),
        (r#"[0, "table"]"#, r#"["table", 0]"#, "there are none"),
        (
            r#"[0, "table"]"#,
            r#"[1, 4294967295]"#,
            "within 2^24 of zero",
        ),
        (
            r#""uniform": [-2, 2]"#,
            r#""uniform": [2, -2]"#,
            "expected low and high",
        ),
        (
            r#""uniform": [-2, 2]"#,
            r#""normal": [0, 1]"#,
            "unknown variant `normal`",
        ),
        (r#""outliers""#, r#""odd""#, "unknown variant `odd`"),
        (r#""outliers""#, r#""zeros""#, "families has a kind twice"),
        (
            r#""role": "output", "dtype": "same""#,
            r#""role": "output", "dtype": "same", "inputs": {"uniform": [0, 1]}"#,
            "an output has no inputs",
        ),
        (
            r#""units": "rows""#,
            r#""units": "columns + 1""#,
            "which does not divide",
        ),
        (r#""units": "rows""#, r#""units": 0"#, "expected 1 to 2^31"),
        (
            r#""operations": "2 * rows * columns""#,
            r#""operations": "rows - columns""#,
            "below 0",
        ),
        (r#""operations""#, r#""flops""#, "unknown field `flops`"),
        (r#""relative": 0.02"#, r#""relative": -1"#, "from 0 to 1e30"),
        (
            r#""roundings": 2"#,
            r#""roundings": 0"#,
            "a tolerance of nothing",
        ),
        (
            r#""tolerance": {"roundings": 2}"#,
            r#""colour": "red""#,
            "unknown field `colour`",
        ),
    ] {
        assert!(whole().contains(from), "the file lacks {from}");
        let error = first(&whole().replacen(from, to, 1)).err();
        let error = error.unwrap_or_else(|| panic!("{to} was taken"));
        assert!(error.contains(reason), "{to}: '{error}' lacks '{reason}'");
        assert!(!error.contains('\n') && error.len() < 400, "{error}");
    }
}

#[test]
fn an_output_needs_a_tolerance_unless_it_is_whole() {
    let without = whole().replace(r#""tolerance": {"roundings": 2}"#, r#""numbers_": 0"#);
    assert!(first(&without).is_err());
    let own = r#", "tolerance": {"relative": 0.02, "absolute": 0.001}"#;
    let last = r#",
  "tolerance": {"roundings": 2}"#;
    assert!(whole().contains(own) && whole().contains(last));
    assert!(first(&whole().replace(last, "")).is_ok());
    let none = whole().replace(last, "").replace(own, "");
    let error = first(&none).err().unwrap();
    assert!(error.contains("tensor 'out' has no tolerance"), "{error}");
    let counts = whole().replace(
        r#""dtype": "i32", "shape": ["rows"]}"#,
        r#""dtype": "i32", "shape": ["rows"],
        "tolerance": {"absolute": 1}}"#,
    );
    let error = first(&counts).err().unwrap();
    assert!(error.contains("an i32 is right or wrong"), "{error}");
}
