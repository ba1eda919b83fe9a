//! Shapes of variable-length attention.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrefillOp {
    Prefill,
    /// Also writes the natural logarithm of each row's sum of exponentials.
    PrefillLse,
}

impl PrefillOp {
    pub fn name(self) -> &'static str {
        match self {
            PrefillOp::Prefill => "prefill",
            PrefillOp::PrefillLse => "prefill_lse",
        }
    }

    pub fn has_lse(self) -> bool {
        self == PrefillOp::PrefillLse
    }
}

/// A batch of sequences. Sequence `b` has `q_lens[b]` queries and `kv_lens[b]` keys; its queries are
/// the last positions, and the keys before them a cached prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrefillShape {
    pub q_lens: Vec<usize>,
    pub kv_lens: Vec<usize>,
    /// Query heads; a multiple of `kv_heads`, each of which serves consecutive query heads.
    pub heads: usize,
    pub kv_heads: usize,
    /// Elements of a query and of a key.
    pub head_dim: usize,
    /// Elements of a value and of an output, where they are not as many; see [`Self::value_dim`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_dim: Option<usize>,
    /// Query i of q sees keys 0 ..= i + kv - q; otherwise all keys.
    pub causal: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPrefill {
    #[error("{q} query lengths but {kv} key lengths; the counts must match")]
    Lengths { q: usize, kv: usize },
    #[error("no sequence has a query")]
    NoQueries,
    #[error(
        "sequence {sequence} has {q_len} queries and {kv_len} keys; causal attention needs at \
         least as many keys as queries, or the first queries would see none"
    )]
    MoreQueriesThanKeys {
        sequence: usize,
        q_len: usize,
        kv_len: usize,
    },
    #[error("sequence {sequence} has {q_len} queries and no keys to attend to")]
    NoKeys { sequence: usize, q_len: usize },
    #[error("{heads} heads and {kv_heads} kv heads; heads must be a multiple of kv heads")]
    Heads { heads: usize, kv_heads: usize },
    #[error("{name} 0; it must be at least 1")]
    NoElements { name: &'static str },
    #[error("{name} {size}; at most {HEAD_DIM_MAX} elements are a head")]
    TooWide { name: &'static str, size: usize },
    #[error("{tokens} tokens in the batch; cu_seqlens are 32-bit")]
    TooLong { tokens: usize },
}

impl PrefillShape {
    pub fn validate(&self) -> Result<(), BadPrefill> {
        let (q, kv) = (self.q_lens.len(), self.kv_lens.len());
        if q != kv {
            return Err(BadPrefill::Lengths { q, kv });
        }
        for (sequence, (&q_len, &kv_len)) in self.q_lens.iter().zip(&self.kv_lens).enumerate() {
            if q_len > 0 && kv_len == 0 {
                return Err(BadPrefill::NoKeys { sequence, q_len });
            }
            if self.causal && q_len > kv_len {
                return Err(BadPrefill::MoreQueriesThanKeys {
                    sequence,
                    q_len,
                    kv_len,
                });
            }
        }
        let (heads, kv_heads) = (self.heads, self.kv_heads);
        if kv_heads == 0 || heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(BadPrefill::Heads { heads, kv_heads });
        }
        for (name, size) in [("head dim", self.head_dim), ("value dim", self.value_dim())] {
            if size == 0 {
                return Err(BadPrefill::NoElements { name });
            }
            if size > HEAD_DIM_MAX {
                return Err(BadPrefill::TooWide { name, size });
            }
        }
        if self.total_q() == 0 {
            return Err(BadPrefill::NoQueries);
        }
        let tokens = self.total_q().max(self.total_kv());
        if tokens > i32::MAX as usize {
            return Err(BadPrefill::TooLong { tokens });
        }
        Ok(())
    }

    pub fn batch(&self) -> usize {
        self.q_lens.len()
    }

    /// Elements of a value and of an output.
    pub fn value_dim(&self) -> usize {
        self.value_dim.unwrap_or(self.head_dim)
    }

    /// `128`, or `192 with values of 128`.
    pub fn dims(&self) -> String {
        match self.value_dim {
            None => self.head_dim.to_string(),
            Some(value_dim) => format!("{} with values of {value_dim}", self.head_dim),
        }
    }

    /// With one way to say that values are as wide as keys.
    pub fn normal(self) -> Self {
        let value_dim = self.value_dim.filter(|dim| *dim != self.head_dim);
        Self { value_dim, ..self }
    }

    /// Factor of the scores before the softmax: 1 / sqrt(head_dim).
    pub fn scale(&self) -> f32 {
        1.0 / (self.head_dim as f32).sqrt()
    }

    pub fn total_q(&self) -> usize {
        self.q_lens.iter().sum()
    }

    pub fn total_kv(&self) -> usize {
        self.kv_lens.iter().sum()
    }

    /// Keys that a query sees.
    pub fn visible(&self, sequence: usize, query: usize) -> usize {
        let kv_len = self.kv_lens[sequence];
        if self.causal {
            query + 1 + kv_len - self.q_lens[sequence]
        } else {
            kv_len
        }
    }

    /// Visible pairs of a query and a key, per head.
    pub fn visible_pairs(&self) -> f64 {
        let pairs = |(&q, &kv): (&usize, &usize)| {
            let (q, kv) = (q as f64, kv as f64);
            if self.causal {
                q * (kv - q) + q * (q + 1.0) / 2.0
            } else {
                q * kv
            }
        };
        self.q_lens.iter().zip(&self.kv_lens).map(pairs).sum()
    }
}

