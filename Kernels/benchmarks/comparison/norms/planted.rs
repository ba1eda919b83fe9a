//! A kernel that is wrong, to show that a bench says so: its weights are the activations.

use contender::{
    Bound, Buffer, Contender, ContenderError, DeviceInfo, Identity, Kind, Problem, Support,
};
use workloads::NormProblem;

pub struct Planted {
    identity: Identity,
    honest: Box<dyn Contender<NormProblem>>,
}

impl Planted {
    pub fn new(honest: Box<dyn Contender<NormProblem>>) -> Self {
        let identity = Identity {
            name: "planted_wrong".to_owned(),
            kind: Kind::Own,
            ..honest.identity().clone()
        };
        Self { identity, honest }
    }
}

impl Contender<NormProblem> for Planted {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &NormProblem, device: &DeviceInfo) -> Support {
        self.honest.supports(problem, device)
    }

    fn bind(
        &self,
        problem: &NormProblem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        let named = |name| {
            problem
                .tensors()
                .iter()
                .position(|tensor| tensor.name == name)
        };
        let (Some(x), Some(weight)) = (named("x"), named("weight")) else {
            return Err(ContenderError::new("plant it where there are weights"));
        };
        let mut swapped = buffers.to_vec();
        swapped[weight] = swapped[x];
        self.honest.bind(problem, &swapped, device)
    }
}
