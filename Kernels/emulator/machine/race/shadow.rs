//! Who touched each byte of shared memory last: 16 bytes together, until somebody touches fewer.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    Generic,
    Async,
}

/// A touch of shared memory: by whom, when in their own count, where in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub agent: u32,
    pub lanes: u32,
    pub epoch: u32,
    pub pc: u32,
    pub proxy: Proxy,
    /// Atomic, or of an order stronger than weak: such accesses may meet.
    pub strong: bool,
    pub writes: bool,
    /// A thread's store or `cp.async`, which others see by an order of memory alone.
    pub stored: bool,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    write: Option<Access>,
    /// Since the write; a lane stands in one of them only.
    reads: Vec<Access>,
    /// Where the four parts are, if it was taken apart.
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
            if read.agent != access.agent || read.strong != access.strong {
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
            self.reads.push(access);
        }
        Ok(())
    }

    fn taken_apart(&self) -> [Self; 4] {
        std::array::from_fn(|_| self.clone())
    }
}

/// Bytes of a cell on each level; a cell has four parts on the next.
const SIZES: [u32; 3] = [16, 4, 1];

#[derive(Debug)]
pub struct Shadow {
    levels: [Vec<Cell>; 3],
}

/// Where two accesses meet.
#[derive(Debug)]
pub struct Conflict {
    pub offset: u32,
    pub earlier: Access,
}

impl Shadow {
    pub fn new(bytes: usize) -> Self {
        Self {
            levels: [
                vec![Cell::default(); bytes.div_ceil(SIZES[0] as usize)],
                Vec::new(),
                Vec::new(),
            ],
        }
    }

    pub fn touch(
        &mut self,
        (start, end): (u32, u32),
        access: Access,
        ordered: &impl Fn(&Access) -> bool,
    ) -> Result<(), Box<Conflict>> {
        for at in start / SIZES[0]..end.div_ceil(SIZES[0]) {
            self.touch_cell(0, at, at * SIZES[0], (start, end), access, ordered)?;
        }
        Ok(())
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
        let size = SIZES[level];
        let cell = &mut self.levels[level][at as usize];
        if cell.parts.is_none() && start <= offset && offset + size <= end {
            return cell
                .touch(access, ordered)
                .map_err(|earlier| Box::new(Conflict { offset, earlier }));
        }
        let first = match cell.parts {
            Some(first) => first,
            None => {
                let parts = cell.taken_apart();
                let first = self.levels[level + 1].len() as u32;
                self.levels[level][at as usize].parts = Some(first);
                self.levels[level + 1].extend(parts);
                first
            }
        };
        let size = SIZES[level + 1];
        for part in 0..4 {
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
            agent,
            lanes: 1,
            epoch: 1,
            pc: 0,
            proxy: Proxy::Generic,
            strong: false,
            writes,
            stored: writes,
        }
    }

    #[test]
    fn bytes_beside_each_other_do_not_meet() {
        let mut shadow = Shadow::new(64);
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
