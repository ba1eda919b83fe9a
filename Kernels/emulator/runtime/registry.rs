//! What objects register, what host code allocates, and launches.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use machine::{Allocations, Block, Launch, Module, Program, Report, Touched};

use crate::recording;
use crate::settings::{self, Fault};
use crate::unit::{emulated_sm, target, Unit};

/// A kernel by the address of its host function.
#[derive(Clone)]
struct Kernel {
    unit: usize,
    name: String,
    most_dynamic_shared: u32,
    large_clusters: bool,
}

impl Kernel {
    /// Eight run on every GPU with clusters; a kernel must allow more.
    fn most_cluster_blocks(&self) -> u32 {
        if self.large_clusters {
            16
        } else {
            8
        }
    }
}

#[derive(Default)]
struct Registry {
    units: Vec<Unit>,
    modules: HashMap<usize, Arc<Module>>,
    /// The module with a fault that was launched last.
    faulty: Option<(usize, Fault, Arc<Module>)>,
    kernels: HashMap<usize, Kernel>,
    variables: HashMap<usize, (usize, String)>,
    blocks: HashMap<u64, Block>,
    reports: Vec<(String, Report)>,
    /// What the last launch did to global memory, until the host waits for it.
    touched: Option<Arc<Touched>>,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: OnceLock<Mutex<Registry>> = OnceLock::new();
    REGISTRY
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn allocations() -> &'static Allocations {
    static ALLOCATIONS: OnceLock<Allocations> = OnceLock::new();
    ALLOCATIONS.get_or_init(Allocations::default)
}

/// Dynamic shared memory that a kernel gets unasked.
const USUAL_SHARED: u32 = 48 << 10;

pub fn add_unit(texts: Result<Vec<String>, String>) -> usize {
    let mut registry = registry();
    registry.units.push(Unit::new(texts, emulated_sm()));
    registry.units.len() - 1
}

/// The unit of a text that comes at run time; one for equal texts.
pub fn unit_of(text: &str) -> usize {
    let mut registry = registry();
    let unit = Unit::Text(text.to_owned());
    let known = registry.units.iter().position(|known| *known == unit);
    known.unwrap_or_else(|| {
        registry.units.push(unit);
        registry.units.len() - 1
    })
}

pub fn add_kernel(unit: usize, host: usize, name: &str) {
    registry().kernels.insert(
        host,
        Kernel {
            unit,
            name: name.to_owned(),
            most_dynamic_shared: 0,
            large_clusters: false,
        },
    );
}

pub fn add_variable(unit: usize, host: usize, name: &str) {
    registry().variables.insert(host, (unit, name.to_owned()));
}

pub fn remove_kernel(host: usize) {
    registry().kernels.remove(&host);
}

/// False where no kernel has that address.
pub fn allow_shared(host: usize, bytes: u32) -> bool {
    registry()
        .kernels
        .get_mut(&host)
        .map(|kernel| kernel.most_dynamic_shared = bytes)
        .is_some()
}

/// False where no kernel has that address.
pub fn allow_large_clusters(host: usize, allowed: bool) -> bool {
    registry()
        .kernels
        .get_mut(&host)
        .map(|kernel| kernel.large_clusters = allowed)
        .is_some()
}

/// Of a kernel; none where no kernel has that address.
pub fn most_cluster_blocks(host: usize) -> Option<u32> {
    registry()
        .kernels
        .get(&host)
        .map(Kernel::most_cluster_blocks)
}

fn load(text: &str) -> Result<Arc<Module>, String> {
    Module::load(text)
        .map(Arc::new)
        .map_err(|error| error.to_string())
}

/// The kernel at an address.
pub fn program_of(host: usize) -> Option<Arc<Program>> {
    let kernel = registry().kernels.get(&host).cloned()?;
    program(kernel.unit, &kernel.name).ok()
}

/// A kernel of a unit.
pub fn program(unit: usize, name: &str) -> Result<Arc<Program>, String> {
    let program = module(unit)?.program(name);
    program.map_err(|error| error.to_string())
}

/// The names of a unit's kernels.
pub fn entries(unit: usize) -> Result<Vec<String>, String> {
    let module = module(unit)?;
    let functions = module.syntax().functions.iter();
    let entries = functions.filter(|function| function.is_entry && function.has_body);
    Ok(entries.map(|function| function.name.clone()).collect())
}

fn module(unit: usize) -> Result<Arc<Module>, String> {
    let mut registry = registry();
    if let Some(module) = registry.modules.get(&unit) {
        return Ok(module.clone());
    }
    let module = load(registry.units[unit].text()?)?;
    registry.modules.insert(unit, module.clone());
    Ok(module)
}

