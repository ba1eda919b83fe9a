//! What a block of a kernel takes of a multiprocessor, and how many blocks that leaves room for: registers, stack and
//! static shared memory as the machine code has them, the rest as the kernel was launched.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::files;

/// A function of machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub registers: u64,
    /// Per thread: spills, local arrays and what calls keep.
    pub stack_bytes: u64,
    /// Of the machine code, each stored byte and each loaded one once; none where only the stack is known.
    pub spilled_bytes: Option<u64>,
    /// Static, with the kilobyte that the system keeps of each block's.
    pub shared_bytes: u64,
}

/// By name.
pub type Usages = BTreeMap<String, Usage>;

/// Of files with what `cuobjdump -res-usage` or `ptxas -v` prints.
///
/// # Errors
///
/// Where a file cannot be read, says something else, or two say different things of one function.
pub fn read(paths: &[PathBuf]) -> Result<Usages, String> {
    let mut all = Usages::new();
    for path in paths {
        let failed = |error: String| format!("{}: {error}", path.display());
        for (name, usage) in usages(&files::text(path)?).map_err(failed)? {
            if all
                .insert(name.clone(), usage)
                .is_some_and(|old| old != usage)
            {
                return Err(failed(format!("{name} once more, and not the same")));
            }
        }
    }
    Ok(all)
}

fn usages(text: &str) -> Result<Usages, String> {
    let mut found = Usages::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let (name, usage) = if let Some(name) = line.strip_prefix("Function ") {
            let name = name.strip_suffix(':').unwrap_or(name);
            (name, of_cuobjdump(lines.next().unwrap_or_default()))
        } else if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default();
            // Functions that it calls have properties, too.
            let properties =
                lines.find(|line| line.ends_with(&format!("Function properties for {name}")));
            let stack = properties.and_then(|_| lines.next()).unwrap_or_default();
            (name, of_ptxas(stack, lines.next().unwrap_or_default()))
        } else {
            continue;
        };
        let usage = usage.map_err(|what| format!("{name}: no {what}"))?;
        if found
            .insert(name.to_owned(), usage)
            .is_some_and(|old| old != usage)
        {
            return Err(format!("{name} twice, and not the same"));
        }
    }
    if found.is_empty() {
        return Err("no functions".to_owned());
    }
    Ok(found)
}

/// Of `REG:104 STACK:0 SHARED:1024 LOCAL:0`; the error is what is missing.
fn of_cuobjdump(line: &str) -> Result<Usage, &'static str> {
    let field = |key: &'static str| {
        let value = line.split(' ').find_map(|word| word.strip_prefix(key));
        value.and_then(|value| value.parse().ok()).ok_or(key)
    };
    let stack_bytes = u64::max(field("STACK:")?, field("LOCAL:")?);
    Ok(Usage {
        registers: field("REG:")?,
        stack_bytes,
        spilled_bytes: (stack_bytes == 0).then_some(0),
        shared_bytes: field("SHARED:")?,
    })
}

/// Of `8 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads` and `Used 255 registers, 400 bytes smem`.
fn of_ptxas(stack: &str, used: &str) -> Result<Usage, &'static str> {
    fn before(line: &str, words: &'static str) -> Result<u64, &'static str> {
        let (start, _) = line.split_once(words).ok_or(words)?;
        let number = start.trim_end().rsplit(' ').next();
        number.and_then(|number| number.parse().ok()).ok_or(words)
    }
    const KEPT: u64 = 1024;
    let spilled = before(stack, "bytes spill stores")? + before(stack, "bytes spill loads")?;
    Ok(Usage {
        registers: before(used, "registers")?,
        stack_bytes: before(stack, "bytes stack frame")?,
        spilled_bytes: Some(spilled),
        shared_bytes: KEPT + before(used, "bytes smem").unwrap_or(0),
    })
}

/// Of a multiprocessor, of Hopper and Blackwell alike.
mod most {
    pub const REGISTERS_OF_QUARTER: u64 = 16_384;
    pub const WARPS: u64 = 64;
    pub const BLOCKS: u64 = 32;
    pub const SHARED_BYTES: u64 = 228 << 10;
    pub const TENSOR_COLUMNS: u64 = 512;
}

/// A counted kernel on a multiprocessor.
#[derive(Debug, PartialEq)]
pub struct Resources {
    pub usage: Usage,
    pub threads: u64,
    pub cluster_blocks: u64,
    pub dynamic_shared_bytes: u64,
    pub tensor_columns: u64,
    /// Blocks that fit, and what there is no room for one more in.
    pub blocks: u64,
    pub limit: &'static str,
    /// Of warps at barriers, averages of what was counted.
    pub waits_per_block: f64,
    /// None where no product says that it starts a tile of sums, as `mma.sync` does not.
    pub waits_per_sum: Option<f64>,
}

