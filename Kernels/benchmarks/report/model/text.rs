//! A step for people: one line per part, the sums, the swaps, and the commands that fill the gaps.

use super::{Estimate, Model, Part, Step, StepOptions, Swap};
use record::{significant, time_us_text};

pub fn step_text(model: &Model, step: &Step, options: &StepOptions, device: &str) -> String {
    let mut text = format!(
        "{} {}: batch {}, context {}, {} on {device}\n\n",
        model.name,
        options.phase.name(),
        options.batch,
        options.context,
        record::count_text(step.tokens as usize, "new token"),
    );
    text += &table(step);
    text += &format!("\n{}", sums(step));
    let swaps = step.swaps();
    if swaps.is_empty() {
        text += "no swap saves time beyond doubt\n";
    }
    for (place, swap) in swaps.iter().enumerate() {
        text += &swap_text(
            step,
            swap,
            if place == 0 {
                "the swap that buys most"
            } else {
                "another"
            },
        );
    }
    let commands: Vec<String> = step
        .missing()
        .filter_map(|(part, _)| command(part, options))
        .collect();
    if !commands.is_empty() {
        text += &format!("to measure what is missing:\n  {}\n", commands.join("\n  "));
    }
    text + "not in it: embedding, sampling, communication, gaps between kernels; every kernel \
            starts with a cold cache\n"
}

fn table(step: &Step) -> String {
    let mut text = String::new();
    for line in &step.lines {
        let part = &line.part;
        let runs = format!("{} x {}", part.runs, part.name);
        text += &match (&line.timed, line.total()) {
            (Ok(timed), Some(total)) => {
                let how = match timed.interpolated() {
                    true => format!("interpolated between {}", timed.workloads.join(" and ")),
                    false => timed.workloads.join(", "),
                };
                let contender = &line.contender;
                let other = if *contender == timed.fastest {
                    String::new()
                } else {
                    format!(" (fastest: {})", timed.fastest)
                };
                format!(
                    "{runs:<36}  {:>26} us  {contender}{other}; {how}\n",
                    interval(total)
                )
            }
            (Ok(_), None) => format!("{runs:<36}  {:>26}     no contender\n", "-"),
            (Err(reason), _) => format!(
                "{runs:<36}  {:>26}     missing: {} {}: {reason}\n",
                "-", part.op, part.shapes[0]
            ),
        };
    }
    text
}

fn interval(time: Estimate) -> String {
    let Estimate { us, low, high } = time;
    format!(
        "{} [{}, {}]",
        time_us_text(us),
        time_us_text(low),
        time_us_text(high)
    )
}

fn sums(step: &Step) -> String {
    let mut text = match step.layer() {
        Some(layer) => format!("a layer: {} us\n", interval(layer)),
        None => String::new(),
    };
    match step.total() {
        Some(total) => {
            let [rate, slow, fast] =
                [total.us, total.high, total.low].map(|us| significant(step.rate(us), 4));
            text += &format!(
                "the step: {} us, {rate} [{slow}, {fast}] tokens per second\n",
                interval(total)
            );
        }
        None => {
            let missing = step.missing().count();
            let at_least = step.measured();
            text += &format!(
                "no total: {} of {} have no measured row near; the others take {} us\n",
                missing,
                record::count_text(step.lines.len(), "part"),
                interval(at_least)
            );
        }
    }
    text
}

fn swap_text(step: &Step, swap: &Swap, word: &str) -> String {
    let Swap { part, from, to, .. } = swap;
    let mut text = format!(
        "{word}: {part} from {from} to {to} saves {} us",
        interval(swap.saved_us)
    );
    if let Some(total) = step.total() {
        let gain = |saved: f64| step.rate(total.us - saved) - step.rate(total.us);
        let Estimate { us, low, high } = swap.saved_us;
        let [gain, low, high] = [us, low, high].map(|saved| significant(gain(saved), 3));
        text += &format!(", {gain} [{low}, {high}] more tokens per second");
    }
    text + "\n"
}

/// The bench that measures a part, where its shape is one that `--configs` takes.
fn command(part: &Part, options: &StepOptions) -> Option<String> {
    let axes: std::collections::BTreeMap<&str, &str> = part
        .shapes
        .first()?
        .split(',')
        .filter_map(|axis| axis.split_once('='))
        .collect();
    let sides = |names: &[&str]| {
        let sides: Option<Vec<&str>> = names.iter().map(|name| axes.get(name).copied()).collect();
        Some(sides?.join("x"))
    };
    Some(match part.op.as_str() {
        "gemm" => format!(
            "bench_gemm --configs {} --dtype {}",
            sides(&["m", "n", "k"])?,
            options.gemm_dtype
        ),
        "rmsnorm_fwd" | "fused_add_rmsnorm" => {
            format!(
                "bench_norms --op {} --configs {}",
                part.op,
                sides(&["rows", "columns"])?
            )
        }
        "silu_and_mul" | "gelu_tanh_and_mul" => {
            format!(
                "bench_training_ops --op {} --configs {}",
                part.op,
                sides(&["rows", "columns"])?
            )
        }
        "rope_fwd" => {
            let sides = sides(&["batch", "sequence", "query_heads", "key_heads", "dim"])?;
            format!("bench_training_ops --op rope_fwd --configs {sides}")
        }
        _ => return None,
    })
}
