//! What takes the place of each instruction that Hopper lacks.

use machine::{CopyShape, Meaning, Tcgen, TcgenA, TcgenKind, TcgenShape};
use syntax::{Function, Instruction, Module, Operand, Register};

use crate::arithmetic::{mixed, named, packed, redux, wide};
use crate::code::{Code, Names};
use crate::narrow::narrow;
use crate::{Error, When};

type Result<T> = std::result::Result<T, String>;

pub struct Rules<'a> {
    module: &'a Module,
    when: When,
    function: Option<&'a Function>,
    /// The module calls the emulation.
    emulated: bool,
    /// The function loads or stores tensor memory.
    transfers: bool,
    labels: usize,
}

impl<'a> Rules<'a> {
    pub fn new(module: &'a Module, when: When, emulated: bool) -> Self {
        Self {
            module,
            when,
            function: None,
            emulated,
            transfers: false,
            labels: 0,
        }
    }

    pub fn enter(&mut self, function: &'a Function) {
        self.function = Some(function);
        self.transfers = false;
    }

    /// What the function begins with: where its block's tensor memory lies, and the lanes that its warp reaches.
    pub fn prologue(&self) -> Option<String> {
        self.transfers.then(|| {
            "
.reg .b64 %emulated_memory;
.reg .b32 %emulated_lanes;
{
.reg .b32 x, y;
.param .b32 emulated_p0; .param .b64 emulated_p1;
mov.u32 x, %cluster_ctarank;
st.param.b32 [emulated_p0], x;
call (emulated_p1), emulated_tensor_of, (emulated_p0);
ld.param.b64 %emulated_memory, [emulated_p1];
mov.u32 x, %tid.z; mov.u32 y, %ntid.y; mul.lo.u32 x, x, y;
mov.u32 y, %tid.y; add.u32 x, x, y;
mov.u32 y, %ntid.x; mul.lo.u32 x, x, y;
mov.u32 y, %tid.x; add.u32 x, x, y;
and.b32 %emulated_lanes, x, 96;
}
"
            .to_owned()
        })
    }

    /// The instruction's replacement, or nothing where it stays; of one that waits, what comes before it.
    pub fn rewrite(
        &mut self,
        instruction: &Instruction,
        meaning: &Meaning,
    ) -> std::result::Result<Option<String>, Error> {
        let Some(function) = self.function else {
            return Ok(None);
        };
        let names = Names {
            module: self.module,
            function,
        };
        let body = self
            .body(names, instruction, meaning)
            .map_err(|reason| Error::at(function, instruction, reason))?;
        let Some(body) = body else { return Ok(None) };
        let Some(guard) = instruction
            .guard
            .filter(|_| !matches!(meaning, Meaning::Waits))
        else {
            return Ok(Some(body));
        };
        self.labels += 1;
        let Register { name, .. } = &function.registers[guard.register as usize];
        let (not, label) = (if guard.negated { "" } else { "!" }, self.labels);
        Ok(Some(format!(
            "@{not}{name} bra $emulated_{label};\n{body}\n$emulated_{label}:"
        )))
    }

    fn body(
        &mut self,
        names: Names<'a>,
        instruction: &Instruction,
        meaning: &Meaning,
    ) -> Result<Option<String>> {
        let mut code = Code::new(names);
        let (opcode, operands) = (&*instruction.opcode, instruction.operands.as_slice());
        match meaning {
            Meaning::Same => return Ok(None),
            Meaning::Registers if self.emulated => code.line(".reg .b32 emulated_0;"),
            Meaning::Registers => return Ok(None),
            Meaning::Waits if self.emulated && self.when == When::Late => {
                code.call("flush", &[]);
            }
            Meaning::Waits => return Ok(None),
            Meaning::Tcgen(tcgen) => self.tcgen(&mut code, instruction, tcgen)?,
            Meaning::GroupLoad { pair, multicast } => {
                self.group_load(&mut code, instruction, *pair, *multicast)?;
            }
            Meaning::Packed => packed(&mut code, opcode, operands)?,
            Meaning::OfThree => {
                let [d, a, b, c] = named(&code, operands)?;
                let between = code.register("f32");
                code.line(format!("{opcode} {between}, {a}, {b};"));
                code.line(format!("{opcode} {d}, {between}, {c};"));
            }
            Meaning::Mixed => mixed(&mut code, opcode, operands)?,
            Meaning::Redux {
                largest,
                absolute,
                nan,
            } => redux(&mut code, operands, *largest, *absolute, *nan)?,
            Meaning::Wide => wide(&mut code, opcode, operands)?,
            Meaning::Narrow(conversion) => narrow(&mut code, *conversion, operands)?,
        }
        Ok(Some(code.finish()))
    }

