//! What a kernel is written in.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    C,
    Cuda,
    /// CUDA C++ without host code: PTX, and a kernel.json that says how to launch it.
    Kernel,
    Rust,
}

pub enum Beside {
    Interface(&'static str),
    Example(&'static str),
}

impl Language {
    /// The command that builds an oracle.
    pub const ORACLE_LINE: &'static str = "cc -O3 -shared -fPIC -o liboracle.so oracle.c -lm";

    /// The example's folder ends with it.
    pub fn word(self) -> &'static str {
        match self {
            Language::C => "c",
            Language::Cuda => "cuda",
            Language::Kernel => "kernel",
            Language::Rust => "rust",
        }
    }

    /// The source that everybody edits first.
    pub fn source(self, name: &str) -> String {
        match self {
            Language::C => format!("{name}.c"),
            Language::Cuda | Language::Kernel => format!("{name}.cu"),
            Language::Rust => format!("{name}.rs"),
        }
    }

    /// What lies beside the source: a file of the repository's `Kernels`, or of the example itself.
    pub fn beside(self) -> Beside {
        match self {
            Language::C | Language::Cuda => Beside::Interface("contender.h"),
            Language::Kernel => Beside::Example("kernel.json"),
            Language::Rust => Beside::Interface("contender.rs"),
        }
    }

    /// What is raced.
    pub fn contender(self, name: &str) -> String {
        match self {
            Language::Kernel => "kernel.json".to_owned(),
            _ => format!("lib{name}.so"),
        }
    }

    /// The command that builds a library, with plain tools.
    pub fn build_line(self, name: &str) -> String {
        let library = format!("lib{name}.so");
        match self {
            Language::C => format!("cc -O3 -march=native -shared -fPIC -o {library} {name}.c -lm"),
            Language::Cuda => {
                format!("nvcc -O3 -arch=native -shared -Xcompiler -fPIC -o {library} {name}.cu")
            }
            Language::Kernel => format!("nvcc -O3 -arch=compute_80 -ptx -o {name}.ptx {name}.cu"),
            Language::Rust => format!(
                "rustc --edition 2021 -O -C target-cpu=native --crate-type cdylib -o {library} {name}.rs"
            ),
        }
    }

    /// The type that the example knows.
    pub fn dtype(self) -> &'static str {
        match self {
            Language::C | Language::Cuda | Language::Kernel => "bf16",
            Language::Rust => "f32",
        }
    }
}
