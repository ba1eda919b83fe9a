"""cross_cc_config: what Bazel has to know of a GNU cross compiler. Its own defaults do the rest."""

load("@rules_cc//cc:action_names.bzl", "ALL_CC_COMPILE_ACTION_NAMES", "ALL_CC_LINK_ACTION_NAMES")
load("@rules_cc//cc:cc_toolchain_config_lib.bzl", "feature", "flag_group", "flag_set", "tool_path", "with_feature_set")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")

def _flags(actions, flags, mode = None):
    return flag_set(
        actions = actions,
        flag_groups = [flag_group(flags = flags)],
        with_features = [with_feature_set(features = [mode])] if mode else [],
    )

def _impl(ctx):
    defaults = feature(
        name = "default_flags",
        enabled = True,
        flag_sets = [
            _flags(ALL_CC_COMPILE_ACTION_NAMES, [
                "-fstack-protector",
                "-Wall",
                "-fno-omit-frame-pointer",
                # Equal inputs, equal bytes: no paths of the compiler's links, no time of day.
                "-fno-canonical-system-headers",
                "-no-canonical-prefixes",
                "-Wno-builtin-macro-redefined",
                "-D__DATE__=\"redacted\"",
                "-D__TIME__=\"redacted\"",
                "-D__TIMESTAMP__=\"redacted\"",
            ]),
            _flags(
                ALL_CC_COMPILE_ACTION_NAMES,
                ["-g0", "-O2", "-DNDEBUG", "-ffunction-sections", "-fdata-sections"],
                "opt",
            ),
            _flags(ALL_CC_COMPILE_ACTION_NAMES, ["-g"], "dbg"),
            _flags(ALL_CC_LINK_ACTION_NAMES, ["-lstdc++", "-lm", "-Wl,-z,relro,-z,now"]),
            _flags(ALL_CC_LINK_ACTION_NAMES, ["-Wl,--gc-sections"], "opt"),
        ],
    )
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        compiler = "gcc",
        cxx_builtin_include_directories = ctx.attr.include_dirs,
        features = [
            defaults,
            feature(name = "dbg"),
            feature(name = "opt"),
            feature(name = "supports_dynamic_linker", enabled = True),
            feature(name = "supports_pic", enabled = True),
        ],
        host_system_name = "local",
        target_cpu = ctx.attr.cpu,
        target_libc = "glibc",
        target_system_name = ctx.attr.cpu + "-linux-gnu",
        tool_paths = [tool_path(name = name, path = path) for name, path in ctx.attr.programs.items()],
        toolchain_identifier = "cross-" + ctx.attr.cpu,
    )

cross_cc_config = rule(
    implementation = _impl,
    attrs = {
        "cpu": attr.string(mandatory = True),
        "include_dirs": attr.string_list(doc = "folders that the compiler searches by itself"),
        "programs": attr.string_dict(doc = "Bazel's name of a program -> its path"),
    },
    provides = [CcToolchainConfigInfo],
)
