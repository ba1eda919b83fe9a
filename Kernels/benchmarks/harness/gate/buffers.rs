//! One set of buffers: all tensors of a problem in one allocation, with canaries in guard bands.
//!
//! ```text
//! guard | tensor 0 | guard | tensor 1 | guard | ...
//! ```

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use contender::{Buffer, Family};
use device::{Device, DeviceError, Memory};
use numeric::DType;
use tensor::{Fill, Role, TensorSpec};

use crate::Failure;

/// NaN in every float type: what is read from a guard shows in the results. A contender that writes
/// NaN there changes the bytes all the same, because the NaN of arithmetic has other bits.
const CANARY: u8 = 0xFF;
/// Minimum length of a guard; an out-of-bounds write beyond it goes unseen.
const GUARD_BYTES: usize = 16 << 10;
pub(crate) const ALIGNMENT_BYTES: usize = 256;

/// What outputs hold before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poison {
    /// NaN in every float type; in integers a value that is not a count, index or flag.
    NotANumber,
    /// Plausible numbers of this seed: nothing tells a contender that they are not an answer.
    Garbage(u64),
}

/// The tensors of one problem in device memory.
pub struct BufferSet<'a> {
    device: &'a dyn Device,
    specs: &'a [TensorSpec],
    /// The same tensors as they are filled with garbage.
    garbage: Vec<TensorSpec>,
    buffers: Vec<Buffer>,
    /// `guards[i]` ends where tensor `i` begins; the last one follows the last tensor.
    guards: Vec<Buffer>,
    seed: Cell<u64>,
    poison: Cell<Poison>,
    /// The seed whose inputs, of the kind that has it, are known to be whole, until somebody runs.
    whole: Cell<Option<u64>>,
    /// Checksums of the inputs by seed, taken when they were first generated.
    checksums: RefCell<HashMap<u64, Vec<u64>>>,
    _memory: Memory,
}

impl<'a> BufferSet<'a> {
    /// Bytes that one set takes on the device.
    pub fn footprint_bytes(specs: &[TensorSpec]) -> usize {
        specs
            .iter()
            .map(|spec| spec.bytes().next_multiple_of(ALIGNMENT_BYTES) + GUARD_BYTES)
            .sum::<usize>()
            + GUARD_BYTES
    }

    /// Allocates a set and loads it with the inputs of `seed`.
    pub fn new(
        device: &'a dyn Device,
        specs: &'a [TensorSpec],
        seed: u64,
    ) -> Result<Self, DeviceError> {
        let memory = device.allocate(Self::footprint_bytes(specs))?;
        let (mut buffers, mut guards) = (Vec::new(), Vec::new());
        let (mut guard_start, mut next) = (memory.address(), memory.address() + GUARD_BYTES);
        for spec in specs {
            guards.push(Buffer {
                address: guard_start,
                bytes: next - guard_start,
            });
            buffers.push(Buffer {
                address: next,
                bytes: spec.bytes(),
            });
            // The guard starts at the byte after the tensor, not at the next aligned one.
            guard_start = next + spec.bytes();
            next += spec.bytes().next_multiple_of(ALIGNMENT_BYTES) + GUARD_BYTES;
        }
        guards.push(Buffer {
            address: guard_start,
            bytes: next - guard_start,
        });
        let set = Self {
            device,
            specs,
            garbage: specs.iter().map(garbage).collect(),
            buffers,
            guards,
            seed: Cell::new(seed),
            poison: Cell::new(Poison::NotANumber),
            whole: Cell::new(None),
            checksums: RefCell::default(),
            _memory: memory,
        };
        set.load(seed)?;
        Ok(set)
    }