    // Work of a tensor core: now, or when the thread waits. Arguments as emulated_defer has them.
    fn issue(&self, code: &mut Code, routine: &str, arguments: [(u32, &str); 9]) {
        let [d, a, b, descriptor, flags, scale_a, scale_b, scale, line] = arguments;
        match (self.when, routine) {
            (When::Late, _) => {
                let kind = match routine {
                    "mma" => "1",
                    "copy" => "2",
                    "commit" => "3",
                    _ => "4",
                };
                let mut all = vec![(32, kind)];
                all.extend(arguments);
                code.call("defer", &all);
            }
            (When::AtOnce, "mma") => code.call(
                "mma",
                &[d, a, b, descriptor, flags, scale_a, scale_b, scale, line],
            ),
            (When::AtOnce, "copy") => code.call("copy", &[d, a, descriptor, flags, line]),
            (When::AtOnce, "commit") => code.call("commit", &[d, descriptor]),
            (When::AtOnce, _) => code.call("shift", &[d, flags, line]),
        }
    }

    fn tcgen(&mut self, code: &mut Code, instruction: &Instruction, tcgen: &Tcgen) -> Result<()> {
        let operands = instruction.operands.as_slice();
        let line = instruction.line.to_string();
        const NOTHING: (u32, &str) = (32, "0");
        match tcgen {
            Tcgen::Alloc { .. } => {
                let columns = code.word(&operands[1])?;
                let address = if instruction.opcode.contains(".shared::cta") {
                    code.word(&operands[0])?
                } else {
                    let generic = code.wide(&operands[0])?;
                    let address = code.register("b32");
                    code.line(format!("cvta.to.shared.u64 {generic}, {generic};"));
                    code.line(format!("cvt.u32.u64 {address}, {generic};"));
                    address
                };
                code.call("alloc", &[(32, &address), (32, &columns), (32, &line)]);
            }
            Tcgen::Dealloc { .. } => {
                let (base, columns) = (code.word(&operands[0])?, code.word(&operands[1])?);
                code.call("dealloc", &[(32, &base), (32, &columns), (32, &line)]);
            }
            Tcgen::Relinquish { .. } => {
                code.call("relinquish", &[]);
            }
            Tcgen::Load { packed: true, .. } | Tcgen::Store { packed: true, .. } => {
                return Err("packed columns have no emulation".to_owned());
            }
            Tcgen::Load { shape, .. } => {
                self.transfer(code, *shape, &operands[1], &operands[0], true)?
            }
            Tcgen::Store { shape, .. } => {
                self.transfer(code, *shape, &operands[0], &operands[1], false)?
            }
            Tcgen::WaitStore => code.line("fence.acq_rel.gpu;"),
            // Loads are done, and words of tensor memory bypass the first cache.
            Tcgen::WaitLoad | Tcgen::Fence { .. } => code.line(".reg .b32 emulated_0;"),
            Tcgen::Copy {
                narrow: Some(_), ..
            } => return Err("copies that widen elements have no emulation".to_owned()),
            Tcgen::Copy { pair, shape, .. } => {
                let (to, descriptor) = (code.word(&operands[0])?, code.wide(&operands[1])?);
                let shape = match shape {
                    CopyShape::S128x256 => "0",
                    CopyShape::S4x256 => "1",
                    CopyShape::S128x128 => "2",
                    CopyShape::S64x128Pairs02 => "3",
                    CopyShape::S64x128Pairs01 => "4",
                    CopyShape::S32x128 => "5",
                };
                let two = if *pair { "1" } else { "0" };
                let arguments = [
                    (32, to.as_str()),
                    (64, &descriptor),
                    (64, "0"),
                    (32, shape),
                    (32, two),
                    NOTHING,
                    NOTHING,
                    NOTHING,
                    (32, &line),
                ];
                self.issue(code, "copy", arguments);
            }
            Tcgen::Shift { pair, .. } => {
                let at = code.word(&operands[0])?;
                let two = if *pair { "1" } else { "0" };
                let arguments = [
                    (32, at.as_str()),
                    (64, "0"),
                    (64, "0"),
                    NOTHING,
                    (32, two),
                    NOTHING,
                    NOTHING,
                    NOTHING,
                    (32, &line),
                ];
                self.issue(code, "shift", arguments);
            }
            Tcgen::Commit { multicast, .. } => {
                let barrier = code.word(&operands[0])?;
                let blocks = match multicast {
                    Some(_) => code.word(&operands[1])?,
                    None => "0".to_owned(),
                };
                let arguments = [
                    (32, barrier.as_str()),
                    (64, "0"),
                    (64, "0"),
                    (32, &blocks),
                    NOTHING,
                    NOTHING,
                    NOTHING,
                    NOTHING,
                    (32, &line),
                ];
                self.issue(code, "commit", arguments);
            }
            Tcgen::Mma { ws: true, .. } => {
                return Err("a product with weights that stay has no emulation".to_owned());
            }
            Tcgen::Mma {
                pair,
                kind,
                a,
                scales,
                scale_block,
                disabled,
                scale_input,
                ..
            } => {
                let kind = match kind {
                    TcgenKind::F16 => 0,
                    TcgenKind::Tf32 => 1,
                    TcgenKind::F8f6f4 => 2,
                    TcgenKind::I8 => {
                        return Err("products of integers have no emulation".to_owned());
                    }
                    TcgenKind::Mxf8f6f4 => 3,
                    TcgenKind::Mxf4 => 4,
                    TcgenKind::Mxf4nvf4 => 5,
                };
                let in_tensor = matches!(a, TcgenA::Tensor(_));
                let fixed =
                    kind | u32::from(*pair) << 4 | u32::from(in_tensor) << 5 | scale_block << 8;
                let mut at = 4;
                let d = code.word(&operands[0])?;
                let (a, b) = (code.wide(&operands[1])?, code.wide(&operands[2])?);
                let descriptor = code.word(&operands[3])?;
                let (mut scale_a, mut scale_b) = ("0".to_owned(), "0".to_owned());
                if scales.is_some() {
                    (scale_a, scale_b) = (code.word(&operands[4])?, code.word(&operands[5])?);
                    at = 6;
                }
                if !disabled.is_empty() {
                    self.check_mask(code, &operands[at], &line)?;
                    at += 1;
                }
                let flags = code.word(&operands[at])?;
                code.line(format!("shl.b32 {flags}, {flags}, 6;"));
                code.line(format!("or.b32 {flags}, {flags}, {fixed};"));
                let scale = (2f32.powi(-(*scale_input as i32)).to_bits()).to_string();
                let arguments = [
                    (32, d.as_str()),
                    (64, &a),
                    (64, &b),
                    (32, &descriptor),
                    (32, &flags),
                    (32, &scale_a),
                    (32, &scale_b),
                    (32, &scale),
                    (32, &line),
                ];
                self.issue(code, "mma", arguments);
            }
        }
        Ok(())
    }

