//! A program without CUDA has nothing that runs a kernel.

use std::convert::Infallible;

use crate::description::Code;
use crate::plan::Plan;

pub struct Module(Infallible);
pub struct Prepared(Infallible);

impl Module {
    pub fn load(_: &Code, _: &str) -> Result<Self, String> {
        Err("this program is built without CUDA".into())
    }

    pub fn parameters(&self) -> Result<Vec<usize>, String> {
        match self.0 {}
    }

    pub fn prepare(&self, _: &Plan) -> Result<Prepared, String> {
        match self.0 {}
    }
}

impl Prepared {
    pub fn launch(&self, _: &Module, _: usize) -> Result<(), String> {
        match self.0 {}
    }
}
