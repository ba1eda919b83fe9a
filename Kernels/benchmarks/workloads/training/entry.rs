//! Shapes of training primitives to and from workload files.

use contender::{FileShape, Shape, Workload};

use super::shape::{RopeShape, TrainingShape};
use super::suites::TrainingSuite;
use crate::given;
use crate::rows::RowShape;

impl FileShape for TrainingShape {
    fn from_file(shape: &Shape, _: Option<&str>) -> Result<(Self, (), Workload), String> {
        let shape = if shape.contains_key("rows") {
            let rows: RowShape = given::parse(shape)?;
            rows.check()?;
            TrainingShape::Rows(rows)
        } else {
            let rope: RopeShape = given::parse(shape)?;
            let sizes = [
                rope.batch,
                rope.sequence,
                rope.query_heads,
                rope.key_heads,
                rope.dim,
            ];
            given::check_sizes(&[
                ("batch", rope.batch),
                ("sequence", rope.sequence),
                ("heads", rope.query_heads.max(rope.key_heads)),
                ("dim", rope.dim),
            ])?;
            TrainingShape::from_sizes(&sizes).map_err(|error| error.to_string())?
        };
        let (shape, workload) = TrainingSuite::custom(shape);
        Ok((shape, (), workload))
    }

    fn to_file(&self, _: &()) -> Shape {
        match self {
            TrainingShape::Rows(rows) => given::written(rows),
            TrainingShape::Rope(rope) => given::written(rope),
        }
    }
}
