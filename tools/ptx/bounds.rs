//! How long the units of an H200 need for what our Hopper kernels do, against measured times.
//!
//! Counters of a kernel at a small shape give its work per multiply-add; the multiply-adds of a measured workload
//! follow from its tiles. Each unit's time is its work over what all multiprocessors do in a cycle, at the clock that
//! was measured with the row. The largest is a bound: no schedule of the same instructions is faster.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use crate::files;

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

const DRAM: &str = "DRAM";

/// An operation and tile whose kernel no gate counted.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Uncounted(String);

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

pub fn number(value: &Value, path: &str) -> Option<f64> {
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
    let bytes = files::bytes(path, files::TEXT_BYTES_MAX)?;
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
pub struct Work {
    pub multiply_adds: f64,
    /// Of which a multiprocessor takes whole ones; 0 where they differ in size.
    tiles: u64,
    /// Part of the name of the kernel that was counted.
    pub kernel: String,
    /// Operands per multiply-add, where tiles differ from those that were counted.
    operand_bytes: Option<f64>,
}

/// `192x80`.
fn tile(text: &str) -> Option<(u64, u64)> {
    let (high, wide) = text.split_once('x')?;
    Some((high.parse().ok()?, wide.parse().ok()?))
}

/// Steps of all tiles of queries over tiles of keys.
fn attention_steps(axes: &Value, (high, wide): (u64, u64)) -> Option<u64> {
    let causal = axes["causal"].as_bool()?;
    let (queries, keys) = (numbers(axes, "/q_lens")?, numbers(axes, "/kv_lens")?);
    let sequences = queries.into_iter().zip(keys);
    let steps = sequences.flat_map(|(queries, keys)| {
        (0..queries).step_by(high as usize).map(move |first| {
            let seen = if causal {
                queries.min(first + high) + keys - queries
            } else {
                keys
            };
            seen.div_ceil(wide)
        })
    });
    Some(steps.sum())
}

/// None where it is not a product of our Hopper kernels, which older files call by their instruction or schedule.
pub fn work(row: &Value) -> Option<Work> {
    let axes = row.pointer("/workload/axes")?;
    let size = |name: &str| axes[name].as_u64();
    let fact = |name: &str| row["facts"][name].as_str();
    match row["op"].as_str()? {
        "gemm" | "grouped_gemm" | "masked_grouped_gemm" => {
            let (high, wide) = tile(fact("tile")?)?;
            let down = match numbers(axes, "/tokens") {
                Some(groups) => groups.iter().map(|rows| rows.div_ceil(high)).sum(),
                None => size("m")?.div_ceil(high),
            };
            let tiles = down * size("n")?.div_ceil(wide);
            Some(Work {
                multiply_adds: (tiles * high * wide * size("k")?) as f64,
                tiles: tiles * row["facts"]["split_k"].as_u64().unwrap_or(1),
                kernel: "gemm6hopper".to_owned(),
                // Every 64 rows read the columns once more.
                operand_bytes: Some(
                    2.0 * (high + high.div_ceil(64) * wide) as f64 / (high * wide) as f64,
                ),
            })
        }
        "prefill" | "dense_attention" => {
            let ("hopper" | "wgmma", tile_text) = fact("config")?.split_once(' ')? else {
                return None;
            };
            let (high, wide) = tile(tile_text)?;
            let (dim, heads) = (size("head_dim")?, size("heads")?);
            let dims = dim + size("value_dim").unwrap_or(dim);
            // Heads that share a KV head may share a tile, which then has fewer queries; the count of tiles tells.
            let group = heads / size("kv_heads")?.max(1);
            let count = |rows: u64| -> Option<u64> {
                let queries = numbers(axes, "/q_lens")?.into_iter();
                Some(queries.map(|queries| queries.div_ceil(rows)).sum())
            };
            let tiles = row["facts"]["tiles"].as_u64();
            let shared = (high / group).max(1);
            let is_shared = tiles.is_some() && count(high) != tiles && count(shared) == tiles;
            if tiles.is_some() && count(high) != tiles && !is_shared {
                // Parts of keys, which do not say whether heads share a tile.
                return None;
            }
            let steps = if is_shared {
                attention_steps(axes, (shared, wide))? * heads / group
            } else {
                attention_steps(axes, (high, wide))? * heads
            };
            // Scores and sums of values.
            Some(Work {
                multiply_adds: (steps * high * wide * dims) as f64,
                tiles: 0,
                kernel: format!(
                    "prefill6hopper14prefill_kernelINS0_6TraitsI13__nv_bfloat16Li{dim}ELi{high}ELi{wide}E"
                ),
                operand_bytes: None,
            })
        }
        "mla_decode" if matches!(fact("plan")?.split_once(',')?.0, "hopper" | "seesaw") => {
            let heads = (size("heads")? * size("q_len")?).next_multiple_of(64);
            let each = size("latent_dim")? * 2 + size("rope_dim")?;
            Some(Work {
                multiply_adds: (heads * size("kv_tokens")? * each) as f64,
                tiles: 0,
                kernel: "mla6hopper".to_owned(),
                operand_bytes: None,
            })
        }
        _ => None,
    }
}

/// None where a row is not of a Hopper kernel of ours in bf16.
fn bound(row: &Value, meta: &Value, accounts: &[Value]) -> Option<Result<Row, Uncounted>> {
    let ours = row.pointer("/contender/name")? == "ours"
        && row["status"] == "ok"
        && row["dtype"] == "bf16";
    if !ours {
        return None;
    }
    let Work {
        multiply_adds,
        tiles,
        kernel,
        operand_bytes,
    } = work(row)?;
    let text = |path: &str| {
        row.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let tile: String = ["/facts/tile", "/facts/config"]
        .iter()
        .map(|path| text(path))
        .collect();
    let Some(mut rates) = rates(accounts, &kernel) else {
        return Some(Err(Uncounted(format!("{} {tile}", text("/op")))));
    };
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
    Some(Ok(Row {
        op: text("/op"),
        name: format!("{}/{}", text("/workload/suite"), text("/workload/name")),
        tile,
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
            (DRAM, compulsory_us(row).unwrap_or(0.0)),
        ],
    }))
}

/// The bytes that a workload must move, at the bandwidth that HBM is specified for.
fn compulsory_us(row: &Value) -> Option<f64> {
    const TERABYTES_PER_SECOND: f64 = 4.8;
    Some(number(row, "/metrics/tbps")? * number(row, "/time/median_us")? / TERABYTES_PER_SECOND)
}

/// The runs of a result file: of a suite, or of one bench.
pub fn runs(path: &Path) -> Result<Vec<Value>, String> {
    let mut file = read(path)?;
    match file["runs"].take() {
        Value::Array(runs) => Ok(runs),
        _ if file["rows"].is_array() => Ok(vec![file]),
        _ => Err(format!("{}: no runs and no rows", path.display())),
    }
}

/// A table of the rows that DRAM does not limit, the longest of each operation first; below it, what was not counted.
///
/// # Errors
///
/// Where a file cannot be read, or no row is of a kernel that was counted.
pub fn table(results: &[PathBuf], counters: &[PathBuf], per_op: usize) -> Result<String, String> {
    let accounts = counters
        .iter()
        .map(|path| read(path))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows: Vec<Row> = Vec::new();
    let mut uncounted: BTreeMap<Uncounted, usize> = BTreeMap::new();
    for path in results {
        for run in runs(path)? {
            for row in run["rows"].as_array().into_iter().flatten() {
                match bound(row, &run["meta"], &accounts) {
                    Some(Ok(row)) if row.largest().0 != DRAM => rows.push(row),
                    Some(Err(what)) => *uncounted.entry(what).or_default() += 1,
                    _ => {}
                }
            }
        }
    }
    let files: Vec<_> = results
        .iter()
        .filter_map(|path| Some(format!("`{}`", path.file_name()?.to_string_lossy())))
        .collect();
    let files = files.join(", ");
    if rows.is_empty() {
        return Err(format!("{files}: no row of a kernel that was counted"));
    }
    rows.sort_by(|a, b| {
        a.op.cmp(&b.op)
            .then(b.measured_us.total_cmp(&a.measured_us))
    });
    let mut text = format!(
        "Bounds from counters against the times in {files}: microseconds, and the largest bound over the time.\n\n\
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
    for (index, (Uncounted(what), count)) in uncounted.iter().enumerate() {
        let line = if index == 0 { "\n" } else { "" };
        writeln!(text, "{line}- not counted: {what}, {count} rows")
            .map_err(|error| error.to_string())?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
        let text = table(&[results("128x160")], std::slice::from_ref(&counters), 9).unwrap();
        assert!(
            text.contains("| 50.0 | 20.5 |") && text.contains("| tensor core | 0.41 |"),
            "{text}"
        );
        // Six tiles of 128x128 need two rounds.
        let text = table(&[results("128x128")], std::slice::from_ref(&counters), 9).unwrap();
        assert!(text.contains("| 50.0 | 32.8 |"), "{text}");
        let other = write("other.json", r#"{"kernels": {}}"#);
        assert!(table(&[results("128x160")], &[other], 9)
            .unwrap_err()
            .contains("no row"));
        fs::remove_dir_all(folder).unwrap();
    }

    fn attention(config: &str, tiles: u64) -> Value {
        serde_json::json!({
            "op": "prefill", "facts": {"config": config, "tiles": tiles},
            "workload": {"axes": {"head_dim": 128, "heads": 4, "kv_heads": 2, "causal": true,
                "q_lens": [300, 10], "kv_lens": [300, 100]}},
        })
    }

    #[test]
    fn attention_is_of_the_tile_that_its_row_names() {
        let multiply_adds = |row| work(&row).map(|work| work.multiply_adds);
        // Queries of 192 see 192 of the first 300 keys, then all, and 100: three, four and two steps of 80.
        let step = (2 * 192 * 80 * 128) as f64;
        let found = multiply_adds(attention("hopper 192x80", 3));
        assert_eq!(found, Some((3 + 4 + 2) as f64 * 4.0 * step));
        // Two heads in a tile: 96 queries see 96, 192, 288 and 300 keys, and 100.
        let found = multiply_adds(attention("hopper 192x80", 5));
        assert_eq!(found, Some((2 + 3 + 4 + 4 + 2) as f64 * 2.0 * step));
        assert_eq!(
            multiply_adds(attention("wgmma 128x128", 4)),
            multiply_adds(attention("hopper 128x128", 4))
        );
        assert!(work(&attention("portable 128x64", 3)).is_none());
        // As many tiles as neither makes: keys are split.
        assert!(work(&attention("hopper 192x80", 7)).is_none());
        let kernel = work(&attention("hopper 192x80", 3)).unwrap().kernel;
        assert!(kernel.ends_with("Li128ELi192ELi80E"), "{kernel}");
    }

    #[test]
    fn what_was_not_counted_is_said() {
        let row = |config: &str| {
            let mut row = attention(config, 3);
            let more = serde_json::json!({
                "dtype": "bf16", "status": "ok", "contender": {"name": "ours"}, "clocks": {"median_mhz": 1000.0},
                "metrics": {"tbps": 0.1}, "time": {"median_us": 50.0},
            });
            let fields = more.as_object().cloned().unwrap_or_default();
            row.as_object_mut().unwrap().extend(fields);
            row
        };
        let path =
            |name: &str| std::env::temp_dir().join(format!("bounds_{}_{name}", std::process::id()));
        let (results, counters) = (path("rows.json"), path("counted.json"));
        // The file of one bench, not of a suite.
        let file = serde_json::json!({
            "meta": {"gpu": {"multiprocessors": 4}}, "rows": [row("hopper 192x80"), row("hopper 192x64")],
        });
        fs::write(&results, file.to_string()).unwrap();
        let name = work(&row("hopper 192x80")).unwrap().kernel;
        let counts = serde_json::json!({
            "multiply_adds": 1000, "special_functions": 0, "thread_instructions": 32, "bytes": {},
        });
        fs::write(
            &counters,
            serde_json::json!({"kernels": {name: counts}}).to_string(),
        )
        .unwrap();
        let text = table(
            std::slice::from_ref(&results),
            std::slice::from_ref(&counters),
            9,
        )
        .unwrap();
        assert!(text.contains("| hopper 192x80 | 50.0 |"), "{text}");
        assert!(
            text.ends_with("- not counted: prefill hopper 192x64, 1 rows\n"),
            "{text}"
        );
        for path in [results, counters] {
            fs::remove_file(path).unwrap();
        }
    }
}
