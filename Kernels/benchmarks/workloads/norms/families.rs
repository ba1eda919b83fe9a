//! Kinds of inputs for the row operations.
//!
//! Wide rows of uniform numbers all have nearly the same mean, root mean square and sum of
//! exponentials: a kernel that takes these for constants is right on them.

use contender::{Family, Statement};
use tensor::{Fill, Shaped};

use super::op::{NormOp, LOGIT};
use crate::kinds::{
    outlier_columns, rising_columns, uneven_rows, uniform, DRIFT, LARGE, LATE_MAXIMUM, OUTLIERS,
    UNEVEN_ROWS,
};
use crate::rows::RowShape;

/// Rows of different scales; a row that is constant, with sums that are exact in any order; zeros.
const UNEVEN: [(f32, f32); 5] = [
    (-1.0, 1.0),
    (-16.0, 16.0),
    (-0.05, 0.05),
    (0.75, 0.75),
    (0.0, 0.0),
];
/// The same for gradients of a softmax. A constant one has none: what is left of it is the rounding of the
/// softmax, which sums to 1 only nearly.
const UNEVEN_GRADIENT: [(f32, f32); 5] = [
    (-1.0, 1.0),
    (-16.0, 16.0),
    (-0.05, 0.05),
    (0.5, 1.0),
    (0.0, 0.0),
];
/// The same for what is exponentiated with a given normaliser.
const UNEVEN_LOGITS: [(f32, f32); 3] = [(-4.0, 4.0), (0.75, 0.75), (0.0, 0.0)];

pub fn of(op: NormOp, shape: RowShape, statement: &Statement) -> Vec<Family> {
    let RowShape { rows, columns } = shape;
    let uneven =
        |ranges: &[(f32, f32)]| -> Fill { uneven_rows(columns, rows * columns, ranges).into() };
    let times = |low, high, factors| -> Fill { Shaped::flat(low, high).times(factors).into() };
    let outliers = |factor| times(-1.0, 1.0, outlier_columns(columns, factor));
    let drift = || times(0.5, 1.5, rising_columns(columns, -2.0, 2.0));
    let late = || times(0.98, 1.02, rising_columns(columns, -LOGIT, LOGIT));
    let family = |name, fills| statement.family(name, fills);
    match op {
        NormOp::RmsNormForward | NormOp::LayerNormForward => vec![
            family(UNEVEN_ROWS, vec![("x", uneven(&UNEVEN))]),
            family(OUTLIERS, vec![("x", outliers(32.0))]),
            family(LARGE, vec![("x", uniform(9.0, 11.0))]),
            family(DRIFT, vec![("x", drift())]),
        ],
        NormOp::FusedAddRmsNorm => vec![
            family(
                UNEVEN_ROWS,
                vec![("x", uneven(&UNEVEN)), ("residual", uneven(&UNEVEN))],
            ),
            family(OUTLIERS, vec![("residual", outliers(32.0))]),
            family(LARGE, vec![("residual", uniform(9.0, 11.0))]),
            family(DRIFT, vec![("x", drift())]),
        ],
        NormOp::RmsNormBackward | NormOp::LayerNormBackward => vec![
            family(UNEVEN_ROWS, vec![("x", uneven(&UNEVEN))]),
            family(OUTLIERS, vec![("out_gradient", outliers(32.0))]),
            family(DRIFT, vec![("x", drift())]),
        ],
        NormOp::SoftmaxForward => logits("x", statement, uneven(&UNEVEN), outliers(32.0), late()),
        NormOp::CrossEntropyForward | NormOp::CrossEntropyForwardBackward => {
            logits("logits", statement, uneven(&UNEVEN), outliers(32.0), late())
        }
        NormOp::SoftmaxBackward => vec![
            family(
                UNEVEN_ROWS,
                vec![("out_gradient", uneven(&UNEVEN_GRADIENT))],
            ),
            family(OUTLIERS, vec![("out_gradient", outliers(32.0))]),
            family(DRIFT, vec![("out_gradient", drift())]),
        ],
        NormOp::CrossEntropyBackward => vec![
            family(UNEVEN_ROWS, vec![("logits", uneven(&UNEVEN_LOGITS))]),
            family(OUTLIERS, vec![("logits", outliers(4.0))]),
            // Shares of at most 1.
            family(
                LATE_MAXIMUM,
                vec![
                    ("logits", late()),
                    ("lse", uniform(1.02 * LOGIT, 1.04 * LOGIT)),
                ],
            ),
        ],
    }
}

/// Of a softmax, whose maximum must move.
fn logits(
    name: &'static str,
    statement: &Statement,
    uneven: Fill,
    outliers: Fill,
    late: Fill,
) -> Vec<Family> {
    vec![
        statement.family(LATE_MAXIMUM, vec![(name, late)]),
        statement.family(LARGE, vec![(name, uniform(0.8 * LOGIT, LOGIT))]),
        statement.family(OUTLIERS, vec![(name, outliers)]),
        statement.family(UNEVEN_ROWS, vec![(name, uneven)]),
    ]
}
