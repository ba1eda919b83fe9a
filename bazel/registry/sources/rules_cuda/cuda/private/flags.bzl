"""repeated_flag: a build setting that may be given several times."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")

def _impl(ctx):
    return BuildSettingInfo(value = [value for value in ctx.build_setting_value if value])

repeated_flag = rule(
    implementation = _impl,
    build_setting = config.string(flag = True, allow_multiple = True),
)
