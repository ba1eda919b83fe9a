//! The command that reproduces a row.

use crate::erased::AnyProblem;
use crate::options::{CacheChoice, Options};

/// Every option that affects what a row means, but none about output.
pub fn command(
    program: &str,
    options: &Options,
    device: contender::DeviceKind,
    problem: &AnyProblem,
    contenders: &[&str],
) -> String {
    use clap::ValueEnum;
    let (what, how) = (&options.what, &options.how);
    let mut words = vec![program.to_owned()];
    let mut add = |option: &str, value: String| words.push(format!("{option} {}", quoted(&value)));
    add("--device", device.to_string());
    if let (Some(file), Some(oracle)) = (&what.problem, &what.oracle) {
        add("--problem", file.display().to_string());
        add("--oracle", oracle.to_string());
    }
    if let Some(file) = &what.workload_file {
        add("--workloads", file.display().to_string());
    } else if what.configs.is_empty() {
        add("--suite", problem.workload().suite.clone());
    } else {
        let configs: Vec<String> = what.configs.iter().map(ToString::to_string).collect();
        add("--configs", configs.join(","));
    }
    add("--workload", problem.workload().name.clone());
    add("--op", problem.op().to_owned());
    add("--dtype", problem.dtype().to_string());
    add("--weight-dtype", what.weight_dtype.to_string());
    if let Some(passes) = what.passes.to_possible_value() {
        add("--mode", passes.get_name().to_owned());
    }
    add("--contenders", contenders.join(","));
    for library in &what.libraries {
        if contenders.contains(&&*library.name) {
            add("--contender", library.to_string());
        }
    }
    // One alone is compared with nobody.
    if let Some(baseline) = what.baseline.as_ref().filter(|_| contenders.len() > 1) {
        add("--baseline", baseline.clone());
    }
    if problem.workload().suite == "unseen" {
        add("--shapes-seed", what.shapes_seed.to_string());
    }
    if let Some(timer) = how.timer.and_then(|timer| timer.to_possible_value()) {
        add("--timer", timer.get_name().to_owned());
    }
    if how.cache == CacheChoice::Hot {
        add("--cache", "hot".to_owned());
    }
    match how.protocol {
        Some(preset) => add("--protocol", preset.to_string()),
        None => {
            add("--processes", how.processes.to_string());
            add("--warmup-ms", how.warmup_ms.to_string());
        }
    }
    if let Some(rounds) = how.iters {
        add("--iters", rounds.to_string());
    }
    if let Some(rep_ms) = how.rep_ms {
        add("--rep-ms", rep_ms.to_string());
    }
    if let Some(budget_ms) = how.budget_ms {
        add("--budget-ms", budget_ms.to_string());
    }
    if let Some(energy_ms) = how.energy_ms {
        add("--energy-ms", energy_ms.to_string());
    }
    add("--seed", how.seed.to_string());
    if let Some(entropy) = how.entropy {
        add("--entropy", entropy.to_string());
    }
    if how.steady {
        words.push("--steady".to_owned());
    }
    if how.skip_verify {
        words.push("--skip-verify".to_owned());
    }
    words.join(" ")
}

/// Shell quoting for anything but a plain word.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn odd_words_are_quoted() {
        assert_eq!(quoted("4096x7168"), "4096x7168");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
