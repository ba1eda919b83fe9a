//! The folder that a kernel starts in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::language::Language;

/// What there is to start from: a name, the bench and the operation.
const STARTS: [(&str, &str, &str); 1] = [("rmsnorm", "bench_norms", "rmsnorm_fwd")];

/// Writes a folder from the examples of the repository at `root`; the error is a sentence with a remedy.
pub fn write(root: &Path, name: &str, language: Language, into: &Path) -> Result<(), String> {
    let start = STARTS.iter().find(|(known, ..)| *known == name);
    let Some((_, bench, op)) = start else {
        let known: Vec<&str> = STARTS.iter().map(|(known, ..)| *known).collect();
        return Err(format!(
            "there is nothing called '{name}' to start from; start from {}, and change it",
            known.join(", ")
        ));
    };
    if into.exists() {
        return Err(format!(
            "{} exists already; choose another folder with --into",
            into.display()
        ));
    }
    let (folder, ending) = language.endings();
    let source = format!("{name}.{ending}");
    let kernels = root.join("Kernels");
    let example = kernels.join("examples").join(format!("{name}_{folder}"));
    let build = language.build_line(name);
    let readme = readme(name, &source, &build, (bench, op, language.dtype()), root);
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", into.display());
    fs::create_dir_all(into).map_err(failed)?;
    for (from, to) in [
        (example.join(&source), &*source),
        (kernels.join(language.interface()), language.interface()),
    ] {
        fs::copy(&from, into.join(to))
            .map_err(|error| format!("cannot copy {}: {error}", from.display()))?;
    }
    let script = into.join("build.sh");
    fs::write(
        &script,
        format!("#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")\"\n{build}\n"),
    )
    .map_err(failed)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    fs::write(into.join("README.md"), readme).map_err(failed)
}

fn readme(
    name: &str,
    source: &str,
    build: &str,
    (bench, op, dtype): (&str, &str, &str),
    root: &Path,
) -> String {
    let root = root.display();
    format!(
        "# {name}, a kernel of your own\n\
         \n\
         1. Edit `{source}`: `enqueue` is timed, `bind` is not.\n\
         2. Build: `./build.sh` ({build})\n\
         3. Race: `(cd {root} && ./bazelw build //Kernels/benchmarks/comparison:{bench})` once, then\n\
         \u{20}  `{root}/bazel-bin/Kernels/benchmarks/comparison/{bench} --op {op} --dtype {dtype} \
         --contender ./lib{name}.so`\n\
         \n\
         A wrong, crashing or hanging kernel gets a row with the reason. More shapes: `--suite`, \
         `--configs 4096x7168`;\n\
         variants of yours: `--contender fast=./lib{name}.so?variant=2`. Everything else: docs/YOUR_KERNEL.md.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with as much as the kit reads.
    fn repository() -> tempfile::TempDir {
        let root = tempfile::TempDir::new().unwrap();
        for (file, text) in [
            ("Kernels/contender.h", "header"),
            ("Kernels/contender.rs", "bindings"),
            ("Kernels/examples/rmsnorm_c/rmsnorm.c", "source in C"),
            ("Kernels/examples/rmsnorm_rust/rmsnorm.rs", "source in Rust"),
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_folder_has_all_that_it_takes() {
        let root = repository();
        let into = root.path().join("mine");
        write(root.path(), "rmsnorm", Language::C, &into).unwrap();
        let text = |name: &str| fs::read_to_string(into.join(name)).unwrap();
        assert_eq!(
            (&*text("rmsnorm.c"), &*text("contender.h")),
            ("source in C", "header")
        );
        assert!(text("build.sh").contains("cc -O3"));
        let readme = text("README.md");
        assert!(readme.lines().count() <= 10, "{readme}");
        assert!(readme.contains("--contender ./librmsnorm.so"), "{readme}");
        let rust = root.path().join("rust");
        write(root.path(), "rmsnorm", Language::Rust, &rust).unwrap();
        assert!(rust.join("contender.rs").exists() && rust.join("rmsnorm.rs").exists());
    }

    #[test]
    fn nothing_is_overwritten_and_unknown_names_are_told() {
        let root = repository();
        let taken = write(root.path(), "rmsnorm", Language::C, root.path()).unwrap_err();
        assert!(taken.contains("exists already"), "{taken}");
        let into = root.path().join("new");
        let unknown = write(root.path(), "conv", Language::C, &into).unwrap_err();
        assert!(unknown.contains("start from rmsnorm"), "{unknown}");
        assert!(!into.exists());
    }
}
