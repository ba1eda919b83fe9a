//! A module that was loaded, and its kernels ready to run.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use syntax::{Function, Location, Operand, Space, Symbol, Type};

use crate::decode::{self, Context, Slot};
use crate::dependence;
use crate::error::{Error, Place};
use crate::flatten::{self, Flat};
use crate::limits::{MOST_PARAMETER_BYTES, MOST_SHARED};
use crate::memory::Block;
use crate::op::Decoded;

/// Shared memory that the system keeps for itself at the start of every block.
pub const RESERVED_SHARED: u32 = 1024;

/// A translation unit with its variables in memory.
pub struct Module {
    syntax: syntax::Module,
    globals: Vec<Option<Block>>,
    programs: Mutex<HashMap<String, Arc<Program>>>,
}

/// An instruction form, and where it stands first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownForm {
    pub kernel: String,
    pub place: Place,
    pub reason: String,
}

impl Module {
    /// Parses a text and puts its variables into memory.
    ///
    /// # Errors
    ///
    /// Where the text is not PTX.
    pub fn load(text: &str) -> Result<Self, Error> {
        let syntax = syntax::parse(text)?;
        let globals = syntax
            .variables
            .iter()
            .map(|variable| {
                (variable.space != Space::Shared).then(|| {
                    let mut bytes = variable.initial.clone();
                    bytes.resize(variable.bytes as usize, 0);
                    Block::from_bytes(&bytes)
                })
            })
            .collect();
        Ok(Self {
            syntax,
            globals,
            programs: Mutex::default(),
        })
    }

    pub fn target(&self) -> &str {
        &self.syntax.target
    }

