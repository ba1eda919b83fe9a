//! What each unit of a multiprocessor needs for a kernel that a gate counted: a table without times.
//!
//! Everything is per 2^20 multiply-adds on one multiprocessor, so that kernels of the same operation compare whatever
//! their gates' shapes. Products have the rates that their element types have at best; bytes of shared memory are those
//! that threads read and, where products read their operands there, the operands. What a unit needs is a bound: no
//! schedule of the same instructions is faster. Global memory is what would be needed if nothing came from L2, so it is
//! a bound only of kernels that read everything once. Issue slots are those of PTX without moves between registers,
//! which `ptxas` removes; it may also make one instruction of two.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files;

/// The clock that bounds are given at.
const GIGAHERTZ: f64 = 1.85;
/// Multiply-adds that counts are divided by.
const UNIT: f64 = (1u64 << 20) as f64;

/// What one multiprocessor does in a cycle.
struct PerCycle {
    /// Multiply-adds of dense products in 16 bits; twice as many in 8, on Blackwell four times in 4.
    multiply_adds: f64,
    /// Its share of DRAM's bandwidth, in bytes.
    global_bytes: f64,
}

/// Of both generations.
mod per_cycle {
    pub const SPECIAL_FUNCTIONS: f64 = 16.0;
    pub const WARP_INSTRUCTIONS: f64 = 4.0;
    pub const SHARED_BYTES: f64 = 128.0;
}

fn rates(capability: u64) -> Option<PerCycle> {
    // Of an H200 and a B200: terabytes per second, and multiprocessors.
    let (multiply_adds, (bandwidth, multiprocessors)) = match capability {
        90 => (2048.0, (4.8, 132.0)),
        100 => (4096.0, (8.0, 148.0)),
        _ => return None,
    };
    Some(PerCycle {
        multiply_adds,
        global_bytes: 1000.0 * bandwidth / multiprocessors / GIGAHERTZ,
    })
}

/// A matrix product as counters name it: `tcgen05.mma m256n256k16 Bf16 Bf16 pair`.
#[derive(Debug, PartialEq)]
struct Product {
    rows: u64,
    columns: u64,
    depth: u64,
    bits: u64,
    is_tcgen05: bool,
    a_in_tensor_memory: bool,
}

fn product(name: &str) -> Option<Product> {
    let mut words = name.split(' ');
    let instruction = words.next()?;
    let (rows, rest) = words.next()?.strip_prefix('m')?.split_once('n')?;
    let (columns, depth) = rest.split_once('k')?;
    let element = words.next()?;
    let bits = match element {
        "E4m3" | "E5m2" => 8,
        "E2m1" => 4,
        "F16" | "Bf16" => 16,
        "Tf32" => 32,
        _ => return None,
    };
    Some(Product {
        rows: rows.parse().ok()?,
        columns: columns.parse().ok()?,
        depth: depth.parse().ok()?,
        bits,
        is_tcgen05: instruction.starts_with("tcgen05"),
        a_in_tensor_memory: name.ends_with(" a in tensor memory"),
    })
}

