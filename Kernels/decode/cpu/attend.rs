//! Queries that share a cache, in one pass over it with a blockwise online softmax.

/// Tokens whose rows are widened at once; they stay in L1.
const BLOCK: usize = 32;

/// Query rows that share a cache.
pub struct Queries<'a> {
    /// [rows, width]
    pub values: &'a [f32],
    pub width: usize,
    /// Positions visible to each row.
    pub visible: &'a [usize],
}

/// Widens the keys and the values of a token.
pub type Read<'a> = &'a mut dyn FnMut(usize, &mut [f32], &mut [f32]);

/// The source of cache rows: `read` widens a token's keys, and its values unless they are a prefix
/// of its keys.
pub struct Cache<'a> {
    pub value_width: usize,
    pub read: Read<'a>,
    /// Values are the first `value_width` elements of the keys.
    pub shared: bool,
}

/// The output, [rows, value_width]. A row that sees nothing yields zeros.
pub fn attend(queries: &Queries, cache: Cache, scale: f32) -> Vec<f32> {
    let (rows, width, value_width) = (queries.visible.len(), queries.width, cache.value_width);
    let length = queries.visible.iter().copied().max().unwrap_or(0);
    let mut keys = vec![0.0; BLOCK * width];
    let mut values = vec![0.0; if cache.shared { 0 } else { BLOCK * value_width }];
    let mut out = vec![0.0; rows * value_width];
    let mut state = vec![(f32::NEG_INFINITY, 0.0f32); rows];
    for start in (0..length).step_by(BLOCK) {
        let count = BLOCK.min(length - start);
        for index in 0..count {
            let value = if cache.shared {
                &mut []
            } else {
                &mut values[index * value_width..][..value_width]
            };
            (cache.read)(start + index, &mut keys[index * width..][..width], value);
        }
        for row in 0..rows {
            let seen = queries.visible[row].clamp(start, start + count) - start;
            if seen == 0 {
                continue;
            }
            let query = &queries.values[row * width..][..width];
            let mut scores = [0.0f32; BLOCK];
            for (score, key) in scores[..seen].iter_mut().zip(keys.chunks_exact(width)) {
                *score = scale * host::sum2(query, key, |q, k| q * k);
            }
            let (largest, total) = &mut state[row];
            let top = scores[..seen].iter().fold(*largest, |a, &b| a.max(b));
            let out = &mut out[row * value_width..][..value_width];
            if top > *largest {
                let factor = (*largest - top).exp();
                out.iter_mut().for_each(|value| *value *= factor);
                *total *= factor;
                *largest = top;
            }
            for (index, score) in scores[..seen].iter().enumerate() {
                let weight = host::exp(score - top);
                *total += weight;
                let value = if cache.shared {
                    &keys[index * width..][..value_width]
                } else {
                    &values[index * value_width..][..value_width]
                };
                for (out, value) in out.iter_mut().zip(value) {
                    *out += weight * value;
                }
            }
        }
    }
    for (out, (_, total)) in out.chunks_exact_mut(value_width).zip(state) {
        if total > 0.0 {
            out.iter_mut().for_each(|value| *value /= total);
        }
    }
    out
}
