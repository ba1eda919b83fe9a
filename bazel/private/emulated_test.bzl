"""emulated_test: a family's kernels under the PTX interpreter, with their host code unchanged; it needs no GPU."""

load("@rules_rust//rust:defs.bzl", "rust_clippy", "rust_test")
load(":arch.bzl", "NEEDS_EMULATION", "NEEDS_SHELF")

def emulated_test(name, srcs, deps = [], data = [], env = {}, size = "medium", shelf = None):
    """Declares a test that builds under --config=emulated alone; wildcard builds skip it elsewhere.

    Args:
      name: the test.
      srcs: its sources; the first is the root.
      deps: the family's bridge and whatever it is compared with.
      data: files it reads.
      env: variables it sees.
      size: Bazel's size, which sets its time limit.
      shelf: hopper or blackwell where its kernels are for that alone.
    """
    rust_test(
        name = name,
        size = size,
        srcs = srcs,
        crate_root = srcs[0],
        data = data,
        env = env,
        tags = ["emulated"],
        target_compatible_with = NEEDS_EMULATION + (NEEDS_SHELF[shelf] if shelf else []),
        deps = deps + [
            "//Kernels/emulator/machine",
            "//Kernels/emulator/runtime",
        ],
    )
    rust_clippy(
        name = name + "_clippy",
        testonly = True,
        deps = [name],
    )
