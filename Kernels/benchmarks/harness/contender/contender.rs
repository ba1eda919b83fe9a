//! An implementation under test.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use libraries::Library;

use crate::{DeviceInfo, Problem};

/// The role of an implementation in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Ours.
    Own,
    /// Somebody else's, the thing to beat.
    Baseline,
    /// Plain and slow; its output is the gate's full-tensor reference.
    Reference,
    /// One of ours once more, raced against itself.
    Control,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Own => "own",
            Kind::Baseline => "baseline",
            Kind::Reference => "reference",
            Kind::Control => "control",
        })
    }
}

/// Who a contender is, and what its time includes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub name: String,
    pub kind: Kind,
    pub version: String,
    /// Digest of the prebuilt artifact, if it is one.
    pub artifact_sha256: Option<String>,
    /// Libraries it loads at run time; the first one determines its version.
    #[serde(default)]
    pub libraries: Vec<Library>,
    /// What the timed region includes, in words: kernels, copies, planning.
    pub timed_region: String,
    /// Races only if named, like a reference: nobody would choose it here.
    #[serde(skip)]
    pub on_request: bool,
}

impl Identity {
    /// For an implementation whose source is in this repository.
    pub fn in_tree(name: &str, kind: Kind, timed_region: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            version: "in tree".to_owned(),
            artifact_sha256: None,
            libraries: Vec::new(),
            timed_region: timed_region.to_owned(),
            on_request: false,
        }
    }

    /// For somebody else's code that is compiled or linked in.
    pub fn baseline(name: &str, version: &str, sha256: Option<String>, timed_region: &str) -> Self {
        Self {
            version: version.to_owned(),
            artifact_sha256: sha256,
            ..Self::in_tree(name, Kind::Baseline, timed_region)
        }
    }

    /// The release of the library, without the revision of the recipe that compiled it.
    pub fn release(&self) -> &str {
        let version = &self.version;
        version
            .split_once('+')
            .map_or(version, |(release, _)| release)
    }

    /// Of a release, and known by it: `quack@0.6.4`, compiled by the same revision of the recipe. Nothing of another
    /// release is linked in, so it has no prebuilt artifact.
    pub fn at(&self, release: &str) -> Self {
        let own = self.release();
        let linked = own == release;
        let revision = &self.version[own.len()..];
        Self {
            name: format!("{}@{release}", self.name),
            version: format!("{release}{revision}"),
            artifact_sha256: self.artifact_sha256.clone().filter(|_| linked),
            ..self.clone()
        }
    }

    /// For libraries loaded at run time: the first one determines the version, and the artifact if its
    /// bytes match the lock.
    pub fn loaded(name: &str, libraries: Vec<Library>, timed_region: &str) -> Self {
        let first = libraries.first();
        let version = first.map_or("absent", |library| &library.version);
        let artifact = first.and_then(|library| library.artifact.as_ref());
        let sha256 = artifact.map(|artifact| artifact.sha256.clone());
        Self {
            libraries: libraries.clone(),
            ..Self::baseline(name, version, sha256, timed_region)
        }
    }
}

/// Releases of a contender's library beside its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    pub others: Vec<String>,
    /// The command that pins one more.
    pub pin: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    Yes,
    /// With the reason, which goes into the row.
    No(String),
}

/// Memory of one tensor: host memory on the CPU, device memory on CUDA; 256-byte aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub address: usize,
    pub bytes: usize,
}

/// A `CUstream`; 0 on the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub usize);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ContenderError(pub String);

impl ContenderError {
    pub fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

/// An implementation of a problem.
pub trait Contender<P: Problem + ?Sized> {
    fn identity(&self) -> &Identity;

    fn supports(&self, problem: &P, device: &DeviceInfo) -> Support;

    /// What `artifacts` is called with to build the kernel that a problem lacks on an arch (`sm_90a`); none if it is
    /// there, or if nothing would build it.
    fn missing(&self, _problem: &P, _arch: &str) -> Option<Vec<String>> {
        None
    }

    /// Other releases of its library that can race too, under the name `<name>@<release>`; see [`Contender::at`].
    /// None if its library comes in one release only.
    fn releases(&self) -> Option<Pinned> {
        None
    }

    /// The same of one of its releases, or of its own; none if that is not pinned.
    fn at(&self, _release: &str) -> Option<Box<dyn Contender<P>>> {
        None
    }

    /// The name of a problem's plan, if it is slow to make and another process can make it. Equal
    /// names mean equal plans.
    fn plan_name(&self, _problem: &P, _device: &DeviceInfo) -> Option<String> {
        None
    }

    /// Makes and serialises that plan, in the other process; none if that is not possible.
    fn write_plan(&self, _problem: &P) -> Option<String> {
        None
    }

    /// Whether its buffers must be nobody else's: a process of its own maps them, and may write to them at any time.
    fn has_own_buffers(&self, _device: &DeviceInfo) -> bool {
        false
    }

    /// Accepts a serialised plan before it is needed. One may never come.
    fn take_plan(&self, _problem: &P, _plan: &str) {}

    /// Prepares for one set of buffers, in the order of [`Problem::tensors`]. Called once per rotating
    /// set: planning and workspace allocation belong here, outside the timed region.
    fn bind(
        &self,
        problem: &P,
        buffers: &[Buffer],
        device: &DeviceInfo,
    ) -> Result<Box<dyn Bound>, ContenderError>;
}

/// Everybody who competes.
pub type Contenders<P> = Vec<Box<dyn Contender<P>>>;

/// What a contender chose for a problem, for the row: tile, kernel, planning time.
pub type Facts = BTreeMap<String, serde_json::Value>;

/// Among the facts: host time that making the plan took.
pub const PLAN_US: &str = "plan_us";

/// A contender with its buffers.
pub trait Bound {
    /// Does the work once: on CUDA asynchronously and only on `stream`, on the CPU synchronously.
    fn enqueue(&mut self, stream: Stream) -> Result<(), ContenderError>;

    /// How long the last execution took, where the device's clock around `enqueue` would count more than that; none
    /// if it would not.
    fn elapsed(&self) -> Option<Duration> {
        None
    }

    /// Has inputs arrive only when the next execution starts; false, and nothing is kept, if it cannot start before.
    fn deliver(&mut self, _inputs: &[(Buffer, Vec<u8>)]) -> bool {
        false
    }

    /// Reads once more what `bind` may have read: inputs that are the same for every seed, such as scales, have been
    /// replaced. Only the gate does that, and checks the next execution on them.
    fn reread(&mut self) -> Result<(), ContenderError> {
        Ok(())
    }

    /// Called once, for the first set of buffers, before anything is timed.
    fn facts(&self) -> Facts {
        Facts::new()
    }
}
