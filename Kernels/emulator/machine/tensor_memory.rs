//! Tensor memory of a block: 512 columns of 128 lanes of 32 bits, given out in columns.

pub const COLUMNS: u32 = 512;
pub const ROWS: u32 = 128;
/// What is read where nobody wrote: not a number as a single.
const POISON: u32 = 0x7fc0_dead;

#[derive(Debug)]
pub struct TensorMemory {
    words: Vec<u32>,
    /// First column and number of columns of each allocation.
    held: Vec<(u32, u32)>,
    relinquished: bool,
}

impl TensorMemory {
    pub fn new() -> Self {
        Self {
            words: vec![POISON; (COLUMNS * ROWS) as usize],
            held: Vec::new(),
            relinquished: false,
        }
    }

    pub fn columns_held(&self) -> u32 {
        self.held.iter().map(|(_, count)| count).sum()
    }

    /// The first column; none as long as others hold too many.
    pub fn allocate(&mut self, columns: u32) -> Result<Option<u32>, String> {
        if self.relinquished {
            return Err("tensor memory is asked for after relinquish_alloc_permit".to_owned());
        }
        if !columns.is_power_of_two() || !(32..=COLUMNS).contains(&columns) {
            return Err(format!(
                "{columns} columns of tensor memory: not a power of two from 32 to 512"
            ));
        }
        let free = |first: u32| {
            self.held
                .iter()
                .all(|(start, count)| first + columns <= *start || start + count <= first)
        };
        let Some(first) = (0..=COLUMNS - columns)
            .step_by(32)
            .find(|first| free(*first))
        else {
            return Ok(None);
        };
        self.held.push((first, columns));
        for lane in self.words.chunks_exact_mut(COLUMNS as usize) {
            lane[first as usize..(first + columns) as usize].fill(POISON);
        }
        Ok(Some(first))
    }

    pub fn free(&mut self, base: u32, columns: u32) -> Result<(), String> {
        match self.held.iter().position(|held| *held == (base & 0xffff, columns)) {
            Some(at) => {
                self.held.swap_remove(at);
                Ok(())
            }
            None => Err(format!("{columns} columns of tensor memory at {base:#x} are freed and were not allocated so")),
        }
    }

    pub fn relinquish(&mut self) {
        self.relinquished = true;
    }

    fn index(&self, lane: u32, column: u32) -> Result<usize, String> {
        let held = |(start, count): &(u32, u32)| (*start..start + count).contains(&column);
        if lane >= ROWS || !self.held.iter().any(held) {
            return Err(format!(
                "tensor memory at lane {lane}, column {column} is not allocated"
            ));
        }
        Ok((lane * COLUMNS + column) as usize)
    }

    /// Columns of one lane, of which all must be held.
    pub fn columns(&mut self, lane: u32, first: u32, count: u32) -> Result<&mut [u32], String> {
        let within = |(start, held): &(u32, u32)| *start <= first && first + count <= start + held;
        if !self.held.iter().any(within) {
            for column in first..first + count {
                self.index(lane, column)?;
            }
        }
        let start = self.index(lane, first)?;
        Ok(&mut self.words[start..start + count as usize])
    }

    /// Whether columns belong to one allocation.
    pub fn holds(&self, first: u32, count: u32) -> bool {
        let mut held = self.held.iter();
        held.any(|(start, size)| *start <= first && first + count <= start + size)
    }

    pub fn read(&self, lane: u32, column: u32) -> Result<u32, String> {
        Ok(self.words[self.index(lane, column)?])
    }

    pub fn write(&mut self, lane: u32, column: u32, value: u32) -> Result<(), String> {
        let at = self.index(lane, column)?;
        self.words[at] = value;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_given_out_once() {
        let mut memory = TensorMemory::new();
        let first = memory.allocate(256).unwrap().unwrap();
        let second = memory.allocate(128).unwrap().unwrap();
        assert_ne!(first, second);
        assert_eq!(memory.allocate(256), Ok(None));
        assert!(memory.allocate(48).is_err());
        assert!(memory.free(second, 64).is_err());
        memory.free(first, 256).unwrap();
        assert!(memory.read(0, first).is_err());
        memory.write(127, second + 127, 7).unwrap();
        assert_eq!(memory.read(127, second + 127).unwrap(), 7);
        memory.relinquish();
        assert!(memory.allocate(32).is_err());
        assert_eq!(memory.columns_held(), 128);
    }
}
