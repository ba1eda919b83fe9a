//! Decode steps to and from workload files.

use contender::{FileShape, Shape, Workload};

use super::shape::DecodeShape;
use super::suites::DecodeSuite;
use crate::given;

impl FileShape for DecodeShape {
    fn from_file(shape: &Shape, _: Option<&str>) -> Result<(Self, (), Workload), String> {
        let shape: DecodeShape = given::parse(shape)?;
        shape.check()?;
        let mut workload = DecodeSuite::custom(&shape);
        workload
            .axes
            .insert("kv_lens".to_owned(), shape.lengths.clone().into());
        Ok((shape, (), workload))
    }

    fn to_file(&self, _: &()) -> Shape {
        given::written(self)
    }
}
