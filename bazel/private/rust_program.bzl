"""rust_program: a binary and the unit tests in its sources."""

load("@rules_rust//rust:defs.bzl", "rust_binary", "rust_clippy", "rust_test")
load(":test_flags.bzl", "UNOPTIMISED")
load(":visibility.bzl", "layer_visibility")

def rust_program(name, srcs, crate_root = None, deps = [], test_deps = [], data = [], env = {}, visibility = None):
    """Declares the binary `name`, `<name>_test` and `<name>_clippy`, which must build.

    Args:
      name: the program.
      srcs: its sources; main.rs, or a single file, is the root.
      crate_root: the root where it is another file.
      deps: crates it uses.
      test_deps: crates only its tests use.
      data: files it reads at run time.
      env: variables that `bazel run` sets for it.
      visibility: leave out for the layer's own.
    """
    rust_binary(
        name = name,
        srcs = srcs,
        crate_root = crate_root or ("main.rs" if "main.rs" in srcs else srcs[0]),
        data = data,
        env = env,
        visibility = visibility or layer_visibility(),
        deps = deps,
    )
    rust_test(
        name = name + "_test",
        crate = ":" + name,
        data = data,
        rustc_flags = UNOPTIMISED,
        deps = test_deps,
    )
    rust_clippy(
        name = name + "_clippy",
        testonly = True,
        deps = [name, name + "_test"],
    )
