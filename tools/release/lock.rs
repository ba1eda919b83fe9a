//! What the artifact lock says of what programs contain and load.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
pub struct Lock {
    artifacts: Vec<Artifact>,
}

#[derive(Deserialize)]
pub struct Artifact {
    pub name: String,
    pub version: String,
    pub licence: String,
    pub redistributable: bool,
    pub upstream: String,
    /// Files that programs load, with their sha256.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// Linked into everything that has kernels.
const CUDA_RUNTIME: &str = "nvidia-cuda-runtime";

impl Lock {
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| crate::at(path, &error))?;
        Self::parse(&text).map_err(|error| crate::at(path, &error))
    }

    fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// What is linked into programs for `arch`, `sm_90a+sm_100a` say, and may not be passed on.
    pub fn not_to_be_passed_on(&self, arch: &str) -> Vec<String> {
        if arch == "none" {
            return Vec::new();
        }
        let cpu = match std::env::consts::ARCH {
            "x86_64" => String::new(),
            other => format!("-{other}"),
        };
        let linked = |artifact: &&Artifact| {
            let name = &artifact.name;
            let of_arch = |sm: &str| name.ends_with(&format!("-{sm}{cpu}"));
            *name == format!("{CUDA_RUNTIME}{cpu}") || arch.split('+').any(of_arch)
        };
        let bound = self.artifacts.iter().filter(linked);
        let bound = bound.filter(|artifact| !artifact.redistributable);
        bound
            .map(|artifact| format!("{} ({})", artifact.name, artifact.licence))
            .collect()
    }

    /// Libraries that programs load: those of the CPU, and with CUDA the others too.
    pub fn loaded(&self, cuda: bool) -> impl Iterator<Item = &Artifact> {
        let loaded = self
            .artifacts
            .iter()
            .filter(|artifact| !artifact.files.is_empty());
        let of_cuda = |name: &str| name.starts_with("nvidia-") || name.ends_with("-cu13");
        loaded.filter(move |artifact| cuda || !of_cuda(&artifact.name))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn lock() -> Lock {
        let artifact = |name: &str, redistributable: bool, file: &str| {
            let files = match file {
                "" => String::new(),
                file => format!(", \"files\": {{\"a/lib/{file}\": \"{}\"}}", "ab".repeat(32)),
            };
            format!(
                "{{\"name\": \"{name}\", \"version\": \"1\", \"licence\": \"L\", \"upstream\": \"u\", \
                 \"redistributable\": {redistributable}{files}}}"
            )
        };
        let all = [
            artifact("nvidia-cuda-runtime", false, ""),
            artifact("quack-sm_90a", false, ""),
            artifact("quack-sm_100a", false, ""),
            artifact("liger-sm_90a", true, ""),
            artifact("nvidia-cublas", false, "libcublas.so.13"),
            artifact("onednn-cpu", true, "libdnnl.so.3"),
            artifact("engine-cu13", true, "libengine.so"),
        ];
        Lock::parse(&format!("{{\"artifacts\": [{}]}}", all.join(", "))).unwrap()
    }

    #[test]
    fn what_is_linked_and_bound_is_named() {
        assert!(lock().not_to_be_passed_on("none").is_empty());
        let bound = lock().not_to_be_passed_on("sm_90a");
        assert_eq!(bound, ["nvidia-cuda-runtime (L)", "quack-sm_90a (L)"]);
    }

    #[test]
    fn the_cpu_loads_nothing_of_cuda() {
        let names = |cuda| -> Vec<String> {
            let lock = lock();
            let names = lock.loaded(cuda).map(|artifact| artifact.name.clone());
            names.collect()
        };
        assert_eq!(names(false), ["onednn-cpu"]);
        assert_eq!(names(true), ["nvidia-cublas", "onednn-cpu", "engine-cu13"]);
    }
}
