//! Result files in other programs' formats.

use crate::View;
use record::{Row, RowKey, Status};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// JSON in the format of NVBench's `--json` (version 1.0.0): one benchmark per op, type, suite and
/// contender, one state per workload. Times are in seconds and summary values strings, as in NVBench.
pub fn to_nvbench(view: &View) -> Value {
    let meta = &view.file.meta;
    let mut benchmarks: BTreeMap<(&str, &str, &str, &str), Vec<&Row>> = BTreeMap::new();
    for row in &view.file.rows {
        let key = (
            &*row.op,
            &*row.dtype,
            &*row.workload.suite,
            &*row.contender.name,
        );
        benchmarks.entry(key).or_default().push(row);
    }
    let benchmarks: Vec<Value> = benchmarks
        .into_iter()
        .enumerate()
        .map(|(index, ((op, dtype, suite, contender), rows))| {
            json!({
                "name": format!("{op}/{dtype}/{suite}/{contender}"),
                "index": index,
                "min_samples": meta.protocol.rounds_min,
                "devices": [0],
                "axes": axes(&rows),
                "states": rows.iter().map(|row| state(row)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let version = json!({"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"});
    let gpu = meta.gpu.as_ref();
    json!({
        "meta": {"argv": meta.argv, "version": {"json": version}},
        "devices": [{
            "id": 0,
            "name": meta.device.name,
            "number_of_sms": gpu.map(|gpu| gpu.multiprocessors),
            "l2_cache_size": gpu.map(|gpu| gpu.l2_bytes),
            "global_memory_size": gpu.map(|gpu| gpu.memory_bytes),
            "ecc_state": gpu.and_then(|gpu| gpu.ecc),
        }],
        "benchmarks": benchmarks,
    })
}

fn axes(rows: &[&Row]) -> Value {
    let mut names: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for row in rows {
        for (name, value) in &row.workload.axes {
            let values = names.entry(name).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    let axis = |(name, values): (&str, Vec<&Value>)| {
        let values: Vec<Value> = values
            .into_iter()
            .map(|value| json!({"input_string": text(value), "description": "", "value": value}))
            .collect();
        let kind = values
            .first()
            .map_or("string", |first| kind(&first["value"]));
        json!({"name": name, "type": kind, "flags": "", "values": values})
    };
    names.into_iter().map(axis).collect()
}

fn state(row: &Row) -> Value {
    let axis = |(name, value): (&String, &Value)| json!({"name": name, "type": kind(value), "value": text(value)});
    let named = |(name, value): (&String, &Value)| format!("{name}={}", text(value));
    let words: Vec<String> = row.workload.axes.iter().map(named).collect();
    let mut state = json!({
        "name": format!("Device=0 {}", words.join(" ")),
        "device": 0,
        "type_config_index": 0,
        "axis_values": row.workload.axes.iter().map(axis).collect::<Vec<_>>(),
        "summaries": summaries(row),
        "is_skipped": row.status != Status::Ok,
    });
    if let Some(reason) = &row.reason {
        state["skip_reason"] = json!(format!("{}: {reason}", row.status));
    }
    state
}

fn summaries(row: &Row) -> Vec<Value> {
    let Some(time) = &row.time else {
        return Vec::new();
    };
    let number = |tag: &str, name: &str, hint: &str, value: f64| {
        json!({
            "tag": tag, "name": name, "hint": hint, "description": "",
            "data": [{"name": "value", "type": "float64", "value": value.to_string()}],
        })
    };
    let mut summaries = vec![
        json!({
            "tag": "nv/cold/sample_size", "name": "Samples", "hint": "sample_size", "description": "",
            "data": [{"name": "value", "type": "int64", "value": time.count.to_string()}],
        }),
        number(
            "nv/cold/time/gpu/mean",
            "GPU Time",
            "duration",
            time.mean_us / 1e6,
        ),
        number(
            "nv/cold/time/gpu/min",
            "Min GPU Time",
            "duration",
            time.min_us / 1e6,
        ),
        number(
            "nv/cold/time/gpu/max",
            "Max GPU Time",
            "duration",
            time.max_us / 1e6,
        ),
        number(
            "nv/cold/time/gpu/median",
            "Median GPU Time",
            "duration",
            time.median_us / 1e6,
        ),
    ];
    if let Some(std_us) = time.std_us {
        let noise = std_us / time.mean_us;
        summaries.push(number(
            "nv/cold/time/gpu/stdev/relative",
            "Noise",
            "percentage",
            noise,
        ));
    }
    if let Some(tbps) = row.metrics.tbps {
        let tag = "nv/cold/bw/global/bytes_per_second";
        summaries.push(number(tag, "GlobalMem BW", "byte_rate", tbps * 1e12));
    }
    summaries
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        _ => "string",
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The array that github-action-benchmark reads as `customSmallerIsBetter`: median times.
pub fn to_github_action_benchmark(views: &[View]) -> Value {
    let rows = views
        .iter()
        .flat_map(|view| view.file.rows.iter().map(move |row| (view, row)));
    let entry = |(view, row): (&View, &Row)| {
        let time = row.time.as_ref()?;
        let speedup = row.headline().map(|speedup| {
            let (low, high) = (speedup.low, speedup.high);
            let interval = record::interval_text(low, high);
            let ratio = record::ratio_text(speedup.ratio);
            format!("\n{ratio} {interval} times {}", speedup.baseline)
        });
        Some(json!({
            "name": format!("{} | {}", view.title, RowKey::of(row)),
            "unit": "us",
            "value": time.median_us,
            "range": format!("{} - {}", time.p5_us, time.p95_us),
            "extra": format!("{}{}", row.repro, speedup.unwrap_or_default()),
        }))
    };
    rows.filter_map(entry).collect()
}
