//! The problems and contenders selected by the options.

use std::collections::BTreeSet;

use contender::{DeviceKind, Kind};
use device::DeviceError;

use crate::erased::{AnyBench, AnyContender, Contenders, Problems};
use crate::options::{built_for, Options};
use crate::{control, Choices, UsageError};

/// Both sides of the comparison, the same in the supervisor and its workers.
pub struct Selection {
    pub choices: Choices,
    pub problems: Problems,
    /// Contenders to time, in the benchmark's order.
    pub contenders: Contenders,
    /// The problems in which the control races; none if it races in all, or if there is none.
    controlled: Option<BTreeSet<usize>>,
    /// Provides the gate's full-tensor reference; also in `contenders` only if requested by name.
    pub reference: Option<Box<AnyContender>>,
}

impl Selection {
    pub fn new(bench: &AnyBench, options: &Options) -> Result<Self, UsageError> {
        let choices = options.choices(bench)?;
        let mut problems = (bench.problems)(&choices)?;
        let what = &options.what;
        check_known(
            "operation",
            &what.ops,
            &names(&problems, |problem| problem.op()),
        )?;
        let workloads = names(&problems, |problem| &problem.workload().name);
        check_known("workload", &what.workloads, &workloads)?;
        problems.retain(|problem| {
            admits(&what.ops, problem.op()) && admits(&what.workloads, &problem.workload().name)
        });
        if problems.is_empty() {
            return Err(UsageError::new(
                "no workload matches all of --suite, --op and --workload; see --list",
            ));
        }
        if let Some(shard) = what.shard {
            let mut place = 0;
            problems.retain(|_| {
                place += 1;
                shard.takes(place - 1)
            });
            if problems.is_empty() {
                return Err(UsageError(format!(
                    "--shard {shard}: fewer workloads than shards, so this one is empty"
                )));
            }
        }
        let mut contenders = (bench.contenders)(&choices);
        contenders.extend(control::control((bench.contenders)(&choices)));
        match (choices.device, built_for(bench.arch)) {
            (DeviceKind::Cuda, DeviceKind::Cpu) => Err(DeviceError::NotBuilt),
            (DeviceKind::Cuda, DeviceKind::Ptx) => Err(DeviceError::Emulated),
            (DeviceKind::Ptx, DeviceKind::Cpu | DeviceKind::Cuda) => Err(DeviceError::NotEmulated),
            _ => Ok(()),
        }
        .map_err(UsageError::new)?;
        let known = names(&contenders, |contender| &contender.identity().name);
        check_known("contender", &what.contenders, &known)?;
        check_known("contender", what.baseline.as_slice(), &known)?;
        let with_control = options.how.protocol.is_some();
        contenders.retain(|contender| {
            let identity = contender.identity();
            let named = what.contenders.contains(&identity.name)
                || what.baseline.as_ref() == Some(&identity.name);
            let by_default = match identity.kind {
                Kind::Own | Kind::Baseline => true,
                Kind::Reference => false,
                Kind::Control => with_control,
            };
            named || (what.contenders.is_empty() && by_default)
        });
        let controlled = what
            .contenders
            .is_empty()
            .then(|| control::places(&problems));
        if contenders.is_empty() {
            return Err(UsageError(format!(
                "{} has no contenders for device {}",
                bench.name, choices.device
            )));
        }
        let reference = (bench.contenders)(&choices)
            .into_iter()
            .find(|contender| contender.identity().kind == Kind::Reference);
        Ok(Self {
            choices,
            problems,
            contenders,
            controlled,
            reference,
        })
    }

    /// The contenders of a problem: all, but the control only in its places.
    pub fn contenders_of(&self, problem: usize) -> impl Iterator<Item = &AnyContender> {
        let everywhere = self.controlled.is_none();
        let here = self
            .controlled
            .as_ref()
            .is_some_and(|places| places.contains(&problem));
        self.contenders
            .iter()
            .map(|contender| &**contender)
            .filter(move |each| everywhere || here || each.identity().kind != Kind::Control)
    }
}

/// Distinct names in order of first appearance.
fn names<'a, T>(items: &'a [T], name: impl Fn(&'a T) -> &'a str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for item in items {
        let name = name(item);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn admits(wanted: &[String], name: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|wanted| wanted == name)
}

fn check_known(what: &str, wanted: &[String], known: &[&str]) -> Result<(), UsageError> {
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(UsageError(format!(
            "no {what} '{name}'; use one of {}",
            known.join(", ")
        ))),
    }
}
