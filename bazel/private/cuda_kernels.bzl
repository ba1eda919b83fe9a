"""cuda_kernels: CUDA sources compiled for the architectures of the arch flag."""

load("@rules_cuda//cuda:defs.bzl", "cuda_library")
load(
    ":arch.bzl",
    "BUILT_DEFINES",
    "EMULATION_COPTS",
    "LEFT_OUT_DEFINES",
    "NEEDS_CUDA",
    "NEEDS_SHELF",
    "NVCC_TARGETS",
    "NVCC_TARGETS_OF_SHELF",
)
load(":visibility.bzl", "layer_visibility")

def cuda_kernels(
        name,
        srcs = [],
        hdrs = [],
        deps = [],
        copts = [],
        includes = [],
        local_defines = [],
        one_of_many = False,
        shelf = None,
        tags = [],
        visibility = None):
    """Declares a CUDA library; wildcard builds skip it if its architecture is not built.

    Args:
      name: the library.
      srcs: .cu files.
      hdrs: headers that dependents include.
      deps: C++ and CUDA libraries.
      copts: further nvcc flags.
      includes: folders that dependents search for headers.
      local_defines: preprocessor definitions for this target alone.
      one_of_many: true for instantiations of a template of others that has another target too: their sources see
        H2H_LEFT_OUT if //bazel/cuda:instances is one, and throw device::left_out() instead (Kernels/device/left_out.h).
      shelf: hopper or blackwell for code that only their SMs have, or the one SM that has it; a dependent names it
        through on_shelf().
      tags: Bazel's.
      visibility: leave out for the layer's own.
    """
    cuda_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        archs = NVCC_TARGETS_OF_SHELF[shelf] if shelf else NVCC_TARGETS,
        copts = ["-std=c++17", "-lineinfo", "-Xcompiler", "-fvisibility=hidden"] + EMULATION_COPTS + copts,
        includes = includes,
        local_defines = local_defines + BUILT_DEFINES + (LEFT_OUT_DEFINES if one_of_many else []),
        tags = tags,
        target_compatible_with = NEEDS_SHELF[shelf] if shelf else NEEDS_CUDA,
        visibility = visibility or layer_visibility(),
        deps = deps,
    )
