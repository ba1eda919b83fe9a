//! The folder that a kernel starts in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::language::{Beside, Language};

/// The example of an operation that the harness does not know; its folders begin with it.
const OWN: &str = "l2norm";

/// Writes a folder from the examples of the repository at `root`; the error is a sentence with a remedy.
pub fn write(root: &Path, name: &str, language: Language, into: &Path) -> Result<(), String> {
    let (known, bench, op) = language.start();
    if name != known {
        return Err(format!(
            "there is no '{name}' in {} to start from; start from {known}, and change it",
            language.word()
        ));
    }
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
    let beside = language.beside().map(|beside| match beside {
        Beside::Interface(file) => kernels.join(file),
        Beside::Example(file) => example.join(file),
    });
    let build = language.build_line(name);
    let readme = readme(name, language, &build, (bench, op), root);
    let mut files = Vec::new();
    for from in [example.join(&source)].into_iter().chain(beside) {
        files.push((file_name(&from), read(&from)?));
    }
    place(into, files, &build, &readme)
}

/// The same for an operation that the harness does not know, under its name.
pub fn write_own(root: &Path, name: &str, language: Language, into: &Path) -> Result<(), String> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    if !name.starts_with(letter) || !name.chars().all(|c| letter(c) || c.is_ascii_digit()) {
        return Err(format!(
            "'{name}' is no name for an operation: use letters, digits and _, not a digit first"
        ));
    }
    if into.exists() {
        return Err(format!(
            "{} exists already; choose another folder with --into",
            into.display()
        ));
    }
    let kernels = root.join("Kernels");
    let examples = kernels.join("examples");
    let (operation, kernel) = (
        examples.join(format!("{OWN}_own")),
        examples.join(format!("{OWN}_kernel")),
    );
    let mut from = vec![
        operation.join("problem.json"),
        operation.join("oracle.c"),
        kernels.join("contender.h"),
    ];
    from.extend(match language {
        Language::C | Language::Cuda => vec![operation.join(language.source(OWN))],
        Language::Kernel => vec![kernel.join(language.source(OWN)), kernel.join("kernel.json")],
        _ => {
            return Err(
                "an operation of your own starts in c, cuda or kernel; a contender for it may be in any language"
                    .into(),
            )
        }
    });
    let mut files = Vec::new();
    for path in &from {
        let file = file_name(path);
        files.push((file.replace(OWN, name), read(path)?.replace(OWN, name)));
    }
    let oracle = Language::ORACLE_LINE;
    let build = format!("{oracle}\n{}", language.build_line(name));
    place(into, files, &build, &own_readme(name, language, root))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot copy {}: {error}", path.display()))
}

