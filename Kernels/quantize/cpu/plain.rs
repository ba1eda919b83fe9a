//! One naive single-threaded loop per operation: the baseline for the others.

use host::e4m3;

use crate::{Element, Scale, Tiling};

pub fn quantize<T: Element, S: Scale>(
    x: &[T],
    quantized: &mut [u8],
    scales: &mut [S],
    tiling: Tiling,
) {
    let rows = x.len() / tiling.columns;
    for (tile, scale) in scales.iter_mut().enumerate() {
        let first_row = tile / tiling.across() * tiling.tile_rows;
        let first_column = tile % tiling.across() * tiling.tile_columns;
        let places = || {
            let columns = first_column..tiling.columns.min(first_column + tiling.tile_columns);
            (first_row..rows.min(first_row + tiling.tile_rows)).flat_map(move |row| {
                let start = row * tiling.columns;
                columns.clone().map(move |column| start + column)
            })
        };
        let mut largest = 0.0f32;
        for place in places() {
            let value = x[place].widen();
            largest = if value.is_finite() {
                largest.max(value.abs())
            } else {
                f32::INFINITY
            };
        }
        *scale = S::of(largest);
        let inverse = 1.0 / scale.value();
        for place in places() {
            quantized[place] = e4m3::encode(x[place].widen() * inverse);
        }
    }
}

pub fn dequantize<T: Element, S: Scale>(
    quantized: &[u8],
    scales: &[S],
    out: &mut [T],
    tiling: Tiling,
) {
    for (place, (code, out)) in quantized.iter().zip(out).enumerate() {
        let (row, column) = (place / tiling.columns, place % tiling.columns);
        let tile = row / tiling.tile_rows * tiling.across() + column / tiling.tile_columns;
        *out = T::narrow(e4m3::decode(*code) * scales[tile].value());
    }
}
