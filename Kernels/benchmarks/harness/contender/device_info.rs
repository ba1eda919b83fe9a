//! Device properties that contenders base choices on and results record.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    Cpu,
    Cuda,
    /// Kernels as PTX, interpreted on the CPU: checked, never timed.
    Ptx,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown device '{0}'; use cpu, cuda or ptx")]
pub struct UnknownDevice(pub String);

impl DeviceKind {
    /// What runs the kernels of a build for `arch`; PTX has virtual architectures.
    pub fn built_for(arch: &str) -> DeviceKind {
        match arch {
            "none" => DeviceKind::Cpu,
            arch if arch.starts_with("compute_") => DeviceKind::Ptx,
            _ => DeviceKind::Cuda,
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Ptx => "ptx",
        })
    }
}

impl FromStr for DeviceKind {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        match text {
            "cpu" => Ok(DeviceKind::Cpu),
            "cuda" => Ok(DeviceKind::Cuda),
            "ptx" => Ok(DeviceKind::Ptx),
            _ => Err(UnknownDevice(text.to_owned())),
        }
    }
}

/// The fixed properties of a device. Readings that change belong to the device crate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    pub kind: DeviceKind,
    pub name: String,
    pub uuid: Option<String>,
    /// `sm_90a`, `x86_64`, ...
    pub arch: String,
    /// Major and minor; none on the CPU.
    pub compute_capability: Option<(u32, u32)>,
    /// Streaming multiprocessors, or CPU cores.
    pub multiprocessors: u32,
    /// Last-level cache.
    pub l2_bytes: u64,
    pub memory_bytes: u64,
    /// Maximum opt-in shared memory per block; 0 on the CPU.
    pub shared_bytes_per_block: u32,
    /// Kernels are emulated, by an interpreter or on a card of another architecture: checked, never timed.
    pub emulated: bool,
}

impl DeviceInfo {
    /// Why machine code without PTX does not run here, if it does not.
    pub fn obstacle_to_machine_code(&self) -> Option<String> {
        let reason = "machine code without PTX to interpret or rewrite";
        self.emulated.then(|| reason.to_owned())
    }

    /// Why what runs on one kind of device does not run here, if it does not.
    pub fn obstacle_to(&self, kind: DeviceKind) -> Option<String> {
        let (only, here) = match kind {
            DeviceKind::Cpu => ("runs on the CPU only", self.kind == DeviceKind::Cpu),
            // The interpreter takes the place of the CUDA runtime.
            DeviceKind::Cuda => ("runs on CUDA only", self.kind != DeviceKind::Cpu),
            DeviceKind::Ptx => ("runs as PTX only", self.kind == DeviceKind::Ptx),
        };
        (!here).then(|| only.to_owned())
    }
}
