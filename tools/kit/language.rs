//! What a kernel is written in.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    C,
    Cuda,
    /// CUDA C++ with CUTLASS, of which a checkout is needed.
    Cutlass,
    /// CUDA C++ without host code: PTX, and a kernel.json that says how to launch it.
    Kernel,
    /// CuTe DSL, whose script writes both.
    Cute,
    /// Triton, the same.
    Triton,
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
            Language::Cutlass => "cutlass",
            Language::Kernel => "kernel",
            Language::Cute => "cute",
            Language::Triton => "triton",
            Language::Rust => "rust",
        }
    }

    /// What there is to start from: a name, the bench and the operation.
    pub fn start(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Language::Cutlass => ("gemm", "bench_gemm", "gemm"),
            _ => ("rmsnorm", "bench_norms", "rmsnorm_fwd"),
        }
    }

    /// The source that everybody edits first.
    pub fn source(self, name: &str) -> String {
        let ending = match self {
            Language::C => "c",
            Language::Cuda | Language::Cutlass | Language::Kernel => "cu",
            Language::Cute | Language::Triton => "py",
            Language::Rust => "rs",
        };
        format!("{name}.{ending}")
    }

    /// What lies beside the source: a file of the repository's `Kernels`, or of the example itself.
    pub fn beside(self) -> Option<Beside> {
        match self {
            Language::C | Language::Cuda | Language::Cutlass => {
                Some(Beside::Interface("contender.h"))
            }
            Language::Kernel => Some(Beside::Example("kernel.json")),
            Language::Cute | Language::Triton => None,
            Language::Rust => Some(Beside::Interface("contender.rs")),
        }
    }

    /// Whether it is a kernel without host code.
    pub fn is_kernel(self) -> bool {
        matches!(self, Language::Kernel | Language::Cute | Language::Triton)
    }

    /// What is raced.
    pub fn contender(self, name: &str) -> String {
        match self.is_kernel() {
            true => "kernel.json".to_owned(),
            false => format!("lib{name}.so"),
        }
    }

    /// The command that builds what is raced, with plain tools.
    pub fn build_line(self, name: &str) -> String {
        let library = format!("lib{name}.so");
        match self {
            Language::C => format!("cc -O3 -march=native -shared -fPIC -o {library} {name}.c -lm"),
            Language::Cuda => {
                format!("nvcc -O3 -arch=native -shared -Xcompiler -fPIC -o {library} {name}.cu")
            }
            Language::Cutlass => format!(
                "nvcc -O3 -DNDEBUG -std=c++17 -gencode arch=compute_90a,code=sm_90a --expt-relaxed-constexpr \
                 -I\"${{CUTLASS:?set it to a checkout of CUTLASS}}/include\" \
                 -shared -Xcompiler -fPIC -o {library} {name}.cu"
            ),
            Language::Kernel => format!("nvcc -O3 -arch=compute_80 -ptx -o {name}.ptx {name}.cu"),
            Language::Cute => format!("python3 {name}.py --arch sm_90a"),
            Language::Triton => format!("python3 {name}.py --capability 90"),
            Language::Rust => format!(
                "rustc --edition 2021 -O -C target-cpu=native --crate-type cdylib -o {library} {name}.rs"
            ),
        }
    }

    /// The type that the example knows.
    pub fn dtype(self) -> &'static str {
        match self {
            Language::Rust => "f32",
            _ => "bf16",
        }
    }
}