/// Cycles of units and other counts per [`UNIT`].
struct Needs {
    /// None where a unit's rate is not known.
    units: Vec<(&'static str, Option<f64>)>,
    global_memory: f64,
    tensor_memory_bytes: f64,
    exponentials: f64,
    waits: f64,
    multiply_adds: f64,
}

impl Needs {
    fn largest(&self) -> (&'static str, f64) {
        let known = |(name, need): &(&'static str, Option<f64>)| Some((*name, (*need)?));
        let units = self.units.iter().filter_map(known);
        units.fold(
            ("", 0.0),
            |most, unit| if unit.1 > most.1 { unit } else { most },
        )
    }
}

/// None for a kernel without products.
fn needs(kernel: &Value, rates: &PerCycle) -> Result<Option<Needs>, String> {
    let count = |path: &str| kernel.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
    let multiply_adds = count("/multiply_adds");
    if multiply_adds == 0.0 {
        return Ok(None);
    }
    let bytes = |what: &str| kernel["bytes"][what].as_f64().unwrap_or(0.0);
    let (mut tensor, mut operands) = (Some(0.0), bytes("operands of wgmma"));
    for (name, count) in kernel["products"].as_object().into_iter().flatten() {
        let product = product(name).ok_or_else(|| format!("a product of no known rate: {name}"))?;
        let count = count.as_f64().unwrap_or(0.0);
        let Product {
            rows,
            columns,
            depth,
            bits,
            ..
        } = product;
        let rate = rates.multiply_adds * 16.0 / bits as f64;
        // What Blackwell makes of older products is not known.
        let is_known = product.is_tcgen05 || rates.multiply_adds <= 2048.0;
        let cycles = count * (rows * columns * depth) as f64 / rate;
        tensor = tensor.filter(|_| is_known).map(|tensor| tensor + cycles);
        if product.is_tcgen05 {
            // A pair reads each half of b once for both.
            let rows = if product.a_in_tensor_memory { 0 } else { rows };
            operands += count * ((rows + columns) * depth * bits) as f64 / 8.0;
        }
    }
    let waits: f64 = kernel["waits"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, count)| count.as_f64())
        .sum();
    let global: f64 = [
        "global read",
        "global written",
        "cp.async",
        "bulk load",
        "bulk store",
        "tensor load",
        "tensor store",
    ]
    .into_iter()
    .map(bytes)
    .sum();
    let per = multiply_adds / UNIT;
    let moves: f64 = kernel["forms"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(form, _)| form.starts_with("mov."))
        .filter_map(|(_, count)| count.as_f64())
        .sum();
    let instructions = (count("/thread_instructions") - moves) / 32.0;
    let unit = |amount: f64, rate: f64| Some(amount / rate / per);
    Ok(Some(Needs {
        units: vec![
            ("tensor core", tensor.map(|tensor| tensor / per)),
            (
                "special functions",
                unit(count("/special_functions"), per_cycle::SPECIAL_FUNCTIONS),
            ),
            (
                "issue slots",
                unit(instructions, per_cycle::WARP_INSTRUCTIONS),
            ),
            (
                "shared memory",
                unit(operands + bytes("shared read"), per_cycle::SHARED_BYTES),
            ),
        ],
        global_memory: global / rates.global_bytes / per,
        tensor_memory_bytes: (bytes("tensor memory read") + bytes("tensor memory written")) / per,
        exponentials: count("/special_functions") / per,
        waits: waits / per,
        multiply_adds,
    }))
}

/// Registers and bytes of local memory, where spills go, of each function.
type Resources = BTreeMap<String, (u64, u64)>;

/// From what `cuobjdump -res-usage` prints.
fn resources(text: &str) -> Resources {
    let mut found = Resources::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(name) = line
            .strip_prefix("Function ")
            .and_then(|name| name.strip_suffix(':'))
        else {
            continue;
        };
        let Some(usage) = lines.next() else { break };
        let field = |key: &str| {
            let value = usage.split(' ').find_map(|word| word.strip_prefix(key));
            value.and_then(|value| value.parse().ok())
        };
        if let (Some(registers), Some(local)) = (field("REG:"), field("LOCAL:")) {
            found.insert(name.to_owned(), (registers, local));
        }
    }
    found
}

