//! What each unit of a multiprocessor needs for a kernel that a gate counted.
//!
//! Everything is per 2^20 multiply-adds on one multiprocessor, or where a kernel has no products per 2^20 bytes of
//! global memory, so that kernels of the same operation compare whatever their gates' shapes. Products have the rates
//! that their element types have at best; bytes of shared memory are those that threads read and, where products read
//! their operands there, the operands. What a unit needs is a bound: no schedule of the same instructions is faster.
//! Global memory is what would be needed if nothing came from L2, so it is a bound only of kernels that read everything
//! once, as those without products do. Issue slots are those of PTX without moves between registers, which `ptxas`
//! removes; it may also make one instruction of two.

use std::path::PathBuf;

use serde_json::Value;

use crate::files;
use crate::functions::readable;
use crate::measured::Measured;
use crate::rates::{per_cycle, product, rates, PerCycle, Product, GIGAHERTZ};
use crate::resources::Resources;
use crate::{bounds, measured, resources};

/// Multiply-adds, or bytes, that counts are divided by.
const UNIT: f64 = (1u64 << 20) as f64;

/// What counts are divided by, and a table is of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Basis {
    MultiplyAdds,
    GlobalBytes,
}

impl Basis {
    fn words(self) -> &'static str {
        match self {
            Self::MultiplyAdds => "multiply-adds",
            Self::GlobalBytes => "bytes of global memory",
        }
    }
}

/// Cycles of units and other counts per [`UNIT`].
struct Needs {
    basis: Basis,
    /// How much of it was counted.
    amount: f64,
    /// None where a unit's rate is not known.
    units: Vec<(&'static str, Option<f64>)>,
    /// A unit like the others where it is the basis.
    global_memory: f64,
    tensor_memory_bytes: f64,
    exponentials: f64,
    waits: f64,
}

impl Needs {
    fn largest(&self) -> (&'static str, f64) {
        let known = |(name, need): &(&'static str, Option<f64>)| Some((*name, (*need)?));
        let memory = ("global memory", self.global_memory);
        let memory = (self.basis == Basis::GlobalBytes).then_some(memory);
        let units = self.units.iter().filter_map(known).chain(memory);
        units.fold(
            ("", 0.0),
            |most, unit| if unit.1 > most.1 { unit } else { most },
        )
    }
}

/// None for a kernel that does nothing.
fn needs(kernel: &Value, rates: &PerCycle) -> Result<Option<Needs>, String> {
    let count = |path: &str| kernel.pointer(path).and_then(Value::as_f64).unwrap_or(0.0);
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
    let (basis, amount) = match count("/multiply_adds") {
        0.0 => (Basis::GlobalBytes, global),
        multiply_adds => (Basis::MultiplyAdds, multiply_adds),
    };
    if amount == 0.0 {
        return Ok(None);
    }
    let per = amount / UNIT;
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
        basis,
        amount,
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
        // The sum of nothing is -0.
        waits: waits.abs() / per,
    }))
}

/// A kernel that was counted.
struct Counted {
    capability: u64,
    /// Contender and workload, where they are known.
    whose: String,
    name: String,
    counters: Value,
}

