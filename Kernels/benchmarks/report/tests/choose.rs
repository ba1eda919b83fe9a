//! `report choose` on the committed results and on made-up ones: the answer, the doubt, the gaps, the tables.

use record::{ContenderKind, ResultFile, Row};
use report_lib::{choose, panel, table, to_cpp, views, Answer, Collection, Question, View};
use report_testing::{committed, file, row, run, Noise};
use std::process::Command;
use std::sync::OnceLock;

/// Read once: it has thousands of rows.
fn suite() -> &'static [View] {
    static SUITE: OnceLock<Vec<View>> = OnceLock::new();
    SUITE.get_or_init(|| views(Collection::read(&committed("suite.json.gz")).unwrap()))
}

fn asked(views: &[View], op: &str, shape: &str) -> Answer {
    let question = Question {
        op,
        dtype: None,
        shape,
    };
    choose(&views[0], &question).unwrap_or_else(|error| panic!("{op} {shape}: {error}"))
}

/// Ours is the faster the smaller the work; around 16384 rows the two are equal.
fn made_up(sizes: &[(usize, f64)]) -> ResultFile {
    let mut noise = Noise::new(5);
    let mut rows: Vec<Row> = Vec::new();
    for (size, ratio) in sizes {
        let mut samples = |scale: f64| -> Vec<f64> {
            let time_us = *size as f64 / 100.0 * scale;
            (0..60)
                .map(|_| time_us * (1.0 + 0.002 * noise.gauss()))
                .collect()
        };
        rows.push(row("op", *size, "ours", ContenderKind::Own, samples(1.0)));
        rows.push(row(
            "op",
            *size,
            "quack",
            ContenderKind::Baseline,
            samples(*ratio),
        ));
    }
    file("NVIDIA H200", rows)
}

fn viewed(file: ResultFile) -> Vec<View> {
    views(report_testing::collection(vec![file]))
}

#[test]
fn the_committed_results_answer_with_their_numbers() {
    let suite = suite();
    for (op, shape, contender, part) in [
        (
            "decode",
            "batch=16,context=8192,heads=32,kv_heads=8,head_dim=128,page_size=16,q_len=1,layout=nhd",
            Some("ours"),
            "use ours: 125.1 us, 1.022 [1.017, 1.031] times as fast as cudnn (faster); measured as \
             llama/llama8b_b16s8192_p16",
        ),
        (
            "gemm",
            "dsv3/64x2112x7168",
            Some("deep_gemm"),
            "use deep_gemm: 13.09 us, 1.016 [0.978, 1.051] times as fast as cublaslt (ambiguous)",
        ),
        ("gemm", "m=64,n=2112,k=7168", Some("deep_gemm"), "near-tie: cublaslt, ours may be as fast"),
        (
            "prefill",
            "batch=1,q_len=6000,heads=32,kv_heads=8,head_dim=128,causal=true",
            Some("flash_attention_4"),
            "between: llama-8b/s8192",
        ),
        ("gemm", "m=32,n=6144,k=4096", None, "cannot tell: the gap is too wide"),
        ("gemm", "m=9000,n=6144,k=4096", None, "m 9000 is outside of what was measured, 16 to 8192"),
    ] {
        let answer = asked(suite, op, shape);
        assert_eq!(answer.contender.as_deref(), contender, "{}", answer.text);
        assert!(answer.text.contains(part), "{}", answer.text);
    }
}

#[test]
fn another_number_is_another_answer() {
    let shape =
        "batch=16,context=8192,heads=32,kv_heads=8,head_dim=128,page_size=16,q_len=1,layout=nhd";
    let mut suite = suite().to_vec();
    suite[0].file.rows.retain(|row| row.op == "decode");
    let slower =
        suite[0].file.rows.iter_mut().find(|row| {
            row.contender.name == "ours" && row.workload.name == "llama8b_b16s8192_p16"
        });
    let slower = slower.unwrap();
    let time = slower.time.as_mut().unwrap();
    time.median_us *= 1.05;
    slower
        .samples_us
        .iter_mut()
        .flatten()
        .for_each(|sample| *sample *= 1.05);
    (slower.speedup, slower.against_best) = (None, None);
    let answer = asked(&suite, "decode", shape);
    assert_eq!(
        answer.contender.as_deref(),
        Some("cudnn"),
        "{}",
        answer.text
    );
}