    // Lanes that a product leaves alone: none, or the kernel ends.
    fn check_mask(&mut self, code: &mut Code, mask: &Operand, line: &str) -> Result<()> {
        let Operand::Vector(parts) = mask else {
            return Err("a mask of lanes that is not a list".to_owned());
        };
        let all = code.register("b32");
        code.line(format!("mov.b32 {all}, 0;"));
        for part in parts {
            let part = code.word(part)?;
            code.line(format!("or.b32 {all}, {all}, {part};"));
        }
        let (none, message) = (code.register("pred"), code.register("b64"));
        self.labels += 1;
        let label = self.labels;
        code.line(format!("setp.eq.u32 {none}, {all}, 0;"));
        code.line(format!("@{none} bra $emulated_{label};"));
        code.line(format!("mov.b64 {message}, emulated_mask_message;"));
        code.call("fail", &[(64, &message), (32, line)]);
        code.line(format!("$emulated_{label}:"));
        Ok(())
    }

    fn transfer(
        &mut self,
        code: &mut Code,
        shape: TcgenShape,
        address: &Operand,
        registers: &Operand,
        loads: bool,
    ) -> Result<()> {
        self.transfers = true;
        let parts = match registers {
            Operand::Vector(parts) => parts.as_slice(),
            single => std::slice::from_ref(single),
        };
        let address = code.word(address)?;
        let [lane, row, column, x] = ["b32"; 4].map(|ty| code.register(ty));
        let at = code.register("b64");
        code.line(format!("mov.u32 {lane}, %laneid;"));
        code.line(format!("and.b32 {column}, {address}, 0xffff;"));
        // A register's column and row, beyond those of its lane.
        let offset: fn(usize) -> (usize, usize) = match shape {
            TcgenShape::S32x32 => |number| (number, 0),
            TcgenShape::S16x64 => |number| (2 * number, 0),
            TcgenShape::S16x128 => |number| (4 * (number / 2), 8 * (number % 2)),
            TcgenShape::S16x256 => |number| (8 * (number / 4) + number % 2, 8 * (number / 2 % 2)),
            TcgenShape::S16x32Twice { .. } => {
                return Err("transfers of two halves have no emulation".to_owned());
            }
        };
        if shape == TcgenShape::S32x32 {
            code.line(format!("add.u32 {row}, %emulated_lanes, {lane};"));
        } else {
            code.line(format!("shr.u32 {row}, {address}, 16;"));
            code.line(format!("and.b32 {row}, {row}, 16;"));
            code.line(format!("add.u32 {row}, {row}, %emulated_lanes;"));
            code.line(format!("shr.u32 {x}, {lane}, 2;"));
            code.line(format!("add.u32 {row}, {row}, {x};"));
            match shape {
                TcgenShape::S16x64 => {
                    code.line(format!("and.b32 {x}, {lane}, 1;"));
                    code.line(format!("mad.lo.u32 {row}, {x}, 8, {row};"));
                    code.line(format!("bfe.u32 {x}, {lane}, 1, 1;"));
                }
                TcgenShape::S16x128 => code.line(format!("and.b32 {x}, {lane}, 3;")),
                _ => {
                    code.line(format!("and.b32 {x}, {lane}, 3;"));
                    code.line(format!("shl.b32 {x}, {x}, 1;"));
                }
            }
            code.line(format!("add.u32 {column}, {column}, {x};"));
        }
        code.line(format!("mad.lo.u32 {x}, {column}, 128, {row};"));
        code.line(format!("mul.wide.u32 {at}, {x}, 4;"));
        code.line(format!("add.u64 {at}, {at}, %emulated_memory;"));
        for (number, part) in parts.iter().enumerate() {
            let part = code.name(part)?;
            let (columns, rows) = offset(number);
            let bytes = 4 * (128 * columns + rows);
            if loads {
                code.line(format!("ld.relaxed.gpu.global.b32 {part}, [{at}+{bytes}];"));
            } else {
                code.line(format!("st.relaxed.gpu.global.b32 [{at}+{bytes}], {part};"));
            }
        }
        Ok(())
    }

