//! One set of buffers: all tensors of a problem in one allocation, with canaries in guard bands.
//!
//! ```text
//! guard | tensor 0 | guard | tensor 1 | guard | ...
//! ```

use std::collections::HashMap;

use contender::Buffer;
use device::{Device, DeviceError, Memory};
use tensor::{Role, TensorSpec};

use crate::Failure;

/// Neither NaN nor a likely value in any type, and different from the poison.
const CANARY: u8 = 0xA5;
/// Minimum length of a guard; an out-of-bounds write beyond it goes unseen.
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
    /// Checksums of the inputs by seed, taken when they were first generated.
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

    /// Resets the set: canaries, inputs of `seed`, poisoned outputs.
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

    /// Undoes a run: restores the inputs that it updated in place.
    pub fn restore(&self) -> Result<(), DeviceError> {
        for (tensor, spec) in self.specs.iter().enumerate() {
            if spec.role == Role::InOut {
                self.device
                    .fill(self.buffers[tensor].address, spec, tensor as u32, self.seed)?;
            }
        }
        Ok(())
    }

    /// Sets every output element to a value that no correct answer has.
    pub fn poison(&self) -> Result<(), DeviceError> {
        for (spec, buffer) in self.specs.iter().zip(&self.buffers) {
            if spec.role == Role::Output {
                self.device
                    .set_bytes(buffer.address, buffer.bytes, poison_byte(spec))?;
            }
        }
        Ok(())
    }

    /// Fails if a canary or an input has changed.
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

    /// Checksums of the read-only tensors.
    fn checksums_now(&self) -> Result<Vec<Option<u64>>, DeviceError> {
        let tensors = self.specs.iter().zip(&self.buffers);
        tensors
            .map(|(spec, buffer)| match spec.role {
                Role::Input => Ok(Some(self.device.checksum(buffer.address, buffer.bytes)?)),
                _ => Ok(None),
            })
            .collect()
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

/// 0xFF is NaN in every float type; integers get a value that is not a count, index or flag.
pub(crate) fn poison_byte(spec: &TensorSpec) -> u8 {
    if spec.dtype.is_float() {
        0xFF
    } else {
        0xA5
    }
}
