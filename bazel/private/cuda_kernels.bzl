"""cuda_kernels: CUDA sources compiled for the architectures of the arch flag."""

load("@rules_cuda//cuda:defs.bzl", "cuda_library")
load(":arch.bzl", "ARCHS", "ARCH_ONLY", "NEEDS_ARCH", "NEEDS_CUDA")
load(":visibility.bzl", "layer_visibility")

def cuda_kernels(
        name,
        srcs = [],
        hdrs = [],
        deps = [],
        copts = [],
        includes = [],
        local_defines = [],
        arch = None,
        visibility = None):
    """Declares a CUDA library; wildcard builds skip it where its architecture is not built.

    Args:
      name: the library.
      srcs: .cu files.
      hdrs: headers that dependents include.
      deps: C++ and CUDA libraries.
      copts: further nvcc flags.
      includes: folders that dependents search for headers.
      local_defines: preprocessor definitions for this target alone.
      arch: "sm_90a" or "sm_100a" for code that exists on that one alone; a dependent names it through
        on_arch().
      visibility: leave out for the layer's own.
    """
    cuda_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        archs = ARCH_ONLY[arch] if arch else ARCHS,
        copts = ["-std=c++17", "-lineinfo", "-Xcompiler", "-fvisibility=hidden"] + copts,
        includes = includes,
        local_defines = local_defines,
        target_compatible_with = NEEDS_ARCH[arch] if arch else NEEDS_CUDA,
        visibility = visibility or layer_visibility(),
        deps = deps,
    )