/// The identifiers and numbers of a mangled name, without its parameters' types.
fn readable(mangled: &str) -> String {
    let Some(mut rest) = mangled.strip_prefix("_Z") else {
        return mangled.to_owned();
    };
    let mut words: Vec<&str> = Vec::new();
    while let Some(first) = rest.chars().next() {
        let number = ["Li", "Lj", "Lb"]
            .iter()
            .find_map(|kind| rest.strip_prefix(kind));
        if let Some(number) = number {
            let end = number.find('E').unwrap_or(number.len());
            words.push(&number[..end]);
            rest = &number[end..];
        } else if let Some(seen) = rest.strip_prefix('S') {
            // A name that stood there before: S_, S0_ and so on.
            rest = seen.split_once('_').map_or("", |(_, after)| after);
        } else if first.is_ascii_digit() {
            let end = rest
                .find(|letter: char| !letter.is_ascii_digit())
                .unwrap_or(rest.len());
            let length = rest[..end].parse().unwrap_or(0);
            let Some(word) = rest.get(end..end + length) else {
                break;
            };
            words.push(word);
            rest = &rest[end + length..];
        } else if rest.starts_with("EEv") || rest.starts_with("EvN") {
            break;
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    words.join(" ")
}

/// A kernel that was counted.
struct Counted {
    capability: u64,
    /// Contender and workload, where they are known.
    whose: String,
    name: String,
    counters: Value,
}

/// The kernels of a gate's counters, or of a bench's rows on the device ptx.
fn counted(mut file: Value) -> Vec<Counted> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let Value::Array(rows) = file["rows"].take() else {
        let capability = file["compute_capability"].as_u64().unwrap_or(0);
        let kernels = file["kernels"].as_object().cloned().unwrap_or_default();
        let each = kernels.into_iter().map(|(name, counters)| Counted {
            capability,
            whose: String::new(),
            name,
            counters,
        });
        return each.collect();
    };
    let of_row = |row: &Value| {
        let arch: String = text(&row["arch"]);
        let digits: String = arch.chars().filter(char::is_ascii_digit).collect();
        let (contender, workload) = (&row["contender"]["name"], &row["workload"]["name"]);
        let whose = format!("{}, {}: ", text(contender), text(workload));
        let launches = row["facts"]["kernels"].as_array().cloned();
        let each = launches.unwrap_or_default().into_iter();
        let each = each.map(|mut launch| Counted {
            capability: digits.parse().unwrap_or(0),
            whose: whose.clone(),
            name: text(&launch["kernel"]),
            counters: launch["counters"].take(),
        });
        each.collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_row).collect()
}

/// The table of files of counters.
///
/// # Errors
///
/// Where a file cannot be read, or counts a product whose rate is not known.
pub fn table(counters: &[PathBuf], usage: Option<&Path>) -> Result<String, String> {
    let resources = match usage {
        Some(path) => resources(&files::text(path)?),
        None => Resources::new(),
    };
    let mut text = format!(
        "Cycles of a multiprocessor's units per 2^20 multiply-adds, and the time of the busiest at {GIGAHERTZ} GHz. No \
         kernel was timed for this table.\n\n\
         | kernel | SM | multiply-adds counted | tensor core | special functions | issue slots | shared memory | \
         global memory | tensor memory bytes | exponentials | waits | registers | local bytes | busiest | bound ns | \
         time |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---|\n"
    );
    let mut rows = 0;
    for path in counters {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = serde_json::from_str(&files::text(path)?).map_err(|error| failed(&error))?;
        for kernel in counted(file) {
            let Counted {
                capability,
                whose,
                name,
                counters,
            } = kernel;
            let rates =
                rates(capability).ok_or_else(|| failed(&format!("no rates of SM {capability}")))?;
            let needs = needs(&counters, &rates).map_err(|error| format!("{name}: {error}"))?;
            let Some(needs) = needs else { continue };
            let (unit, cycles) = needs.largest();
            let units: Vec<String> = needs
                .units
                .iter()
                .map(|(_, need)| need.map_or_else(|| "-".to_owned(), |need| format!("{need:.0}")))
                .collect();
            let (registers, local) = resources.get(&name).map_or_else(
                || ("-".to_owned(), "-".to_owned()),
                |(registers, local)| (registers.to_string(), local.to_string()),
            );
            rows += 1;
            writeln!(
                text,
                "| {whose}{} | {capability} | {:.0} | {} | {:.0} | {:.0} | {:.0} | {:.1} | {registers} | {local} | \
                 {unit} | {:.0} | not measured |",
                readable(&name),
                needs.multiply_adds,
                units.join(" | "),
                needs.global_memory,
                needs.tensor_memory_bytes,
                needs.exponentials,
                needs.waits,
                cycles / GIGAHERTZ,
            )
            .map_err(|error| error.to_string())?;
        }
    }
    if rows == 0 {
        return Err("no kernel in the counters has matrix products".to_owned());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_product_takes_its_rate_and_its_operands() {
        let kernel = serde_json::json!({
            "multiply_adds": 1u64 << 20, "thread_instructions": 1600, "special_functions": 160,
            "forms": {"mov.b64": 256, "mov.u32": 64, "add.s32": 1280},
            "products": {"tcgen05.mma m128n128k64 E2m1 E2m1 scaled": 1},
            "bytes": {"shared read": 64, "tensor memory read": 512}, "waits": {"mbarrier": 2, "barrier": 1},
        });
        let needs = needs(&kernel, &rates(100).unwrap()).unwrap().unwrap();
        let units: Vec<f64> = needs.units.iter().filter_map(|(_, need)| *need).collect();
        // 16384 multiply-adds of 4 bits in a cycle; 256 rows of 32 bytes and 64 bytes at 128 a cycle.
        assert_eq!(units, [64.0, 10.0, 10.0, (256.0 * 32.0 + 64.0) / 128.0]);
        assert_eq!(needs.largest().0, "shared memory");
        assert_eq!((needs.waits, needs.tensor_memory_bytes), (3.0, 512.0));
        assert_eq!(needs.global_memory, 0.0);
        assert!(rates(75).is_none());
        let odd =
            serde_json::json!({"multiply_adds": 1, "products": {"tcgen05.mma m1n1k1 S8 S8": 1}});
        let error = super::needs(&odd, &rates(100).unwrap());
        assert!(error.is_err_and(|error| error.contains("m1n1k1 S8")));
    }

    #[test]
    fn older_products_have_no_rate_on_blackwell() {
        let kernel = serde_json::json!({
            "multiply_adds": 1u64 << 20, "thread_instructions": 1280,
            "products": {"mma.sync m16n8k16 Bf16 Bf16": 512}, "bytes": {"cp.async": 584, "global written": 584},
        });
        let on = |capability| {
            needs(&kernel, &rates(capability).unwrap())
                .unwrap()
                .unwrap()
        };
        assert_eq!(on(90).largest(), ("tensor core", 512.0));
        assert_eq!(on(100).largest(), ("issue slots", 10.0));
        // 8 TB/s for 148 multiprocessors at 1.85 GHz are 29.2 bytes per cycle.
        assert_eq!(on(100).global_memory.round(), 40.0);
    }

    #[test]
    fn names_and_registers_are_found() {
        let mangled =
            "_ZN4gemm9blackwell11gemm_kernelINS0_6TraitsINS_5Mxfp8ELi1ELi128ELi5EEEEEvNS_4GemmE";
        assert_eq!(
            readable(mangled),
            "gemm blackwell gemm_kernel Traits Mxfp8 1 128 5"
        );
        assert_eq!(readable("_Z4implILj0ELj128ELb1EEvv"), "impl 0 128 1");
        let text = "Resource usage:\n Common:\n  GLOBAL:0\n Function f:\n  REG:104 STACK:0 SHARED:16 LOCAL:8\n";
        assert_eq!(resources(text)["f"], (104, 8));
        let pair = product("tcgen05.mma m256n256k16 Bf16 Bf16 pair").unwrap();
        assert!(pair.is_tcgen05 && pair.bits == 16 && pair.rows == 256);
        let weights = product("tcgen05.mma m128n128k16 Bf16 Bf16 pair a in tensor memory").unwrap();
        assert!(weights.a_in_tensor_memory && !pair.a_in_tensor_memory);
    }

    #[test]
    fn rows_of_a_bench_name_contender_and_workload() {
        let counters = serde_json::json!({
            "multiply_adds": 1u64 << 20, "products": {"tcgen05.mma m128n128k16 Bf16 Bf16": 4},
        });
        let rows = serde_json::json!([
            {"arch": "sm_100a", "contender": {"name": "ours"}, "workload": {"name": "s512"},
             "facts": {"kernels": [{"kernel": "_Z4implv", "counters": counters}]}},
            {"arch": "sm_100a", "contender": {"name": "cudnn"}, "workload": {"name": "s512"}, "facts": {}},
        ]);
        let file = format!("units_{}.json", std::process::id());
        let path = std::env::temp_dir().join(file);
        fs::write(&path, serde_json::json!({"rows": rows}).to_string()).unwrap();
        let text = table(std::slice::from_ref(&path), None).unwrap();
        fs::remove_file(path).unwrap();
        let kernels: Vec<_> = text.lines().filter(|line| line.contains(" 100 ")).collect();
        let [line] = kernels[..] else {
            panic!("{text}")
        };
        assert!(
            line.starts_with("| ours, s512: impl | 100 | 1048576 | 256 |"),
            "{text}"
        );
    }
}
