//! Quantization to e4m3 under the interpreter: scales against the oracle, values there and back.

use quantize::{Quantization, Scaling};
use reference::quantize::{scale, ScaleFormat};
use runtime::Memory;
use support::{
    assert_close, assert_value_mutants, download, inputs, is_blackwell, room, run,
    under_every_schedule, upload, Dtype, Kind, Survivor, Variant,
};

const COLUMNS: usize = 400;

/// Quantised as the plain kernel does, to the scales of the oracle, and back to within a step.
fn there_and_back(scaling: Scaling, rows: usize) -> impl Fn() {
    let x: Vec<f64> = inputs(1, rows * COLUMNS)
        .iter()
        .map(|value| 4.0 * value)
        .collect();
    move || {
        let quantize = |inverse, x: &Memory, (quantized, scales): (&Memory, &Memory), variant| {
            let given = Quantization {
                inverse,
                scaling,
                dtype: Dtype::Bf16,
                rows,
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
            let (quantized, scales) = (Memory::new(rows * COLUMNS), Memory::new(rows * 4 * 4));
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
            assert_eq!(tuned.1.to_bytes()[..4 * rows], wanted);
        }
        let out = room(rows * COLUMNS);
        quantize(true, &out, (&tuned.0, &tuned.1), Variant::Tuned);
        // Three bits of mantissa, and the smallest step of the largest scale.
        assert_close(
            &format!("{scaling:?}"),
            &download(&out),
            &x,
            1.0 / 14.0,
            3e-5,
        );
    }
}

#[test]
fn every_scaling() {
    for scaling in [
        Scaling::Row,
        Scaling::Group,
        Scaling::GroupUe8m0,
        Scaling::Block,
    ] {
        under_every_schedule(there_and_back(scaling, 130));
    }
}

#[test]
fn mutants() {
    let survivors = [
        Survivor {
            kind: Kind::Offset,
            count: 1,
            why: "an element that is not the largest of its row is left out of the maximum",
        },
        Survivor {
            kind: Kind::Bound,
            count: 1,
            why:
                "the first lets threads without elements leave early; every packet is checked again",
        },
    ];
    assert_value_mutants("row", (2, 6), &survivors, there_and_back(Scaling::Row, 3));
}

#[test]
fn mutants_of_groups() {
    let survivors = [
        Survivor {
            kind: Kind::Bound,
            count: 2,
            why: "one as of rows; one of a packet that no thread has at this size",
        },
        Survivor {
            kind: Kind::Extreme,
            count: 1,
            why: "of a packet that no thread has at this size",
        },
        Survivor {
            kind: Kind::ShuffleStep,
            count: usize::from(is_blackwell()),
            why: "the same packet",
        },
    ];
    assert_value_mutants(
        "group",
        (2, 6),
        &survivors,
        there_and_back(Scaling::Group, 3),
    );
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
