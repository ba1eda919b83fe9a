"""Tests of when lock_library has files: not in a build that nothing will run here."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts")

def _impl(ctx):
    env = analysistest.begin(ctx)
    files = analysistest.target_under_test(env)[DefaultInfo].files.to_list()
    asserts.equals(env, ctx.attr.expected, [file.basename for file in files])
    return analysistest.end(env)

def _test(arch, libraries):
    return analysistest.make(
        _impl,
        attrs = {"expected": attr.string_list()},
        config_settings = {
            str(Label("//bazel/cuda:arch")): arch,
            str(Label("//bazel/cuda:libraries")): libraries,
        },
    )

auto_test = _test("sm_90a", "auto")
cpu_auto_test = _test("none", "auto")
cpu_test = _test("none", "lock")
lock_test = _test("sm_90a", "lock")
none_test = _test("sm_90a", "none")