/// Makes the folder.
fn place(
    into: &Path,
    files: Vec<(String, String)>,
    build: &str,
    readme: &str,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", into.display());
    fs::create_dir_all(into).map_err(failed)?;
    for (name, text) in files {
        fs::write(into.join(name), text).map_err(failed)?;
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
    let timed = match language.is_kernel() {
        true => "`kernel.json` says how it is launched, and the launch is timed",
        false => "`enqueue` is timed, `bind` is not",
    };
    let (first, program) = program(root, bench);
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

/// What to do before a bench can be run, and how it is called: a checkout is built, a release has programs.
fn program(root: &Path, bench: &str) -> (String, String) {
    let (root, built) = (root.display(), root.join("MODULE.bazel").exists());
    match built {
        true => (
            format!("`(cd {root} && ./bazelw build //Kernels/benchmarks/comparison:{bench})` once, then\n   "),
            format!("{root}/bazel-bin/Kernels/benchmarks/comparison/{bench}"),
        ),
        false => (String::new(), format!("{root}/{bench}")),
    }
}

fn own_readme(name: &str, language: Language, root: &Path) -> String {
    let (source, contender) = (language.source(name), language.contender(name));
    let (first, program) = program(root, "bench_own");
    format!(
        "# {name}, an operation of your own\n\
         \n\
         1. `problem.json` says what to compute (axes, shapes, tensors, cost, tolerance), `oracle.c` what is correct, \
         in f64.\n\
         2. Edit `{source}`, the contender. Build both: `./build.sh`\n\
         3. Race: {first}`{program} --problem problem.json --oracle ./liboracle.so --contender ./{contender}`\n\
         \n\
         More contenders: `--contender other=./libother.so`, each compared with the last. More shapes: \
         `--configs 4096x7168`.\n\
         A wrong, crashing or hanging contender gets a row with the reason. Everything else: docs/YOUR_KERNEL.md.\n"
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
            ("Kernels/examples/rmsnorm_cute/rmsnorm.py", "CuTe DSL"),
            ("Kernels/examples/rmsnorm_triton/rmsnorm.py", "Triton"),
            ("Kernels/examples/gemm_cutlass/gemm.cu", "CUTLASS"),
            ("Kernels/examples/l2norm_own/problem.json", "op l2norm"),
            ("Kernels/examples/l2norm_own/oracle.c", "answers l2norm"),
            ("Kernels/examples/l2norm_own/l2norm.c", "l2norm in C"),
            ("Kernels/examples/l2norm_kernel/l2norm.cu", "kernel l2norm"),
            ("Kernels/examples/l2norm_kernel/kernel.json", "l2norm.ptx"),
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
    fn a_script_writes_its_description_itself() {
        let root = repository();
        for (language, text, line) in [
            (Language::Cute, "CuTe DSL", "--arch sm_90a"),
            (Language::Triton, "Triton", "--capability 90"),
        ] {
            let into = root.path().join(language.word());
            write(root.path(), "rmsnorm", language, &into).unwrap();
            let read = |name: &str| fs::read_to_string(into.join(name)).unwrap();
            assert_eq!(read("rmsnorm.py"), text);
            assert!(!into.join("kernel.json").exists());
            assert!(read("build.sh").contains(&format!("python3 rmsnorm.py {line}")));
            assert!(read("README.md").contains("--contender ./kernel.json"));
        }
    }

    #[test]
    fn cutlass_starts_from_a_gemm() {
        let root = repository();
        let into = root.path().join("mine");
        let other = write(root.path(), "rmsnorm", Language::Cutlass, &into).unwrap_err();
        assert!(
            other.contains("in cutlass to start from; start from gemm"),
            "{other}"
        );
        write(root.path(), "gemm", Language::Cutlass, &into).unwrap();
        let text = |name: &str| fs::read_to_string(into.join(name)).unwrap();
        assert_eq!(
            (&*text("gemm.cu"), &*text("contender.h")),
            ("CUTLASS", "header")
        );
        assert!(text("build.sh").contains("${CUTLASS:?set it"));
        let readme = text("README.md");
        assert!(
            readme.contains("bench_gemm --op gemm --dtype bf16"),
            "{readme}"
        );
        assert!(readme.lines().count() <= 10, "{readme}");
    }

    #[test]
    fn an_operation_of_ones_own_has_its_name_everywhere() {
        let root = repository();
        let into = root.path().join("mine");
        write_own(root.path(), "glu", Language::C, &into).unwrap();
        let text = |name: &str| fs::read_to_string(into.join(name)).unwrap();
        assert_eq!(text("problem.json"), "op glu");
        assert_eq!(
            (&*text("oracle.c"), &*text("glu.c")),
            ("answers glu", "glu in C")
        );
        assert_eq!(text("contender.h"), "header");
        let build = text("build.sh");
        assert!(
            build.contains("-o liboracle.so oracle.c") && build.contains("-o libglu.so glu.c"),
            "{build}"
        );
        let readme = text("README.md");
        assert!(readme.lines().count() <= 10, "{readme}");
        assert!(
            readme.contains("bench_own --problem problem.json"),
            "{readme}"
        );
        let kernel = root.path().join("kernel");
        write_own(root.path(), "glu", Language::Kernel, &kernel).unwrap();
        assert_eq!(
            fs::read_to_string(kernel.join("kernel.json")).unwrap(),
            "glu.ptx"
        );
        let refused =
            |name: &str, language| write_own(root.path(), name, language, &into).unwrap_err();
        assert!(refused("a b", Language::C).contains("is no name"));
        assert!(refused("glu", Language::C).contains("exists already"));
        let rust = write_own(root.path(), "glu", Language::Rust, &root.path().join("r"));
        assert!(rust.unwrap_err().contains("c, cuda or kernel"));
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