impl Resources {
    /// # Errors
    ///
    /// For a kernel that the machine code does not have, or counters from before launches were counted.
    pub fn of(name: &str, counters: &Value, usages: &Usages) -> Result<Self, String> {
        let usage = *usages
            .get(name)
            .ok_or_else(|| format!("{name} is not in the machine code"))?;
        let launch = |field: &str| {
            let number = counters["launch"][field].as_u64();
            number.ok_or_else(|| format!("{name} was counted without launch.{field}"))
        };
        let (threads, cluster_blocks) = (launch("threads")?, launch("cluster_blocks")?);
        let dynamic_shared_bytes = launch("dynamic_shared_bytes")?;
        let tensor_columns = launch("tensor_columns")?;
        let waits = counters["waits"].as_object().into_iter().flatten();
        let waits: f64 = waits.filter_map(|(_, count)| count.as_f64()).sum();
        let blocks = counters["per_block"]["blocks"].as_f64().unwrap_or(0.0);
        let sums = counters["sums"].as_f64().filter(|sums| *sums > 0.0);
        let warps = threads.div_ceil(32);
        let of_warp = (usage.registers * 32).next_multiple_of(256);
        let shared = usage.shared_bytes + dynamic_shared_bytes;
        let limits = [
            (
                "registers",
                most::REGISTERS_OF_QUARTER
                    .checked_div(of_warp)
                    .map(|each| each * 4 / warps.max(1)),
            ),
            (
                "shared memory",
                most::SHARED_BYTES.checked_div(shared.next_multiple_of(128)),
            ),
            (
                "tensor memory",
                most::TENSOR_COLUMNS.checked_div(tensor_columns),
            ),
            ("threads", most::WARPS.checked_div(warps)),
            ("blocks", Some(most::BLOCKS)),
        ];
        let limits = limits
            .into_iter()
            .filter_map(|(what, fit)| Some((what, fit?)));
        let (limit, fit) = limits
            .min_by_key(|(_, fit)| *fit)
            .unwrap_or(("blocks", most::BLOCKS));
        if fit == 0 {
            return Err(format!("{name}: no block fits, for {limit}"));
        }
        Ok(Self {
            usage,
            threads,
            cluster_blocks,
            dynamic_shared_bytes,
            tensor_columns,
            blocks: fit,
            limit,
            // The sum of nothing is -0.
            waits_per_block: waits.abs() / blocks.max(1.0),
            waits_per_sum: sums.map(|sums| waits / sums),
        })
    }

    pub const HEADER: &str = "| kernel | SM | threads | blocks of a cluster | registers | stack bytes | \
        spilled bytes | static shared bytes | dynamic shared bytes | tensor memory columns | blocks per SM | for | \
        waits per block | waits per tile of sums |\n\
        |---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|\n";

