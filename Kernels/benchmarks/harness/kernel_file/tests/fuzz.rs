//! Descriptions of random bytes: an error or a description whose expressions have values or errors, never a crash.

use kernel_file::{Description, Expression};

const CORPUS: &str = "Kernels/benchmarks/harness/kernel_file/tests/corpus";

fn evaluate(expression: &Expression) {
    for size in [0, 1, 4096, i64::MAX, i64::MIN] {
        let axis = |name: &str| (name.len() < 9).then_some(size);
        let _ = expression.value(&axis, &String::new);
    }
}

#[test]
fn descriptions() {
    let corpus = fuzz::corpus(CORPUS, "kernel-");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for seed in &corpus {
        Description::parse(&text(seed)).expect("the corpus is sound");
    }
    let words = [
        "ceil_div(",
        "min(m, ",
        "max(",
        "%",
        "((((((((",
        "9223372036854775807",
        "\"cluster\": [2, 2]",
        "../",
        "{\"value\": [1e308, \"f32\"]}",
        "\"tensor_map\":",
        "[[[[",
        "\\u0000",
    ];
    fuzz::run("descriptions of kernels", &corpus, &words, |bytes| {
        let Ok(description) = Description::parse(&text(bytes)) else {
            return;
        };
        let sizes = [&description.grid, &description.block, &description.cluster];
        sizes.into_iter().flatten().for_each(evaluate);
        description.shared_bytes.iter().for_each(evaluate);
    });
}

#[test]
fn expressions() {
    let seeds = [
        "ceil_div(m, 128) * 2",
        "min(n % 7, (m - 1) / 3) + max(1, 2)",
    ];
    let corpus: Vec<Vec<u8>> = seeds.map(|seed| seed.as_bytes().to_vec()).into();
    let words = [
        "ceil_div(",
        "min(",
        "max(",
        "%",
        "/0",
        "((((",
        "9223372036854775807",
        "-",
        ",",
    ];
    fuzz::run("expressions", &corpus, &words, |bytes| {
        if let Ok(expression) = String::from_utf8_lossy(bytes).parse() {
            evaluate(&expression);
        }
    });
}
