//! Activations under the interpreter, against the oracles.

use activations::{Activation, Function};
use reference::activation::{gated, Unit};
use support::{
    assert_caught, assert_close, assert_value_mutants, download, forms_of, inputs, is_blackwell,
    room, run, under_every_schedule, upload, Dtype, Kind, Survivor, Variant, BF16,
};

fn forward_of(function: Function, elements: usize) -> impl Fn() {
    forward_from(0, function, elements)
}

/// A function over so many elements from one on, against the oracle.
fn forward_from(start: usize, function: Function, elements: usize) -> impl Fn() {
    let (unit, is_gated) = match function {
        Function::Gelu => (Unit::Gelu, false),
        Function::GeluTanh => (Unit::GeluTanh, false),
        Function::SwiGlu => (Unit::Silu, true),
        Function::GeGlu => (Unit::GeluTanh, true),
        other => panic!("{other:?}"),
    };
    let scaled = |seed| -> Vec<f64> {
        inputs(seed, start + elements)
            .iter()
            .map(|value| 4.0 * value)
            .collect()
    };
    let (first, second) = (scaled(1), scaled(2));
    let wanted: Vec<f64> = first
        .iter()
        .zip(&second)
        .skip(start)
        .map(|(x, up)| {
            if is_gated {
                gated(unit, *x, *up)
            } else {
                unit.value(*x)
            }
        })
        .collect();
    move || {
        let (gate, up, out) = (upload(&first), upload(&second), room(start + elements));
        let from = |address: usize| address + 2 * start;
        let activation = Activation {
            function,
            backward: false,
            dtype: Dtype::Bf16,
            elements,
            first: from(gate.address()),
            second: if is_gated { from(up.address()) } else { 0 },
            out_gradient: 0,
            first_out: from(out.address()),
            second_out: 0,
        };
        // SAFETY: the addresses are those of the tensors.
        run(unsafe { activations::plan(&activation, Variant::Tuned) }).unwrap();
        assert_close(
            &format!("{function:?}"),
            &download(&out)[start..],
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

/// Blackwell moves 32 bytes at once unless tensors begin between multiples of 32.
#[test]
fn packets_of_16_and_32_bytes() {
    let ran = |form: &str, start| {
        forms_of(forward_from(start, Function::SwiGlu, 1_003))
            .iter()
            .any(|ran| ran.starts_with(form))
    };
    for (form, start, expected) in [
        ("ld.global.v8", 0, is_blackwell()),
        ("st.global.v8", 0, is_blackwell()),
        ("ld.global.v8", 8, false),
        ("ld.global.v4", 8, true),
    ] {
        assert_eq!(ran(form, start), expected, "{form} from element {start}");
    }
}

#[test]
fn planted_faults() {
    for function in [Function::Gelu, Function::SwiGlu] {
        // A last packet that is whole: the bound is all that keeps the next thread from one more.
        let case = forward_of(function, 2_512);
        assert_caught(("setp.ge.s64", "setp.gt.s64"), &case);
        assert_caught(("ex2.approx.ftz.f32", "mov.f32"), &case);
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
