//! Kernels that nvcc compiles for a shape: DeepGEMM's, from the headers in its wheel.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use on_demand::{GemmKernel, GemmLayout, GemmOperands, Variant, Wanted};

use crate::context::Context;
use crate::error::{At, Error, Result};
use crate::lock::Artifact;
use crate::{process, unpack};

/// The compiler, as Bazel builds with it.
const TOOLKIT: [&str; 5] = [
    "nvidia-cuda-cccl",
    "nvidia-cuda-crt",
    "nvidia-cuda-nvcc",
    "nvidia-cuda-runtime",
    "nvidia-nvvm",
];
const HEADERS: &str = "sgl-deep-gemm";
const PROGRAMS: [&str; 2] = ["nvidia/cu13/bin", "nvidia/cu13/nvvm/bin"];
/// As in Kernels/baselines/deep_gemm/BUILD.bazel. Without a seed, names of the module's own have a process's number.
const FLAGS: [&str; 5] = [
    "-std=c++17",
    "-O3",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "-frandom-seed=deep_gemm",
];
const CODE: &str = "kernels.bin";

/// A product that DeepGEMM's kernel is compiled for.
pub struct Product {
    /// Both 0 where they are the kernel's arguments.
    n: usize,
    k: usize,
    kernel: GemmKernel,
    /// `90a`, `100a`.
    sm: &'static str,
    /// For the interpreter.
    as_ptx: bool,
}

impl Product {
    /// None if a recipe builds the variant; an error if its sizes are none of the library's.
    pub fn of(wanted: &Wanted) -> Result<Option<Self>> {
        let Variant::Gemm { n, k, kernel } = wanted.variant else {
            return Ok(None);
        };
        if wanted.version().is_none() || wanted.release.is_some() {
            let name = wanted.recipe.name();
            return Err(Error::Refused(format!(
                "{name} is compiled for sm_90a and sm_100a, of the release in the lock; run `{}`",
                Wanted::new(wanted.recipe, "sm_90a", wanted.variant).command()
            )));
        }
        let sm = if wanted.arch.ends_with("100a") {
            "100a"
        } else {
            "90a"
        };
        let operands = kernel.operands;
        let is_compiled = match sm {
            "100a" => kernel.layout == GemmLayout::Dense && operands != GemmOperands::Bf16,
            _ => matches!(operands, GemmOperands::Bf16 | GemmOperands::Fp8) && !kernel.transposed,
        };
        if !is_compiled {
            return Err(Error::Refused(format!(
                "{kernel} is not compiled for sm_{sm}: for sm_100a dense products with scales are, for sm_90a bf16 and \
                 FP8, none of them transposed"
            )));
        }
        let depth = if operands == GemmOperands::Bf16 {
            64
        } else {
            128
        };
        if !n.is_multiple_of(8) || !k.is_multiple_of(depth) {
            return Err(Error::Refused(format!(
                "n {n} and k {k}: n must be a multiple of 8, and k of {depth}"
            )));
        }
        let as_ptx = wanted.arch.starts_with("compute_");
        Ok(Some(Self {
            n,
            k,
            kernel,
            sm,
            as_ptx,
        }))
    }
}

/// Compiles a product's kernel into a folder: `kernels.json` and `kernels.bin`.
pub fn compile(context: &Context, product: &Product, folder: &Path) -> Result<()> {
    let Product { n, k, kernel, .. } = product;
    let scratch = context.cache.scratch()?;
    let site = scratch.path().join("site");
    for artifact in inputs(context)? {
        context.fetch(artifact)?;
        let blob = context.cache.blob(artifact.sha256);
        unpack::unpack(&blob, &site, unpack::Bounds::default(), &context.cancel)?;
    }
    for programs in PROGRAMS {
        let programs = site.join(programs);
        for entry in fs::read_dir(&programs).at("read", &programs)? {
            let path = entry.at("read", &programs)?.path();
            if path.is_file() {
                fs::set_permissions(&path, Permissions::from_mode(0o755)).at("allow", &path)?;
            }
        }
    }
    let source = scratch.path().join("kernel.cu");
    fs::write(&source, text(product)).at("write", &source)?;
    fs::create_dir_all(folder).at("create", folder)?;
    let mut command = Command::new(site.join("nvidia/cu13/bin/nvcc"));
    let sm = product.sm;
    let target = if product.as_ptx {
        [format!("-arch=compute_{sm}"), "-ptx".to_owned()]
    } else {
        [
            format!("-gencode=arch=compute_{sm},code=sm_{sm}"),
            "-cubin".to_owned(),
        ]
    };
    // Relative: the kernels' assertions name the files that they are in, and so does the machine code.
    command
        .args(FLAGS)
        .args(target)
        .args(["-I", "site/deep_gemm/include"])
        .args(["-I", "site/nvidia/cu13/include/cccl"])
        .arg("-o")
        .arg(folder.join(CODE))
        .arg("kernel.cu")
        .current_dir(scratch.path());
    let log = scratch.path().join("nvcc.log");
    process::run(&mut command, &log, &context.cancel, || Ok(()))?;
    if product.as_ptx {
        // Text is loaded without its length.
        let path = folder.join(CODE);
        let file = fs::OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(&[0]))
            .at("end", &path)?;
    }
    let description =
        serde_json::json!({ "library": "deep_gemm", "n": n, "k": k, "kernel": kernel.to_string() });
    let path = folder.join("kernels.json");
    fs::write(&path, format!("{description}\n")).at("write", &path)
}

