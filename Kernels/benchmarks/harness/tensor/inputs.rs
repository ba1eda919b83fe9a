//! Input values, recomputed on demand.

use std::sync::Arc;

use numeric::{index_below, stream_bits, stream_key, uniform, DType};

use crate::{place, Fill, TensorSpec};

/// The inputs of one problem for one seed, computed element by element without storage.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    specs: &'a [TensorSpec],
    seed: u64,
}

impl<'a> Inputs<'a> {
    pub fn new(specs: &'a [TensorSpec], seed: u64) -> Self {
        Self { specs, seed }
    }

    pub fn specs(&self) -> &'a [TensorSpec] {
        self.specs
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Place of a tensor in the list. Panics if none has the name.
    pub fn place(&self, name: &str) -> usize {
        place(self.specs, name)
    }

    /// One tensor, its name resolved. Panics if none has it.
    pub fn tensor(&self, name: &str) -> Input<'a> {
        Input {
            inputs: *self,
            place: self.place(name),
        }
    }

    /// One element, rounded to its type.
    pub fn get(&self, tensor: usize, index: usize) -> f64 {
        let mut value = [0.0];
        self.range_into(tensor, index, &mut value);
        value[0]
    }

    pub fn range(&self, tensor: usize, start: usize, len: usize) -> Vec<f64> {
        let mut values = vec![0.0; len];
        self.range_into(tensor, start, &mut values);
        values
    }

    pub fn range_into(&self, tensor: usize, start: usize, out: &mut [f64]) {
        let spec = &self.specs[tensor];
        assert!(
            spec.role.is_read(),
            "'{}' is an output: it has no input values",
            spec.name
        );
        assert!(
            start + out.len() <= spec.elements(),
            "elements {start}..{} requested of '{}', which has {}",
            start + out.len(),
            spec.name,
            spec.elements()
        );
        values_into(spec, tensor as u32, self.seed, start, out);
    }
}

/// One of [`Inputs`].
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    inputs: Inputs<'a>,
    place: usize,
}

impl Input<'_> {
    pub fn get(&self, index: usize) -> f64 {
        self.inputs.get(self.place, index)
    }

    pub fn range(&self, start: usize, len: usize) -> Vec<f64> {
        self.inputs.range(self.place, start, len)
    }

    pub fn range_into(&self, start: usize, out: &mut [f64]) {
        self.inputs.range_into(self.place, start, out);
    }

    /// Everything that its elements follow from.
    pub fn contents(&self) -> Contents {
        let spec = &self.inputs.specs[self.place];
        Contents {
            seed: self.inputs.seed,
            place: self.place,
            dtype: spec.dtype,
            fill: spec.fill.clone(),
        }
    }
}

/// What determines the elements of an input. Inputs of equal contents have equal elements, even those of different
/// problems; the reverse does not hold.
#[derive(Clone, Debug)]
pub struct Contents {
    seed: u64,
    place: usize,
    dtype: DType,
    fill: Fill,
}

impl PartialEq for Contents {
    fn eq(&self, other: &Self) -> bool {
        let same_fill = match (&self.fill, &other.fill) {
            // They may be as long as the tensor, and a range of NaN is unequal to itself.
            (Fill::Shaped(ours), Fill::Shaped(theirs)) => Arc::ptr_eq(ours, theirs),
            (Fill::Bytes(ours), Fill::Bytes(theirs)) => Arc::ptr_eq(ours, theirs),
            (ours, theirs) => ours == theirs,
        };
        same_fill && (self.seed, self.place, self.dtype) == (other.seed, other.place, other.dtype)
    }
}

/// Elements `start..` of a tensor, rounded to its type.
fn values_into(spec: &TensorSpec, tensor: u32, seed: u64, start: usize, out: &mut [f64]) {
    let key = stream_key(seed, tensor);
    match &spec.fill {
        Fill::Bytes(bytes) => {
            let size = spec.dtype.size_bytes();
            let elements = bytes[start * size..].chunks_exact(size);
            for (value, element) in out.iter_mut().zip(elements) {
                *value = spec.dtype.decode_one(element);
            }
        }
        Fill::Index { below } => draw(out, key, start, |bits| {
            spec.dtype.round(f64::from(index_below(bits, *below)))
        }),
        Fill::Shaped(shaped) => {
            for (part, (low, high)) in shaped.parts(start, start + out.len()) {
                let out = &mut out[part.start - start..part.end - start];
                if shaped.factors().is_empty() {
                    draw_uniform(spec.dtype, out, key, part.start, low, high);
                    continue;
                }
                for (out, index) in out.iter_mut().zip(part) {
                    let value = uniform(stream_bits(key, index as u64), low, high);
                    *out = round(spec.dtype, value * shaped.factor(index));
                }
            }
        }
        Fill::Uniform { low, high } => draw_uniform(spec.dtype, out, key, start, *low, *high),
    }
}

