//! The library that the test is linked with, as a contender.

use contender::{Binding, Buffer, Contender, Contenders, DeviceInfo, Identity, Problem, Support};
use contender_abi::Description;
use guest::Guest;

pub const NAME: &str = "mine";

extern "C" {
    fn contender_library() -> *const Description;
}

struct Linked(Guest);

impl<P: Problem> Contender<P> for Linked {
    fn identity(&self) -> &Identity {
        self.0.identity()
    }

    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support {
        self.0.supports(problem, device)
    }

    fn bind(&self, problem: &P, buffers: &[Buffer], device: &DeviceInfo) -> Binding {
        self.0.bind(problem, buffers, device)
    }
}

pub fn contenders<P: Problem>() -> Contenders<P> {
    // SAFETY: the example is compiled against contender.h.
    let guest = unsafe { Guest::linked(NAME, contender_library) };
    vec![Box::new(Linked(
        guest.unwrap_or_else(|error| panic!("it {error}")),
    ))]
}
