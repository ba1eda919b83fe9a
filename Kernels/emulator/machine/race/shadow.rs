//! Who touched each byte of a memory last: many bytes together, until somebody touches fewer.

use crate::op::Scope;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    Generic,
    Async,
}

/// A touch of memory: by whom, when in their own count, where in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub cluster: u32,
    pub agent: u32,
    pub lanes: u32,
    pub epoch: u32,
    pub pc: u32,
    pub proxy: Proxy,
    /// Of global memory, not of shared or tensor memory.
    pub global: bool,
    /// Accesses that are strong in each other's scope may meet.
    pub scope: Scope,
    pub writes: bool,
    /// A thread's store or `cp.async`, which others see by an order of memory alone.
    pub stored: bool,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    write: Option<Access>,
    /// Since the write; a lane stands in one of them only. The last few of other clusters.
    reads: Vec<Access>,
    /// Where the parts are, if it was taken apart.
    parts: Option<u32>,
}

impl Cell {
    /// Returns the earlier access that is not ordered before this one.
    fn touch(&mut self, access: Access, ordered: &impl Fn(&Access) -> bool) -> Result<(), Access> {
        if let Some(write) = self.write.filter(|write| !ordered(write)) {
            return Err(write);
        }
        if access.writes {
            if let Some(read) = self.reads.iter().find(|read| !ordered(read)) {
                return Err(*read);
            }
            self.reads.clear();
            self.write = Some(access);
            return Ok(());
        }
        let mut known = false;
        self.reads.retain_mut(|read| {
            let same = (read.cluster, read.agent, read.scope)
                == (access.cluster, access.agent, access.scope);
            if !same {
                return true;
            }
            if read.epoch == access.epoch {
                read.lanes |= access.lanes;
                known = true;
                return true;
            }
            read.lanes &= !access.lanes;
            read.lanes != 0
        });
        if !known {
            let foreign = |read: &Access| read.cluster != access.cluster;
            if self.reads.iter().filter(|read| foreign(read)).count() > FOREIGN_READS {
                if let Some(oldest) = self.reads.iter().position(foreign) {
                    self.reads.remove(oldest);
                }
            }
            self.reads.push(access);
        }
        Ok(())
    }
}

/// Reads of other clusters that a cell remembers.
const FOREIGN_READS: usize = 4;

/// Bytes of a cell on each level: shared memory, tensor memory in columns of 128 lanes, and global memory.
pub const SHARED: &[u32] = &[16, 4, 1];
pub const TENSOR: &[u32] = &[512, 128, 4];
pub const GLOBAL: &[u32] = &[128, 16, 4, 1];

#[derive(Debug)]
pub struct Shadow {
    sizes: &'static [u32],
    levels: Vec<Vec<Cell>>,
}

/// Where two accesses meet.
#[derive(Debug)]
pub struct Conflict {
    pub offset: u32,
    pub earlier: Access,
}

impl Shadow {
    pub fn new(sizes: &'static [u32], bytes: usize) -> Self {
        let mut levels = vec![Vec::new(); sizes.len()];
        levels[0] = vec![Cell::default(); bytes.div_ceil(sizes[0] as usize)];
        Self { sizes, levels }
    }

    pub fn touch(
        &mut self,
        (start, end): (u32, u32),
        access: Access,
        ordered: &impl Fn(&Access) -> bool,
    ) -> Result<(), Box<Conflict>> {
        let size = self.sizes[0];
        // What lies outside is refused where it is accessed.
        for at in start / size..end.div_ceil(size).min(self.levels[0].len() as u32) {
            self.touch_cell(0, at, at * size, (start, end), access, ordered)?;
        }
        Ok(())
    }

    /// Whoever comes next to a cell of the first level is the first one there.
    pub fn forget(&mut self, offset: u32) {
        self.levels[0][(offset / self.sizes[0]) as usize] = Cell::default();
    }

    /// Cells of the first level that anything was done to, and whether any of it was a write.
    pub fn touched(&self) -> impl Iterator<Item = (usize, bool)> + '_ {
        let cells = self.levels[0].iter().enumerate();
        cells.filter_map(|(at, cell)| Some((at, self.writes(0, cell)?)))
    }

    fn writes(&self, level: usize, cell: &Cell) -> Option<bool> {
        let own = match cell.write {
            Some(_) => Some(true),
            None => cell.reads.first().map(|_| false),
        };
        let Some(first) = cell.parts else { return own };
        let count = self.sizes[level] / self.sizes[level + 1];
        let parts = &self.levels[level + 1][first as usize..(first + count) as usize];
        let below = parts.iter().filter_map(|part| self.writes(level + 1, part));
        below.chain(own).reduce(|a, b| a || b)
    }

    fn touch_cell(
        &mut self,
        level: usize,
        at: u32,
        offset: u32,
        (start, end): (u32, u32),
        access: Access,
        ordered: &impl Fn(&Access) -> bool,
    ) -> Result<(), Box<Conflict>> {
        let size = self.sizes[level];
        let cell = &mut self.levels[level][at as usize];
        if cell.parts.is_none() && start <= offset && offset + size <= end {
            return cell
                .touch(access, ordered)
                .map_err(|earlier| Box::new(Conflict { offset, earlier }));
        }
        let first = match cell.parts {
            Some(first) => first,
            None => {
                let parts = vec![cell.clone(); (size / self.sizes[level + 1]) as usize];
                let first = self.levels[level + 1].len() as u32;
                self.levels[level][at as usize].parts = Some(first);
                self.levels[level + 1].extend(parts);
                first
            }
        };
        let (count, size) = (size / self.sizes[level + 1], self.sizes[level + 1]);
        for part in 0..count {
            let offset = offset + part * size;
            if offset < end && start < offset + size {
                self.touch_cell(
                    level + 1,
                    first + part,
                    offset,
                    (start, end),
                    access,
                    ordered,
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(agent: u32, writes: bool) -> Access {
        Access {
            cluster: 0,
            agent,
            lanes: 1,
            epoch: 1,
            pc: 0,
            proxy: Proxy::Generic,
            global: false,
            scope: Scope::Weak,
            writes,
            stored: writes,
        }
    }

    #[test]
    fn what_reaches_past_the_end_is_watched_up_to_it() {
        let mut shadow = Shadow::new(SHARED, 64);
        let never = |_: &Access| false;
        shadow
            .touch((48, 200), access(1, false), &never)
            .and_then(|()| shadow.touch((128, 144), access(1, false), &never))
            .unwrap();
        let conflict = shadow.touch((63, 64), access(2, true), &never).unwrap_err();
        assert_eq!((conflict.offset, conflict.earlier.agent), (63, 1));
    }

    #[test]
    fn bytes_beside_each_other_do_not_meet() {
        let mut shadow = Shadow::new(SHARED, 64);
        let never = |_: &Access| false;
        for byte in 0..32 {
            shadow
                .touch((byte, byte + 1), access(byte, true), &never)
                .unwrap();
        }
        let conflict = shadow
            .touch((16, 48), access(99, false), &never)
            .unwrap_err();
        assert_eq!((conflict.offset, conflict.earlier.agent), (16, 16));
        shadow
            .touch((32, 64), access(1, false), &never)
            .expect("nobody was there");
        let conflict = shadow.touch((60, 62), access(2, true), &never).unwrap_err();
        assert_eq!((conflict.offset, conflict.earlier.writes), (60, false));
        shadow
            .touch((32, 48), access(3, true), &|earlier| earlier.agent == 1)
            .expect("ordered after the read");
    }
}