/// Fills `out` with `value` applied to the random bits of elements `start..`.
#[inline(always)]
fn draw(out: &mut [f64], key: u64, start: usize, value: impl Fn(u32) -> f64) {
    for (out, index) in out.iter_mut().zip(start as u64..) {
        *out = value(stream_bits(key, index));
    }
}

/// Fills `out` with the uniform values of elements `start..`.
fn draw_uniform(dtype: DType, out: &mut [f64], key: u64, start: usize, low: f32, high: f32) {
    if dtype == DType::Bf16 && low.abs().max(high.abs()) < BF16_SAFE {
        return draw_bf16(out, key, start, (low, high));
    }
    draw(out, key, start, |bits| {
        round(dtype, uniform(bits, low, high))
    });
}

/// The common type: oracles draw billions of elements.
fn draw_bf16(out: &mut [f64], key: u64, start: usize, range: (f32, f32)) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512dq") && is_x86_feature_detected!("avx512vl") {
        // SAFETY: the processor has these instructions.
        return unsafe { draw_bf16_avx512(out, key, start, range) };
    }
    draw_bf16_anywhere(out, key, start, range);
}

/// The same loop with products of 64 bits in vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn draw_bf16_avx512(out: &mut [f64], key: u64, start: usize, range: (f32, f32)) {
    draw_bf16_anywhere(out, key, start, range);
}

#[inline(always)]
fn draw_bf16_anywhere(out: &mut [f64], key: u64, start: usize, (low, high): (f32, f32)) {
    draw(out, key, start, |bits| keep(uniform(bits, low, high), 16));
}

/// Below this, rounding to bf16 never overflows.
const BF16_SAFE: f32 = 1e38;

/// A faster `dtype.round(value)`: an oracle over a long sequence rounds billions of elements.
fn round(dtype: DType, value: f32) -> f64 {
    match dtype {
        DType::F32 => f64::from(value),
        DType::Bf16 if value.abs() < BF16_SAFE => keep(value, 16),
        // Where f16 has its full mantissa and does not overflow.
        DType::F16 if (6.2e-5..6.5e4).contains(&value.abs()) => keep(value, 13),
        // The same for e4m3.
        DType::F8E4M3 | DType::Mxfp8 | DType::Fp8Ue8m0
            if (1.0 / 64.0..448.0).contains(&value.abs()) =>
        {
            keep(value, 20)
        }
        _ => dtype.round(f64::from(value)),
    }
}

/// Round to nearest even, on the bits that a narrow type drops.
#[inline]
fn keep(value: f32, dropped: u32) -> f64 {
    let bits = value.to_bits();
    let half = (1 << (dropped - 1)) - 1;
    let rounded = bits + half + (bits >> dropped & 1);
    f64::from(f32::from_bits(rounded >> dropped << dropped))
}

/// Writes elements `start..` of a tensor as bytes until `out`, which holds whole elements, is full.
pub fn fill_into(spec: &TensorSpec, tensor: u32, seed: u64, start: usize, out: &mut [u8]) {
    let size = spec.dtype.size_bytes();
    if let Fill::Bytes(bytes) = &spec.fill {
        out.copy_from_slice(&bytes[start * size..][..out.len()]);
        return;
    }
    const AT_ONCE: usize = 512;
    let mut values = [0.0; AT_ONCE];
    for (at, out) in out.chunks_mut(AT_ONCE * size).enumerate() {
        let values = &mut values[..out.len() / size];
        values_into(spec, tensor, seed, start + at * AT_ONCE, values);
        for (value, out) in values.iter().zip(out.chunks_exact_mut(size)) {
            encode_rounded(spec.dtype, *value, out);
        }
    }
}

