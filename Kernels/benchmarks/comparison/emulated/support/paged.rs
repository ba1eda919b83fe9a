//! Sequences in pages, and attention over them by plain sums.

use runtime::Memory;

pub struct Pages {
    pub indptr: Vec<i32>,
    pub indices: Vec<i32>,
    pub lengths: Vec<i32>,
    pub size: usize,
    pub pool: usize,
}

impl Pages {
    /// Pages of sequences lie apart in the pool, in no order.
    pub fn of(lengths: &[usize], size: usize) -> Self {
        let counts: Vec<usize> = lengths.iter().map(|length| length.div_ceil(size)).collect();
        let total: usize = counts.iter().sum();
        let pool = (total + 3).next_power_of_two();
        let mut indptr = vec![0];
        for count in counts {
            indptr.push(indptr[indptr.len() - 1] + count as i32);
        }
        let indices = (0..total).map(|at| (at * 7 % pool) as i32).collect();
        Self {
            indptr,
            indices,
            lengths: lengths.iter().map(|length| *length as i32).collect(),
            size,
            pool,
        }
    }

    /// The pool's slot of a sequence's token.
    pub fn slot(&self, sequence: usize, token: usize) -> usize {
        let page = self.indices[self.indptr[sequence] as usize + token / self.size];
        page as usize * self.size + token % self.size
    }
}

pub fn upload_i32(values: &[i32]) -> Memory {
    Memory::from_bytes(
        &values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>(),
    )
}

/// `softmax(scale * query . keys) . values`, where a value is the start of its row.
pub fn attend(query: &[f64], rows: &[(&[f64], &[f64])], scale: f64) -> Vec<f64> {
    let scores: Vec<f64> = rows
        .iter()
        .map(|(key, _)| scale * query.iter().zip(*key).map(|(q, k)| q * k).sum::<f64>())
        .collect();
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    let width = rows[0].1.len();
    (0..width)
        .map(|at| {
            weights
                .iter()
                .zip(rows)
                .map(|(weight, (_, value))| weight * value[at])
                .sum::<f64>()
                / total
        })
        .collect()
}
