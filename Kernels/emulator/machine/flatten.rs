//! A kernel with every call replaced by the body of its callee: one list of instructions, no frames.

use syntax::{Function, Instruction, Location, Module, Operand, Parameter, Symbol, Type};

use crate::error::{Error, Place};
use crate::limits::MOST_LOCAL_BYTES;

/// An instruction of the kernel or of something it calls.
pub struct Step {
    pub instruction: Instruction,
    pub location: Option<Location>,
    pub kind: StepKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    Plain,
    /// An argument or a result on its way between two parameters.
    Copy {
        from: u32,
        to: u32,
        bytes: u32,
    },
    /// A callee's return.
    Jump(usize),
}

pub struct Flat {
    pub steps: Vec<Step>,
    pub registers: Vec<Type>,
    pub tables: Vec<Vec<usize>>,
    /// Offset in a thread's local memory of each local variable.
    pub locals: Vec<u32>,
    pub local_bytes: u64,
}

const DEEPEST: usize = 32;
/// Instructions, or registers: calls of calls may multiply without an end in sight.
const LONGEST: usize = 1 << 21;

struct Builder<'a> {
    module: &'a Module,
    kernel: &'a str,
    flat: Flat,
}

/// Where a function's own numbers begin in the flat kernel.
struct Frame {
    register: u32,
    table: u32,
    first: usize,
    locals: u32,
    /// Locals that stand for the parameters and results of a callee.
    parameters: Vec<u32>,
    returns: Vec<u32>,
    is_entry: bool,
}

pub fn flatten(module: &Module, entry: &Function) -> Result<Flat, Error> {
    let mut builder = Builder {
        module,
        kernel: &entry.name,
        flat: Flat {
            steps: Vec::new(),
            registers: Vec::new(),
            tables: Vec::new(),
            locals: Vec::new(),
            local_bytes: 0,
        },
    };
    builder.body(entry, Vec::new(), Vec::new(), 0)?;
    let bytes = builder.flat.local_bytes;
    if bytes > MOST_LOCAL_BYTES {
        return Err(builder.refused(format!(
            "{bytes} bytes of local memory per thread; {MOST_LOCAL_BYTES} are the most"
        )));
    }
    Ok(builder.flat)
}

