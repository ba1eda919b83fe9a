"""build_facts: what a result file says of the build that made it, as variables that env!() sees."""

def _impl(rctx):
    lock = rctx.path(rctx.attr._lock)
    entries = {entry["name"]: entry for entry in json.decode(rctx.read(lock))["artifacts"]}
    rctx.file("BUILD.bazel", "")

    # A download is how a repository rule learns a sha256.
    digest = rctx.download("file://{}".format(lock), "lock").sha256
    rctx.file("facts.bzl", "BUILD_FACTS = " + json.encode_indent({
        "HEAD_TO_HEAD_ARTIFACT_LOCK_SHA256": digest,
        "HEAD_TO_HEAD_BAZEL": rctx.read(rctx.attr._bazel_version).strip(),
        "HEAD_TO_HEAD_NVCC": entries["nvidia-cuda-nvcc"]["version"],
        "HEAD_TO_HEAD_RUSTC": rctx.read(rctx.attr._rustc_version).strip(),
    }) + "\n")

build_facts = repository_rule(
    implementation = _impl,
    attrs = {
        "_bazel_version": attr.label(default = "//:.bazelversion"),
        "_lock": attr.label(default = "//third_party:artifacts.lock.json"),
        "_rustc_version": attr.label(default = "@rust_sysroot//:version"),
    },
)