    pub fn device(&self) -> &'a dyn Device {
        self.device
    }

    pub fn specs(&self) -> &'a [TensorSpec] {
        self.specs
    }

    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The seed whose inputs the set holds.
    pub fn seed(&self) -> u64 {
        self.seed.get()
    }

    /// Resets the set: canaries, inputs of `seed`, outputs full of NaN.
    pub fn load(&self, seed: u64) -> Result<(), DeviceError> {
        self.load_as(self.specs, seed)?;
        self.poison(Poison::NotANumber)
    }

    fn load_as(&self, specs: &[TensorSpec], seed: u64) -> Result<(), DeviceError> {
        for guard in &self.guards {
            self.device.set_bytes(guard.address, guard.bytes, CANARY)?;
        }
        self.fill(specs, seed)
    }

    /// Before a run on the inputs of `seed`, of another kind if there is a family: no other kind has inputs of the same
    /// seed. What the run before has left whole is not written again.
    pub(crate) fn prepare(
        &self,
        family: Option<&Family>,
        seed: u64,
        poison: Poison,
    ) -> Result<(), DeviceError> {
        let in_place = self.specs.iter().any(|spec| spec.role == Role::InOut);
        if in_place || self.whole.take() != Some(seed) {
            self.load_as(family.map_or(self.specs, |family| &family.tensors), seed)?;
        }
        self.poison(poison)
    }

    /// Replaces the inputs by those of `seed`.
    pub fn refill(&self, seed: u64) -> Result<(), DeviceError> {
        self.fill(self.specs, seed)
    }

    fn fill(&self, specs: &[TensorSpec], seed: u64) -> Result<(), DeviceError> {
        self.seed.set(seed);
        self.whole.set(None);
        for (tensor, spec) in specs.iter().enumerate() {
            let buffer = self.buffers[tensor];
            if spec.role.is_read() {
                self.device
                    .fill(buffer.address, spec, tensor as u32, seed)?;
            }
        }
        if !self.checksums.borrow().contains_key(&seed) {
            let sums = self.checksums_now()?;
            self.checksums.borrow_mut().insert(seed, sums);
        }
        // Binding may read them, on any stream.
        self.device.synchronize()
    }

    /// What the inputs are, to be delivered later; the set then holds those of `other`.
    pub fn withhold(&self, other: u64) -> Result<Vec<(Buffer, Vec<u8>)>, DeviceError> {
        let tensors = self.specs.iter().zip(&self.buffers).enumerate();
        let read = tensors.filter(|(_, (spec, _))| spec.role.is_read());
        let inputs = read.map(|(tensor, (spec, buffer))| {
            let mut bytes = vec![0; buffer.bytes];
            self.device.read(buffer.address, &mut bytes)?;
            self.device
                .fill(buffer.address, spec, tensor as u32, other)?;
            Ok((*buffer, bytes))
        });
        inputs.collect()
    }

    /// Undoes a run: restores the inputs that it updated in place.
    pub fn restore(&self) -> Result<(), DeviceError> {
        self.whole.set(None);
        for (tensor, spec) in self.specs.iter().enumerate() {
            if spec.role == Role::InOut {
                self.device.fill(
                    self.buffers[tensor].address,
                    spec,
                    tensor as u32,
                    self.seed(),
                )?;
            }
        }
        Ok(())
    }

    /// Overwrites every output, so that nothing is left of an earlier answer.
    pub fn poison(&self, poison: Poison) -> Result<(), DeviceError> {
        self.poison.set(poison);
        for (tensor, (spec, buffer)) in self.specs.iter().zip(&self.buffers).enumerate() {
            match poison {
                _ if spec.role != Role::Output => {}
                Poison::NotANumber => {
                    let byte = poison_byte(spec);
                    self.device.set_bytes(buffer.address, buffer.bytes, byte)?;
                }
                Poison::Garbage(seed) => {
                    let garbage = &self.garbage[tensor];
                    self.device
                        .fill(buffer.address, garbage, tensor as u32, seed)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn last_poison(&self) -> Poison {
        self.poison.get()
    }

    /// How many elements of a range still hold what they were poisoned with.
    pub(crate) fn poisoned(
        &self,
        tensor: usize,
        start: usize,
        elements: usize,
    ) -> Result<u64, DeviceError> {
        let spec = &self.specs[tensor];
        if spec.role != Role::Output {
            return Ok(0);
        }
        let size = spec.dtype.size_bytes();
        let mut found = vec![0; elements * size];
        let mut poison = vec![poison_byte(spec); elements * size];
        self.device
            .read(self.buffers[tensor].address + start * size, &mut found)?;
        if let Poison::Garbage(seed) = self.poison.get() {
            let garbage = &self.garbage[tensor];
            tensor::fill_into(garbage, tensor as u32, seed, start, &mut poison);
        }
        let pairs = found.chunks_exact(size).zip(poison.chunks_exact(size));
        Ok(pairs.filter(|(found, poison)| found == poison).count() as u64)
    }

    /// Fails if a canary or an input has changed.
    pub fn check_untouched(&self) -> Result<(), Failure> {
        let firsts = self.device.first_bytes_not(&self.guards, CANARY)?;
        if let Some((guard, at)) = firsts
            .into_iter()
            .enumerate()
            .find_map(|(guard, first)| Some((guard, first?)))
        {
            return Err(self.stray_write(guard, at));
        }
        let checksums = self.checksums.borrow();
        let expected = &checksums[&self.seed()];
        let found = self.checksums_now()?;
        for ((spec, _), (expected, found)) in self.inputs().zip(expected.iter().zip(found)) {
            if *expected != found {
                return Err(Failure::InputChanged { tensor: spec.name });
            }
        }
        self.whole.set(Some(self.seed()));
        Ok(())
    }

    /// The read-only tensors.
    fn inputs(&self) -> impl Iterator<Item = (&'a TensorSpec, Buffer)> + '_ {
        let tensors = self.specs.iter().zip(self.buffers.iter().copied());
        tensors.filter(|(spec, _)| spec.role == Role::Input)
    }

    /// Checksums of the read-only tensors.
    fn checksums_now(&self) -> Result<Vec<u64>, DeviceError> {
        let buffers: Vec<Buffer> = self.inputs().map(|(_, buffer)| buffer).collect();
        self.device.checksums(&buffers)
    }

    /// Names the tensor whose edge is closest to the out-of-bounds write.
    fn stray_write(&self, guard: usize, at: usize) -> Failure {
        let before_next = self.guards[guard].bytes - at;
        let belongs_to_previous = guard == self.specs.len() || (guard > 0 && at < before_next);
        if belongs_to_previous {
            Failure::OutOfBounds {
                tensor: self.specs[guard - 1].name,
                bytes: at + 1,
                side: "after",
            }
        } else {
            Failure::OutOfBounds {
                tensor: self.specs[guard].name,
                bytes: before_next,
                side: "before",
            }
        }
    }
}

/// An output as it is filled with plausible numbers.
fn garbage(spec: &TensorSpec) -> TensorSpec {
    let fill = match spec.dtype {
        DType::I32 | DType::I64 => Fill::Index { below: 1 << 16 },
        DType::Nvfp4 | DType::Mxfp4 => Fill::Index { below: 1 << 8 },
        // Has no sign.
        DType::F8E8M0 => Fill::Uniform {
            low: 0.25,
            high: 1.0,
        },
        _ => Fill::Uniform {
            low: -1.0,
            high: 1.0,
        },
    };
    spec.clone().filled(fill)
}

/// 0xFF is NaN in every float type; integers and codes get a value that is not a count, index or flag.
pub(crate) fn poison_byte(spec: &TensorSpec) -> u8 {
    if spec.dtype.is_float() {
        0xFF
    } else {
        0xA5
    }
}
