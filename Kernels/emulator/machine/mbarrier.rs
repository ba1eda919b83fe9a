//! Barriers in shared memory that count arrivals and bytes.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mbarrier {
    pub expected: u32,
    pub pending: u32,
    /// Bytes announced and not yet there.
    pub bytes: i64,
    /// Phases completed.
    pub phase: u64,
    /// The round in which the last was.
    pub turned: Option<u64>,
}

const MOST_BYTES: i64 = (1 << 20) - 1;

impl Mbarrier {
    pub fn new(count: u32) -> Result<Self, String> {
        if count == 0 || count > MOST_BYTES as u32 {
            return Err(format!("an mbarrier for {count} arrivals"));
        }
        Ok(Self {
            expected: count,
            pending: count,
            bytes: 0,
            phase: 0,
            turned: None,
        })
    }

    /// Whether the phase of a parity is over.
    pub fn is_over(&self, parity: u32) -> bool {
        self.phase & 1 != u64::from(parity & 1)
    }

    /// The state as a kernel sees it.
    pub fn state(&self) -> u64 {
        u64::from(self.pending) | (self.phase & 1) << 63
    }

    pub fn expect_bytes(&mut self, bytes: i64) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes.abs() > MOST_BYTES {
            return Err(format!("an mbarrier's count of bytes is {}", self.bytes));
        }
        self.complete();
        Ok(())
    }

    pub fn arrive(&mut self, count: u32) -> Result<(), String> {
        if count == 0 || count > self.pending {
            return Err(format!(
                "{count} arrivals at an mbarrier that waits for {} more of {}",
                self.pending, self.expected
            ));
        }
        self.pending -= count;
        self.complete();
        Ok(())
    }

    fn complete(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.phase += 1;
            self.pending = self.expected;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_need_arrivals_and_bytes() {
        let mut barrier = Mbarrier::new(2).unwrap();
        barrier.expect_bytes(64).unwrap();
        barrier.arrive(1).unwrap();
        barrier.expect_bytes(-64).unwrap();
        assert!(!barrier.is_over(0));
        barrier.arrive(1).unwrap();
        assert!(barrier.is_over(0) && !barrier.is_over(1));
        assert!(barrier.arrive(3).is_err());
        assert!(Mbarrier::new(0).is_err());
        // Bytes may come before they are announced.
        barrier.expect_bytes(-16).unwrap();
        barrier.arrive(2).unwrap();
        assert!(!barrier.is_over(1));
        barrier.expect_bytes(16).unwrap();
        assert!(barrier.is_over(1));
    }
}
