//! What a kernel is written in.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    C,
    Cuda,
    Rust,
}

impl Language {
    /// The ending of an example's folder, and of its source.
    pub fn endings(self) -> (&'static str, &'static str) {
        match self {
            Language::C => ("c", "c"),
            Language::Cuda => ("cuda", "cu"),
            Language::Rust => ("rust", "rs"),
        }
    }

    /// The interface that its source includes, in the repository's `Kernels`.
    pub fn interface(self) -> &'static str {
        match self {
            Language::C | Language::Cuda => "contender.h",
            Language::Rust => "contender.rs",
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
            Language::Rust => format!(
                "rustc --edition 2021 -O -C target-cpu=native --crate-type cdylib -o {library} {name}.rs"
            ),
        }
    }

    /// The type that the example knows.
    pub fn dtype(self) -> &'static str {
        match self {
            Language::C | Language::Cuda => "bf16",
            Language::Rust => "f32",
        }
    }
}