    pub fn syntax(&self) -> &syntax::Module {
        &self.syntax
    }

    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.syntax
            .functions
            .iter()
            .filter(|function| function.is_entry && function.has_body)
            .map(|function| function.name.as_str())
    }

    /// Where a variable of the module lies, and its bytes.
    pub fn variable(&self, name: &str) -> Option<(u64, u64)> {
        let at = self
            .syntax
            .variables
            .iter()
            .position(|variable| variable.name == name)?;
        self.globals[at].as_ref().map(Block::range)
    }

    pub(crate) fn ranges(&self) -> Vec<(u64, u64)> {
        self.globals.iter().flatten().map(Block::range).collect()
    }

    /// A kernel, decoded once.
    ///
    /// # Errors
    ///
    /// Where there is none of that name, or it has an instruction that the table does not know.
    pub fn program(&self, name: &str) -> Result<Arc<Program>, Error> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(name) {
            return Ok(program.clone());
        }
        let program = Arc::new(self.decode(name)?.map_err(|mut unknown| {
            let UnknownForm {
                kernel,
                place,
                reason,
            } = unknown.swap_remove(0);
            Error::Unknown {
                kernel,
                place: Box::new(place),
                reason,
            }
        })?);
        programs.insert(name.to_owned(), program.clone());
        Ok(program)
    }

    /// Everything in a kernel that the table does not know.
    ///
    /// # Errors
    ///
    /// Where the kernel cannot be taken apart at all.
    pub fn unknown_forms(&self, name: &str) -> Result<Vec<UnknownForm>, Error> {
        Ok(self.decode(name)?.err().unwrap_or_default())
    }

    fn decode(&self, name: &str) -> Result<Result<Program, Vec<UnknownForm>>, Error> {
        let Some(entry) = self
            .syntax
            .function(name)
            .filter(|function| function.is_entry)
        else {
            let known: Vec<_> = self.kernels().take(4).collect();
            return Err(Error::Kernel {
                kernel: name.to_owned(),
                reason: format!(
                    "no such kernel in this module, which has {}",
                    if known.is_empty() {
                        "none".to_owned()
                    } else {
                        known.join(", ")
                    }
                ),
            });
        };
        let flat = flatten::flatten(&self.syntax, entry)?;
        let (slots, counts) = slots(&flat.registers);
        let refused = |reason| Error::Kernel {
            kernel: name.to_owned(),
            reason,
        };
        let (shared, static_end, dynamic_start) = self.shared_layout(&flat).map_err(refused)?;
        let globals: Vec<u64> = self
            .globals
            .iter()
            .map(|block| block.as_ref().map_or(0, Block::address))
            .collect();
        let (parameters, parameter_bytes) = parameter_layout(entry).map_err(refused)?;
        let offsets: Vec<u32> = parameters.iter().map(|(offset, _)| *offset).collect();
        let context = Context {
            target: &self.syntax.target,
            flat: &flat,
            slots: &slots,
            shared: &shared,
            globals: &globals,
            parameters: &offsets,
        };
        let mut code = Vec::with_capacity(flat.steps.len());
        let mut unknown = Vec::new();
        for step in &flat.steps {
            match decode::decode(&context, step) {
                Ok(decoded) => code.push(decoded),
                Err(reason) => unknown.push(UnknownForm {
                    kernel: name.to_owned(),
                    place: self.place(
                        &step.instruction.opcode,
                        step.instruction.line,
                        step.location,
                    ),
                    reason,
                }),
            }
        }
        if !unknown.is_empty() {
            return Ok(Err(unknown));
        }
        let loads_named = dependence::loads_named(&code, &flat.steps, &slots);
        let places = flat
            .steps
            .iter()
            .map(|step| {
                (
                    step.instruction.opcode.clone(),
                    step.instruction.line,
                    step.location,
                )
            })
            .collect();
        let starts = flat.steps.iter();
        let starts = starts.map(|step| step.instruction.span.start).collect();
        Ok(Ok(Program {
            name: name.to_owned(),
            code,
            loads_named,
            places,
            starts,
            files: self.syntax.files.clone().into_iter().collect(),
            words: counts[0],
            wides: counts[1],
            bits: counts[2],
            local_bytes: flat.local_bytes.next_multiple_of(16) as u32,
            parameters,
            parameter_bytes,
            static_end,
            dynamic_start,
            directives: entry.directives.clone().into_iter().collect(),
        }))
    }

    fn place(&self, opcode: &str, line: u32, location: Option<Location>) -> Place {
        let source = location.map(|location| {
            source_of(location, |file| {
                self.syntax.files.get(&file).map(String::as_str)
            })
        });
        Place {
            line,
            instruction: opcode.to_owned(),
            source,
        }
    }

    // Static variables that the kernel names, in their order, then the dynamic memory.
    fn shared_layout(&self, flat: &Flat) -> Result<(HashMap<u32, u32>, u32, u32), String> {
        let mut used = BTreeSet::new();
        for step in &flat.steps {
            for operand in &step.instruction.operands {
                collect_shared(operand, &mut used);
            }
        }
        used.retain(|number| self.syntax.variables[*number as usize].space == Space::Shared);
        let mut layout = HashMap::new();
        let mut end = u64::from(RESERVED_SHARED);
        let mut dynamic_align = 16;
        for number in &used {
            let variable = &self.syntax.variables[*number as usize];
            if variable.is_unsized {
                dynamic_align = dynamic_align.max(variable.align);
                continue;
            }
            end = end.next_multiple_of(variable.align);
            layout.insert(*number, end as u32);
            end += variable.bytes;
            let bytes = end - u64::from(RESERVED_SHARED);
            if bytes > u64::from(MOST_SHARED) {
                return Err(format!(
                    "{bytes} bytes of shared memory that it declares; {MOST_SHARED} are the most"
                ));
            }
        }
        let dynamic = end.next_multiple_of(dynamic_align);
        for number in &used {
            if self.syntax.variables[*number as usize].is_unsized {
                layout.insert(*number, dynamic as u32);
            }
        }
        Ok((layout, end as u32, dynamic as u32))
    }
}

fn collect_shared(operand: &Operand, found: &mut BTreeSet<u32>) {
    match operand {
        Operand::Symbol(Symbol::Module(number)) => {
            found.insert(*number);
        }
        Operand::Vector(list) => list.iter().for_each(|part| collect_shared(part, found)),
        Operand::Address { base, more, .. } => {
            collect_shared(base, found);
            more.iter().for_each(|part| collect_shared(part, found));
        }
        _ => {}
    }
}