/// Far beyond any model, and far from the overflow of a product of sizes.
const HEAD_DIM_MAX: usize = 1 << 16;

/// Starts of the sequences in a packed tensor, and its end.
pub fn cumulative(lengths: &[usize]) -> Vec<usize> {
    let mut total = 0;
    let ends = lengths.iter().map(|length| {
        total += length;
        total
    });
    [0].into_iter().chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(q_lens: &[usize], kv_lens: &[usize], causal: bool) -> PrefillShape {
        PrefillShape {
            q_lens: q_lens.to_vec(),
            kv_lens: kv_lens.to_vec(),
            heads: 4,
            kv_heads: 2,
            head_dim: 64,
            value_dim: None,
            causal,
        }
    }

    proptest! {
        /// The triangle formula equals the sum over queries, and the mask moves by one key per query.
        #[test]
        fn pairs_are_those_that_are_visible(
            lengths in prop::collection::vec((0usize..40, 1usize..60), 1..6), causal in any::<bool>()
        ) {
            let q_lens: Vec<usize> = lengths.iter().map(|(q, _)| *q).collect();
            let kv_lens: Vec<usize> = lengths
                .iter()
                .map(|(q, kv)| if causal { q + kv - 1 } else { *kv })
                .collect();
            let shape = shape(&q_lens, &kv_lens, causal);
            let mut counted = 0;
            for (sequence, &q_len) in q_lens.iter().enumerate() {
                for query in 0..q_len {
                    let visible = shape.visible(sequence, query);
                    prop_assert!((1..=kv_lens[sequence]).contains(&visible));
                    counted += visible;
                }
                if q_len > 0 {
                    prop_assert_eq!(shape.visible(sequence, q_len - 1), kv_lens[sequence]);
                }
            }
            prop_assert_eq!(shape.visible_pairs(), counted as f64);
            prop_assert_eq!(shape.validate().is_ok(), q_lens.iter().any(|&q| q > 0));
        }
    }

    #[test]
    fn refuses_what_has_no_answer() {
        let refused = |shape: PrefillShape| shape.validate().unwrap_err().to_string();
        let more = refused(shape(&[1, 9], &[1, 8], true));
        assert!(
            more.contains("sequence 1 has 9 queries and 8 keys"),
            "{more}"
        );
        assert_eq!(shape(&[9], &[8], false).validate(), Ok(()));
        assert!(refused(shape(&[2], &[0], false)).contains("no keys"));
        assert_eq!(shape(&[0, 1], &[0, 1], true).validate(), Ok(()));
        assert!(refused(shape(&[0], &[4], true)).contains("no sequence has a query"));
        assert!(refused(shape(&[1, 1], &[1], true)).contains("2 query lengths but 1"));
        let heads = PrefillShape {
            heads: 3,
            ..shape(&[1], &[1], true)
        };
        assert!(refused(heads).contains("3 heads and 2 kv heads"));
        let dims = |head_dim, value_dim| PrefillShape {
            head_dim,
            value_dim,
            ..shape(&[1], &[1], true)
        };
        assert_eq!(refused(dims(0, None)), "head dim 0; it must be at least 1");
        assert_eq!(
            refused(dims(64, Some(0))),
            "value dim 0; it must be at least 1"
        );
        assert!(refused(dims(64, Some(usize::MAX))).starts_with("value dim 18446744073709551615;"));
        assert!(refused(dims(usize::MAX, None)).contains("at most 65536 elements are a head"));
        assert_eq!(dims(192, Some(128)).validate(), Ok(()));
    }

    #[test]
    fn values_are_as_wide_as_keys_unless_said_otherwise() {
        let of = |value_dim| PrefillShape {
            value_dim,
            ..shape(&[1], &[1], true)
        };
        assert_eq!(of(Some(64)).normal(), of(None));
        assert_eq!((of(None).value_dim(), of(None).dims()), (64, "64".into()));
        let latent = of(Some(32)).normal();
        assert_eq!(latent.value_dim(), 32);
        assert_eq!(latent.dims(), "64 with values of 32");
    }

    #[test]
    fn starts_and_end() {
        assert_eq!(cumulative(&[3, 0, 2]), [0, 3, 3, 5]);
        assert_eq!(cumulative(&[]), [0]);
    }
}
