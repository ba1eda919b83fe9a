"""shared_crate: an alias of a crate that builds for the PTX interpreter share with all others."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_rust//rust:rust_common.bzl", "CrateInfo", "DepInfo")
load(":emulation.bzl", "no_emulation")

def _shared_crate_impl(ctx):
    actual = ctx.attr.actual[0]
    return [actual[DefaultInfo]] + [actual[provider] for provider in [CcInfo, CrateInfo, DepInfo] if provider in actual]

shared_crate = rule(
    implementation = _shared_crate_impl,
    attrs = {
        # So called, aspects that follow aliases follow it.
        "actual": attr.label(cfg = no_emulation, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
