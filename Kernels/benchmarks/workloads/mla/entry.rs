//! Latent attention steps to and from workload files.

use contender::{FileShape, Shape, Workload};

use super::shape::MlaShape;
use super::suites::MlaSuite;
use crate::given;

impl FileShape for MlaShape {
    fn from_file(shape: &Shape, _: Option<&str>) -> Result<(Self, (), Workload), String> {
        let shape: MlaShape = given::parse(shape)?;
        shape.check()?;
        let mut workload = MlaSuite::custom(&shape);
        workload
            .axes
            .insert("kv_lens".to_owned(), shape.lengths.clone().into());
        Ok((shape, (), workload))
    }

    fn to_file(&self, _: &()) -> Shape {
        given::written(self)
    }
}
