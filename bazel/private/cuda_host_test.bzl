"""cuda_host_test: a Rust test of what a build with CUDA decides on the host; it needs no GPU."""

load("@rules_rust//rust:defs.bzl", "rust_clippy", "rust_test")
load(":arch.bzl", "NEEDS_SHELF")

def cuda_host_test(name, srcs, shelf, crate_root = None, deps = [], data = [], env = {}):
    """Declares a test with the feature "cuda"; wildcard builds skip it where its shelf is not built.

    Args:
      name: the test.
      srcs: its sources; the first is the root.
      shelf: hopper, blackwell or an SM, whichever the code under test is for.
      crate_root: the root where it is another.
      deps: crates it uses.
      data: files it reads.
      env: variables it sees.
    """
    rust_test(
        name = name,
        size = "small",
        srcs = srcs,
        crate_features = ["cuda"],
        crate_root = crate_root or srcs[0],
        data = data,
        env = env,
        target_compatible_with = NEEDS_SHELF[shelf],
        deps = deps,
    )
    rust_clippy(
        name = name + "_clippy",
        testonly = True,
        deps = [name],
    )
