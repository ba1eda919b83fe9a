//! Quantization to e4m3 under the interpreter: scales against the oracle, values there and back.

use quantize::{Quantization, Scaling};
use reference::quantize::{scale, ScaleFormat};
use runtime::Memory;
use support::{
    assert_close, download, inputs, room, run, under_every_schedule, upload, Dtype, Variant,
};

const ROWS: usize = 130;
const COLUMNS: usize = 400;

#[test]
fn there_and_back() {
    let x: Vec<f64> = inputs(1, ROWS * COLUMNS)
        .iter()
        .map(|value| 4.0 * value)
        .collect();
    for scaling in [
        Scaling::Row,
        Scaling::Group,
        Scaling::GroupUe8m0,
        Scaling::Block,
    ] {
        under_every_schedule(|| {
            let quantize =
                |inverse, x: &Memory, (quantized, scales): (&Memory, &Memory), variant| {
                    let given = Quantization {
                        inverse,
                        scaling,
                        dtype: Dtype::Bf16,
                        rows: ROWS,
                        columns: COLUMNS,
                        x: x.address(),
                        quantized: quantized.address(),
                        scales: scales.address(),
                    };
                    // SAFETY: the addresses are those of the tensors.
                    run(unsafe { quantize::plan(&given, variant) }).unwrap();
                };
            let device = upload(&x);
            // Room for the finest scales; a row has four groups.
            let [tuned, plain] = [Variant::Tuned, Variant::Plain].map(|variant| {
                let (quantized, scales) = (Memory::new(ROWS * COLUMNS), Memory::new(ROWS * 4 * 4));
                quantize(false, &device, (&quantized, &scales), variant);
                (quantized, scales)
            });
            assert_eq!(tuned.0.to_bytes(), plain.0.to_bytes(), "{scaling:?}");
            assert_eq!(tuned.1.to_bytes(), plain.1.to_bytes(), "{scaling:?}");
            if scaling == Scaling::Row {
                let wanted: Vec<u8> = x
                    .chunks(COLUMNS)
                    .map(|row| scale(ScaleFormat::F32, row.iter().map(|value| *value as f32)))
                    .flat_map(f32::to_le_bytes)
                    .collect();
                assert_eq!(tuned.1.to_bytes()[..4 * ROWS], wanted);
            }
            let out = room(ROWS * COLUMNS);
            quantize(true, &out, (&tuned.0, &tuned.1), Variant::Tuned);
            // Three bits of mantissa, and the smallest step of the largest scale.
            assert_close(
                &format!("{scaling:?}"),
                &download(&out),
                &x,
                1.0 / 14.0,
                3e-5,
            );
        });
    }
}