impl Counted {
    fn title(&self) -> String {
        format!("{}{}", self.whose, readable(&self.name))
    }
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

/// The tables of files of counters: one of kernels with products, one of those without, and if the machine code's usage
/// is given one of what their blocks take.
///
/// # Errors
///
/// Where a file cannot be read, counts a product whose rate is not known, or a kernel that the usage does not have.
pub fn table(
    counters: &[PathBuf],
    usage: &[PathBuf],
    results: &[PathBuf],
) -> Result<String, String> {
    let usages = resources::read(usage)?;
    let mut runs = Vec::new();
    for path in results {
        runs.extend(bounds::runs(path)?);
    }
    let (mut rows, mut taken) = (Vec::new(), String::new());
    for path in counters {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = serde_json::from_str(&files::text(path)?).map_err(|error| failed(&error))?;
        for kernel in counted(file) {
            let capability = kernel.capability;
            let rates =
                rates(capability).ok_or_else(|| failed(&format!("no rates of SM {capability}")))?;
            let needs = needs(&kernel.counters, &rates)
                .map_err(|error| format!("{}: {error}", kernel.name))?;
            let Some(needs) = needs else { continue };
            // Only Hopper was measured.
            let measured = match capability {
                90 => measured::of(&kernel.name, &runs),
                _ => None,
            };
            rows.push((needs.basis, row(&kernel, &needs, measured)));
            if !usage.is_empty() {
                let found = Resources::of(&kernel.name, &kernel.counters, &usages);
                let found = found.map_err(|error| failed(&error))?;
                taken += &found.row(&kernel.title(), capability);
            }
        }
    }
    if rows.is_empty() {
        return Err("no kernel in the counters did anything".to_owned());
    }
    let tables = [Basis::MultiplyAdds, Basis::GlobalBytes].map(|basis| {
        let rows: String = rows
            .iter()
            .filter(|(of, _)| *of == basis)
            .map(|(_, row)| row.as_str())
            .collect();
        if rows.is_empty() {
            return rows;
        }
        let words = basis.words();
        let times = if runs.is_empty() || basis == Basis::GlobalBytes {
            "No kernel was timed for this table."
        } else {
            "Times are cycles per 2^20 multiply-adds, too, of the measured row with the fewest: whole, with its \
             launch and last wave, at the clock that it had."
        };
        format!(
            "Cycles of a multiprocessor's units per 2^20 {words}, and the time of the busiest at {GIGAHERTZ} GHz. \
             {times}\n\n\
             | kernel | SM | {words} counted | tensor core | special functions | issue slots | shared memory | \
             global memory | tensor memory bytes | exponentials | waits | busiest | bound ns | time |\n\
             |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---|\n{rows}"
        )
    });
    let taken = if taken.is_empty() {
        taken
    } else {
        format!(
            "What a block takes of a multiprocessor, and how many fit.\n\n{}{taken}",
            Resources::HEADER
        )
    };
    let tables = tables.into_iter().chain([taken]);
    Ok(tables
        .filter(|table| !table.is_empty())
        .collect::<Vec<_>>()
        .join("\n"))
}

fn row(kernel: &Counted, needs: &Needs, measured: Option<Measured>) -> String {
    let or_dash = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
    let units = needs.units.iter().map(|(_, need)| *need);
    let units: Vec<String> = units
        .map(|need| or_dash(need.map(|need| format!("{need:.0}"))))
        .collect();
    let (unit, cycles) = needs.largest();
    let time = measured.map_or_else(
        || "not measured".to_owned(),
        |Measured {
             cycles,
             workload,
             rows,
         }| format!("{cycles:.0}: {workload}, of {rows}"),
    );
    format!(
        "| {} | {} | {:.0} | {} | {:.0} | {:.0} | {:.0} | {:.1} | {unit} | {:.0} | {time} |\n",
        kernel.title(),
        kernel.capability,
        needs.amount,
        units.join(" | "),
        needs.global_memory,
        needs.tensor_memory_bytes,
        needs.exponentials,
        needs.waits,
        cycles / GIGAHERTZ,
    )
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
    fn a_kernel_without_products_is_bound_by_its_bytes() {
        let kernel = serde_json::json!({
            "thread_instructions": 1280, "bytes": {"global read": 3u64 << 18, "global written": 1u64 << 18},
        });
        let needs = needs(&kernel, &rates(100).unwrap()).unwrap().unwrap();
        assert_eq!((needs.basis, needs.amount), (Basis::GlobalBytes, UNIT));
        // 2^20 bytes at 29.2 per cycle.
        let (unit, cycles) = needs.largest();
        assert_eq!((unit, cycles.round()), ("global memory", 35888.0));
        let idle = super::needs(&serde_json::json!({}), &rates(100).unwrap());
        assert!(idle.is_ok_and(|needs| needs.is_none()));
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
        let text = table(std::slice::from_ref(&path), &[], &[]).unwrap();
        let usage = std::env::temp_dir().join(format!("usage_{}.txt", std::process::id()));
        fs::write(
            &usage,
            " Function g:\n  REG:32 STACK:0 SHARED:1024 LOCAL:0\n",
        )
        .unwrap();
        let absent = table(
            std::slice::from_ref(&path),
            std::slice::from_ref(&usage),
            &[],
        );
        for path in [path, usage] {
            fs::remove_file(path).unwrap();
        }
        assert!(absent.is_err_and(|error| error.ends_with("_Z4implv is not in the machine code")));
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
