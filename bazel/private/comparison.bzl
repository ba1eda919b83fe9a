"""comparison: a bench, and the test that its contenders pass the gate."""

load(":comparison_bench.bzl", "comparison_bench")
load(":gpu_test.bzl", "gpu_test")

def comparison(name, family = None, gate_srcs = [], gate_deps = []):
    """Declares `bench_<name>` from bench_<name>.rs, and `<name>_gate_test` from tests/<name>_gate.rs.

    Args:
      name: the comparison.
      family: the folder of its contenders; defaults to `name`.
      gate_srcs: additional sources of the test.
      gate_deps: additional crates of the test.
    """
    deps = [
        "//Kernels/benchmarks/comparison/{0}:{0}_contenders".format(family or name),
        "//Kernels/benchmarks/harness/contender",
        "//Kernels/benchmarks/workloads",
    ]
    comparison_bench(
        name = "bench_" + name,
        srcs = ["bench_{}.rs".format(name)],
        deps = deps + ["//Kernels/benchmarks/harness/cli"],
    )
    gpu_test(
        name = name + "_gate_test",
        srcs = ["tests/{}_gate.rs".format(name)] + gate_srcs,
        deps = deps + gate_deps + [
            "//Kernels/benchmarks/comparison/shared/drawn",
            "//Kernels/benchmarks/comparison/shared/examine",
            "//Kernels/benchmarks/harness/device",
            "//Kernels/benchmarks/harness/gate",
            "//Kernels/benchmarks/harness/numeric",
        ],
    )
