"""Rules for what the PTX interpreter runs: they build it for that, whatever the command line builds for."""

load("@rules_rust//rust:defs.bzl", "rust_clippy_aspect")
load(":archs.bzl", "ARCH_VALUES")
load(":emulation.bzl", "emulation")

# Those whose PTX the interpreter knows.
EMULATED_SMS = ARCH_VALUES["both"]

# The arch flag's value for all of them.
EMULATED_ARCH = "both"

_ATTRS = {
    "arch": attr.string(
        default = EMULATED_ARCH,
        doc = "What kernels are compiled for: a value of the arch flag.",
        values = [EMULATED_ARCH] + EMULATED_SMS,
    ),
    "_allowlist_function_transition": attr.label(
        default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
    ),
}

# Who asks for no CUDA at all gets none of these.
UNLESS_NO_CUDA = select({
    "//bazel/cuda:none_given": ["@platforms//:incompatible"],
    "//conditions:default": [],
})

def _emulated_run_test_impl(ctx):
    program = ctx.attr.program[0]
    executable = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(
        output = executable,
        target_file = program[DefaultInfo].files_to_run.executable,
        is_executable = True,
    )
    environment = program[RunEnvironmentInfo]
    return [
        DefaultInfo(executable = executable, runfiles = program[DefaultInfo].default_runfiles),
        RunEnvironmentInfo(
            environment = environment.environment | {"EMULATED_SM": ctx.attr.sm},
            inherited_environment = environment.inherited_environment,
        ),
    ]

emulated_run_test = rule(
    implementation = _emulated_run_test_impl,
    attrs = _ATTRS | {
        "program": attr.label(cfg = emulation, mandatory = True),
        "sm": attr.string(
            doc = "The SM whose kernels run.",
            mandatory = True,
            values = EMULATED_SMS,
        ),
    },
    doc = "Runs a test that is built for the interpreter, on one SM.",
    test = True,
)

def _emulated_clippy_impl(ctx):
    checks = [target[OutputGroupInfo].clippy_checks for target in ctx.attr.targets]
    return [DefaultInfo(files = depset(transitive = checks))]

emulated_clippy = rule(
    implementation = _emulated_clippy_impl,
    attrs = _ATTRS | {"targets": attr.label_list(aspects = [rust_clippy_aspect], cfg = emulation, mandatory = True)},
    doc = "Builds if Clippy has nothing to say about targets that exist only for the interpreter.",
)
