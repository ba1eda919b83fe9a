"""artifact_tree: locked artifacts, fetched, verified and unpacked into one repository."""

_SDIST = ".tar.gz"

def _wheel_options(file):
    """pip's options for this very wheel, whatever Python and CPU the machine has."""
    if not file.endswith(".whl"):
        return []
    python, abi, platforms = file[:-len(".whl")].split("-")[-3:]
    options = ["--only-binary", ":all:"]
    if python.startswith("cp"):
        options += ["--implementation", "cp", "--python-version", python[len("cp"):], "--abi", abi]
    if platforms != "any":
        for platform in platforms.split("."):
            options += ["--platform", platform]
    return options

# pip asks an sdist's build backend for metadata even when it only downloads. This one answers from the lock, so
# that no code of the sdist runs and none of its needs are installed.
_BACKEND = """import os
class Backend:
    def get_requires_for_build_wheel(self, config_settings=None):
        return []
    def prepare_metadata_for_build_wheel(self, folder, config_settings=None):
        info = "{name}-{version}.dist-info"
        os.makedirs(os.path.join(folder, info))
        with open(os.path.join(folder, info, "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        return info
__legacy__ = Backend()
get_requires_for_build_wheel = __legacy__.get_requires_for_build_wheel
prepare_metadata_for_build_wheel = __legacy__.prepare_metadata_for_build_wheel
"""

def _sdist_options(rctx, entry, backend):
    """pip's options for a source package, and the environment they need."""
    rctx.file(backend + "/setuptools/__init__.py", "")
    rctx.file(backend + "/setuptools/build_meta.py", _BACKEND.format(
        name = entry["source"]["package"].replace("-", "_"),
        version = entry["version"],
    ))
    options = ["--no-binary", ":all:", "--no-build-isolation", "--use-pep517"]
    return options, {"PYTHONPATH": str(rctx.path(backend))}