fn slots(registers: &[Type]) -> (Vec<Slot>, [u32; 3]) {
    let mut counts = [0; 3];
    let mut next = |bank: usize| {
        counts[bank] += 1;
        counts[bank] - 1
    };
    let slots = registers
        .iter()
        .map(|ty| match ty.bits() {
            1 => Slot::Bit(next(2)),
            8 | 16 => Slot::Half(next(0)),
            32 => Slot::Word(next(0)),
            64 => Slot::Wide(next(1)),
            _ => Slot::Unsupported,
        })
        .collect();
    (slots, counts)
}

/// Offset and bytes of each parameter, and the bytes of all.
type Layout = (Vec<(u32, u32)>, u32);

fn parameter_layout(entry: &Function) -> Result<Layout, String> {
    let mut end = 0u64;
    let layout = entry
        .parameters
        .iter()
        .map(|parameter| {
            let offset = end.next_multiple_of(parameter.align);
            end = offset + parameter.bytes;
            (offset as u32, parameter.bytes as u32)
        })
        .collect();
    if end > MOST_PARAMETER_BYTES {
        return Err(format!(
            "{end} bytes of parameters; {MOST_PARAMETER_BYTES} are the most"
        ));
    }
    Ok((layout, end as u32))
}

fn source_of<'a>(location: Location, file: impl Fn(u32) -> Option<&'a str>) -> String {
    let name = |number: u32| {
        let path = file(number).unwrap_or("?");
        path.rsplit('/').next().unwrap_or(path).to_owned()
    };
    let inner = format!("{}:{}", name(location.file), location.line);
    match location.inlined_at {
        Some((file, line)) => format!("{inner}, inlined at {}:{line}", name(file)),
        None => inner,
    }
}

type Origin = (Arc<str>, u32, Option<Location>);

/// A kernel that can be launched.
pub struct Program {
    pub name: String,
    pub(crate) code: Vec<Decoded>,
    /// Of every instruction, where a kernel has tcgen05.ld: those whose registers it names.
    pub(crate) loads_named: Vec<Box<[usize]>>,
    places: Vec<Origin>,
    /// Where each instruction begins in the text.
    starts: Vec<usize>,
    files: HashMap<u32, String>,
    pub(crate) words: u32,
    pub(crate) wides: u32,
    pub(crate) bits: u32,
    pub(crate) local_bytes: u32,
    /// Offset and bytes of each parameter.
    pub parameters: Vec<(u32, u32)>,
    pub parameter_bytes: u32,
    pub(crate) static_end: u32,
    pub(crate) dynamic_start: u32,
    pub(crate) directives: HashMap<String, Vec<u32>>,
}

impl Program {
    pub(crate) fn place(&self, pc: usize) -> Place {
        let Some((opcode, line, location)) = self.places.get(pc) else {
            return Place {
                line: 0,
                instruction: "the end".to_owned(),
                source: None,
            };
        };
        let source = location
            .map(|location| source_of(location, |file| self.files.get(&file).map(String::as_str)));
        Place {
            line: *line,
            instruction: opcode.to_string(),
            source,
        }
    }

    pub(crate) fn line(&self, pc: usize) -> u32 {
        self.places[pc].1
    }

    pub(crate) fn start(&self, pc: usize) -> usize {
        self.starts[pc]
    }

    pub(crate) fn opcode(&self, pc: usize) -> &Arc<str> {
        &self.places[pc].0
    }

    /// Bytes of shared memory that the kernel declares itself.
    pub fn static_shared_bytes(&self) -> u32 {
        self.static_end - RESERVED_SHARED
    }

    /// Most threads of a block, as the kernel was compiled for.
    pub fn max_threads(&self) -> u32 {
        let sizes = self.directives.get("maxntid");
        let product = |sizes: &Vec<u32>| {
            sizes
                .iter()
                .fold(1, |all: u32, size| all.saturating_mul(*size))
        };
        sizes
            .or_else(|| self.directives.get("reqntid"))
            .map_or(1024, product)
            .min(1024)
    }
}
