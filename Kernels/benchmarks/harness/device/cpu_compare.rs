//! Element-wise comparison on the CPU in f64, in fixed chunks so that sums are reproducible.

use numeric::DType;
use rayon::prelude::*;

use crate::{Comparison, Tolerance};

/// Work unit of the parallel loops: fixed, so that sums do not depend on the number of cores.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// Compares two tensors given as bytes of the same length.
pub(crate) fn compare(
    actual: &[u8],
    reference: &[u8],
    dtype: DType,
    limit: Tolerance,
) -> Comparison {
    let step = CHUNK_BYTES / dtype.size_bytes();
    let parts: Vec<Comparison> = actual
        .par_chunks(CHUNK_BYTES)
        .zip(reference.par_chunks(CHUNK_BYTES))
        .enumerate()
        .map(|(chunk, (actual, reference))| {
            compare_chunk(actual, reference, dtype, limit, chunk * step)
        })
        .collect();
    parts.into_iter().fold(Comparison::default(), join)
}

/// `first` covers the elements before those of `second`.
fn join(first: Comparison, second: Comparison) -> Comparison {
    Comparison {
        max_abs: first.max_abs.max(second.max_abs),
        sum_squared_error: first.sum_squared_error + second.sum_squared_error,
        sum_squared_reference: first.sum_squared_reference + second.sum_squared_reference,
        non_finite: first.non_finite + second.non_finite,
        over_limit: first.over_limit + second.over_limit,
        first_over: first.first_over.or(second.first_over),
    }
}

fn compare_chunk(
    actual: &[u8],
    reference: &[u8],
    dtype: DType,
    limit: Tolerance,
    start: usize,
) -> Comparison {
    let size = dtype.size_bytes();
    let mut result = Comparison::default();
    let pairs = actual.chunks_exact(size).zip(reference.chunks_exact(size));
    for (offset, (actual, reference)) in pairs.enumerate() {
        let (actual, reference) = (dtype.decode_one(actual), dtype.decode_one(reference));
        if !actual.is_finite() {
            result.non_finite += 1;
        }
        if !limit.allows(actual, reference) {
            result.over_limit += 1;
            result.first_over.get_or_insert(start + offset);
        }
        if actual.is_finite() && reference.is_finite() {
            let error = (actual - reference).abs();
            result.max_abs = result.max_abs.max(error);
            result.sum_squared_error += error * error;
            result.sum_squared_reference += reference * reference;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Tolerance = Tolerance {
        absolute: 0.1,
        relative: 0.0,
    };

    #[test]
    fn counts_errors_and_finds_the_first() {
        let reference = DType::F32.encode(&[1.0, 2.0, 3.0, 4.0]);
        let actual = DType::F32.encode(&[1.0, 2.05, 3.5, f64::NAN]);
        let result = compare(&actual, &reference, DType::F32, LIMIT);
        assert_eq!(result.non_finite, 1);
        assert_eq!(result.over_limit, 2);
        assert_eq!(result.first_over, Some(2));
        assert_eq!(result.max_abs, 0.5);
        assert!(!result.passes());
    }

    #[test]
    fn an_index_in_a_later_chunk_is_counted_from_the_start() {
        let elements = 3 * CHUNK_BYTES / 2;
        let reference = DType::Bf16.encode(&vec![0.0; elements]);
        let mut actual = reference.clone();
        let bad = elements - 3;
        actual[bad * 2 + 1] = 0x40;
        let result = compare(&actual, &reference, DType::Bf16, LIMIT);
        assert_eq!((result.over_limit, result.first_over), (1, Some(bad)));
    }

    #[test]
    fn a_reference_that_is_not_finite_never_matches() {
        let nan = DType::F32.encode(&[f64::NAN]);
        let one = DType::F32.encode(&[1.0]);
        assert!(!compare(&one, &nan, DType::F32, LIMIT).passes());
    }
}
