//! `--profile`: runs each contender once, after a warm-up, between profiler start and stop.
//!
//! Runs in this process, so that ncu and nsys see it without following children. Nothing is checked
//! or timed.

use contender::Support;
use device::{Cache, SampleMode};
use gate::{BufferSet, Failure};

use crate::selection::Selection;

/// Returns the names of contenders that failed, with the reasons.
pub fn profile(selection: &Selection, seed: u64, cache: Cache) -> Result<Vec<String>, Failure> {
    let device = selection.open_device()?;
    let mut failures = Vec::new();
    for problem in &selection.problems {
        let set = BufferSet::new(&*device, problem.tensors(), seed)?;
        for contender in &selection.contenders {
            let workload = problem.workload();
            let name = &contender.identity().name;
            let label = format!("{} {} {name}", problem.op(), workload.name);
            if let Support::No(reason) = contender.supports(&**problem, device.info()) {
                workspace::tell!("{label}: unsupported: {reason}");
                continue;
            }
            let run = || -> Result<(), Failure> {
                let mut bound = contender.bind(&**problem, set.buffers(), device.info())?;
                // Loads modules and ramps up the clock, outside the profile.
                device.sample(SampleMode::default(), &mut |stream| bound.enqueue(stream))?;
                set.restore()?;
                device.profile(&label, cache, &mut |stream| bound.enqueue(stream))?;
                Ok(device.synchronize()?)
            };
            match run() {
                Ok(()) => workspace::tell!("{label}: profiled"),
                Err(failure) => failures.push(format!("{label}: {failure}")),
            }
        }
    }
    Ok(failures)
}