    // A tensor copy: Hopper's own, but for a pair whose mbarrier is in another block than the data.
    fn group_load(
        &mut self,
        code: &mut Code,
        instruction: &Instruction,
        pair: bool,
        multicast: bool,
    ) -> Result<()> {
        let operands = instruction.operands.as_slice();
        let opcode = instruction
            .opcode
            .replace(".cta_group::1", "")
            .replace(".cta_group::2", "");
        let Some(Operand::Address { base, offset, more }) = operands.get(1) else {
            return Err("no tensor map".to_owned());
        };
        let [Operand::Vector(coordinates)] = more.as_slice() else {
            return Err("no coordinates".to_owned());
        };
        let coordinates = coordinates
            .iter()
            .map(|part| code.name(part))
            .collect::<Result<Vec<_>>>()?;
        let map = code.register("b64");
        code.line(format!("add.s64 {map}, {}, {offset};", code.name(base)?));
        let mut list = vec![
            code.name(&operands[0])?,
            format!("[{map}, {{{}}}]", coordinates.join(", ")),
        ];
        for operand in &operands[2..] {
            list.push(code.name(operand)?);
        }
        let native = format!("{opcode} {};", list.join(", "));
        if !pair {
            code.line(native);
            return Ok(());
        }
        let (to, barrier) = (code.word(&operands[0])?, code.word(&operands[2])?);
        let blocks = if multicast {
            code.word(&operands[3])?
        } else {
            "0".to_owned()
        };
        let (rank, line) = (coordinates.len().to_string(), instruction.line.to_string());
        let mut arguments = vec![(32, to.as_str()), (64, &map), (32, &barrier), (32, &rank)];
        arguments.extend((0..5).map(|at| (32, coordinates.get(at).map_or("0", String::as_str))));
        arguments.extend([(32, blocks.as_str()), (32, line.as_str())]);
        if multicast {
            code.call("tensor_load", &arguments);
            return Ok(());
        }
        self.labels += 1;
        let (apart, x, label) = (code.register("pred"), code.register("b32"), self.labels);
        code.line(format!("xor.b32 {x}, {to}, {barrier};"));
        code.line(format!("shr.u32 {x}, {x}, 24;"));
        code.line(format!("setp.ne.u32 {apart}, {x}, 0;"));
        code.line(format!("@{apart} bra $emulated_apart{label};"));
        code.line(native);
        code.line(format!("bra $emulated_end{label};"));
        code.line(format!("$emulated_apart{label}:"));
        code.call("tensor_load", &arguments);
        code.line(format!("$emulated_end{label}:"));
        Ok(())
    }
}
