//! The selected-block branch of native sparse attention as a problem: causal attention of each query
//! over the blocks of keys that were selected for it.

use contender::{Cost, Math, Problem, Slice, Workload};
use numeric::DType;
use reference::{attention, Real};
use serde_json::Value;
use tensor::{Fill, Inputs, TensorSpec};

use crate::{NsaShape, Selection};

/// Places in the list of tensors.
pub mod nsa_tensor {
    pub const QUERIES: usize = 0;
    pub const KEYS: usize = 1;
    pub const VALUES: usize = 2;
    pub const BLOCKS: usize = 3;
    pub const OUT: usize = 4;
    pub const LSE: usize = 5;
}

#[derive(Clone, Debug)]
pub struct NsaProblem {
    pub shape: NsaShape,
    pub dtype: DType,
    /// 1 / sqrt(dim).
    pub scale: f32,
    selection: Selection,
    workload: Workload,
    tensors: Vec<TensorSpec>,
}

impl NsaProblem {
    pub fn new(selection: Selection, shape: NsaShape, dtype: DType, workload: Workload) -> Self {
        let scale = (shape.dim as f32).sqrt().recip();
        let mut workload = workload;
        let mut axis = |name: &str, value| workload.axes.insert(name.to_owned(), value);
        axis("scale", Value::from(scale.to_string()));
        axis("causal", Value::from(true));
        let tokens = shape.tokens();
        let bytes: Vec<u8> = selection
            .indices()
            .iter()
            .flat_map(|index| index.to_le_bytes())
            .collect();
        let blocks = [tokens, shape.groups, shape.selected];
        let tensors = vec![
            TensorSpec::input("queries", dtype, &[tokens, shape.heads, shape.dim]),
            TensorSpec::input("keys", dtype, &[tokens, shape.groups, shape.dim]),
            TensorSpec::input("values", dtype, &[tokens, shape.groups, shape.dim]),
            TensorSpec::input("blocks", DType::I32, &blocks).filled(Fill::Bytes(bytes.into())),
            TensorSpec::output("out", dtype, &[tokens, shape.heads, shape.dim]),
            TensorSpec::output("lse", DType::F32, &[tokens, shape.heads]),
        ];
        Self {
            shape,
            dtype,
            scale,
            selection,
            workload,
            tensors,
        }
    }

    /// `store` rounds to a type; weights meet the values in the values' type.
    fn answers<R: Real>(
        &self,
        inputs: &Inputs,
        token: usize,
        store: fn(DType, f64) -> f64,
    ) -> Vec<Slice> {
        let NsaShape {
            heads,
            groups,
            dim,
            block,
            sequence,
            ..
        } = self.shape;
        let (position, first) = (token % sequence, token / sequence * sequence);
        let per_group = self.shape.heads_per_group();
        let (mut out, mut lse) = (Vec::new(), Vec::new());
        for group in 0..groups {
            let (mut keys, mut values) = (Vec::new(), Vec::new());
            for chosen in self.selection.row(token, group) {
                let start = chosen * block;
                for key in start..(start + block).min(position + 1) {
                    let place = ((first + key) * groups + group) * dim;
                    let narrow = |tensor| inputs.range(tensor, place, dim).into_iter();
                    keys.extend(narrow(nsa_tensor::KEYS).map(|value| value as f32));
                    values.extend(narrow(nsa_tensor::VALUES).map(|value| value as f32));
                }
            }
            for head in group * per_group..(group + 1) * per_group {
                let place = (token * heads + head) * dim;
                let query = inputs.range(nsa_tensor::QUERIES, place, dim);
                let query: Vec<R> = query.into_iter().map(R::of).collect();
                let scale = R::of(f64::from(self.scale));
                let stored = |weight: R| R::of(store(self.dtype, weight.to_f64()));
                let attended = attention::row(&query, &keys, &values, scale, stored);
                let rounded = attended
                    .out
                    .into_iter()
                    .map(|v| store(self.dtype, v.to_f64()));
                out.extend(rounded);
                lse.push(store(DType::F32, attended.lse.to_f64()));
            }
        }
        let slice = |tensor, start, values| Slice {
            tensor,
            start,
            values,
        };
        vec![
            slice(nsa_tensor::OUT, token * heads * dim, out),
            slice(nsa_tensor::LSE, token * heads, lse),
        ]
    }
}

