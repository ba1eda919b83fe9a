//! Problem files of random bytes: a sentence or problems, never a crash, and nothing that takes long.

use std::sync::Arc;

use contender::Problem;
use own::{OwnProblem, ProblemFile};

const CORPUS: &str = "Kernels/benchmarks/workloads/own/tests/corpus";

#[test]
fn problem_files() {
    let corpus = fuzz::corpus(CORPUS, "problem-");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for seed in &corpus {
        ProblemFile::parse(&text(seed)).expect("the corpus is sound");
    }
    let words = [
        "ceil_div(",
        "rows * columns",
        "element_bytes",
        "% 0",
        "9223372036854775807",
        "\"units\": \"rows\"",
        "\"role\": \"in_out\"",
        "\"integers\": [0, 5]",
        "\"families\": [\"drift\", \"late_maximum\", \"large\", \"constant\"]",
        "\"tolerance\": {\"absolute\": 1e30}",
        "[[[[[[[[[[[[[[[[",
        "\"dtype\": \"i64\"",
        "1e308",
        "\\u0000",
    ];
    fuzz::run("problem files", &corpus, &words, |bytes| {
        let Ok(file) = ProblemFile::parse(&text(bytes)) else {
            return;
        };
        let file = Arc::new(file);
        for shape in file.shapes().take(4) {
            for dtype in &file.dtypes {
                let problem = OwnProblem::new(&file, &shape, *dtype, None, "fuzz");
                if let Ok(problem) = problem {
                    assert!(problem.units() > 0 && problem.cost().flops >= 0.0);
                    assert!(problem.families().len() <= 7);
                }
            }
        }
    });
}
