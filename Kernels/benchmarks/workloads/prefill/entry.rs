//! Prefill batches to and from workload files.

use contender::{FileShape, Shape, Workload};

use super::shape::{PrefillOp, PrefillShape};
use super::suites::PrefillSuite;
use crate::given;

impl FileShape<PrefillShape> for PrefillOp {
    fn from_file(
        shape: &Shape,
        op: Option<&str>,
    ) -> Result<(Self, PrefillShape, Workload), String> {
        let shape = given::parse::<PrefillShape>(shape)?.normal();
        let longest =
            given::total("q_lens", &shape.q_lens)?.max(given::total("kv_lens", &shape.kv_lens)?);
        shape.validate().map_err(|error| error.to_string())?;
        given::check_sizes(&[
            ("tokens", longest),
            ("heads", shape.heads),
            ("head_dim", shape.head_dim.max(shape.value_dim())),
        ])?;
        let op = match op {
            Some(op) if op == PrefillOp::PrefillLse.name() => PrefillOp::PrefillLse,
            _ => PrefillOp::Prefill,
        };
        Ok((op, shape, PrefillSuite::custom(String::new())))
    }

    fn to_file(&self, shape: &PrefillShape) -> Shape {
        given::written(shape)
    }
}
