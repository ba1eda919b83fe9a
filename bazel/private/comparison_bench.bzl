"""comparison_bench: the binary of a comparison, which links its contenders."""

load("@rules_rust//rust:defs.bzl", "rust_binary", "rust_clippy")
load(":arch.bzl", "ARCH_ENV", "ARCH_WORDS", "NEEDS_CUDA")
load(":visibility.bzl", "layer_visibility")

def comparison_bench(name, srcs, deps = [], testonly = False):
    """Declares the program.

    Also declares `<name>_clippy`, which must build, and with CUDA `<name>_cubins_test`, which inspects the
    machine code in the program.

    Args:
      name: the program.
      srcs: its sources; the first is the root.
      deps: crates it uses.
      testonly: true for binaries that only tests run.
    """
    rust_binary(
        name = name,
        testonly = testonly,
        srcs = srcs,
        crate_root = srcs[0],
        rustc_env = ARCH_ENV,
        visibility = layer_visibility(),
        deps = deps,
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
