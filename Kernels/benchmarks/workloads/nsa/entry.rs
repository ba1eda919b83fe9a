//! Sparse attention shapes to and from workload files.

use contender::{FileShape, Shape, Workload};

use super::shape::NsaShape;
use super::suites::NsaSuite;
use crate::given;

const INDICES_MAX: usize = 1 << 30;

impl FileShape for NsaShape {
    fn from_file(shape: &Shape, _: Option<&str>) -> Result<(Self, (), Workload), String> {
        let shape: NsaShape = given::parse(shape)?;
        let NsaShape {
            batch,
            sequence,
            heads,
            groups,
            dim,
            block,
            selected,
            window,
        } = shape;
        given::check_sizes(&[
            ("batch", batch),
            ("sequence", sequence),
            ("heads", heads),
            ("dim", dim),
        ])?;
        given::check_sizes(&[
            ("batch", batch),
            ("sequence", sequence),
            ("groups", groups),
            ("selected", selected),
        ])?;
        // The selection is made on the host.
        if batch * sequence * groups > INDICES_MAX / selected {
            return Err(format!(
                "{selected} selected blocks for each query are more than 2^30 indices"
            ));
        }
        let sizes = [batch, sequence, heads, groups, dim, block, selected, window];
        NsaShape::from_sizes(&sizes).map_err(|error| error.to_string())?;
        let (shape, workload) = NsaSuite::custom(shape);
        Ok((shape, (), workload))
    }

    fn to_file(&self, _: &()) -> Shape {
        given::written(self)
    }
}
