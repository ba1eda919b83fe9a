//! How long the units of an H200 need for what our Hopper kernels do, against measured times.
//!
//! Counters of a kernel at a small shape give its work per multiply-add; the multiply-adds of a measured workload
//! follow from its tiles. Each unit's time is its work over what all multiprocessors do in a cycle, at the clock that
//! was measured with the row. The largest is a bound: no schedule of the same instructions is faster.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

/// What one multiprocessor of Hopper does in a cycle.
mod per_cycle {
    /// Multiply-adds of dense products in 16 bits; twice as many in 8.
    pub const MULTIPLY_ADDS: f64 = 2048.0;
    pub const SPECIAL_FUNCTIONS: f64 = 16.0;
    pub const WARP_INSTRUCTIONS: f64 = 4.0;
    /// Read, by threads and products.
    pub const SHARED_BYTES: f64 = 128.0;
}

/// Work per multiply-add.
struct Rates {
    special_functions: f64,
    warp_instructions: f64,
    shared_bytes: f64,
}

struct Row {
    op: String,
    name: String,
    tile: String,
    measured_us: f64,
    /// Unit and the time that it needs.
    units: Vec<(&'static str, f64)>,
}

impl Row {
    fn largest(&self) -> (&'static str, f64) {
        let units = self.units.iter().copied();
        units.fold(
            ("", 0.0),
            |most, unit| if unit.1 > most.1 { unit } else { most },
        )
    }
}

fn number(value: &Value, path: &str) -> Option<f64> {
    value.pointer(path)?.as_f64()
}

fn numbers(value: &Value, path: &str) -> Option<Vec<u64>> {
    value
        .pointer(path)?
        .as_array()?
        .iter()
        .map(Value::as_u64)
        .collect()
}

fn read(path: &Path) -> Result<Value, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = fs::read(path).map_err(|error| failed(&error))?;
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut decoder = MultiGzDecoder::new(&bytes[..]);
        decoder
            .read_to_string(&mut text)
            .map_err(|error| failed(&error))?;
    } else {
        text = String::from_utf8(bytes).map_err(|error| failed(&error))?;
    }
    serde_json::from_str(&text).map_err(|error| failed(&error))
}

/// The rates of the counted kernel whose name holds `part` and that has the most multiply-adds.
fn rates(accounts: &[Value], part: &str) -> Option<Rates> {
    let kernels = accounts
        .iter()
        .filter_map(|account| account["kernels"].as_object())
        .flatten();
    let (_, kernel) = kernels
        .filter(|(name, _)| name.contains(part))
        .max_by_key(|(_, kernel)| kernel["multiply_adds"].as_u64())?;
    let per = number(kernel, "/multiply_adds")?;
    let bytes = |what: &str| kernel["bytes"][what].as_f64().unwrap_or(0.0);
    Some(Rates {
        special_functions: number(kernel, "/special_functions")? / per,
        warp_instructions: number(kernel, "/thread_instructions")? / 32.0 / per,
        // Fills by copies are writes, which do not take turns with these.
        shared_bytes: (bytes("operands of wgmma") + bytes("shared read")) / per,
    })
}

/// What a workload makes of a kernel.
struct Work {
    multiply_adds: f64,
    /// Of which a multiprocessor takes whole ones; 0 where they differ in size.
    tiles: u64,
    /// Part of the name of the kernel that was counted.
    kernel: &'static str,
    /// Operands per multiply-add, where tiles differ from those that were counted.
    operand_bytes: Option<f64>,
}