fn faulty_module(unit: usize, fault: &Fault) -> Result<Arc<Module>, String> {
    let mut registry = registry();
    if let Some((_, _, module)) = registry
        .faulty
        .as_ref()
        .filter(|(of, same, _)| *of == unit && same == fault)
    {
        return Ok(module.clone());
    }
    let text = registry.units[unit].text()?;
    let text = match fault {
        Fault::Everywhere(from, to) if text.contains(from) => text.replace(from, to),
        Fault::Everywhere(from, _) => {
            return Err(format!("the PTX has no {from:?} to plant a fault in"))
        }
        Fault::Line {
            kernel,
            line,
            text: new,
        } => {
            let mut lines: Vec<&str> = text.lines().collect();
            empty_other_kernels(&mut lines, kernel);
            let Some(old) = lines.get_mut((*line as usize).wrapping_sub(1)) else {
                return Err(format!("the PTX has no line {line} to plant a fault in"));
            };
            *old = new;
            lines.join("\n")
        }
    };
    let module = load(&text)?;
    registry.faulty = Some((unit, fault.clone(), module.clone()));
    Ok(module)
}

/// Leaves one kernel of a unit its body, and every line its number: no other runs with this fault, and reading them
/// all is a third of a mutant's time.
fn empty_other_kernels(lines: &mut [&str], kernel: &str) {
    let (mut of_another, mut depth) = (false, 0);
    for line in lines {
        if let Some((_, declared)) = line.split_once(".entry ") {
            let name = declared.split(['(', ' ']).next();
            of_another = name != Some(kernel);
        }
        let before = depth;
        depth += line.matches('{').count();
        depth -= line.matches('}').count().min(depth);
        if of_another && before > 0 {
            *line = if depth > 0 { "" } else { "}" };
        }
        of_another &= before == 0 || depth > 0;
    }
}

/// The PTX of the translation unit that a kernel belongs to.
pub fn text_of(kernel: &str) -> Option<String> {
    let registry = registry();
    let found = registry
        .kernels
        .values()
        .find(|found| found.name == kernel)?;
    registry.units[found.unit].text().ok().map(str::to_owned)
}

/// The SM that is emulated, 90 or 100: the chosen one, or else that of the first translation unit that has PTX.
pub fn compute_capability() -> Option<u32> {
    let first = || {
        let registry = registry();
        let mut texts = registry.units.iter().filter_map(|unit| unit.text().ok());
        target(texts.next()?)
    };
    emulated_sm().or_else(first)
}

/// Where a variable of device code lies, by the address of its shadow on the host.
pub fn variable(host: usize) -> Result<(u64, u64), String> {
    let found = registry().variables.get(&host).cloned();
    let (unit, name) = found.ok_or("no such variable of device code")?;
    module(unit)?
        .variable(&name)
        .ok_or_else(|| format!("no variable {name} in the PTX"))
}

pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: [u32; 3],
    pub dynamic_shared_bytes: u32,
    /// It may begin before the launch before it has ended.
    pub overlaps_previous: bool,
}

pub enum Refusal {
    UnknownKernel,
    Invalid(String),
    Failed(String),
}

/// Runs a kernel to its end.
///
/// # Safety
///
/// `arguments` points to a pointer for each parameter of the kernel, each to a value of its size.
pub unsafe fn launch(
    host: usize,
    shape: &Shape,
    arguments: *const *const c_void,
) -> Result<(), Refusal> {
    let kernel = registry()
        .kernels
        .get(&host)
        .cloned()
        .ok_or(Refusal::UnknownKernel)?;
    let settings = settings::get();
    let module = match &settings.fault {
        Some(fault @ Fault::Everywhere(..)) => faulty_module(kernel.unit, fault),
        Some(fault @ Fault::Line { kernel: name, .. }) if *name == kernel.name => {
            faulty_module(kernel.unit, fault)
        }
        _ => module(kernel.unit),
    }
    .map_err(Refusal::Failed)?;
    let program = module
        .program(&kernel.name)
        .map_err(|error| Refusal::Failed(error.to_string()))?;
    let unasked = USUAL_SHARED.saturating_sub(program.static_shared_bytes());
    if shape.dynamic_shared_bytes > unasked.max(kernel.most_dynamic_shared) {
        return Err(Refusal::Invalid(format!(
            "{}: {} bytes of dynamic shared memory, of which cudaFuncSetAttribute allowed {}",
            kernel.name,
            shape.dynamic_shared_bytes,
            unasked.max(kernel.most_dynamic_shared)
        )));
    }
    let blocks: u64 = shape.cluster.iter().map(|size| u64::from(*size)).product();
    if blocks > u64::from(kernel.most_cluster_blocks()) {
        return Err(Refusal::Invalid(format!(
            "{}: clusters of {blocks} blocks; {} are the most that cudaFuncSetAttribute allowed",
            kernel.name,
            kernel.most_cluster_blocks()
        )));
    }
    let mut parameters = vec![0u8; program.parameter_bytes as usize];
    for (number, (offset, bytes)) in program.parameters.iter().enumerate() {
        let to = &mut parameters[*offset as usize..(*offset + *bytes) as usize];
        // SAFETY: the caller has a value of that size for each parameter.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (*arguments.add(number)).cast::<u8>(),
                to.as_mut_ptr(),
                to.len(),
            )
        };
    }
    let launch = Launch {
        grid: shape.grid,
        block: shape.block,
        cluster: shape.cluster,
        dynamic_shared_bytes: shape.dynamic_shared_bytes,
        parameters,
        schedule: settings.schedule,
        tensor_loads: settings.tensor_loads,
        workers: settings.workers,
        multiprocessors: settings.multiprocessors,
        races: settings.races,
        limit: settings.limit,
        before: registry()
            .touched
            .take()
            .filter(|_| shape.overlaps_previous),
    };
    let recording = match &settings.fault {
        Some(_) => None,
        None => {
            let text = || {
                let registry = registry();
                let text = registry.units[kernel.unit].text();
                text.map_or_else(|_| String::new(), str::to_owned)
            };
            recording::begin(text, &program, &launch, allocations())
        }
    };
    let report = machine::run(&module, &kernel.name, &launch, allocations())
        .map_err(|error| Refusal::Failed(error.to_string()))?;
    if let Some(recording) = recording {
        recording.end();
    }
    let mut registry = registry();
    registry.touched = report.touched.clone();
    registry.reports.push((kernel.name, report));
    Ok(())
}