impl Problem for NsaProblem {
    fn op(&self) -> &str {
        "nsa_selected_fwd"
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// Two products over the keys that are seen, counted exactly; every tensor moved once.
    fn cost(&self) -> Cost {
        let bytes = |touched: fn(&TensorSpec) -> bool| -> f64 {
            let touched = self.tensors.iter().filter(|spec| touched(spec));
            touched.map(|spec| spec.bytes() as f64).sum()
        };
        let pairs = self.selection.keys_read() * self.shape.heads_per_group() as f64;
        Cost {
            flops: 4.0 * pairs * self.shape.dim as f64,
            read_bytes: bytes(|spec| spec.role.is_read()),
            written_bytes: bytes(|spec| spec.role.is_written()),
            math: Math::TensorCore(self.dtype),
        }
    }

    /// Tokens.
    fn units(&self) -> usize {
        self.shape.tokens()
    }

    fn oracle(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.answers::<f64>(inputs, unit, |_, value| value)
    }

    fn honest(&self, inputs: &Inputs, unit: usize) -> Vec<Slice> {
        self.answers::<f32>(inputs, unit, |dtype, value| dtype.round(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NsaSuite;

    fn problem(sizes: &[usize]) -> NsaProblem {
        let (shape, workload) = NsaSuite::custom(NsaShape::from_sizes(sizes).unwrap());
        NsaProblem::new(Selection::drawn(shape), shape, DType::Bf16, workload)
    }

    #[test]
    fn all_blocks_selected_is_dense_causal_attention() {
        let problem = problem(&[2, 9, 4, 2, 16, 4, 3]);
        let inputs = Inputs::new(problem.tensors(), 5);
        let token = 9 + 6;
        let answers = problem.oracle(&inputs, token);
        let (group, head) = (1, 3);
        let rows = |tensor| -> Vec<f32> {
            let places = (9..=token).map(|key| (key * 2 + group) * 16);
            let rows = places.flat_map(|place| inputs.range(tensor, place, 16));
            rows.map(|value| value as f32).collect()
        };
        let query = inputs.range(nsa_tensor::QUERIES, (token * 4 + head) * 16, 16);
        let (keys, values) = (rows(nsa_tensor::KEYS), rows(nsa_tensor::VALUES));
        let right = attention::row(&query, &keys, &values, 0.25, |weight| weight);
        let out = &answers[0].values[head * 16..][..16];
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
        assert!(out.iter().zip(&right.out).all(near));
        assert!((answers[1].values[head] - right.lse).abs() < 1e-12);
    }

    #[test]
    fn units_cover_every_output_element_once() {
        let problem = problem(&[2, 9, 4, 2, 16, 4, 2]);
        let inputs = Inputs::new(problem.tensors(), 7);
        for tensor in [nsa_tensor::OUT, nsa_tensor::LSE] {
            let mut next = 0;
            for unit in 0..problem.units() {
                for slice in problem.oracle(&inputs, unit) {
                    if slice.tensor == tensor {
                        assert_eq!(slice.start, next);
                        next += slice.values.len();
                    }
                }
            }
            assert_eq!(next, problem.tensors()[tensor].elements());
        }
    }

    #[test]
    fn cost_counts_what_is_seen() {
        // One query head: positions 0 to 3 see 1 to 4 keys, position 4 one.
        let cost = problem(&[1, 5, 1, 1, 16, 4, 1]).cost();
        assert_eq!(cost.flops, 4.0 * 11.0 * 16.0);
    }
}