/// The wheels for this machine's CPU.
fn inputs(context: &Context) -> Result<Vec<&Artifact>> {
    let cpu = std::env::consts::ARCH;
    let tool = |name: &&str| match cpu {
        "x86_64" => context.lock.get(name),
        _ => context.lock.get(&format!("{name}-{cpu}")),
    };
    let mut inputs = TOOLKIT.iter().map(tool).collect::<Result<Vec<_>>>()?;
    inputs.push(context.lock.get(HEADERS)?);
    Ok(inputs)
}

/// The library's own way to instantiate a kernel: its address is taken.
fn text(product: &Product) -> String {
    let (header, instance) = match product.sm {
        "100a" => blackwell(product),
        _ => hopper(product),
    };
    format!(
        "#include <deep_gemm/impls/{header}.cuh>\n\
         static void instantiate() {{\n    \
         auto kernel = reinterpret_cast<void*>(&deep_gemm::{header}_impl<{instance}>);\n    \
         static_cast<void>(kernel);\n}}\n"
    )
}

/// Bytes that the result's tile is swizzled by: the most that divide its lines.
fn swizzle_of_out(block_n: usize) -> usize {
    let line = block_n * 2;
    let bytes = [128, 64, 32];
    let bytes = bytes.into_iter().find(|bytes| line.is_multiple_of(*bytes));
    bytes.unwrap_or(16)
}

/// The dense kernel of scaled operands for the 148 multiprocessors of a B200: its file and its template's constants.
fn blackwell(product: &Product) -> (&'static str, String) {
    let Product { n, k, kernel, .. } = product;
    let GemmKernel {
        operands,
        block_m,
        block_n,
        stages,
        cluster_m,
        cluster_n,
        transposed,
        ..
    } = *kernel;
    let (element, depth, block_k) = match operands {
        GemmOperands::Mxfp4 => ("cutlass::float_e2m1_t", 32, 256),
        GemmOperands::Mxfp8 => ("cutlass::float_e4m3_t", 32, 128),
        _ => ("cutlass::float_e4m3_t", 128, 128),
    };
    let swizzle = swizzle_of_out(block_n);
    let (cluster, shares_a) = (cluster_m * cluster_n, cluster_n > 1);
    let instance = format!(
        "cute::UMMA::Major::K, cute::UMMA::Major::K, {depth}, {depth}, {depth}, 0, {n}, {k}, {block_m}, \
         {block_n}, {block_k}, 1, 128, 128, {swizzle}, {stages}, 2, 128, 128, {cluster}, {shares_a}, 148, \
         {transposed}, true, deep_gemm::GemmType::Normal, false, {element}, {element}, cutlass::bfloat16_t, \
         deep_gemm::epilogue::operators::Identity"
    );
    ("sm100_fp8_fp4_gemm_1d1d", instance)
}

/// The same of a kernel for the 132 multiprocessors of an H100 SXM or H200.
fn hopper(product: &Product) -> (&'static str, String) {
    let Product { n, k, kernel, .. } = product;
    let GemmKernel {
        operands,
        layout,
        block_m,
        block_n,
        stages,
        cluster_m,
        cluster_n,
        ..
    } = *kernel;
    let (kind, groups) = match layout {
        GemmLayout::Dense => ("Normal", 1),
        GemmLayout::Contiguous => ("MGroupedContiguous", 1),
        GemmLayout::Masked(groups) => ("MGroupedMasked", groups),
    };
    let swizzle = swizzle_of_out(block_n);
    let threads = if block_m <= 64 { 128 } else { 256 };
    let (cluster, shares_a) = (cluster_m * cluster_n, cluster_n > 1);
    let sizes = format!("{n}, {k}, {groups}, {block_m}, {block_n}");
    let rest = format!(
        "{swizzle}, {stages}, 128, {threads}, {cluster}, {shares_a}, 132, deep_gemm::GemmType::{kind}"
    );
    match operands {
        GemmOperands::Fp8 => (
            "sm90_fp8_gemm_1d2d",
            format!("cute::UMMA::Major::K, 0, {sizes}, 128, 128, 128, {rest}, cutlass::bfloat16_t"),
        ),
        _ => (
            "sm90_bf16_gemm",
            format!(
                "cute::UMMA::Major::K, cute::UMMA::Major::K, 0, {sizes}, 64, 128, 128, {rest}, false, \
                 cutlass::bfloat16_t"
            ),
        ),
    }
}
