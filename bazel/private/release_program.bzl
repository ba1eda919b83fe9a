"""release_program: the program that packs others."""

load("@rules_rust//rust:defs.bzl", "rust_binary", "rust_clippy", "rust_test")
load(":arch.bzl", "ARCH_ENV")
load(":visibility.bzl", "layer_visibility")

def release_program(name, srcs, programs, deps, test_deps):
    """Declares the binary `name`, which knows what the programs are built for, `<name>_test` and `<name>_clippy`.

    Args:
      name: the program.
      srcs: its sources; main.rs is the root.
      programs: what it packs, from its runfiles, where the licences of their crates are too.
      deps: crates it uses.
      test_deps: crates only its tests use.
    """
    rust_binary(
        name = name,
        srcs = srcs,
        crate_root = "main.rs",
        data = programs + ["@crates//:licences"],
        rustc_env = ARCH_ENV,
        visibility = layer_visibility(),
        deps = deps,
    )
    rust_test(
        name = name + "_test",
        srcs = srcs,
        crate_root = "main.rs",
        rustc_env = ARCH_ENV,
        deps = deps + test_deps,
    )
    rust_clippy(
        name = name + "_clippy",
        testonly = True,
        deps = [name, name + "_test"],
    )
