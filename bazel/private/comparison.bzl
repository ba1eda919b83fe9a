"""comparison: one comparison, as a bench and as the test that its contenders pass the gate."""

load(":comparison_bench.bzl", "comparison_bench")
load(":gpu_test.bzl", "gpu_test")

_HARNESS = [
    "//Kernels/benchmarks/harness/contender",
    "//Kernels/benchmarks/harness/numeric",
    "//Kernels/benchmarks/workloads",
    "//Kernels/libraries",
]

def comparison(name, contenders, deps, cuda_deps, gate_srcs = []):
    """Declares `bench_<name>` from bench_<name>.rs, and `<name>_gate_test` from tests/<name>_gate.rs.

    Both get the harness's crates that they need.

    Args:
      name: the comparison.
      contenders: sources of its contenders, which both are compiled with.
      deps: crates that the contenders always use.
      cuda_deps: crates of kernels and baselines.
      gate_srcs: further sources of the test.
    """
    comparison_bench(
        name = "bench_" + name,
        srcs = ["bench_{}.rs".format(name)] + contenders,
        cuda_deps = cuda_deps,
        deps = deps + _HARNESS + ["//Kernels/benchmarks/harness/cli"],
    )
    gpu_test(
        name = name + "_gate_test",
        srcs = ["tests/{}_gate.rs".format(name)] + gate_srcs + contenders,
        cuda_deps = cuda_deps,
        deps = deps + _HARNESS + [
            "//Kernels/benchmarks/harness/device",
            "//Kernels/benchmarks/harness/gate",
        ],
    )
