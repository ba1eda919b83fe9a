//! What a kernel did, in the terms of the units that did it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::launch::Launch;
use crate::op::{Op, Space, Tcgen, WgmmaA};
use crate::program::Program;

/// What workers count while clusters run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Lanes that ran each instruction.
    pub ran: Vec<u64>,
    /// Bytes of copies whose size only the launch knows.
    pub bytes: BTreeMap<&'static str, u64>,
    /// Products whose shape only the launch knows.
    pub products: BTreeMap<String, u64>,
    pub multiply_adds: u64,
    /// Products that start from zero.
    pub sums: u64,
    /// The most columns of tensor memory that a block held.
    pub tensor_columns: u32,
    pub product_time: Duration,
}

impl Tally {
    pub fn of(program: &Program) -> Self {
        Self {
            ran: vec![0; program.code.len()],
            ..Self::default()
        }
    }

    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.ran.iter_mut().zip(&other.ran) {
            *sum += count;
        }
        for (what, bytes) in &other.bytes {
            *self.bytes.entry(what).or_default() += bytes;
        }
        for (shape, count) in &other.products {
            *self.products.entry(shape.clone()).or_default() += count;
        }
        self.multiply_adds += other.multiply_adds;
        self.sums += other.sums;
        self.tensor_columns = self.tensor_columns.max(other.tensor_columns);
        self.product_time += other.product_time;
    }

    /// The instructions that ran, and lanes that ran them.
    pub fn ran(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let each = self.ran.iter().copied().enumerate();
        each.filter(|(_, lanes)| *lanes > 0)
    }

    pub fn clear(&mut self) {
        self.ran.fill(0);
        *self = Self {
            ran: std::mem::take(&mut self.ran),
            ..Self::default()
        };
    }

    pub fn moved(&mut self, what: &'static str, bytes: u64) {
        *self.bytes.entry(what).or_default() += bytes;
    }
}

/// Counts of one launch, or of several added up.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counters {
    pub thread_instructions: u64,
    /// Thread instructions by the unit that executes them.
    pub classes: BTreeMap<&'static str, u64>,
    /// Matrix products by instruction and shape; a warpgroup's or a tensor core's counts once.
    pub products: BTreeMap<String, u64>,
    pub multiply_adds: u64,
    /// Products of `tcgen05` and `wgmma` that start from zero: tiles of sums, as the tensor cores see them.
    pub sums: u64,
    /// By space and direction, of threads, copies and operands.
    pub bytes: BTreeMap<&'static str, u64>,
    pub special_functions: u64,
    /// Warps that met at a barrier or asked for a phase of one.
    pub waits: BTreeMap<&'static str, u64>,
    /// Thread instructions by opcode with its modifiers.
    pub forms: BTreeMap<String, u64>,
    /// The same of single blocks.
    pub per_block: PerBlock,
    pub launch: Footprint,
}

/// What a launch takes of a multiprocessor for each block; of several, the most of any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Footprint {
    pub threads: u32,
    pub cluster_blocks: u32,
    pub dynamic_shared_bytes: u32,
    pub tensor_columns: u32,
}

impl Footprint {
    pub fn of(launch: &Launch, tally: &Tally) -> Self {
        Self {
            threads: launch.block.iter().product(),
            cluster_blocks: launch.cluster.iter().product(),
            dynamic_shared_bytes: launch.dynamic_shared_bytes,
            tensor_columns: tally.tensor_columns,
        }
    }

    fn add(&mut self, other: Self) {
        *self = Self {
            threads: self.threads.max(other.threads),
            cluster_blocks: self.cluster_blocks.max(other.cluster_blocks),
            dynamic_shared_bytes: self.dynamic_shared_bytes.max(other.dynamic_shared_bytes),
            tensor_columns: self.tensor_columns.max(other.tensor_columns),
        };
    }
}

/// A count of the blocks that ran: of all together, and of the one that has most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    pub total: u64,
    pub most: u64,
}

impl Spread {
    fn of(count: u64) -> Self {
        Self {
            total: count,
            most: count,
        }
    }

    fn add(&mut self, other: Self) {
        self.total += other.total;
        self.most = self.most.max(other.most);
    }
}

/// How counts are spread over blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerBlock {
    pub blocks: u64,
    pub thread_instructions: Spread,
    pub products: Spread,
    pub multiply_adds: Spread,
    pub bytes: BTreeMap<&'static str, Spread>,
    pub waits: BTreeMap<&'static str, Spread>,
}

