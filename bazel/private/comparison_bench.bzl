"""comparison_bench: the program of a comparison, which links its contenders."""

load("@rules_rust//rust:defs.bzl", "rust_binary", "rust_clippy")
load(":arch.bzl", "ARCH_ENV", "ARCH_WORDS", "NEEDS_CUDA", "per_arch")
load(":visibility.bzl", "layer_visibility")

def comparison_bench(
        name,
        srcs,
        crate_root = None,
        deps = [],
        cuda_deps = [],
        features = [],
        testonly = False):
    """Declares the program; with CUDA it gets the feature "cuda" and the CUDA contenders.

    Besides `name` there are `<name>_clippy`, which must build, and with CUDA `<name>_cubins_test`, which
    looks at the machine code in the program.

    Args:
      name: the program.
      srcs: its sources.
      crate_root: their root; <name>.rs if left out.
      deps: crates it always uses.
      cuda_deps: crates of kernels and baselines.
      features: features that are always on.
      testonly: true for programs that only tests run.
    """
    rust_binary(
        name = name,
        testonly = testonly,
        srcs = srcs,
        crate_features = features + per_arch(["cuda"], []),
        crate_root = crate_root or name + ".rs",
        rustc_env = ARCH_ENV,
        visibility = layer_visibility(),
        deps = deps + per_arch(cuda_deps, []),
    )
    rust_clippy(
        name = name + "_clippy",
        testonly = testonly,
        deps = [name],
    )

    # buildifier: disable=native-sh-test
    native.sh_test(
        name = name + "_cubins_test",
        size = "small",
        srcs = ["//bazel/private:cubins_test.sh"],
        args = ["$(rootpath @cuda_toolkit//:cuobjdump)", "$(rootpath :{})".format(name)] + ARCH_WORDS,
        data = [":" + name, "@cuda_toolkit//:cuobjdump"],
        target_compatible_with = NEEDS_CUDA,
    )
