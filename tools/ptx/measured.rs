//! Measured rows of our Hopper kernels, by the names of the kernels that they ran.

use serde_json::Value;

use crate::bounds::{number, work};

/// The nearest that measured rows of a kernel come to its bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Of a multiprocessor per 2^20 multiply-adds, at the clock that was measured with the row.
    pub cycles: f64,
    pub workload: String,
    pub rows: usize,
}

/// The least of all rows that ran a kernel of this name; none if no row did.
pub fn of(kernel: &str, runs: &[Value]) -> Option<Measured> {
    let rows = runs.iter().flat_map(|run| {
        let rows = run["rows"].as_array().into_iter().flatten();
        rows.map(move |row| (row, &run["meta"]))
    });
    let times: Vec<_> = rows
        .filter(|(row, _)| ran(row, kernel))
        .filter_map(|(row, meta)| Some((cycles(row, meta)?, row)))
        .collect();
    let (cycles, row) = times.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let text = |path: &str| {
        row.pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    Some(Measured {
        cycles: *cycles,
        workload: format!("{}/{}", text("/workload/suite"), text("/workload/name")),
        rows: times.len(),
    })
}

/// Whether a row that was timed is of our kernel of this name.
fn ran(row: &Value, kernel: &str) -> bool {
    let is_ours = row
        .pointer("/contender/name")
        .is_some_and(|name| name == "ours");
    let Some(work) = work(row).filter(|_| is_ours && row["status"] == "ok") else {
        return false;
    };
    let element = match row["dtype"].as_str() {
        Some("bf16") => "13__nv_bfloat16",
        Some("f16") => "6__half",
        Some("fp8_e4m3") => "13__nv_fp8_e4m3",
        _ => return false,
    };
    // Latent attention has one kernel, in bf16.
    let is_typed =
        kernel.contains(element) || work.kernel.starts_with("mla") && row["dtype"] == "bf16";
    is_typed && kernel.contains(&work.kernel) && is_of_product(row, kernel).unwrap_or(true)
}

/// Whether a kernel has a product's layout, split, tile and stages, all of which stand in its name; none where a row is
/// of no product.
fn is_of_product(row: &Value, kernel: &str) -> Option<bool> {
    let layout = match row["op"].as_str()? {
        "gemm" => 0,
        "grouped_gemm" => 1,
        "masked_grouped_gemm" => 2,
        _ => return None,
    };
    let facts = &row["facts"];
    let (high, wide) = facts["tile"].as_str()?.split_once('x')?;
    let stages = facts["stages"].as_u64()?;
    // Of contiguous groups one kernel does both.
    let splits = layout == 1 || facts["split_k"].as_u64() > Some(1);
    // Of a transposed tile the rows are the result's columns.
    let tiles = [(high, wide, "Lb0E"), (wide, high, "Lb1E")];
    Some(tiles.iter().any(|(rows, columns, transposed)| {
        let splits = u8::from(splits);
        let start = format!("LayoutE{layout}ELb{splits}ELi{rows}ELi{columns}ELi{stages}E");
        // How many blocks share an SM comes before it.
        let rest = kernel
            .split_once(&start)
            .and_then(|(_, rest)| rest.split_once('E'));
        rest.is_some_and(|(_, rest)| rest.starts_with(transposed))
    }))
}

/// Of a multiprocessor per 2^20 multiply-adds.
fn cycles(row: &Value, meta: &Value) -> Option<f64> {
    let multiprocessors = number(meta, "/gpu/multiprocessors")?;
    let cycles = number(row, "/time/median_us")? * number(row, "/clocks/median_mhz")?;
    Some(cycles * multiprocessors * f64::from(1 << 20) / work(row)?.multiply_adds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(dtype: &str, tile: &str, microseconds: f64) -> Value {
        json!({"meta": {"gpu": {"multiprocessors": 2}}, "rows": [{
            "op": "gemm", "dtype": dtype, "status": "ok", "contender": {"name": "ours"},
            "workload": {"suite": "s", "name": format!("at {microseconds}"), "axes": {"m": 256, "n": 256, "k": 1024}},
            "facts": {"tile": tile, "split_k": 1, "stages": 3}, "clocks": {"median_mhz": 1000.0},
            "time": {"median_us": microseconds},
        }]})
    }

    const KERNEL: &str = "_ZN4gemm6hopper11gemm_kernelINS0_6TraitsI13__nv_bfloat16\
                          LNS_6LayoutE0ELb0ELi128ELi256ELi3ELi1ELb0EE";

    #[test]
    fn the_row_that_is_nearest_to_the_bounds_is_taken() {
        let runs = [run("bf16", "128x256", 96.0), run("bf16", "128x256", 80.0)];
        let found = of(KERNEL, &runs).unwrap();
        // 2^26 multiply-adds in 80 thousand cycles of two multiprocessors.
        assert_eq!((found.cycles, found.rows), (2.0 * 80_000.0 / 64.0, 2));
        assert_eq!(found.workload, "s/at 80");
    }

    #[test]
    fn rows_of_other_kernels_are_not() {
        let others = [
            run("fp8_e4m3", "128x256", 80.0),
            run("bf16", "128x192", 80.0),
        ];
        assert_eq!(of(KERNEL, &others), None);
        // A transposed tile: its rows are the kernel's columns.
        let low = KERNEL.replace("Li128ELi256E", "Li192ELi64E");
        let transposed = low.replace("Lb0EE", "Lb1EE");
        let runs = [run("bf16", "64x192", 80.0)];
        assert!(of(&transposed, &runs).is_some() && of(&low, &runs).is_none());
        let stages = KERNEL.replace("Li3E", "Li4E");
        assert_eq!(of(&stages, &[run("bf16", "128x256", 80.0)]), None);
        let splits = KERNEL.replace("E0ELb0E", "E0ELb1E");
        assert_eq!(of(&splits, &[run("bf16", "128x256", 80.0)]), None);
        let mut theirs = run("bf16", "128x256", 80.0);
        theirs["rows"][0]["contender"]["name"] = "cublaslt".into();
        assert_eq!(of(KERNEL, &[theirs]), None);
    }
}
