//! The problems and contenders selected by the options.

use std::collections::BTreeSet;

use contender::{DeviceKind, Kind};
use device::{CpuDevice, Device, DeviceError};
use guest::{Guest, Source};
use kernel_file::KernelFile;

use record::WorkloadFile;

use crate::erased::{AnyBench, AnyContender, AnyProblem, Contenders, Problems};
use crate::options::Options;
use crate::rows::BEST;
use crate::usage::shown;
use crate::{control, releases, Choices, UsageError};

/// Both sides of the comparison, the same in the supervisor and its workers.
pub struct Selection {
    pub choices: Choices,
    /// What the program's kernels are built for.
    pub arch: &'static str,
    pub problems: Problems,
    /// Contenders to time, in the benchmark's order.
    pub contenders: Contenders,
    /// The problems in which the control races; none if it races in all, or if there is none.
    controlled: Option<BTreeSet<usize>>,
    /// Somebody's own kernels, which race too.
    pub guests: Vec<Source>,
    /// Provides the gate's full-tensor reference; also in `contenders` only if requested by name.
    pub reference: Option<Box<AnyContender>>,
}

impl Selection {
    pub fn new(bench: &AnyBench, options: &Options) -> Result<Self, UsageError> {
        let choices = options.choices(bench)?;
        let mut problems = (bench.problems)(&choices)?;
        problems.retain(|problem| {
            let only = problem.workload().only_op.as_deref();
            only.is_none_or(|op| op == problem.op())
        });
        check_taken(bench.name, choices.given.as_ref(), &problems)?;
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
        add_guests(&what.libraries, &mut contenders)?;
        let named = what.contenders.iter().chain(&what.baseline);
        releases::add(named, &mut contenders)?;
        match (choices.device, DeviceKind::built_for(bench.arch)) {
            (DeviceKind::Cuda, DeviceKind::Cpu) => Err(DeviceError::NotBuilt),
            (DeviceKind::Cuda, DeviceKind::Ptx) => Err(DeviceError::Emulated),
            (DeviceKind::Ptx, DeviceKind::Cpu | DeviceKind::Cuda) => Err(DeviceError::NotEmulated),
            _ => Ok(()),
        }
        .map_err(UsageError::new)?;
        let known = names(&contenders, |contender| &contender.identity().name);
        check_known("contender", &what.contenders, &known)?;
        if what.baseline.as_deref() != Some(BEST) {
            check_known("contender", what.baseline.as_slice(), &known)?;
        }
        let with_control = options.how.protocol.is_some();
        contenders.retain(|contender| {
            let identity = contender.identity();
            // Whoever brings a library wants it in the race.
            let brought = what.libraries.iter().any(|it| it.name == identity.name);
            let named = brought
                || what.contenders.contains(&identity.name)
                || what.baseline.as_ref() == Some(&identity.name);
            let by_default = match identity.kind {
                Kind::Own | Kind::Baseline => !identity.on_request,
                Kind::Reference => false,
                Kind::Control => with_control,
            };
            named || (what.contenders.is_empty() && by_default)
        });
        let controlled = what
            .contenders
            .is_empty()
            .then(|| control::places(&problems));
        if contenders.is_empty() && bench.takes_operation {
            return Err(UsageError(format!(
                "{} has no contenders of its own; bring one with --contender",
                bench.name
            )));
        }
        if contenders.is_empty() {
            return Err(UsageError(format!(
                "{} has no contenders for device {}; use another --device",
                bench.name, choices.device
            )));
        }
        let reference = (bench.contenders)(&choices)
            .into_iter()
            .find(|contender| contender.identity().kind == Kind::Reference);
        Ok(Self {
            choices,
            arch: bench.arch,
            problems,
            contenders,
            controlled,
            guests: what.libraries.clone(),
            reference,
        })
    }

    /// The guests that share the worker's process, as all do on CUDA: two processes would take turns on the GPU.
    pub fn strangers(&self) -> Vec<String> {
        let shared = self.choices.device == DeviceKind::Cuda;
        let guests = self.guests.iter().filter(|_| shared);
        guests.map(|guest| guest.name.clone()).collect()
    }

    /// Opens the device. With guests, all memory is such that another process can map it, so that nobody in the race
    /// has other pages than they have.
    pub fn open_device(&self) -> Result<Box<dyn Device>, DeviceError> {
        match self.choices.device {
            DeviceKind::Cpu if !self.guests.is_empty() => Ok(Box::new(CpuDevice::open_shared())),
            kind => device::open_for(kind, self.arch),
        }
    }

    /// The contender of that name, if it races.
    pub fn contender(&self, name: &str) -> Option<&AnyContender> {
        let mut all = self.contenders.iter();
        let found = all.find(|contender| contender.identity().name == name);
        found.map(|contender| &**contender)
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

/// Adds the libraries and kernels that the user brings.
fn add_guests(sources: &[Source], contenders: &mut Contenders) -> Result<(), UsageError> {
    for source in sources {
        let name = &source.name;
        if name == BEST {
            return Err(UsageError(format!(
                "'{BEST}' is the fastest other in --baseline; call it something else: other={}",
                source.path.display()
            )));
        }
        if contenders
            .iter()
            .any(|other| other.identity().name == *name)
        {
            return Err(UsageError(format!(
                "there is a contender '{name}' already; call it something else: other={}",
                source.path.display()
            )));
        }
        contenders.push(match source.is_description() {
            false => Box::new(Guest::new(source.clone()).map_err(UsageError::new)?),
            true if !source.options.is_empty() => {
                let path = source.path.display();
                return Err(UsageError(format!(
                    "{path} describes a kernel, which takes no text after ?; write another file for a variant"
                )));
            }
            true => Box::new(KernelFile::new(name, &source.path).map_err(UsageError::new)?),
        });
    }
    Ok(())
}

/// A problem in words that tell it from every other.
pub fn fingerprint(problem: &AnyProblem) -> String {
    let workload = problem.workload();
    let axes = serde_json::to_string(&workload.axes).unwrap_or_default();
    let provenance = &workload.provenance;
    let (op, dtype, suite, name) = (
        problem.op(),
        problem.dtype(),
        &workload.suite,
        &workload.name,
    );
    format!("{op} {dtype} {suite}/{name} {axes} {provenance}")
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

/// Every workload of a file must be measured by some operation: none is dropped silently.
fn check_taken(
    bench: &str,
    given: Option<&WorkloadFile>,
    problems: &Problems,
) -> Result<(), UsageError> {
    let key = |problem: &'_ AnyProblem| (problem.workload().name.clone(), problem.op().to_owned());
    let taken: BTreeSet<(String, String)> =
        problems.iter().map(|problem| key(&**problem)).collect();
    let names: BTreeSet<&String> = taken.iter().map(|(name, _)| name).collect();
    for workload in given.iter().flat_map(|file| &file.workloads) {
        let name = &workload.name;
        let found = match &workload.op {
            Some(op) => taken.contains(&(name.clone(), op.clone())),
            None => names.contains(name),
        };
        if !found {
            let op = workload.op.as_ref().map(|op| format!(" '{op}'"));
            return Err(UsageError(format!(
                "workload '{name}': {bench} has no operation{} for it; see --list, and --mode for backward passes",
                op.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

fn check_known(what: &str, wanted: &[String], known: &[&str]) -> Result<(), UsageError> {
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(UsageError(format!(
            "no {what} '{}'; use one of {}",
            shown(name),
            known.join(", ")
        ))),
    }
}
