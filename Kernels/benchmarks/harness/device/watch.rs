//! Whether a contender on the CPU goes on writing after it has said that it is done: a thread of its own may have some
//! microseconds, until its process is stopped or its output is looked at.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use contender::Buffer;

/// Lines that are looked at after every call.
const LINES: usize = 16;
const LINE_BYTES: usize = 64;

type Line = [u64; LINE_BYTES / 8];

/// Some lines of the outputs, others every time.
pub struct Watch {
    outputs: Vec<Buffer>,
    random: RandomState,
    calls: u64,
    seen: Vec<(usize, Line)>,
}

impl Watch {
    /// Outputs of whole lines; smaller ones are not watched.
    pub fn new(mut outputs: Vec<Buffer>) -> Self {
        outputs.retain(|output| output.bytes >= LINE_BYTES);
        Self {
            outputs,
            random: RandomState::new(),
            calls: 0,
            seen: Vec::new(),
        }
    }

    /// Call it the moment that the work is said to be done.
    pub fn look(&mut self) {
        self.seen.clear();
        self.calls += 1;
        if self.outputs.is_empty() {
            return;
        }
        for line in 0..LINES {
            let drawn = self.random.hash_one((self.calls, line)) as usize;
            let output = self.outputs[drawn % self.outputs.len()];
            let lines = output.bytes / LINE_BYTES;
            let address = output.address + drawn / self.outputs.len() % lines * LINE_BYTES;
            self.seen.push((address, read(address)));
        }
    }

    /// Call it once nobody can write any more: whether anything has changed since.
    pub fn has_changed(&self) -> bool {
        self.seen
            .iter()
            .any(|(address, line)| read(*address) != *line)
    }
}

fn read(address: usize) -> Line {
    let mut line = Line::default();
    for (index, word) in line.iter_mut().enumerate() {
        // SAFETY: a word of a live tensor, which begins at a multiple of 256. Another process may write to it, so that
        // the compiler must not assume anything.
        *word = unsafe { std::ptr::read_volatile((address + 8 * index) as *const u64) };
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_later_is_seen_and_short_outputs_are_left_alone() {
        let mut memory = vec![0u64; 8 * LINES];
        let address = memory.as_mut_ptr() as usize;
        let output = |bytes| Buffer { address, bytes };
        let mut watch = Watch::new(vec![output(64), output(8)]);
        watch.look();
        assert!(!watch.has_changed());
        memory[3] = 1;
        assert!(watch.has_changed());
        let mut none = Watch::new(vec![output(63)]);
        none.look();
        memory[3] = 2;
        assert!(!none.has_changed());
    }
}