impl Builder<'_> {
    fn refused(&self, reason: String) -> Error {
        Error::Kernel {
            kernel: self.kernel.to_owned(),
            reason,
        }
    }

    fn place(&mut self, align: u64, bytes: u64) -> u32 {
        let flat = &mut self.flat;
        flat.local_bytes = flat.local_bytes.next_multiple_of(align.max(1));
        flat.locals.push(flat.local_bytes as u32);
        flat.local_bytes += bytes;
        flat.locals.len() as u32 - 1
    }

    fn body(
        &mut self,
        function: &Function,
        parameters: Vec<u32>,
        returns: Vec<u32>,
        depth: usize,
    ) -> Result<(), Error> {
        if depth > DEEPEST {
            return Err(self.refused(format!(
                "calls nest deeper than {DEEPEST}; recursion is not supported"
            )));
        }
        if self.flat.steps.len().max(self.flat.registers.len()) > LONGEST {
            return Err(self.refused(format!(
                "with its calls filled in it has more than {LONGEST} instructions or registers"
            )));
        }
        let frame = Frame {
            register: self.flat.registers.len() as u32,
            table: self.flat.tables.len() as u32,
            first: self.flat.steps.len(),
            locals: self.flat.locals.len() as u32,
            parameters,
            returns,
            is_entry: depth == 0,
        };
        self.flat
            .registers
            .extend(function.registers.iter().map(|register| register.ty));
        for variable in &function.variables {
            self.place(variable.align, variable.bytes);
        }
        // Where each instruction of the function begins once calls are filled in.
        let mut starts = Vec::with_capacity(function.instructions.len() + 1);
        for instruction in &function.instructions {
            starts.push(self.flat.steps.len());
            let location = instruction
                .location
                .map(|at| function.locations[at as usize]);
            if instruction.opcode.split('.').next() == Some("call") {
                self.call(instruction, location, &frame, depth)?;
            } else {
                let mut copy = instruction.clone();
                self.translate(&mut copy, &frame);
                self.flat.steps.push(Step {
                    instruction: copy,
                    location,
                    kind: StepKind::Plain,
                });
            }
        }
        starts.push(self.flat.steps.len());
        let end = self.flat.steps.len();
        for table in &function.tables {
            self.flat
                .tables
                .push(table.iter().map(|at| starts[*at]).collect());
        }
        let inner = frame.first;
        let mut own = vec![false; end - inner];
        for (at, start) in starts.iter().take(function.instructions.len()).enumerate() {
            let is_call = function.instructions[at].opcode.split('.').next() == Some("call");
            if !is_call {
                own[start - inner] = true;
            }
        }
        for at in inner..end {
            if !own[at - inner] {
                continue;
            }
            let step = &mut self.flat.steps[at];
            if !frame.is_entry && matches!(&*step.instruction.opcode, "ret" | "ret.uni") {
                step.kind = StepKind::Jump(end);
            }
            for operand in &mut step.instruction.operands {
                if let Operand::Label(target) = operand {
                    *target = starts[*target];
                }
            }
        }
        Ok(())
    }

    fn translate(&self, instruction: &mut Instruction, frame: &Frame) {
        if let Some(guard) = &mut instruction.guard {
            guard.register += frame.register;
        }
        for operand in &mut instruction.operands {
            self.translate_operand(operand, frame);
        }
    }

    fn translate_operand(&self, operand: &mut Operand, frame: &Frame) {
        match operand {
            Operand::Register(number) | Operand::NotRegister(number) => *number += frame.register,
            Operand::Table(number) => *number += frame.table,
            Operand::Symbol(symbol) => *symbol = self.symbol(*symbol, frame),
            Operand::Vector(list) => list
                .iter_mut()
                .for_each(|part| self.translate_operand(part, frame)),
            Operand::Address { base, more, .. } => {
                self.translate_operand(base, frame);
                more.iter_mut()
                    .for_each(|part| self.translate_operand(part, frame));
            }
            Operand::Pair(pair) => {
                self.translate_operand(&mut pair.0, frame);
                self.translate_operand(&mut pair.1, frame);
            }
            _ => {}
        }
    }

    fn symbol(&self, symbol: Symbol, frame: &Frame) -> Symbol {
        match symbol {
            Symbol::Local(number) => Symbol::Local(frame.locals + number),
            Symbol::Parameter(number) if !frame.is_entry => {
                Symbol::Local(frame.parameters[number as usize])
            }
            Symbol::Return(number) => Symbol::Local(frame.returns[number as usize]),
            other => other,
        }
    }

    fn call(
        &mut self,
        instruction: &Instruction,
        location: Option<Location>,
        frame: &Frame,
        depth: usize,
    ) -> Result<(), Error> {
        let unknown = |reason: String| Error::Unknown {
            kernel: self.kernel.to_owned(),
            place: Box::new(Place {
                line: instruction.line,
                instruction: instruction.opcode.to_string(),
                source: None,
            }),
            reason,
        };
        let mut lists = instruction
            .operands
            .iter()
            .filter_map(|operand| match operand {
                Operand::Vector(list) => Some(list.clone()),
                _ => None,
            });
        let name = instruction
            .operands
            .iter()
            .find_map(|operand| match operand {
                Operand::Function(name) => Some(name.as_str()),
                _ => None,
            });
        let Some(name) = name else {
            return Err(unknown("an indirect call".to_owned()));
        };
        let declared = self
            .module
            .functions
            .iter()
            .find(|function| function.name == name);
        let Some(callee) = self.module.function(name) else {
            // What the runtime gives to device code; printing is no part of a result.
            let opcode = match name {
                "vprintf" => "emulator.print",
                "__assertfail" => "emulator.assertion",
                _ => {
                    return Err(unknown(format!(
                        "a call of {name:?}, which has no body here"
                    )))
                }
            };
            let mut copy = instruction.clone();
            copy.opcode = opcode.into();
            copy.operands.clear();
            copy.guard = instruction.guard;
            self.translate(&mut copy, frame);
            self.flat.steps.push(Step {
                instruction: copy,
                location,
                kind: StepKind::Plain,
            });
            return Ok(());
        };
        if instruction.guard.is_some() {
            return Err(unknown("a call under a predicate".to_owned()));
        }
        let results = if callee.returns.is_empty() {
            Vec::new()
        } else {
            lists.next().unwrap_or_default()
        };
        let arguments = lists.next().unwrap_or_default();
        let declared = declared.unwrap_or(callee);
        if arguments.len() != declared.parameters.len() || results.len() != declared.returns.len() {
            return Err(unknown(format!(
                "{name:?} takes {} arguments",
                declared.parameters.len()
            )));
        }
        let place_all = |builder: &mut Self, list: &[Parameter]| -> Vec<u32> {
            list.iter()
                .map(|parameter| builder.place(parameter.align, parameter.bytes))
                .collect()
        };
        let parameters = place_all(self, &callee.parameters);
        let returns = place_all(self, &callee.returns);
        let pairs = |outer: &[Operand],
                     inner: &[u32],
                     sizes: &[Parameter]|
         -> Option<Vec<(u32, u32, u32)>> {
            outer
                .iter()
                .zip(inner)
                .zip(sizes)
                .map(|((operand, inner), size)| {
                    let Operand::Symbol(symbol) = operand else {
                        return None;
                    };
                    let Symbol::Local(outer) = self.symbol(*symbol, frame) else {
                        return None;
                    };
                    let offset = |local: u32| self.flat.locals[local as usize];
                    Some((offset(outer), offset(*inner), size.bytes as u32))
                })
                .collect()
        };
        let reason = || unknown("an argument that is not a parameter variable".to_owned());
        let going = pairs(&arguments, &parameters, &callee.parameters).ok_or_else(reason)?;
        let coming = pairs(&results, &returns, &callee.returns).ok_or_else(reason)?;
        let copy = |from, to, bytes| Step {
            instruction: Instruction {
                operands: Vec::new(),
                ..instruction.clone()
            },
            location,
            kind: StepKind::Copy { from, to, bytes },
        };
        self.flat.steps.extend(
            going
                .into_iter()
                .map(|(outer, inner, bytes)| copy(outer, inner, bytes)),
        );
        self.body(callee, parameters, returns, depth + 1)?;
        self.flat.steps.extend(
            coming
                .into_iter()
                .map(|(outer, inner, bytes)| copy(inner, outer, bytes)),
        );
        Ok(())
    }
}