/// The instruction forms of every kernel that is linked in for the emulated SM, and how often each stands there.
///
/// # Errors
///
/// Where an object carries no PTX, or the parser refuses it.
pub fn forms() -> Result<BTreeMap<String, u64>, String> {
    let is_elsewhere = |unit: &Unit| matches!(unit, Unit::Elsewhere(_));
    let elsewhere: Vec<bool> = registry().units.iter().map(is_elsewhere).collect();
    let mut forms = BTreeMap::new();
    for unit in (0..elsewhere.len()).filter(|&unit| !elsewhere[unit]) {
        let module = module(unit)?;
        for function in &module.syntax().functions {
            for instruction in &function.instructions {
                *forms.entry(instruction.opcode.to_string()).or_default() += 1;
            }
        }
    }
    Ok(forms)
}

/// What kernels did since the last call, in the order of their launches.
pub fn take_reports() -> Vec<(String, Report)> {
    std::mem::take(&mut registry().reports)
}

/// Memory that kernels may touch; what nobody wrote is not a number.
pub fn allocate(bytes: usize) -> u64 {
    keep(Block::filled(bytes, 0xff))
}

/// The host has waited for the device.
pub fn settle() {
    registry().touched = None;
}

fn keep(block: Block) -> u64 {
    settle();
    let (address, bytes) = block.range();
    // SAFETY: the registry keeps the block until it is withdrawn, and lends it to nobody.
    unsafe { allocations().allow(address, bytes) };
    registry().blocks.insert(address, block);
    address
}

/// False where nothing was allocated there.
pub fn free(address: u64) -> bool {
    settle();
    recording::forget(address);
    allocations().withdraw(address);
    registry().blocks.remove(&address).is_some()
}

/// Makes memory of the process device memory until it is withdrawn.
///
/// # Safety
///
/// It stays valid until then, and nobody borrows it while a kernel runs.
pub unsafe fn lend(address: usize, bytes: usize) {
    // SAFETY: as the caller's.
    unsafe { allocations().allow(address as u64, bytes as u64) };
}

pub fn withdraw(address: usize) {
    allocations().withdraw(address as u64);
}

/// Whether all of a range is device memory.
pub fn covers(address: u64, bytes: u64) -> bool {
    allocations().covers(address, bytes)
}

/// Device memory of a test.
#[derive(Debug)]
pub struct Memory(u64);

impl Memory {
    pub fn new(bytes: usize) -> Self {
        Self(allocate(bytes))
    }

    pub fn from_bytes(data: &[u8]) -> Self {
        Self(keep(Block::from_bytes(data)))
    }

    pub fn address(&self) -> usize {
        self.0 as usize
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        registry().blocks[&self.0].to_bytes()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        free(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_kernel_keeps_its_body_and_every_line_its_number() {
        let text = "\
.func helper()
{
\tadd.u32 1;
}
.visible .entry first(
\t.param .u64 first_param_0
)
.maxntid 128
{
\t{ .reg .b16 low; }
{
\tcvt.rn 3;
}
\tret;
}
.visible .entry first_wide(
)
{
\tmul.u32 2;
}
";
        let kept = |kernel: &str| {
            let mut lines: Vec<&str> = text.lines().collect();
            empty_other_kernels(&mut lines, kernel);
            lines.join("\n") + "\n"
        };
        assert_eq!(kept("first"), text.replace("\tmul.u32 2;", ""));
        let body = "\t{ .reg .b16 low; }\n{\n\tcvt.rn 3;\n}\n\tret;\n";
        let emptied = text.replace(body, "\n\n\n\n\n");
        assert_eq!(kept("first_wide"), emptied);
    }
}
