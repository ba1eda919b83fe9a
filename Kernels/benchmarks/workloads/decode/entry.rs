//! Decode steps to and from workload files.

use contender::{FileShape, Shape, Workload};

use super::shape::DecodeShape;
use super::suites::DecodeSuite;
use crate::given;

impl FileShape for DecodeShape {
    fn from_file(shape: &Shape, _: Option<&str>) -> Result<(Self, (), Workload), String> {
        given::paged(
            shape,
            Self::check,
            |shape| &shape.lengths,
            DecodeSuite::custom,
        )
    }

    fn to_file(&self, _: &()) -> Shape {
        given::written(self)
    }
}
