//! The control: one of our contenders once more, under another name. Racing it against itself shows
//! what this run makes of no difference.

use std::collections::{BTreeMap, BTreeSet};

use contender::{Bound, Buffer, Contender, ContenderError, DeviceInfo, Identity, Kind, Support};

use crate::erased::{AnyContender, AnyProblem, Contenders, Problems};

/// What the name of a control adds to that of the contender.
const SUFFIX: &str = " (again)";

struct Control {
    identity: Identity,
    inner: Box<AnyContender>,
}

/// The control of our first contender; none if there is none of ours. `contenders` are instances
/// that nobody else uses.
pub fn control(contenders: Contenders) -> Option<Box<AnyContender>> {
    let mut contenders = contenders.into_iter();
    let inner = contenders.find(|contender| contender.identity().kind == Kind::Own)?;
    let own = inner.identity();
    let identity = Identity {
        name: format!("{}{SUFFIX}", own.name),
        kind: Kind::Control,
        ..own.clone()
    };
    Some(Box::new(Control { identity, inner }))
}

/// The contender that a control is an instance of.
pub fn original(control: &str) -> &str {
    control.strip_suffix(SUFFIX).unwrap_or(control)
}

/// Where the control races: one workload of each operation and type, the middle one by traffic and
/// operations. Timers are too coarse for the shortest, and the longest run at the power limit.
pub fn places(problems: &Problems) -> BTreeSet<usize> {
    let mut groups: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    for (index, problem) in problems.iter().enumerate() {
        let group = (problem.op(), problem.dtype().to_string());
        groups.entry(group).or_default().push(index);
    }
    let work = |index: &usize| {
        let cost = problems[*index].cost();
        (cost.read_bytes + cost.written_bytes, cost.flops)
    };
    let chosen = groups.into_values().map(|mut group| {
        group.sort_by(|left, right| work(left).partial_cmp(&work(right)).expect("finite costs"));
        group[group.len() / 2]
    });
    chosen.collect()
}

impl Contender<AnyProblem> for Control {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn supports(&self, problem: &AnyProblem, device: &DeviceInfo) -> Support {
        self.inner.supports(problem, device)
    }

    fn missing(&self, problem: &AnyProblem, arch: &str) -> Option<Vec<String>> {
        self.inner.missing(problem, arch)
    }

    fn plan_name(&self, problem: &AnyProblem, device: &DeviceInfo) -> Option<String> {
        self.inner.plan_name(problem, device)
    }

    fn write_plan(&self, problem: &AnyProblem) -> Option<String> {
        self.inner.write_plan(problem)
    }

    fn take_plan(&self, problem: &AnyProblem, plan: &str) {
        self.inner.take_plan(problem, plan);
    }

    fn bind(
        &self,
        problem: &AnyProblem,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError> {
        self.inner.bind(problem, buffers, device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faults::Scaled;

    #[test]
    fn a_control_races_on_the_middle_workload_of_each_operation() {
        let sizes = [64, 4096, 16, 1024, 256];
        let problems: Problems = sizes
            .iter()
            .map(|size| -> Box<AnyProblem> { Box::new(Scaled::new(*size, 64)) })
            .collect();
        assert_eq!(places(&problems), BTreeSet::from([4]));
        assert_eq!(original("ours (again)"), "ours");
        assert_eq!(original("ours"), "ours");
    }
}
