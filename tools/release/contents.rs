//! What an archive has: programs, what a kernel of one's own starts from, licences, digests.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::at;

/// Programs, where Bazel builds them.
const PROGRAMS: [&str; 14] = [
    "Kernels/benchmarks/comparison/bench_decode",
    "Kernels/benchmarks/comparison/bench_gemm",
    "Kernels/benchmarks/comparison/bench_grouped_gemm",
    "Kernels/benchmarks/comparison/bench_mla_decode",
    "Kernels/benchmarks/comparison/bench_norms",
    "Kernels/benchmarks/comparison/bench_nsa",
    "Kernels/benchmarks/comparison/bench_own",
    "Kernels/benchmarks/comparison/bench_prefill",
    "Kernels/benchmarks/comparison/bench_roofline",
    "Kernels/benchmarks/comparison/bench_training_ops",
    "Kernels/benchmarks/comparison/suite",
    "Kernels/benchmarks/report/report",
    "tools/artifacts/artifacts",
    "tools/kit/kit",
];
/// Files of the source tree, and where they go.
const FILES: [(&str, &str); 17] = [
    ("LICENSE", "LICENSE"),
    ("docs/YOUR_KERNEL.md", "YOUR_KERNEL.md"),
    ("tools/release/README.txt", "README.txt"),
    ("third_party/artifacts.lock.json", "artifacts.lock.json"),
    ("Kernels/contender.h", "Kernels/contender.h"),
    ("Kernels/contender.rs", "Kernels/contender.rs"),
    (
        "Kernels/examples/l2norm_kernel/kernel.json",
        "Kernels/examples/l2norm_kernel/kernel.json",
    ),
    (
        "Kernels/examples/l2norm_kernel/l2norm.cu",
        "Kernels/examples/l2norm_kernel/l2norm.cu",
    ),
    (
        "Kernels/examples/l2norm_own/l2norm.c",
        "Kernels/examples/l2norm_own/l2norm.c",
    ),
    (
        "Kernels/examples/l2norm_own/l2norm.cu",
        "Kernels/examples/l2norm_own/l2norm.cu",
    ),
    (
        "Kernels/examples/l2norm_own/oracle.c",
        "Kernels/examples/l2norm_own/oracle.c",
    ),
    (
        "Kernels/examples/l2norm_own/problem.json",
        "Kernels/examples/l2norm_own/problem.json",
    ),
    (
        "Kernels/examples/rmsnorm_c/rmsnorm.c",
        "Kernels/examples/rmsnorm_c/rmsnorm.c",
    ),
    (
        "Kernels/examples/rmsnorm_cuda/rmsnorm.cu",
        "Kernels/examples/rmsnorm_cuda/rmsnorm.cu",
    ),
    (
        "Kernels/examples/rmsnorm_kernel/rmsnorm.cu",
        "Kernels/examples/rmsnorm_kernel/rmsnorm.cu",
    ),
    (
        "Kernels/examples/rmsnorm_kernel/kernel.json",
        "Kernels/examples/rmsnorm_kernel/kernel.json",
    ),
    (
        "Kernels/examples/rmsnorm_rust/rmsnorm.rs",
        "Kernels/examples/rmsnorm_rust/rmsnorm.rs",
    ),
];
/// Where the texts of the crates' licences go, which are linked into every program.
const LICENCES: &str = "licences";

/// Copies everything to a new folder.
pub fn copy(built: &Path, root: &Path, folder: &Path) -> Result<(), String> {
    for program in PROGRAMS {
        let name = Path::new(program).file_name().unwrap_or_default();
        place(&built.join(program), &folder.join(name))?;
    }
    for (from, to) in FILES {
        place(&root.join(from), &folder.join(to))?;
    }
    let texts = licences(built)?;
    if texts.is_empty() {
        return Err("the licences of the crates are not among the runfiles".into());
    }
    for (name, path) in texts {
        place(&path, &folder.join(LICENCES).join(name))?;
    }
    Ok(())
}

fn place(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(|error| at(folder, &error))?;
    fs::copy(from, to).map_err(|error| at(from, &error))?;
    Ok(())
}

/// Files that Bazel put beside the programs' tree, as `serde-1.0.229/LICENSE-MIT`.
fn licences(built: &Path) -> Result<Vec<(PathBuf, PathBuf)>, String> {
    let repositories = built.parent().unwrap_or(built);
    let mut found = Vec::new();
    for repository in entries(repositories)? {
        if !repository.to_string_lossy().ends_with("crates") {
            continue;
        }
        for krate in entries(&repository)?
            .into_iter()
            .filter(|path| path.is_dir())
        {
            for file in entries(&krate)?.into_iter().filter(|path| path.is_file()) {
                let name = file.strip_prefix(&repository).unwrap_or(&file);
                found.push((name.to_owned(), file.clone()));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| at(folder, &error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let paths: Result<Vec<PathBuf>, _> = paths.collect();
    paths.map_err(|error| at(folder, &error))
}

/// Writes SHA256SUMS, with every file but itself.
pub fn seal(folder: &Path) -> Result<(), String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in entries(&next)? {
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files.sort();
    let mut sums = String::new();
    for file in files {
        let bytes = fs::read(&file).map_err(|error| at(&file, &error))?;
        let digest: String = Sha256::digest(bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let name = file.strip_prefix(folder).unwrap_or(&file);
        sums += &format!("{digest}  {}\n", name.display());
    }
    let path = folder.join("SHA256SUMS");
    fs::write(&path, sums).map_err(|error| at(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed_with_its_digest() {
        let folder = tempfile::TempDir::new().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/empty"), "").unwrap();
        seal(folder.path()).unwrap();
        let sums = fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sums, format!("{empty}  a/empty\n"));
    }

    #[test]
    fn licences_are_those_of_the_crates() {
        let folder = tempfile::TempDir::new().unwrap();
        let crates = folder.path().join("+_repo_rules+crates/serde-1.0.0");
        fs::create_dir_all(&crates).unwrap();
        fs::create_dir_all(folder.path().join("_main")).unwrap();
        fs::write(crates.join("LICENSE-MIT"), "text").unwrap();
        let found = licences(&folder.path().join("_main")).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, Path::new("serde-1.0.0/LICENSE-MIT"));
    }
}
