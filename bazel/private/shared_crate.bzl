"""shared_crate: an alias of a crate that builds for the PTX interpreter share with all others."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_rust//rust:rust_common.bzl", "CrateInfo", "DepInfo")
load(":emulation.bzl", "no_emulation")

def _shared_crate_impl(ctx):
    [crate] = ctx.attr.deps
    return [crate[DefaultInfo]] + [crate[provider] for provider in [CcInfo, CrateInfo, DepInfo] if provider in crate]

shared_crate = rule(
    implementation = _shared_crate_impl,
    attrs = {
        # The crate, under the name by which rust-analyzer's aspect finds it behind a transition.
        "deps": attr.label_list(cfg = no_emulation, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