def _fetch_with_pip(rctx, entry, folder):
    """Downloads a PyPI file through the machine's own pip, by name, version and sha256."""
    python = rctx.which("python3")
    if not python:
        fail("no python3 on PATH: install python3 and python3-pip")
    if rctx.execute([python, "-m", "pip", "--version"]).return_code:
        fail("python3 has no pip: install python3-pip")
    source = entry["source"]
    requirements = folder + ".txt"
    rctx.file(requirements, "{}=={} --hash=sha256:{}\n".format(
        source["package"],
        entry["version"],
        entry["sha256"],
    ))
    options, environment = _wheel_options(source["file"]), {}
    if source["file"].endswith(_SDIST):
        options, environment = _sdist_options(rctx, entry, folder + ".backend")
    result = rctx.execute(
        [python, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"] +
        options +
        ["--dest", folder, "--requirement", requirements],
        environment = environment,
        timeout = 1800,
    )
    if result.return_code:
        if "HASH" in result.stderr.upper():
            fail("{} {}: the registry's file does not have the sha256 in third_party/artifacts.lock.json ({}); nothing was unpacked".format(
                entry["name"],
                entry["version"],
                entry["sha256"],
            ))
        fail("{} {}: pip could not fetch it: {}".format(entry["name"], entry["version"], result.stderr[-800:]))

def _fetch_with_npm(rctx, entry, folder):
    """Downloads an npm tarball through the machine's own npm; the caller verifies it."""
    npm = rctx.which("npm")
    if not npm:
        fail("{}: none of its addresses can be reached, and there is no npm to bring it: install npm".format(
            entry["name"],
        ))
    package = "{}@{}".format(entry["source"]["package"], entry["version"])
    rctx.file(folder + "/.keep", "")
    result = rctx.execute([npm, "pack", "--silent", package, "--pack-destination", folder], timeout = 600)
    if result.return_code:
        fail("{}: npm could not fetch it: {}".format(package, result.stderr[-800:]))

def _file_name(entry):
    source = entry["source"]
    if "member" in source:
        return source["member"].split("/")[-1]
    return source.get("file") or (
        source["urls"][0].split("/")[-1] if source["kind"] == "http" else "{name}-{version}.zip".format(**entry)
    )

def fetch_stored(rctx, entry):
    """Brings one artifact here from the mirror or a store of the lock, verified.

    Args:
      rctx: the repository rule's context.
      entry: the artifact's entry of the lock.
    Returns:
      Its path, or None where neither has been set up for it. A mirror that lacks the file is an error.
    """
    name = _file_name(entry)
    file = "_download/{}/{}".format(entry["name"], name)
    mirror = rctx.os.environ.get("HEAD_TO_HEAD_MIRROR", "")
    rctx.report_progress("Fetching {} {}".format(entry["name"], entry["version"]))
    if mirror:
        base = mirror if "://" in mirror else "file://" + mirror
        rctx.download(base.rstrip("/") + "/" + name.replace("+", "_"), file, sha256 = entry["sha256"])
        return file
    stores = entry.get("urls", [])
    if stores and rctx.download(stores, file, sha256 = entry["sha256"], allow_fail = True).success:
        return file
    return None

def _fetch(rctx, entry):
    """Brings one artifact here, verified against the lock, and returns its path."""
    stored = fetch_stored(rctx, entry)
    if stored:
        return stored
    source = entry["source"]
    folder = "_download/" + entry["name"]
    if source["kind"] == "http":
        file = folder + "/" + source["urls"][0].split("/")[-1]
        rctx.download(source["urls"], file, sha256 = entry["sha256"])
    elif source["kind"] == "registry" and source["registry"] == "pypi":
        file = folder + "/" + source["file"]
        _fetch_with_pip(rctx, entry, folder)
    elif source["kind"] == "registry" and source["registry"] == "npm":
        _fetch_with_npm(rctx, entry, folder)
        brought = source["file"]
        if "member" in source:
            rctx.extract("{}/{}".format(folder, brought), folder)
            brought = source["member"]
        file = folder + "/verified/" + _file_name(entry)
        rctx.download("file://{}".format(rctx.path("{}/{}".format(folder, brought))), file, sha256 = entry["sha256"])
    else:
        fail("{}: cannot fetch a '{}' artifact".format(entry["name"], source["kind"]))
    return file

def _impl(rctx):
    for encoded in rctx.attr.artifacts:
        entry = json.decode(encoded)
        file = _fetch(rctx, entry)
        if "member" in entry["source"]:
            moved = rctx.execute(["mv", file, "."])
            if moved.return_code:
                fail("{}: cannot be laid out: {}".format(entry["name"], moved.stderr))
            continue
        rctx.report_progress("Unpacking {}".format(entry["name"]))
        archive = file
        if file.endswith(".whl"):
            archive = file + ".zip"
            rctx.symlink(file, archive)

        # A source package has everything in one folder that is named like it.
        sdist = file.split("/")[-1].removesuffix(_SDIST) if file.endswith(_SDIST) else ""
        rctx.extract(archive, "", sdist)
    rctx.delete("_download")
    for program in rctx.attr.programs:
        # Wheels keep no executable bits.
        rctx.execute(["chmod", "-R", "+x", program])
    rctx.file("BUILD.bazel", rctx.read(rctx.attr.build_file))

artifact_tree = repository_rule(
    doc = """Locked artifacts unpacked into one tree under a BUILD file. HEAD_TO_HEAD_MIRROR names a folder or
    URL that holds the files, for machines that reach no registry.""",
    implementation = _impl,
    attrs = {
        "artifacts": attr.string_list(mandatory = True, doc = "entries of the lock, as JSON"),
        "build_file": attr.label(mandatory = True),
        "programs": attr.string_list(doc = "files and folders to mark executable"),
    },
    environ = ["HEAD_TO_HEAD_MIRROR", "PATH"],
)

_CHOICE = """
alias(
    name = "{target}",
    actual = select({cases}),
    visibility = ["//visibility:public"],
)
"""

def _by_cpu_impl(rctx):
    rctx.file("BUILD.bazel", "".join([
        _CHOICE.format(
            target = target,
            cases = json.encode({
                "@platforms//cpu:" + cpu: "@{}_{}//:{}".format(rctx.attr.repository, cpu, target)
                for cpu in rctx.attr.cpus
            }),
        )
        for target in rctx.attr.targets
    ]))

by_cpu = repository_rule(
    doc = "Targets that are those of repository <name>_<cpu>, by the CPU that is built for.",
    implementation = _by_cpu_impl,
    attrs = {
        "cpus": attr.string_list(mandatory = True),
        "repository": attr.string(mandatory = True, doc = "the name that the extension gave this repository"),
        "targets": attr.string_list(mandatory = True),
    },
)
