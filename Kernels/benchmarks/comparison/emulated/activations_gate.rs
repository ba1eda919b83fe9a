//! Activations under the interpreter, against the oracles.

use activations::{Activation, Function};
use reference::activation::{gated, Unit};
use support::{
    assert_close, assert_value_mutants, download, inputs, is_blackwell, room, run,
    under_every_schedule, upload, Dtype, Kind, Survivor, Variant, BF16,
};

/// A function over so many elements, against the oracle.
fn forward_of(function: Function, elements: usize) -> impl Fn() {
    let (unit, is_gated) = match function {
        Function::Gelu => (Unit::Gelu, false),
        Function::GeluTanh => (Unit::GeluTanh, false),
        Function::SwiGlu => (Unit::Silu, true),
        Function::GeGlu => (Unit::GeluTanh, true),
        other => panic!("{other:?}"),
    };
    let scaled = |seed| -> Vec<f64> {
        inputs(seed, elements)
            .iter()
            .map(|value| 4.0 * value)
            .collect()
    };
    let (first, second) = (scaled(1), scaled(2));
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
    move || {
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
    }
}

#[test]
fn forward() {
    for function in [
        Function::Gelu,
        Function::GeluTanh,
        Function::SwiGlu,
        Function::GeGlu,
    ] {
        under_every_schedule(forward_of(function, 10_000));
    }
}

#[test]
fn mutants() {
    let survivors = [Survivor {
        kind: Kind::Bound,
        // The same test stands there twice for sm_100a.
        count: if is_blackwell() { 2 } else { 1 },
        why: "the first lets threads without elements leave early; every packet is checked again",
    }];
    // A ragged end, and a last block that is not full.
    for (name, function, survivors) in [
        ("gelu", Function::Gelu, &survivors[..]),
        ("swiglu", Function::SwiGlu, &[]),
    ] {
        assert_value_mutants(name, (3, 6), survivors, forward_of(function, 2_500));
    }
}

#[test]
fn every_form_is_proven() {
    support::assert_proven();
}
