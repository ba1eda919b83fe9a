"""comparison_suite: the program that runs all benches."""

load(":rust_program.bzl", "rust_program")

def comparison_suite(name, benches, deps):
    """Declares the program <name> from <name>.rs; under `bazel run` it finds the benches in SUITE_BENCHES.

    Args:
      name: the program.
      benches: the benches to run, in order.
      deps: crates it uses.
    """
    rust_program(
        name = name,
        srcs = [name + ".rs"],
        data = benches,
        env = {"SUITE_BENCHES": " ".join(["$(rootpath {})".format(bench) for bench in benches])},
        deps = deps,
    )
