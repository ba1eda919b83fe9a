"""release_program: the program that packs others."""

load("@rules_rust//rust:defs.bzl", "rust_binary", "rust_clippy", "rust_test")
load(":arch.bzl", "ARCH_ENV", "NEEDS_CUDA", "per_arch")
load(":test_flags.bzl", "UNOPTIMISED")
load(":visibility.bzl", "layer_visibility")

# Texts of what is linked into programs: crates, and with CUDA what kernels are made of.
_LICENCES = ["@crates//:licences"] + per_arch(
    cpu = [],
    cuda = [
        "@cuda_toolkit//:licences",
        "@deep_gemm//:licences",
        "@fla_core//:licences",
        "@flash_attn//:licences",
        "@flash_attn_4//:licences",
        "@flashinfer//:licences",
        "@liger_kernel//:licences",
        "@nvidia_cutlass_dsl_libs_cu12_cp311//:licences",
        "@quack_kernels//:licences",
    ],
)

def release_program(name, srcs, programs, deps, test_deps = None, cuda_only = False):
    """Declares the binary `name`, which knows what the programs are built for, `<name>_test` and `<name>_clippy`.

    Args:
      name: the program.
      srcs: its sources; main.rs is the root.
      programs: what it packs, from its runfiles, where the licences of what is in them are too.
      deps: crates it uses.
      test_deps: crates only its tests use; none for a program whose sources another one tests.
      cuda_only: true if it is built only where there is CUDA.
    """
    rust_binary(
        name = name,
        srcs = srcs,
        crate_root = "main.rs",
        data = programs + _LICENCES,
        rustc_env = ARCH_ENV | {
            "HEAD_TO_HEAD_PROGRAMS": " ".join(["$(rootpath {})".format(program) for program in programs]),
        },
        target_compatible_with = NEEDS_CUDA if cuda_only else [],
        visibility = layer_visibility(),
        deps = deps,
    )
    if test_deps == None:
        return
    rust_test(
        name = name + "_test",
        srcs = srcs,
        crate_root = "main.rs",
        rustc_env = ARCH_ENV | {"HEAD_TO_HEAD_PROGRAMS": ""},
        rustc_flags = UNOPTIMISED,
        deps = deps + test_deps,
    )
    rust_clippy(
        name = name + "_clippy",
        testonly = True,
        deps = [name, name + "_test"],
    )
