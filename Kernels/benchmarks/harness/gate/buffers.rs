//! One set of buffers: all tensors of a problem in one allocation, fenced with canaries.
//!
//! ```text
//! guard | tensor 0 | guard | tensor 1 | guard | ...
//! ```

use std::collections::HashMap;

use contender::Buffer;
use device::{Device, DeviceError, Memory};
use tensor::{Role, TensorSpec};

use crate::Failure;

/// Neither NaN nor a likely value in any type, and not the poison.
const CANARY: u8 = 0xA5;
/// Each guard is at least this long; a stray write further away than this goes unseen.
const GUARD_BYTES: usize = 16 << 10;
const ALIGNMENT_BYTES: usize = 256;

/// The tensors of one problem in device memory.
pub struct BufferSet<'a> {
    device: &'a dyn Device,
    specs: &'a [TensorSpec],
    buffers: Vec<Buffer>,
    /// `guards[i]` ends where tensor `i` begins; the last one follows the last tensor.
    guards: Vec<Buffer>,
    seed: u64,
    /// Of the inputs by seed, each taken when they were made first.
    checksums: HashMap<u64, Vec<Option<u64>>>,
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
        let mut set = Self {
            device,
            specs,
            buffers,
            guards,
            seed,
            checksums: HashMap::new(),
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
        self.seed
    }

    /// Makes the set new: canaries, inputs of `seed`, poison in the outputs.
    pub fn load(&mut self, seed: u64) -> Result<(), DeviceError> {
        self.seed = seed;
        for guard in &self.guards {
            self.device.set_bytes(guard.address, guard.bytes, CANARY)?;
        }
        for (tensor, spec) in self.specs.iter().enumerate() {
            let buffer = self.buffers[tensor];
            if spec.role.is_read() {
                self.device
                    .fill(buffer.address, spec, tensor as u32, seed)?;
            }
        }
        if !self.checksums.contains_key(&seed) {
            let sums = self.checksums_now()?;
            self.checksums.insert(seed, sums);
        }
        self.poison()
    }

    /// Undoes a run: what it updated in place holds the inputs again.
    pub fn restore(&self) -> Result<(), DeviceError> {
        for (tensor, spec) in self.specs.iter().enumerate() {
            if spec.role == Role::InOut {
                self.device
                    .fill(self.buffers[tensor].address, spec, tensor as u32, self.seed)?;
            }
        }
        Ok(())
    }

    /// Makes every output element a value that no right answer has.
    pub fn poison(&self) -> Result<(), DeviceError> {
        for (spec, buffer) in self.specs.iter().zip(&self.buffers) {
            if spec.role == Role::Output {
                self.device
                    .set_bytes(buffer.address, buffer.bytes, poison_byte(spec))?;
            }
        }
        Ok(())
    }

    /// Fails where a canary or an input is not as it was.
    pub fn check_untouched(&self) -> Result<(), Failure> {
        for (index, guard) in self.guards.iter().enumerate() {
            if let Some(at) = self
                .device
                .first_byte_not(guard.address, guard.bytes, CANARY)?
            {
                return Err(self.stray_write(index, at));
            }
        }
        let expected = &self.checksums[&self.seed];
        let found = self.checksums_now()?;
        for ((expected, found), spec) in expected.iter().zip(found).zip(self.specs) {
            if *expected != found {
                return Err(Failure::InputChanged { tensor: spec.name });
            }
        }
        Ok(())
    }

    /// Of every tensor that is an input and nothing else.
    fn checksums_now(&self) -> Result<Vec<Option<u64>>, DeviceError> {
        let tensors = self.specs.iter().zip(&self.buffers);
        tensors
            .map(|(spec, buffer)| match spec.role {
                Role::Input => Ok(Some(self.device.checksum(buffer.address, buffer.bytes)?)),
                _ => Ok(None),
            })
            .collect()
    }

    /// Names the tensor whose edge is nearest to the stray write.
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

/// 0xFF is NaN in every float type; an integer gets a value that is no count, index or flag.
pub(crate) fn poison_byte(spec: &TensorSpec) -> u8 {
    if spec.dtype.is_float() {
        0xFF
    } else {
        0xA5
    }
}
