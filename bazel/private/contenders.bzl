"""contenders, own_contenders: the crates of a family's contenders."""

load(":rust_crate.bzl", "rust_crate")

def contenders(name, deps = [], cuda_deps = []):
    """Declares the crate `name` from the folder's .rs files, with the crates that every family's contenders use.

    Args:
      name: the crate: <family>_contenders.
      deps: crates of the CPU contenders.
      cuda_deps: crates of kernels and baselines, behind the feature "cuda".
    """
    rust_crate(
        name = name,
        cuda_deps = cuda_deps,
        # They would link all the kernels.
        unit_tests = False,
        deps = deps + [
            "//Kernels/benchmarks/comparison/shared",
            "//Kernels/benchmarks/harness/contender",
            "//Kernels/benchmarks/harness/numeric",
            "//Kernels/benchmarks/workloads",
            "//Kernels/host",
        ],
    )

def own_contenders(name, deps):
    """Declares the crate `name` of a family's own CUDA kernels as contenders, with nobody else's kernels.

    Skipped in builds without CUDA, like the bridges.

    Args:
      name: the crate: <family>_ours.
      deps: crates of the kernels.
    """
    rust_crate(
        name = name,
        unit_tests = False,
        deps = deps + [
            "//Kernels/benchmarks/comparison/shared/ours:our_contender",
            "//Kernels/benchmarks/harness/contender",
            "//Kernels/benchmarks/workloads",
        ],
    )
