//! Latent attention steps to and from workload files.

use contender::{FileShape, Shape, Workload};

use super::shape::MlaShape;
use super::suites::MlaSuite;
use crate::given;

impl FileShape for MlaShape {
    fn from_file(shape: &Shape, _: Option<&str>) -> Result<(Self, (), Workload), String> {
        given::paged(shape, Self::check, |shape| &shape.lengths, MlaSuite::custom)
    }

    fn to_file(&self, _: &()) -> Shape {
        given::written(self)
    }
}
