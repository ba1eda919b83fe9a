//! Row shapes to and from workload files.

use contender::{FileShape, Shape, Workload};

use super::suites::NormSuite;
use crate::given;
use crate::rows::RowShape;

impl FileShape for RowShape {
    fn from_file(shape: &Shape, _: Option<&str>) -> Result<(Self, (), Workload), String> {
        let shape: RowShape = given::parse(shape)?;
        shape.check()?;
        let (shape, workload) = NormSuite::custom(shape);
        Ok((shape, (), workload))
    }

    fn to_file(&self, _: &()) -> Shape {
        given::written(self)
    }
}