#[test]
fn between_shapes_only_what_all_of_them_say() {
    let sizes = [
        (1024, 1.2),
        (4096, 1.1),
        (16384, 1.0),
        (65536, 0.9),
        (4 << 20, 0.9),
    ];
    let views = viewed(made_up(&sizes));
    let of = |rows: usize| asked(&views, "op", &format!("rows={rows},columns=4096"));
    for (rows, contender, part) in [
        (
            1024,
            Some("ours"),
            "times as fast as quack (faster); measured as quack/1024x4096",
        ),
        (
            2048,
            Some("ours"),
            "not measured, but it is among the fastest on all shapes around",
        ),
        (
            8192,
            Some("ours"),
            "between: quack/16384x4096 (rows 16384): ",
        ),
        (16384, Some("quack"), "near-tie: "),
        (32768, Some("quack"), "between: quack/65536x4096"),
        (
            100,
            None,
            "rows 100 is outside of what was measured, 1024 to 4194304",
        ),
        (1 << 20, None, "the gap is too wide"),
    ] {
        let answer = of(rows);
        if rows != 16384 {
            assert_eq!(answer.contender.as_deref(), contender, "{}", answer.text);
        }
        assert!(answer.text.contains(part), "{}", answer.text);
    }
    let torn = viewed(made_up(&[(1024, 1.2), (4096, 0.8)]));
    let answer = asked(&torn, "op", "rows=2048,columns=4096");
    assert_eq!(answer.contender, None);
    assert!(
        answer.text.contains("the fastest changes between"),
        "{}",
        answer.text
    );
}

#[test]
fn a_table_has_every_measured_shape_in_one_region() {
    let views = viewed(made_up(&[
        (1024, 1.2),
        (4096, 1.1),
        (16384, 0.9),
        (65536, 0.9),
    ]));
    let table = table(&views, None).unwrap();
    let rules: Vec<(&str, [u64; 2], usize)> = table
        .rules
        .iter()
        .map(|rule| (&*rule.contender, rule.sizes["rows"], rule.shapes))
        .collect();
    assert_eq!(
        rules,
        [("ours", [1024, 8192], 2), ("quack", [8193, 65536], 2)]
    );
    assert!(table
        .to_csv()
        .contains("\"columns=4096\",\"rows=8193..65536\",\"quack\",0,2,true"));
    let json: serde_json::Value = serde_json::from_str(&table.to_json()).unwrap();
    assert_eq!(json["rules"][1]["sizes"]["rows"][1], 65536);
    assert_eq!(json["device"], "NVIDIA H200");

    let suite = suite();
    let table = report_lib::table(suite, None).unwrap();
    for row in suite[0].file.rows.iter().filter(|row| row.time.is_some()) {
        let shape = report_lib::Shape::of(&row.workload.axes);
        let holds = |rule: &&report_lib::Rule| {
            let same = (&rule.op, &rule.dtype, &rule.exact) == (&row.op, &row.dtype, &shape.exact);
            let within = |(axis, [low, high]): (&String, &[u64; 2])| {
                shape
                    .sizes
                    .get(axis)
                    .is_some_and(|size| (*low..=*high).contains(&(*size as u64)))
            };
            same && rule.sizes.iter().all(within)
        };
        assert_eq!(
            table.rules.iter().filter(holds).count(),
            1,
            "{} {}",
            row.op,
            row.workload.name
        );
    }
    assert!(table.rules.iter().all(|rule| rule.slower_by >= 0.0));
}

/// Compiles a header with a program whose assertions are part of it.
fn compiles(header: &str, assertions: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("table.h"), header).unwrap();
    let program = format!(
        "#include \"table.h\"\n#include \"table.h\"\nusing namespace head_to_head;\n{assertions}\nint main() {{}}\n"
    );
    std::fs::write(folder.path().join("main.cc"), program).unwrap();
    let options = [
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsyntax-only",
        "main.cc",
    ];
    let compiled = Command::new("g++")
        .args(options)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
}

