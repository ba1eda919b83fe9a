"""emulated_crate: a library that only tests under the PTX interpreter use."""

load("@rules_rust//rust:defs.bzl", "rust_library")
load(":arch.bzl", "ARCH_ENV", "NEEDS_EMULATION")
load(":emulated.bzl", "UNLESS_NO_CUDA", "emulated_clippy")
load(":visibility.bzl", "layer_visibility")

def emulated_crate(name, deps):
    """Declares `name` from the folder's .rs files, where kernels are PTX, and `<name>_clippy`, which must build.

    Args:
      name: the crate, named like its folder.
      deps: crates it uses.
    """
    rust_library(
        name = name,
        srcs = native.glob(["**/*.rs"]),
        rustc_env = ARCH_ENV,
        target_compatible_with = NEEDS_EMULATION,
        visibility = layer_visibility(),
        deps = deps,
    )
    emulated_clippy(
        name = name + "_clippy",
        testonly = True,
        target_compatible_with = UNLESS_NO_CUDA,
        targets = [name],
    )
