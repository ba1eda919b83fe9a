"""cxx_bridge: a Rust crate whose lib.rs holds a #[cxx::bridge], with its C++ side linked in."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_rust//rust:defs.bzl", "rust_library")
load(":arch.bzl", "NEEDS_CUDA")
load(":visibility.bzl", "layer_visibility")

def cxx_bridge(
        name,
        src = "lib.rs",
        cc_srcs = [],
        cc_hdrs = [],
        deps = [],
        rust_deps = [],
        data = [],
        cuda = True,
        tags = [],
        visibility = None):
    """Declares the crate `name`, and `<name>_cc`, the C++ half of its bridge.

    Args:
      name: the crate.
      src: the Rust file that holds the bridge; the folder's other .rs files are its modules.
      cc_srcs: C++ sources of the bridge; they see "<package>/<src>.h" and "rust/cxx.h".
      cc_hdrs: headers that the bridge's include!() lines name.
      deps: the C++ and CUDA libraries behind the bridge.
      rust_deps: crates that the Rust side uses besides cxx.
      data: files that the crate reads at run time.
      cuda: whether the C++ side needs CUDA; then wildcard builds skip it where the arch is none.
      tags: Bazel's.
      visibility: leave out for the layer's own.
    """
    compatible = NEEDS_CUDA if cuda else []
    native.genrule(
        name = name + "_glue",
        srcs = [src],
        outs = [src + ".h", src + ".cc"],
        cmd = "$(execpath //bazel/cxx:cxx_glue) $(SRCS) $(location {0}.h) $(location {0}.cc)".format(src),
        tags = tags,
        target_compatible_with = compatible,
        tools = ["//bazel/cxx:cxx_glue"],
    )
    cc_library(
        name = name + "_cc",
        srcs = [src + ".cc"] + cc_srcs,
        hdrs = [src + ".h"] + cc_hdrs,
        # The generated glue has functions that a given bridge may not use.
        copts = ["-Wno-unused-function"],
        linkstatic = True,
        tags = tags,
        target_compatible_with = compatible,
        deps = deps + ["@crates//:cxx_cc"],
    )
    rust_library(
        name = name,
        srcs = native.glob(["*.rs"]),
        crate_root = src,
        data = data,
        tags = tags,
        target_compatible_with = compatible,
        visibility = visibility or layer_visibility(),
        deps = rust_deps + [":" + name + "_cc", "@crates//:cxx"],
    )
