//! The folder that a kernel starts in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::language::{Beside, Language};

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
    let source = language.source(name);
    let kernels = root.join("Kernels");
    let example = kernels
        .join("examples")
        .join(format!("{name}_{}", language.word()));
    let (beside, other) = match language.beside() {
        Beside::Interface(file) => (kernels.join(file), file),
        Beside::Example(file) => (example.join(file), file),
    };
    let build = language.build_line(name);
    let readme = readme(name, language, &build, (bench, op), root);
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", into.display());
    fs::create_dir_all(into).map_err(failed)?;
    for (from, to) in [(example.join(&source), &*source), (beside, other)] {
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
    language: Language,
    build: &str,
    (bench, op): (&str, &str),
    root: &Path,
) -> String {
    let (source, contender, dtype) = (
        language.source(name),
        language.contender(name),
        language.dtype(),
    );
    let timed = match language {
        Language::Kernel => "`kernel.json` says how it is launched, and the launch is timed",
        _ => "`enqueue` is timed, `bind` is not",
    };
    // A checkout is built, a release has programs.
    let (root, built) = (root.display(), root.join("MODULE.bazel").exists());
    let (first, program) = match built {
        true => (
            format!("`(cd {root} && ./bazelw build //Kernels/benchmarks/comparison:{bench})` once, then\n   "),
            format!("{root}/bazel-bin/Kernels/benchmarks/comparison/{bench}"),
        ),
        false => (String::new(), format!("{root}/{bench}")),
    };
    format!(
        "# {name}, a kernel of your own\n\
         \n\
         1. Edit `{source}`: {timed}.\n\
         2. Build: `./build.sh` ({build})\n\
         3. Race: {first}`{program} --op {op} --dtype {dtype} --contender ./{contender}`\n\
         \n\
         A wrong, crashing or hanging kernel gets a row with the reason. More shapes: `--suite`, \
         `--configs 4096x7168`;\n\
         again after every save: `--watch --build ./build.sh`. Everything else: docs/YOUR_KERNEL.md.\n"
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
            ("Kernels/examples/rmsnorm_kernel/rmsnorm.cu", "kernel"),
            ("Kernels/examples/rmsnorm_kernel/kernel.json", "description"),
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
    fn a_kernel_comes_with_its_description() {
        let root = repository();
        fs::write(root.path().join("MODULE.bazel"), "").unwrap();
        let into = root.path().join("mine");
        write(root.path(), "rmsnorm", Language::Kernel, &into).unwrap();
        let text = |name: &str| fs::read_to_string(into.join(name)).unwrap();
        assert_eq!(
            (&*text("rmsnorm.cu"), &*text("kernel.json")),
            ("kernel", "description")
        );
        assert!(text("build.sh").contains("-ptx -o rmsnorm.ptx"));
        let readme = text("README.md");
        assert!(
            readme.contains("--contender ./kernel.json") && readme.contains("bazelw build"),
            "{readme}"
        );
        assert!(readme.lines().count() <= 10, "{readme}");
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