impl PerBlock {
    pub fn add_block(&mut self, program: &Program, tally: &Tally) {
        let mut counters = Counters::of_launch(tally);
        for (pc, lanes) in tally.ran() {
            counters.thread_instructions += lanes;
            counters.count(&program.code[pc].op, lanes);
        }
        let each = |counts: BTreeMap<&'static str, u64>| {
            let counts = counts.into_iter();
            counts
                .map(|(what, count)| (what, Spread::of(count)))
                .collect()
        };
        self.add(&Self {
            blocks: 1,
            thread_instructions: Spread::of(counters.thread_instructions),
            products: Spread::of(counters.products.values().sum()),
            multiply_adds: Spread::of(counters.multiply_adds),
            bytes: each(counters.bytes),
            waits: each(counters.waits),
        });
    }

    pub fn add(&mut self, other: &Self) {
        let merge = |into: &mut BTreeMap<_, Spread>, from: &BTreeMap<_, Spread>| {
            for (what, spread) in from {
                into.entry(*what).or_default().add(*spread);
            }
        };
        self.blocks += other.blocks;
        self.thread_instructions.add(other.thread_instructions);
        self.products.add(other.products);
        self.multiply_adds.add(other.multiply_adds);
        merge(&mut self.bytes, &other.bytes);
        merge(&mut self.waits, &other.waits);
    }
}

/// As averages and maxima.
impl Serialize for PerBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown {
            average: f64,
            most: u64,
        }
        let show = |spread: &Spread| Shown {
            average: spread.total as f64 / self.blocks.max(1) as f64,
            most: spread.most,
        };
        let each = |spreads: &BTreeMap<&'static str, Spread>| -> BTreeMap<&'static str, Shown> {
            let spreads = spreads.iter();
            spreads
                .map(|(what, spread)| (*what, show(spread)))
                .collect()
        };
        let mut fields = serializer.serialize_struct("PerBlock", 6)?;
        fields.serialize_field("blocks", &self.blocks)?;
        fields.serialize_field("thread_instructions", &show(&self.thread_instructions))?;
        fields.serialize_field("products", &show(&self.products))?;
        fields.serialize_field("multiply_adds", &show(&self.multiply_adds))?;
        fields.serialize_field("bytes", &each(&self.bytes))?;
        fields.serialize_field("waits", &each(&self.waits))?;
        fields.end()
    }
}

/// What an instruction does, in the words of the unit that does it.
pub fn class(form: &str) -> &'static str {
    let base = form.split('.').next().unwrap_or_default();
    match base {
        "mma" | "wgmma" | "tcgen05" => "tensor core",
        "ex2" | "lg2" | "rcp" | "rsqrt" | "sqrt" | "sin" | "cos" | "tanh" => "special function",
        "cp" => "asynchronous copy",
        "ld" | "st" | "atom" | "red" | "ldmatrix" | "stmatrix" => "memory",
        "bar" | "barrier" | "mbarrier" | "fence" | "membar" | "griddepcontrol" => "synchronisation",
        "shfl" | "vote" | "redux" | "match" | "elect" | "activemask" => "warp",
        "bra" | "brx" | "call" | "ret" | "exit" => "control",
        "cvt" | "cvta" => "conversion",
        _ => "arithmetic",
    }
}

impl Counters {
    /// What no instruction says before it runs.
    fn of_launch(tally: &Tally) -> Self {
        Self {
            products: tally.products.clone(),
            multiply_adds: tally.multiply_adds,
            sums: tally.sums,
            bytes: tally.bytes.clone(),
            ..Self::default()
        }
    }

    pub fn of(program: &Program, tally: &Tally) -> Self {
        let mut counters = Self::of_launch(tally);
        for (pc, lanes) in tally.ran() {
            let form = program.opcode(pc);
            let class = class(form);
            counters.thread_instructions += lanes;
            *counters.forms.entry(form.to_string()).or_default() += lanes;
            *counters.classes.entry(class).or_default() += lanes;
            if class == "special function" {
                counters.special_functions += lanes;
            }
            counters.count(&program.code[pc].op, lanes);
        }
        counters
    }

