//! Sparse attention shapes to and from workload files.

use contender::{FileShape, Shape, Workload};

use super::shape::NsaShape;
use super::suites::NsaSuite;
use crate::given;

const INDICES_MAX: usize = 1 << 30;

impl FileShape for NsaShape {
    fn from_file(shape: &Shape, _: Option<&str>) -> Result<(Self, (), Workload), String> {
        let shape: NsaShape = given::parse(shape)?;
        given::check_sizes(&[
            ("batch", shape.batch),
            ("sequence", shape.sequence),
            ("heads", shape.heads),
            ("dim", shape.dim),
        ])?;
        given::check_sizes(&[
            ("batch", shape.batch),
            ("sequence", shape.sequence),
            ("groups", shape.groups),
            ("selected", shape.selected),
        ])?;
        // The selection is made on the host.
        if shape.batch * shape.sequence * shape.groups > INDICES_MAX / shape.selected {
            return Err(format!(
                "{} selected blocks for each query are more than 2^30 indices",
                shape.selected
            ));
        }
        let sizes = [
            shape.batch,
            shape.sequence,
            shape.heads,
            shape.groups,
            shape.dim,
            shape.block,
            shape.selected,
            shape.window,
        ];
        NsaShape::from_sizes(&sizes).map_err(|error| error.to_string())?;
        let (shape, workload) = NsaSuite::custom(shape);
        Ok((shape, (), workload))
    }

    fn to_file(&self, _: &()) -> Shape {
        given::written(self)
    }
}
