"""contender_library: a shared library of Kernels/contender.h, as a stranger would build it."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@rules_rust//rust:defs.bzl", "rust_clippy", "rust_shared_library")
load(":arch.bzl", "NEEDS_CUDA", "NEEDS_SHELF")
load(":cuda_kernels.bzl", "cuda_kernels")
load(":visibility.bzl", "layer_visibility")

def contender_library(
        name,
        src,
        defines = [],
        cuda_crates = [],
        copts = [],
        shelf = None,
        deps = [],
        tags = [],
        testonly = False):
    """Declares lib<name>.so from one file in C, C++, CUDA C++ or Rust.

    Args:
      name: the library, without lib and .so; in Rust, the crate.
      src: the file. One in Rust finds contender.rs as its module `contender`.
      defines: preprocessor definitions, in C and C++.
      cuda_crates: what one in Rust uses of CUDA; it is then built only where there is CUDA.
      copts: further flags of nvcc, for CUDA C++.
      shelf: as for cuda_kernels, for CUDA C++.
      deps: header libraries that are not CUDA's own, for CUDA C++.
      tags: Bazel's, for CUDA C++.
      testonly: true for libraries that only tests load.
    """
    if src.endswith(".rs"):
        native.genrule(
            name = name + "_bindings",
            srcs = ["//Kernels:contender.rs"],
            outs = ["contender.rs"],
            cmd = "cp $< $@",
        )
        rust_shared_library(
            name = name,
            testonly = testonly,
            srcs = [src, ":contender.rs"],
            crate_root = src,
            target_compatible_with = NEEDS_CUDA if cuda_crates else [],
            visibility = layer_visibility(),
            deps = cuda_crates,
        )
        rust_clippy(
            name = name + "_clippy",
            testonly = True,
            deps = [name],
        )
        return
    if src.endswith(".cu"):
        cuda_kernels(
            name = name + "_kernels",
            srcs = [src],
            hdrs = ["//Kernels:contender.h"],
            copts = ["-IKernels"] + copts,
            shelf = shelf,
            tags = tags,
            deps = deps,
        )
        cc_binary(
            name = "lib{}.so".format(name),
            testonly = testonly,
            # Nothing here calls it, so the linker has to be told.
            linkopts = ["-Wl,-u,contender_library"],
            linkshared = True,
            tags = tags,
            target_compatible_with = NEEDS_SHELF[shelf] if shelf else NEEDS_CUDA,
            visibility = layer_visibility(),
            deps = [":" + name + "_kernels"],
        )
        return
    cc_binary(
        name = "lib{}.so".format(name),
        testonly = testonly,
        srcs = [src, "//Kernels:contender.h"],
        copts = ["-IKernels", "-O3", "-Wall", "-Wextra", "-Werror", "-pthread"],
        linkopts = ["-pthread", "-lm"],
        linkshared = True,
        local_defines = defines,
        visibility = layer_visibility(),
    )
