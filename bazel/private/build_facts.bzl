"""build_facts: what a result file says of the build that made it, as variables that env!() sees."""

load(":archs.bzl", "ARCH_VALUES")

def _libraries(entries):
    """The artifacts whose files programs load: their members for the build, their digests for the program."""
    entries = [entry for entry in entries if "files" in entry]
    digests = [
        {
            "files": {member.split("/")[-1]: sha256 for member, sha256 in entry["files"].items()},
            "name": entry["name"],
            "sha256": entry["sha256"],
            "version": entry["version"],
        }
        for entry in entries
    ]
    members = {entry["name"]: entry["files"].keys() for entry in entries}
    return "LOCKED_LIBRARIES = {}\nLOCKED_LIBRARIES_FACT = {}\n".format(
        json.encode_indent(members),
        json.encode_indent({"HEAD_TO_HEAD_LOCKED_LIBRARIES": json.encode(digests)}),
    )

def _releases(entries, recipes):
    """By recipe: its library, the one input that has the recipe's own release, and others of it that the lock pins."""
    versions = {entry["name"]: entry["version"] for entry in entries}
    releases = {}
    for recipe in recipes:
        own = recipe["version"].split("+")[0]
        libraries = [name for name in recipe["source"]["inputs"] if versions[name] == own]
        if len(libraries) != 1:
            continue
        others = [version for name, version in versions.items() if name == "{}-{}".format(libraries[0], version)]
        releases[recipe["source"]["recipe"].replace("_", "-")] = {"library": libraries[0], "others": others}
    return releases

def _recipes(entries):
    """The versions of what recipes build, by artifact, and the other releases that they build variants of."""
    recipes = [entry for entry in entries if entry["source"]["kind"] == "recipe"]
    pinned = {entry["name"]: entry["version"] for entry in entries}
    versions = {entry["name"]: entry["version"] for entry in recipes}

    # Compiled from the wheel by the lock's nvcc, without a recipe: r1 is of tools/artifacts/compiled.rs.
    compiled = "{}+r1.nvcc{}".format(pinned["sgl-deep-gemm"], pinned["nvidia-cuda-nvcc"])
    for sm in ARCH_VALUES["both"]:
        versions["deep-gemm-" + sm] = compiled
        versions["deep-gemm-" + sm.replace("sm_", "compute_")] = compiled
    return "RECIPES_FACT = {}\n".format(json.encode_indent({
        "HEAD_TO_HEAD_RECIPES": json.encode(versions),
        "HEAD_TO_HEAD_RELEASES": json.encode(_releases(entries, recipes)),
    }))

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
    }) + "\n" + _libraries(entries.values()) + _recipes(entries.values()))

build_facts = repository_rule(
    implementation = _impl,
    attrs = {
        "_bazel_version": attr.label(default = "//:.bazelversion"),
        "_lock": attr.label(default = "//third_party:artifacts.lock.json"),
        "_rustc_version": attr.label(default = "@rust_sysroot//:version"),
    },
)