    fn count(&mut self, op: &Op, lanes: u64) {
        let mut moved = |what, bytes: u64| *self.bytes.entry(what).or_default() += bytes;
        let mut wait = |what| *self.waits.entry(what).or_default() += lanes.div_ceil(32);
        let read = |space: Space| match space {
            Space::Generic => "generic read",
            Space::Global => "global read",
            Space::Shared => "shared read",
            Space::Local => "local read",
        };
        let written = |space: Space| match space {
            Space::Generic => "generic written",
            Space::Global => "global written",
            Space::Shared => "shared written",
            Space::Local => "local written",
        };
        match op {
            Op::Load {
                ty, space, targets, ..
            } => moved(
                read(*space),
                lanes * u64::from(ty.bytes()) * targets.len() as u64,
            ),
            Op::Store {
                ty, space, values, ..
            } => moved(
                written(*space),
                lanes * u64::from(ty.bytes()) * values.len() as u64,
            ),
            Op::Atomic { ty, space, .. } => {
                moved(read(*space), lanes * u64::from(ty.bytes()));
                moved(written(*space), lanes * u64::from(ty.bytes()));
            }
            Op::ReduceVector {
                ty, space, values, ..
            } => moved(
                written(*space),
                lanes * u64::from(ty.bytes()) * values.len() as u64,
            ),
            // Eight rows of 16 bytes a matrix.
            Op::LoadMatrix { targets, .. } => {
                moved("shared read", lanes / 32 * 128 * targets.len() as u64);
            }
            Op::StoreMatrix { values, .. } => {
                moved("shared written", lanes / 32 * 128 * values.len() as u64);
            }
            Op::CopyAsync { bytes, .. } => moved("cp.async", lanes * u64::from(*bytes)),
            Op::StoreAsync { ty, values, .. } => moved(
                "st.async",
                lanes * u64::from(ty.bytes()) * values.len() as u64,
            ),
            Op::Mma {
                depth,
                a_type,
                b_type,
                ..
            } => {
                let shape = format!("mma.sync m16n8k{depth} {a_type:?} {b_type:?}");
                self.product(shape, lanes / 32, (16, 8, *depth));
            }
            Op::MmaInteger { depth, .. } => {
                self.product(
                    format!("mma.sync m16n8k{depth} integer"),
                    lanes / 32,
                    (16, 8, *depth),
                );
            }
            Op::Wgmma(op) => {
                let bytes = |rows: u32, bits: u32| u64::from(rows * op.depth * bits / 8);
                let mut operands = bytes(op.columns, op.b_type.bits());
                if let WgmmaA::Shared(_) = op.a {
                    operands += bytes(64, op.a_type.bits());
                }
                moved("operands of wgmma", lanes / 128 * operands);
                let shape = format!(
                    "wgmma m64n{}k{} {:?} {:?}",
                    op.columns, op.depth, op.a_type, op.b_type
                );
                self.product(shape, lanes / 128, (64, op.columns, op.depth));
            }
            Op::Tcgen(tcgen) => match &**tcgen {
                Tcgen::Load { targets, .. } => {
                    moved("tensor memory read", lanes * 4 * targets.len() as u64);
                }
                Tcgen::Store { values, .. } => {
                    moved("tensor memory written", lanes * 4 * values.len() as u64);
                }
                Tcgen::WaitLoad | Tcgen::WaitStore => wait("tcgen05.wait"),
                _ => {}
            },
            Op::Barrier { .. } => wait("barrier"),
            Op::ClusterWait => wait("cluster barrier"),
            Op::MbarrierTest { .. } => wait("mbarrier"),
            Op::CopyWait(_) | Op::CopyWaitAll => wait("cp.async group"),
            Op::BulkWait { .. } => wait("bulk group"),
            Op::WgmmaWait(_) => wait("wgmma group"),
            _ => {}
        }
    }

    fn product(&mut self, shape: String, count: u64, (rows, columns, depth): (u32, u32, u32)) {
        *self.products.entry(shape).or_default() += count;
        self.multiply_adds += count * u64::from(rows * columns * depth);
    }

    pub fn add(&mut self, other: &Self) {
        fn sum<K: Ord + Clone>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
            for (key, count) in from {
                *into.entry(key.clone()).or_default() += count;
            }
        }
        self.thread_instructions += other.thread_instructions;
        self.multiply_adds += other.multiply_adds;
        self.sums += other.sums;
        self.special_functions += other.special_functions;
        sum(&mut self.classes, &other.classes);
        sum(&mut self.products, &other.products);
        sum(&mut self.bytes, &other.bytes);
        sum(&mut self.waits, &other.waits);
        sum(&mut self.forms, &other.forms);
        self.per_block.add(&other.per_block);
        self.launch.add(other.launch);
    }
}