/// None where it is not a product of ours.
fn work(row: &Value) -> Option<Work> {
    let axes = row.pointer("/workload/axes")?;
    let size = |name: &str| axes[name].as_u64();
    match row["op"].as_str()? {
        "gemm" | "grouped_gemm" => {
            let (high, wide) = row.pointer("/facts/tile")?.as_str()?.split_once('x')?;
            let (high, wide): (u64, u64) = (high.parse().ok()?, wide.parse().ok()?);
            let down = match numbers(axes, "/tokens") {
                Some(groups) => groups.iter().map(|rows| rows.div_ceil(high)).sum(),
                None => size("m")?.div_ceil(high),
            };
            let tiles = down * size("n")?.div_ceil(wide);
            Some(Work {
                multiply_adds: (tiles * high * wide * size("k")?) as f64,
                tiles,
                kernel: "gemm6hopper",
                // Every 64 rows read the columns once more.
                operand_bytes: Some(
                    2.0 * (high + high.div_ceil(64) * wide) as f64 / (high * wide) as f64,
                ),
            })
        }
        "prefill"
            if row.pointer("/facts/config")? == "wgmma 128x128" && size("head_dim")? == 128 =>
        {
            const TILE: u64 = 128;
            let causal = axes["causal"].as_bool()?;
            let (queries, keys) = (numbers(axes, "/q_lens")?, numbers(axes, "/kv_lens")?);
            let mut steps = 0;
            for (queries, keys) in queries.into_iter().zip(keys) {
                for first in (0..queries).step_by(TILE as usize) {
                    let seen = if causal {
                        queries.min(first + TILE) + keys - queries
                    } else {
                        keys
                    };
                    steps += seen.div_ceil(TILE) * size("heads")?;
                }
            }
            // Scores and sums of values.
            Some(Work {
                multiply_adds: (2 * steps * TILE * TILE * TILE) as f64,
                tiles: 0,
                kernel: "prefill6hopper14prefill_kernelINS0_6TraitsI13__nv_bfloat16Li128ELi128",
                operand_bytes: None,
            })
        }
        "mla_decode" if row.pointer("/facts/plan")?.as_str()?.starts_with("seesaw") => {
            let heads = (size("heads")? * size("q_len")?).next_multiple_of(64);
            let each = size("latent_dim")? * 2 + size("rope_dim")?;
            Some(Work {
                multiply_adds: (heads * size("kv_tokens")? * each) as f64,
                tiles: 0,
                kernel: "mla6hopper",
                operand_bytes: None,
            })
        }
        _ => None,
    }
}

