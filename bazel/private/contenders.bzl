"""contenders: the crate of a family's contenders."""

load(":rust_crate.bzl", "rust_crate")

def contenders(name, deps = [], cuda_deps = [], unit_tests = False):
    """Declares the crate `name` from the folder's .rs files, with the crates that every family's contenders use.

    Args:
      name: the crate: <family>_contenders.
      deps: crates of the CPU contenders.
      cuda_deps: crates of kernels and baselines, behind the feature "cuda".
      unit_tests: whether the crate contains tests, which link all its kernels.
    """
    rust_crate(
        name = name,
        cuda_deps = cuda_deps,
        unit_tests = unit_tests,
        deps = deps + [
            "//Kernels/benchmarks/comparison/shared",
            "//Kernels/benchmarks/harness/contender",
            "//Kernels/benchmarks/harness/numeric",
            "//Kernels/benchmarks/workloads",
            "//Kernels/host",
        ],
    )
