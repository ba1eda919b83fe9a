"""host_library and host_test: plain C++ without CUDA, such as the heuristic that picks a tile."""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")
load(":visibility.bzl", "layer_visibility")

def host_library(name, srcs = [], hdrs = [], deps = [], local_defines = [], visibility = None):
    """Declares a C++ library.

    Args:
      name: the library.
      srcs: .cc files.
      hdrs: headers that dependents include.
      deps: C++ libraries.
      local_defines: preprocessor definitions for this target alone.
      visibility: leave out for the layer's own.
    """
    cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = ["-Wall", "-Wextra", "-Werror"],
        linkstatic = True,
        local_defines = local_defines,
        visibility = visibility or layer_visibility(),
        deps = deps,
    )

def host_test(name, srcs, deps = []):
    """Declares a C++ test: a program that exits with nonzero if a check fails.

    Args:
      name: the test.
      srcs: .cc files, one with main.
      deps: C++ libraries.
    """
    cc_test(
        name = name,
        srcs = srcs,
        copts = ["-Wall", "-Wextra", "-Werror"],
        linkstatic = True,
        deps = deps,
    )
