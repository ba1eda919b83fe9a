"""gpu_test: a Rust test that needs a GPU, and is skipped with a reason without one."""

load("@local_gpu//:arch.bzl", "ARCH")
load("@rules_rust//rust:defs.bzl", "rust_clippy", "rust_test")
load(":arch.bzl", "per_device")

def gpu_test(name, srcs, crate_root = None, deps = [], cuda_deps = [], data = [], env = {}, size = "large"):
    """Declares a test tagged gpu; without a GPU it must print "SKIPPED: <reason>" and pass.

    Args:
      name: the test.
      srcs: its sources; the first is the root.
      crate_root: the root where it is another.
      deps: crates it always uses.
      cuda_deps: crates it uses only where kernels are machine code; they come with the feature "cuda".
      data: files it reads.
      env: variables it sees.
      size: Bazel's size, which sets its time limit.
    """
    rust_test(
        name = name,
        size = size,
        srcs = srcs,
        crate_features = per_device(["cuda"], []),
        crate_root = crate_root or srcs[0],
        data = data,
        env = env,
        # One GPU: tests that use it take turns. Without one they have only the CPU's part to do.
        tags = ["gpu"] + ([] if ARCH == "none" else ["exclusive-if-local"]),
        deps = deps + per_device(cuda_deps, []),
    )
    rust_clippy(
        name = name + "_clippy",
        testonly = True,
        deps = [name],
    )
