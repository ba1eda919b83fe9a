//! Activations under the interpreter, against the oracles.

use activations::{Activation, Function};
use reference::activation::{gated, Unit};
use support::{
    assert_close, download, inputs, room, run, under_every_schedule, upload, Dtype, Variant, BF16,
};

#[test]
fn forward() {
    let elements = 10_000;
    let scaled = |seed| -> Vec<f64> {
        inputs(seed, elements)
            .iter()
            .map(|value| 4.0 * value)
            .collect()
    };
    let (first, second) = (scaled(1), scaled(2));
    for (function, unit, is_gated) in [
        (Function::Gelu, Unit::Gelu, false),
        (Function::GeluTanh, Unit::GeluTanh, false),
        (Function::SwiGlu, Unit::Silu, true),
        (Function::GeGlu, Unit::GeluTanh, true),
    ] {
        let wanted: Vec<f64> = first
            .iter()
            .zip(&second)
            .map(|(x, up)| {
                if is_gated {
                    gated(unit, *x, *up)
                } else {
                    unit.value(*x)
                }
            })
            .collect();
        under_every_schedule(|| {
            let (gate, up, out) = (upload(&first), upload(&second), room(elements));
            let activation = Activation {
                function,
                backward: false,
                dtype: Dtype::Bf16,
                elements,
                first: gate.address(),
                second: if is_gated { up.address() } else { 0 },
                out_gradient: 0,
                first_out: out.address(),
                second_out: 0,
            };
            // SAFETY: the addresses are those of the tensors.
            run(unsafe { activations::plan(&activation, Variant::Tuned) }).unwrap();
            assert_close(
                &format!("{function:?}"),
                &download(&out),
                &wanted,
                BF16,
                1e-3,
            );
        });
    }
}
