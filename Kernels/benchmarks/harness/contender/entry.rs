//! Workloads to and from workload files.

use crate::Workload;

/// A shape as a workload file has it, in the family's own terms.
pub type Shape = serde_json::Map<String, serde_json::Value>;

/// A family's type for shapes; `Rest` is what else says how a workload is computed.
pub trait FileShape<Rest = ()>: Sized {
    /// From a file, which may name the only operation that it is meant for; the error is a reason.
    fn from_file(shape: &Shape, op: Option<&str>) -> Result<(Self, Rest, Workload), String>;
    fn to_file(&self, rest: &Rest) -> Shape;
}

/// A workload with its shape, as families list them.
pub trait Entry: Sized {
    fn from_file(shape: &Shape, op: Option<&str>) -> Result<Self, String>;
    fn to_file(&self) -> Shape;
    fn workload(&mut self) -> &mut Workload;
}

impl<S: FileShape> Entry for (S, Workload) {
    fn from_file(shape: &Shape, op: Option<&str>) -> Result<Self, String> {
        let (shape, (), workload) = S::from_file(shape, op)?;
        Ok((shape, workload))
    }

    fn to_file(&self) -> Shape {
        self.0.to_file(&())
    }

    fn workload(&mut self) -> &mut Workload {
        &mut self.1
    }
}

impl<S: FileShape<Rest>, Rest> Entry for (S, Rest, Workload) {
    fn from_file(shape: &Shape, op: Option<&str>) -> Result<Self, String> {
        S::from_file(shape, op)
    }

    fn to_file(&self) -> Shape {
        self.0.to_file(&self.1)
    }

    fn workload(&mut self) -> &mut Workload {
        &mut self.2
    }
}