#[test]
fn the_header_is_cpp_and_chooses_as_the_table_does() {
    let header = to_cpp(&table(suite(), Some("decode")).unwrap());
    compiles(
        &header,
        "constexpr DecodeBf16 shape{16, 8192, 131072, 128, 32, \"\", 8, \"nhd\", 16, 1};\n\
         static_assert(choose(shape) != nullptr && choose(shape)->contender == \"ours\");\n\
         static_assert(choose(DecodeBf16{16, 1 << 30, 1 << 30, 128, 32, \"\", 8, \"nhd\", 16, 1}) == nullptr);",
    );
    let mut hostile = made_up(&[(1024, 1.2), (4096, 0.8)]);
    hostile.meta.device.name = "card */ \\".into();
    for row in &mut hostile.rows {
        row.op = "int; #error".into();
        row.contender.name = format!("\"\\??/ {}", row.contender.name);
        row.workload.axes.insert("class".into(), "a\"b".into());
        row.workload.axes.insert("9 lives".into(), 9.into());
    }
    compiles(&to_cpp(&table(&viewed(hostile), None).unwrap()), "");
}

#[test]
fn the_panel_carries_the_races_and_no_markup_of_the_file() {
    let mut hostile = made_up(&[(1024, 1.2)]);
    hostile.rows[0].contender.name = "</script><b>&".into();
    let html = panel(&viewed(hostile));
    assert_eq!(html.matches("<script").count(), 1);
    assert_eq!(html.matches("</script>").count(), 1);
    assert!(!html.contains("<b>"));
    let (_, data) = html.split_once("id=\"choose-data\">").unwrap();
    let data: serde_json::Value =
        serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["races"][0]["sizes"]["rows"], 1024.0);
    assert_eq!(data["races"][0]["standings"][0][0], "</script><b>&");
    let whole = panel(suite());
    assert!(whole.len() < 600_000, "{} bytes", whole.len());
}

#[test]
fn the_program_answers_refuses_and_writes_tables() {
    let folder = tempfile::tempdir().unwrap();
    record::write_json(
        &folder.path().join("made_up.json"),
        &made_up(&[(1024, 1.2), (4096, 0.8)]),
    )
    .unwrap();
    let fp8 = committed("fp8.json.gz");
    let files = ["choose", fp8.to_str().unwrap(), "made_up.json"];
    let ask = |rest: &[&str]| run(folder.path(), &[&files[..], rest].concat());
    let gemm = ["--op", "gemm", "--shape", "m=64,n=2112,k=7168"];
    let (code, said, _) = ask(&gemm);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains(
            "use ours: 9.408 us, 1.130 [1.066, 1.180] times as fast as deep_gemm (faster)"
        ),
        "{said}"
    );
    for (rest, expected, part) in [
        (
            &[&gemm[..], &["--dtype", "bf16"]].concat()[..],
            2,
            "gemm was measured in fp8_e4m3: say which with --dtype",
        ),
        (
            &["--op", "gem", "--shape", "m=1"],
            2,
            "'gem' has no time in these files; there are gemm, grouped_gemm",
        ),
        (
            &["--op", "gemm", "--shape", "m=64,n=4096"],
            2,
            "k is missing: there are k 14336, 4096, 7168",
        ),
        (
            &["--op", "op", "--shape", "columns=4096"],
            2,
            "the shape needs a value for rows",
        ),
        (
            &["--op", "op", "--shape", "hats=9"],
            2,
            "no axis is called 'hats' here; there are columns, rows",
        ),
        (
            &["--model", "llama-9", "--batch", "1", "--context", "1"],
            2,
            "'llama-9' is not a known model",
        ),
        (&[], 2, "nothing is asked"),
        (
            &["--op", "nothing", "--table", "csv"],
            2,
            "'nothing' has no time in these files",
        ),
    ] {
        let (code, said, told) = ask(rest);
        assert_eq!(code, expected, "{rest:?}: {said}{told}");
        assert!(told.contains(part), "{rest:?}: {told}");
    }
    let (code, said, _) = ask(&["--op", "op", "--shape", "rows=2048,columns=4096"]);
    assert_eq!(code, 3, "{said}");
    let model = [
        "--model",
        "llama-3.1-8b",
        "--batch",
        "16",
        "--context",
        "8192",
    ];
    let (code, said, _) = ask(&model);
    assert_eq!(code, 3);
    assert!(
        said.contains("decode, query, key, value: gemm fp8_e4m3 m=16 k=4096 n=6144"),
        "{said}"
    );
    assert!(
        said.contains("decode, attention: decode batch=16"),
        "{said}"
    );
    for format in ["json", "csv", "cpp"] {
        let (code, _, told) = ask(&["--table", format, "-o", format]);
        assert_eq!(code, 0, "{told}");
        assert!(std::fs::metadata(folder.path().join(format)).unwrap().len() > 2_000);
    }
}