/// A faster `dtype.encode_one(value)` for a value of the type.
#[inline]
fn encode_rounded(dtype: DType, value: f64, out: &mut [u8]) {
    match dtype {
        DType::Bf16 if !value.is_nan() => {
            let upper = (value as f32).to_bits() >> 16;
            out.copy_from_slice(&(upper as u16).to_le_bytes());
        }
        _ => dtype.encode_one(value, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Shaped, Slots, DEAD};
    use numeric::bits;

    fn specs() -> Vec<TensorSpec> {
        let offsets: Vec<u8> = DType::I32.encode(&[0.0, 3.0, 7.0]);
        let rows = Shaped::by_slot(Slots::rows(5), vec![0, 1, 0], &[(2.0, 4.0), (-70.0, 70.0)])
            .times(vec![1.0, 0.5, 3.0, -1.0, 1.0]);
        vec![
            TensorSpec::input("x", DType::Bf16, &[4, 8]),
            TensorSpec::input("labels", DType::I64, &[16]).filled(Fill::Index { below: 5 }),
            TensorSpec::input("offsets", DType::I32, &[3]).filled(Fill::Bytes(offsets.into())),
            TensorSpec::output("y", DType::F32, &[4, 8]),
            TensorSpec::input("rows", DType::F16, &[3, 5]).filled(rows),
        ]
    }

    /// One random element before rounding to its type, by definition.
    fn element(fill: &Fill, tensor: u32, index: usize) -> f64 {
        let bits = bits(9, tensor, index as u64);
        match fill {
            Fill::Uniform { low, high } => f64::from(uniform(bits, *low, *high)),
            Fill::Index { below } => f64::from(index_below(bits, *below)),
            Fill::Shaped(shaped) => f64::from(shaped.element(bits, index)),
            Fill::Bytes(_) => unreachable!("exact contents are copied, not computed"),
        }
    }

    #[test]
    fn bytes_and_values_are_as_defined() {
        let wide = TensorSpec::input("wide", DType::Bf16, &[3, 1000]);
        let dead = Shaped::by_slot(Slots::rows(1000), vec![0, 1, 0], &[(-3.0, 4.0), DEAD]);
        let mut specs = specs();
        specs.push(wide.clone());
        specs.push(wide.filled(dead));
        let inputs = Inputs::new(&specs, 9);
        for (tensor, spec) in specs
            .iter()
            .enumerate()
            .filter(|(_, spec)| spec.role.is_read())
        {
            let mut bytes = vec![0; spec.bytes()];
            fill_into(spec, tensor as u32, 9, 0, &mut bytes);
            let defined: Vec<f64> = match &spec.fill {
                Fill::Bytes(exact) => spec.dtype.decode(exact),
                fill => (0..spec.elements())
                    .map(|index| element(fill, tensor as u32, index))
                    .collect(),
            };
            assert_eq!(bytes, spec.dtype.encode(&defined), "{}", spec.name);
            let values = inputs.range(tensor, 0, spec.elements());
            assert_eq!(bytes, spec.dtype.encode(&values), "{}", spec.name);
            assert_eq!(inputs.get(tensor, 2), inputs.range(tensor, 1, 2)[1]);
        }
        assert_eq!(inputs.range(2, 0, 3), [0.0, 3.0, 7.0]);
        assert!(inputs
            .range(1, 0, 16)
            .iter()
            .all(|label| (0.0..5.0).contains(label)));
    }

    #[test]
    fn a_part_equals_the_same_part_of_the_whole() {
        let spec = &specs()[0];
        let (mut whole, mut part) = (vec![0; spec.bytes()], vec![0; 10]);
        fill_into(spec, 0, 1, 0, &mut whole);
        fill_into(spec, 0, 1, 6, &mut part);
        assert_eq!(whole[12..22], part);
    }

    #[test]
    fn quick_rounding_is_the_types_own() {
        for dtype in [DType::F32, DType::F16, DType::Bf16, DType::F8E4M3] {
            for draw in 0..200_000 {
                let scale = [1.0, 1e-3, 1e-5, 3e4, 7e4][draw % 5];
                let value = uniform(bits(3, 0, draw as u64), -scale, scale);
                let expected = dtype.round(f64::from(value));
                assert_eq!(round(dtype, value), expected, "{dtype} {value}");
            }
            for value in [
                0.0,
                -0.0,
                0.5,
                1.0 + 1.0 / 256.0,
                1.0 + 3.0 / 2048.0,
                65504.0,
            ] {
                let expected = dtype.round(f64::from(value));
                assert_eq!(round(dtype, value), expected, "{dtype} {value}");
            }
        }
    }

    #[test]
    fn a_name_stands_for_its_place() {
        let specs = specs();
        let inputs = Inputs::new(&specs, 9);
        assert_eq!(inputs.tensor("offsets").range(0, 3), inputs.range(2, 0, 3));
    }

    #[test]
    #[should_panic(expected = "no tensor 'z' among x, labels, offsets, y, rows")]
    fn an_unknown_name_is_refused() {
        Inputs::new(&specs(), 1).tensor("z");
    }

    #[test]
    fn contents_tell_inputs_apart() {
        let specs = specs();
        let of = |specs: &[TensorSpec], seed, place: usize| {
            Inputs::new(specs, seed)
                .tensor(specs[place].name)
                .contents()
        };
        for (place, spec) in specs.iter().enumerate() {
            // Specs are cloned on the way to an oracle; what fills them is shared.
            assert_eq!(
                of(&specs, 9, place),
                of(&specs.clone(), 9, place),
                "{}",
                spec.name
            );
            assert_ne!(of(&specs, 9, place), of(&specs, 8, place));
        }
        assert_ne!(of(&specs, 9, 0), of(&specs, 9, 4));
        let mut others = specs.clone();
        for spec in &mut others {
            spec.fill = Shaped::flat(-2.0, 2.0).into();
        }
        assert_ne!(of(&specs, 9, 0), of(&others, 9, 0), "other values");
    }

    #[test]
    fn another_seed_gives_other_values() {
        let specs = specs();
        assert_ne!(
            Inputs::new(&specs, 1).range(0, 0, 32),
            Inputs::new(&specs, 2).range(0, 0, 32)
        );
    }

    #[test]
    #[should_panic(expected = "'y' is an output")]
    fn outputs_have_no_values() {
        Inputs::new(&specs(), 1).get(3, 0);
    }
}
