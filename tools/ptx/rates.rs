//! What one multiprocessor does in a cycle, and the products that it does.

/// The clock that bounds are given at.
pub const GIGAHERTZ: f64 = 1.85;

/// What one multiprocessor does in a cycle.
pub struct PerCycle {
    /// Multiply-adds of dense products in 16 bits; twice as many in 8, on Blackwell four times in 4.
    pub multiply_adds: f64,
    /// Its share of DRAM's bandwidth, in bytes.
    pub global_bytes: f64,
}

/// Of both generations.
pub mod per_cycle {
    pub const SPECIAL_FUNCTIONS: f64 = 16.0;
    pub const WARP_INSTRUCTIONS: f64 = 4.0;
    pub const SHARED_BYTES: f64 = 128.0;
}

pub fn rates(capability: u64) -> Option<PerCycle> {
    // Of an H200 and a B200: terabytes per second, and multiprocessors.
    let (multiply_adds, (bandwidth, multiprocessors)) = match capability {
        90 => (2048.0, (4.8, 132.0)),
        100 => (4096.0, (8.0, 148.0)),
        _ => return None,
    };
    Some(PerCycle {
        multiply_adds,
        global_bytes: 1000.0 * bandwidth / multiprocessors / GIGAHERTZ,
    })
}

/// A matrix product as counters name it: `tcgen05.mma m256n256k16 Bf16 Bf16 pair`.
#[derive(Debug, PartialEq)]
pub struct Product {
    pub rows: u64,
    pub columns: u64,
    pub depth: u64,
    pub bits: u64,
    pub is_tcgen05: bool,
    pub a_in_tensor_memory: bool,
}

pub fn product(name: &str) -> Option<Product> {
    let mut words = name.split(' ');
    let instruction = words.next()?;
    let (rows, rest) = words.next()?.strip_prefix('m')?.split_once('n')?;
    let (columns, depth) = rest.split_once('k')?;
    let element = words.next()?;
    let bits = match element {
        "E4m3" | "E5m2" => 8,
        "E2m1" => 4,
        "F16" | "Bf16" => 16,
        "Tf32" => 32,
        _ => return None,
    };
    Some(Product {
        rows: rows.parse().ok()?,
        columns: columns.parse().ok()?,
        depth: depth.parse().ok()?,
        bits,
        is_tcgen05: instruction.starts_with("tcgen05"),
        a_in_tensor_memory: name.ends_with(" a in tensor memory"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_read() {
        let pair = product("tcgen05.mma m256n256k16 Bf16 Bf16 pair").unwrap();
        assert!(pair.is_tcgen05 && pair.bits == 16 && pair.rows == 256);
        let weights = product("tcgen05.mma m128n128k16 Bf16 Bf16 pair a in tensor memory").unwrap();
        assert!(weights.a_in_tensor_memory && !pair.a_in_tensor_memory);
    }
}
