//! Names inside a function: blocks may declare registers and labels of their own.

use std::collections::HashMap;

use crate::Symbol;

#[derive(Clone, Copy)]
pub enum Name {
    Register(u32),
    Symbol(Symbol),
    Table(u32),
}

#[derive(Default)]
struct Block<'a> {
    outer: Option<usize>,
    names: HashMap<&'a str, Name>,
    labels: HashMap<&'a str, usize>,
    /// `%r<100>`: a prefix, the first register, how many.
    ranges: Vec<(&'a str, u32, u32)>,
}

/// All blocks of a function; those that are closed keep their labels for references forward.
pub struct Scopes<'a> {
    blocks: Vec<Block<'a>>,
    pub current: usize,
}

impl<'a> Scopes<'a> {
    pub fn new() -> Self {
        Self {
            blocks: vec![Block::default()],
            current: 0,
        }
    }

    pub fn open(&mut self) {
        self.blocks.push(Block {
            outer: Some(self.current),
            ..Block::default()
        });
        self.current = self.blocks.len() - 1;
    }

    /// False where no block is open but the function's own.
    pub fn close(&mut self) -> bool {
        let outer = self.blocks[self.current].outer;
        self.current = outer.unwrap_or(self.current);
        outer.is_some()
    }

    /// False where the block has the name already.
    pub fn declare(&mut self, name: &'a str, what: Name) -> bool {
        self.blocks[self.current].names.insert(name, what).is_none()
    }

    pub fn declare_range(&mut self, prefix: &'a str, first: u32, count: u32) {
        self.blocks[self.current]
            .ranges
            .push((prefix, first, count));
    }

    /// False where the block has the label already.
    pub fn label(&mut self, name: &'a str, at: usize) -> bool {
        self.blocks[self.current].labels.insert(name, at).is_none()
    }

    fn outwards(&self, from: usize) -> impl Iterator<Item = &Block<'a>> {
        std::iter::successors(Some(&self.blocks[from]), |block| {
            block.outer.map(|at| &self.blocks[at])
        })
    }

    pub fn find(&self, name: &str) -> Option<Name> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: Option<u32> = name[prefix.len()..].parse().ok();
        self.outwards(self.current).find_map(|block| {
            block.names.get(name).copied().or_else(|| {
                let number = number?;
                // The latest declaration first: a prefix may itself end in digits.
                block.ranges.iter().rev().find_map(|(word, first, count)| {
                    (*word == prefix && number < *count).then(|| Name::Register(first + number))
                })
            })
        })
    }

    pub fn find_label(&self, from: usize, name: &str) -> Option<usize> {
        self.outwards(from)
            .find_map(|block| block.labels.get(name).copied())
    }
}