fn bound(row: &Value, meta: &Value, accounts: &[Value]) -> Option<Row> {
    let ours = row.pointer("/contender/name")? == "ours"
        && row["status"] == "ok"
        && row["dtype"] == "bf16";
    if !ours
        || !row
            .pointer("/metrics/roof")?
            .as_str()?
            .starts_with("tensor")
    {
        return None;
    }
    let Work {
        multiply_adds,
        tiles,
        kernel,
        operand_bytes,
    } = work(row)?;
    let mut rates = rates(accounts, kernel)?;
    if let Some(bytes) = operand_bytes {
        rates.shared_bytes = bytes;
    }
    let multiprocessors = number(meta, "/gpu/multiprocessors")?;
    let cycles = multiprocessors * number(row, "/clocks/median_mhz")?;
    // A multiprocessor takes whole tiles.
    let waves = match tiles {
        0 => 1.0,
        tiles => (tiles as f64 / multiprocessors).ceil() * multiprocessors / tiles as f64,
    };
    let time = |amount: f64, each: f64| amount * multiply_adds / each / cycles;
    let text = |path: &str| {
        row.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    Some(Row {
        op: text("/op"),
        name: format!("{}/{}", text("/workload/suite"), text("/workload/name")),
        tile: ["/facts/tile", "/facts/config"]
            .iter()
            .map(|path| text(path))
            .collect(),
        measured_us: number(row, "/time/median_us")?,
        units: vec![
            ("tensor core", waves * time(1.0, per_cycle::MULTIPLY_ADDS)),
            (
                "special functions",
                time(rates.special_functions, per_cycle::SPECIAL_FUNCTIONS),
            ),
            (
                "issue slots",
                time(rates.warp_instructions, per_cycle::WARP_INSTRUCTIONS),
            ),
            (
                "shared memory",
                time(rates.shared_bytes, per_cycle::SHARED_BYTES),
            ),
            ("DRAM", compulsory_us(row).unwrap_or(0.0)),
        ],
    })
}

/// The bytes that a workload must move, at the bandwidth that HBM is specified for.
fn compulsory_us(row: &Value) -> Option<f64> {
    const TERABYTES_PER_SECOND: f64 = 4.8;
    Some(number(row, "/metrics/tbps")? * number(row, "/time/median_us")? / TERABYTES_PER_SECOND)
}

/// A table of the rows that a tensor core limits, the longest of each operation first.
///
/// # Errors
///
/// Where a file cannot be read, or no row is of a kernel that was counted.
pub fn table(results: &Path, counters: &[PathBuf], per_op: usize) -> Result<String, String> {
    let accounts = counters
        .iter()
        .map(|path| read(path))
        .collect::<Result<Vec<_>, _>>()?;
    let file = read(results)?;
    let runs = file["runs"]
        .as_array()
        .ok_or_else(|| format!("{}: no runs", results.display()))?;
    let mut rows: Vec<Row> = Vec::new();
    for run in runs {
        let found = run["rows"].as_array().into_iter().flatten();
        rows.extend(found.filter_map(|row| bound(row, &run["meta"], &accounts)));
    }
    if rows.is_empty() {
        return Err(format!(
            "{}: no row of a kernel that was counted",
            results.display()
        ));
    }
    rows.sort_by(|a, b| {
        a.op.cmp(&b.op)
            .then(b.measured_us.total_cmp(&a.measured_us))
    });
    let name = results
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut text = format!(
        "Bounds from counters against the times in `{name}`: microseconds, and the largest bound over the time.\n\n\
         | operation | workload | tile | measured | tensor core | special functions | issue slots | shared memory | \
         DRAM | largest | share |\n|---|---|---|---:|---:|---:|---:|---:|---:|---|---:|\n"
    );
    let mut last = (String::new(), 0);
    for row in &rows {
        last = if last.0 == row.op {
            (last.0, last.1 + 1)
        } else {
            (row.op.clone(), 0)
        };
        if last.1 >= per_op {
            continue;
        }
        let units: Vec<String> = row
            .units
            .iter()
            .map(|(_, time)| format!("{time:.1}"))
            .collect();
        let (unit, time) = row.largest();
        writeln!(
            text,
            "| {} | {} | {} | {:.1} | {} | {unit} | {:.2} |",
            row.op,
            row.name,
            row.tile,
            row.measured_us,
            units.join(" | "),
            time / row.measured_us
        )
        .map_err(|error| error.to_string())?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_bound_by_its_tiles() {
        let folder = std::env::temp_dir().join(format!("bounds_{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let counters = write(
            "counters.json",
            r#"{"kernels": {"x4gemm6hopper": {"multiply_adds": 1000, "special_functions": 0,
                "thread_instructions": 32, "bytes": {"operands of wgmma": 50}}}}"#,
        );
        let results = |tile: &str| {
            let text = r#"{"runs": [{"meta": {"gpu": {"multiprocessors": 4}}, "rows": [{"op": "gemm", "dtype": "bf16",
                "status": "ok", "contender": {"name": "ours"}, "workload": {"name": "w", "axes":
                {"m": 256, "n": 320, "k": 2048}}, "facts": {"tile": "TILE"}, "clocks": {"median_mhz": 1000.0},
                "metrics": {"roof": "tensor_bf16", "tbps": 0.1}, "time": {"median_us": 50.0}}]}]}"#;
            write("results.json", &text.replace("TILE", tile))
        };
        // Four tiles of 128x160 on four multiprocessors: 128 * 160 * 2048 / 2048 cycles of a nanosecond.
        let text = table(&results("128x160"), std::slice::from_ref(&counters), 9).unwrap();
        assert!(
            text.contains("| 50.0 | 20.5 |") && text.contains("| tensor core | 0.41 |"),
            "{text}"
        );
        // Six tiles of 128x128 need two rounds.
        let text = table(&results("128x128"), std::slice::from_ref(&counters), 9).unwrap();
        assert!(text.contains("| 50.0 | 32.8 |"), "{text}");
        let other = write("other.json", r#"{"kernels": {}}"#);
        assert!(table(&results("128x160"), &[other], 9)
            .unwrap_err()
            .contains("no row"));
        fs::remove_dir_all(folder).unwrap();
    }
}
