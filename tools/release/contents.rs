//! What an archive has: programs, what a kernel of one's own starts from, licences, digests.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::at;

/// Programs, where Bazel puts them.
const PROGRAMS: &str = env!("HEAD_TO_HEAD_PROGRAMS");
/// Files of the source tree, and where they go.
const FILES: [(&str, &str); 4] = [
    ("LICENSE", "LICENSE"),
    ("docs/YOUR_KERNEL.md", "YOUR_KERNEL.md"),
    ("tools/release/README.txt", "README.txt"),
    ("third_party/artifacts.lock.json", "artifacts.lock.json"),
];
/// What a kernel of one's own starts from, under the same names.
const STARTS: [&str; 18] = [
    "Kernels/contender.h",
    "Kernels/contender.rs",
    "Kernels/examples/gemm_cutlass/gemm.cu",
    "Kernels/examples/l2norm_kernel/kernel.json",
    "Kernels/examples/l2norm_kernel/l2norm.cu",
    "Kernels/examples/l2norm_own/l2norm.c",
    "Kernels/examples/l2norm_own/l2norm.cu",
    "Kernels/examples/l2norm_own/oracle.c",
    "Kernels/examples/l2norm_own/problem.json",
    "Kernels/examples/rmsnorm_c/rmsnorm.c",
    "Kernels/examples/rmsnorm_cuda/rmsnorm.cu",
    "Kernels/examples/rmsnorm_cudarc/Cargo.toml",
    "Kernels/examples/rmsnorm_cudarc/rmsnorm.rs",
    "Kernels/examples/rmsnorm_cute/rmsnorm.py",
    "Kernels/examples/rmsnorm_kernel/kernel.json",
    "Kernels/examples/rmsnorm_kernel/rmsnorm.cu",
    "Kernels/examples/rmsnorm_rust/rmsnorm.rs",
    "Kernels/examples/rmsnorm_triton/rmsnorm.py",
];
/// Where the texts of the licences go of what is linked into programs.
const LICENCES: &str = "licences";

/// Copies everything to a new folder.
pub fn copy(built: &Path, root: &Path, folder: &Path) -> Result<(), String> {
    for program in PROGRAMS.split_whitespace() {
        let name = Path::new(program).file_name().unwrap_or_default();
        place(&built.join(program), &folder.join(name))?;
    }
    for (from, to) in FILES {
        place(&root.join(from), &folder.join(to))?;
    }
    for file in STARTS {
        place(&root.join(file), &folder.join(file))?;
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

/// Texts that Bazel put beside the programs' tree, and where they go: `serde-1.0.229/LICENSE-MIT` of a crate,
/// `flashinfer/flashinfer_python-0.6.13.dist-info/licenses/LICENSE` of an artifact.
fn licences(built: &Path) -> Result<Vec<(PathBuf, PathBuf)>, String> {
    let repositories = built.parent().unwrap_or(built);
    let mut found = Vec::new();
    for repository in entries(repositories)? {
        if repository == built || !repository.is_dir() {
            continue;
        }
        // Bazel's names begin with who made the repository: `+artifacts+flashinfer`.
        let name = repository.file_name().unwrap_or_default().to_string_lossy();
        let name = name.rsplit(['+', '~']).next().unwrap_or_default();
        for file in files(&repository)? {
            let inside = file.strip_prefix(&repository).unwrap_or(&file);
            if !is_licence(inside) {
                continue;
            }
            let place = match name {
                "crates" => inside.to_owned(),
                name => Path::new(name).join(inside),
            };
            found.push((place, file));
        }
    }
    found.sort();
    Ok(found)
}

/// By how it or a folder on the way is called.
fn is_licence(path: &Path) -> bool {
    path.iter().any(|part| {
        let part = part.to_string_lossy().to_ascii_lowercase();
        let names = [
            "copying",
            "copyright",
            "licence",
            "license",
            "notice",
            "unlicense",
        ];
        names.iter().any(|name| part.starts_with(name))
    })
}

/// All of a folder and of those below it, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
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
    Ok(files)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| at(folder, &error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let paths: Result<Vec<PathBuf>, _> = paths.collect();
    paths.map_err(|error| at(folder, &error))
}

/// Writes SHA256SUMS, with every file but itself.
pub fn seal(folder: &Path) -> Result<(), String> {
    let mut sums = String::new();
    for file in files(folder)? {
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
    fn licences_are_those_of_crates_and_artifacts() {
        let folder = tempfile::TempDir::new().unwrap();
        for file in [
            "_main/LICENSE",
            "+_repo_rules+crates/serde-1.0.0/LICENSE-MIT",
            "+_repo_rules+crates/ring-0.17.0/LICENSES/ISC",
            "+artifacts+quack_kernels/quack-1.dist-info/licenses/AUTHORS",
            "+artifacts+nvidia_cublas/lib/libcublas.so.13",
        ] {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        let found = licences(&folder.path().join("_main")).unwrap();
        let places: Vec<&Path> = found.iter().map(|(place, _)| &**place).collect();
        assert_eq!(
            places,
            [
                "quack_kernels/quack-1.dist-info/licenses/AUTHORS",
                "ring-0.17.0/LICENSES/ISC",
                "serde-1.0.0/LICENSE-MIT",
            ]
            .map(Path::new)
        );
    }
}
