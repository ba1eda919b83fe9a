//! What arithmetic does to the 32 lanes of a warp, one function per form, written so that it vectorises.

pub mod compare;
pub mod float;
pub mod fused;
pub mod half;
pub mod integer;

macro_rules! w1 {
    (|$a:ident| $body:expr) => {{
        fn run(a: &Words) -> Words {
            std::array::from_fn(|lane| {
                let $a = a[lane];
                $body
            })
        }
        run as W1
    }};
}
macro_rules! w2 {
    (|$a:ident, $b:ident| $body:expr) => {{
        fn run(a: &Words, b: &Words) -> Words {
            std::array::from_fn(|lane| {
                let ($a, $b) = (a[lane], b[lane]);
                $body
            })
        }
        run as W2
    }};
}
macro_rules! w3 {
    (|$a:ident, $b:ident, $c:ident| $body:expr) => {{
        fn run(a: &Words, b: &Words, c: &Words) -> Words {
            std::array::from_fn(|lane| {
                let ($a, $b, $c) = (a[lane], b[lane], c[lane]);
                $body
            })
        }
        run as W3
    }};
}
macro_rules! d1 {
    (|$a:ident| $body:expr) => {{
        fn run(a: &Wides) -> Wides {
            std::array::from_fn(|lane| {
                let $a = a[lane];
                $body
            })
        }
        run as D1
    }};
}
macro_rules! d2 {
    (|$a:ident, $b:ident| $body:expr) => {{
        fn run(a: &Wides, b: &Wides) -> Wides {
            std::array::from_fn(|lane| {
                let ($a, $b) = (a[lane], b[lane]);
                $body
            })
        }
        run as D2
    }};
}
macro_rules! d3 {
    (|$a:ident, $b:ident, $c:ident| $body:expr) => {{
        fn run(a: &Wides, b: &Wides, c: &Wides) -> Wides {
            std::array::from_fn(|lane| {
                let ($a, $b, $c) = (a[lane], b[lane], c[lane]);
                $body
            })
        }
        run as D3
    }};
}
pub(crate) use {d1, d2, d3, w1, w2, w3};