    pub fn row(&self, kernel: &str, capability: u64) -> String {
        let waits = self.waits_per_sum.map(|waits| format!("{waits:.1}"));
        let spilled = match self.usage.spilled_bytes {
            Some(bytes) => bytes.to_string(),
            None => "unknown".to_owned(),
        };
        format!(
            "| {kernel} | {capability} | {} | {} | {} | {} | {spilled} | {} | {} | {} | {} | {} | {:.1} | {} |\n",
            self.threads,
            self.cluster_blocks,
            self.usage.registers,
            self.usage.stack_bytes,
            self.usage.shared_bytes,
            self.dynamic_shared_bytes,
            self.tensor_columns,
            self.blocks,
            self.limit,
            self.waits_per_block,
            waits.as_deref().unwrap_or("-"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = "Resource usage:\n Common:\n  GLOBAL:0\n Function f:\n  REG:104 STACK:8 SHARED:1040 LOCAL:0 \
                        CONSTANT[0]:1536 TEXTURE:0\n Function g:\n  REG:32 STACK:0 SHARED:1024 LOCAL:0\n";
    const COMPILED: &str = "ptxas info    : 0 bytes gmem\n\
        ptxas info    : Compiling entry function 'f' for 'sm_100a'\n\
        ptxas info    : Function properties for helper\n    \
            32 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
        ptxas info    : Function properties for f\n    \
            8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads\n\
        ptxas info    : Used 104 registers, used 1 barriers, 16 bytes smem, 8 bytes cumulative stack size\n\
        ptxas info    : Compile time = 4.4 ms\n\
        ptxas info    : Compiling entry function 'g' for 'sm_100a'\n\
        ptxas info    : Function properties for g\n    \
            0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
        ptxas info    : Used 32 registers, used 0 barriers\n";

    #[test]
    fn functions_are_read_with_what_they_take() {
        let of = |registers, stack_bytes, spilled_bytes, shared_bytes| Usage {
            registers,
            stack_bytes,
            spilled_bytes,
            shared_bytes,
        };
        let found = usages(TEXT).unwrap();
        // Whether a stack has spills, this program does not say.
        assert_eq!(found["f"], of(104, 8, None, 1040));
        assert_eq!(found["g"], of(32, 0, Some(0), 1024));
        let compiled = usages(COMPILED).unwrap();
        assert_eq!(compiled["f"], of(104, 8, Some(16), 1040));
        assert_eq!(
            (found.len(), compiled.len(), compiled["g"]),
            (2, 2, found["g"])
        );
        // The same twice, of two programs with one kernel, is no contradiction.
        assert_eq!(usages(&TEXT.repeat(2)), Ok(found));
    }

    #[test]
    fn what_is_missing_is_an_error() {
        let errors = [
            (String::new(), "no functions"),
            (TEXT.replace("REG:", "REGISTERS:"), "f: no REG:"),
            (TEXT.replace("STACK:8", "STACK:many"), "f: no STACK:"),
            (TEXT.replace("SHARED:1040", ""), "f: no SHARED:"),
            (format!("{TEXT} Function h:"), "h: no STACK:"),
            (TEXT.replace("g:", "f:"), "f twice, and not the same"),
            (COMPILED.replace("Used 32", "Used"), "g: no registers"),
            (
                COMPILED.replace("4 bytes spill stores,", ""),
                "f: no bytes spill stores",
            ),
            (
                COMPILED.replace("properties for g", "properties of g"),
                "g: no bytes spill stores",
            ),
        ];
        for (text, words) in errors {
            assert_eq!(usages(&text), Err(words.to_owned()));
        }
    }

    fn counters() -> Value {
        json!({
            "launch": {"threads": 256, "cluster_blocks": 2, "dynamic_shared_bytes": 65536, "tensor_columns": 128},
            "waits": {"barrier": 24, "mbarrier": 96}, "per_block": {"blocks": 12}, "sums": 60,
        })
    }

    fn of(text: &str, counters: &Value) -> Result<Resources, String> {
        Resources::of("f", counters, &usages(text).unwrap())
    }

    #[test]
    fn as_many_blocks_fit_as_the_scarcest_resource_has_room_for() {
        let limit = |registers: &str, field: &str, value: u64| {
            let mut counters = counters();
            counters["launch"][field] = value.into();
            let found = of(&TEXT.replace("REG:104", registers), &counters).unwrap();
            (found.blocks, found.limit)
        };
        // 8 warps of 104 registers; in a quarter are four such warps, and of 168 registers three.
        assert_eq!(
            limit("REG:104", "dynamic_shared_bytes", 0),
            (2, "registers")
        );
        assert_eq!(
            limit("REG:168", "dynamic_shared_bytes", 0),
            (1, "registers")
        );
        assert_eq!(
            limit("REG:24", "dynamic_shared_bytes", 65_536),
            (3, "shared memory")
        );
        assert_eq!(
            limit("REG:24", "dynamic_shared_bytes", 226 << 10),
            (1, "shared memory")
        );
        assert_eq!(limit("REG:24", "tensor_columns", 512), (1, "tensor memory"));
        assert_eq!(limit("REG:16", "threads", 1024), (2, "threads"));
        let found = of(TEXT, &counters()).unwrap();
        assert_eq!(
            (found.waits_per_block, found.waits_per_sum),
            (10.0, Some(2.0))
        );
        assert_eq!(
            found.row("k", 100),
            "| k | 100 | 256 | 2 | 104 | 8 | unknown | 1040 | 65536 | 128 | 2 | registers | 10.0 | 2.0 |\n"
        );
        let columns = |text: &str| text.lines().next().map(|line| line.matches('|').count());
        assert_eq!(columns(Resources::HEADER), columns(&found.row("k", 100)));
    }

    #[test]
    fn a_kernel_without_machine_code_or_launch_is_an_error() {
        let error = Resources::of("h", &counters(), &usages(TEXT).unwrap());
        assert_eq!(error, Err("h is not in the machine code".to_owned()));
        let mut old = counters();
        old["launch"].take();
        let error = of(TEXT, &old).unwrap_err();
        assert_eq!(error, "f was counted without launch.threads");
        let mut large = counters();
        large["launch"]["dynamic_shared_bytes"] = (228 << 10).into();
        let error = of(TEXT, &large).unwrap_err();
        assert_eq!(error, "f: no block fits, for shared memory");
    }
}
