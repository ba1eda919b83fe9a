"""emulated_bench: a bench that only tests under the PTX interpreter run."""

load("@rules_rust//rust:defs.bzl", "rust_binary")
load(":arch.bzl", "ARCH_ENV", "NEEDS_EMULATION")
load(":emulated.bzl", "UNLESS_NO_CUDA", "emulated_clippy")

def emulated_bench(name, srcs, deps):
    """Declares the program, where kernels are PTX, and `<name>_clippy`, which must build.

    Args:
      name: the program.
      srcs: its sources; the first is the root.
      deps: crates it uses.
    """
    rust_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        crate_root = srcs[0],
        rustc_env = ARCH_ENV,
        target_compatible_with = NEEDS_EMULATION,
        deps = deps,
    )
    emulated_clippy(
        name = name + "_clippy",
        testonly = True,
        target_compatible_with = UNLESS_NO_CUDA,
        targets = [name],
    )
