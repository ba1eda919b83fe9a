"""recipe_result: what a recipe of tools/artifacts makes, taken from a store or built on the spot.

A recipe's inputs are wheels of the lock, which the extension has as repositories of their own: one download
serves every recipe. The result must have the lock's sha256, wherever it was built.
"""

load(":repository.bzl", "fetch_stored")

_PYTHONS = ["python3", "python3.13", "python3.12", "python3.11"]

# For machines that have none of those (Ubuntu 22.04 has 3.10, Fedora 3.14): a CPython that runs from any folder.
# Licence: PSF-2.0. sha256 of the archive, by CPU.
_STANDALONE_URL = "https://github.com/astral-sh/python-build-standalone/releases/download/20250317/" + \
                  "cpython-3.12.9%2B20250317-{}-unknown-linux-gnu-install_only.tar.gz"
_STANDALONE = {
    "aarch64": "00c6bf9acef21ac741fea24dc449d0149834d30e9113429e50a95cce4b00bb80",
    "x86_64": "ef382fb88cbb41a3b0801690bd716b8a1aec07a6c6471010bcc6bd14cd575226",
}
_TAG = """
import sys
print(('cp' if sys.implementation.name == 'cpython' else 'py') + '%d%d' % sys.version_info[:2])
"""

def _machine_cpu(rctx):
    return {"amd64": "x86_64"}.get(rctx.os.arch, rctx.os.arch)

def _imports(tag, cpu, file):
    """Whether the interpreter of this tag (cp311) on this CPU can import a wheel of this name."""
    if not file.endswith(".whl"):
        return False
    python, abi, platforms = file[:-len(".whl")].split("-")[-3:]
    if platforms != "any" and not platforms.endswith(cpu):
        return False
    if abi == "none" and python.startswith("py"):
        return True
    if abi == "abi3":
        return tag.startswith("cp") and int(python[len("cp"):]) <= int(tag[len("cp"):])
    return python == tag

def _standalone_python(rctx):
    """Downloads the pinned CPython; None where it cannot be had."""
    cpu = _machine_cpu(rctx)
    if cpu not in _STANDALONE:
        return None
    rctx.report_progress("Downloading CPython 3.12 for recipes")
    archive = rctx.download(
        _STANDALONE_URL.format(cpu),
        "_build/python.tar.gz",
        sha256 = _STANDALONE[cpu],
        allow_fail = True,
    )
    if not archive.success:
        return None
    rctx.extract("_build/python.tar.gz", "_build/standalone")
    return rctx.path("_build/standalone/python/bin/python3")

def _choose_python(rctx, name, inputs):
    """The first interpreter for which every input package has a wheel, and those wheels."""
    wanted = rctx.os.environ.get("HEAD_TO_HEAD_PYTHON", "")
    packages = {wheel["package"]: True for wheel in inputs}
    seen = []
    for candidate in [wanted] if wanted else _PYTHONS + [None]:
        if candidate == None:
            program = _standalone_python(rctx)
        else:
            program = candidate if "/" in candidate else rctx.which(candidate)
        result = rctx.execute([program, "-I", "-S", "-c", _TAG]) if program else None
        if not result or result.return_code:
            continue
        tag = result.stdout.strip()
        seen.append(tag)
        fitting = [wheel for wheel in inputs if _imports(tag, _machine_cpu(rctx), wheel["file"])]
        if len({wheel["package"]: True for wheel in fitting}) == len(packages):
            return program, fitting
    if wanted:
        fail("{}: HEAD_TO_HEAD_PYTHON is {}, which is none of CPython 3.11 to 3.13: correct or unset it".format(
            name,
            wanted,
        ))
    fail(("{}: no Python fits the wheels it is built from (found: {}), and the pinned CPython 3.12 cannot be " +
          "downloaded; install one of CPython 3.11 to 3.13, or name it in HEAD_TO_HEAD_PYTHON").format(
        name,
        ", ".join(seen) or "none",
    ))

def _built_before(rctx, entry):
    """The archive, if Bazel's cache of downloads has it from an earlier build; None otherwise.

    The cache is asked by sha256 before the address is, and _build puts every result there.
    """
    file = "_download/built.zip"
    nowhere = "file://{}/none".format(rctx.path("."))
    return file if rctx.download(nowhere, file, sha256 = entry["sha256"], allow_fail = True).success else None

def _build(rctx, entry):
    """Runs the recipe and returns its archive."""
    name = entry["name"]
    python, wheels = _choose_python(rctx, name, json.decode(rctx.attr.inputs))

    # The inputs are this repository's siblings: their canonical names differ in the last part alone.
    family = rctx.name[:-len(rctx.attr.repository)]
    folders = [
        rctx.path(Label("@@{}{}//:BUILD.bazel".format(family, wheel["repository"]))).dirname
        for wheel in wheels
    ]

    # Wheels share folders, so they become one tree; hard links cost nothing where the disk allows them.
    rctx.file("_build/temporary/.keep", "")
    rctx.file("_build/site/.keep", "")
    for folder in folders:
        source, site = str(folder) + "/.", str(rctx.path("_build/site"))
        if rctx.execute(["cp", "-rlf", source, site]).return_code:
            copied = rctx.execute(["cp", "-rf", source, site])
            if copied.return_code:
                fail("{}: cannot copy {}: {}".format(name, folder, copied.stderr[-800:]))

    rctx.report_progress("Building {} {} (minutes)".format(name, entry["version"]))
    archive = "_build/result.zip"
    result = rctx.execute(
        # Nothing of this machine but PATH: the bytes must not depend on it.
        [
            "env",
            "-i",
            "PATH=" + rctx.os.environ.get("PATH", ""),
            "HOME={}".format(rctx.path("_build")),
            "TMPDIR={}".format(rctx.path("_build/temporary")),
            "LC_ALL=C.UTF-8",
            python,
            "-I",
            "-S",
            "-B",
            rctx.path(rctx.attr.script),
            "--arch",
            entry["source"]["arch"],
            "--site",
            rctx.path("_build/site"),
            "--out",
            rctx.path(archive),
        ] + (["--cpu", entry["source"]["cpu"]] if "cpu" in entry["source"] else []),
        timeout = 1800,
    )
    if result.return_code:
        fail("{}: its recipe failed: {}".format(name, (result.stdout + result.stderr)[-2000:]))

    # A download is how a repository rule learns a sha256, and how a file gets into Bazel's cache.
    digest = rctx.download("file://{}".format(rctx.path(archive)), "_build/checked.zip").sha256
    if digest != entry["sha256"]:
        fail(("{name}: its recipe gave sha256 {digest}, third_party/artifacts.lock.json says {sha256}; if the " +
              "recipe or its inputs changed on purpose, record it with `artifacts pin {name}@{version}`").format(
            digest = digest,
            name = name,
            sha256 = entry["sha256"],
            version = entry["version"],
        ))
    return archive

def _impl(rctx):
    entry = json.decode(rctx.attr.artifact)
    rctx.extract(fetch_stored(rctx, entry) or _built_before(rctx, entry) or _build(rctx, entry))
    rctx.delete("_build")
    rctx.delete("_download")
    rctx.template("BUILD.bazel", rctx.attr.build_file, {
        "{ARCH}": entry["source"]["arch"],
        "{RECIPE}": entry["source"]["recipe"],
        "{SHA256}": entry["sha256"],
        "{VERSION}": entry["version"],
    })

recipe_result = repository_rule(
    doc = """What a recipe makes, unpacked under a BUILD file in which {ARCH}, {RECIPE}, {SHA256} and {VERSION} are
    filled in. It comes from HEAD_TO_HEAD_MIRROR, else from the lock's urls, else from running the recipe.""",
    implementation = _impl,
    attrs = {
        "artifact": attr.string(mandatory = True, doc = "the entry of the lock, as JSON"),
        "build_file": attr.label(mandatory = True),
        "inputs": attr.string(mandatory = True, doc = "file, package and repository of each wheel, as JSON"),
        "repository": attr.string(mandatory = True, doc = "the name that the extension gave this repository"),
        "script": attr.label(mandatory = True),
        # What recipes import: a change runs them again.
        "_shared": attr.label_list(default = [
            "//tools/artifacts:recipes/archive.py",
            "//tools/artifacts:recipes/cute_export.py",
            "//tools/artifacts:recipes/stand_ins/torch/__init__.py",
            "//tools/artifacts:recipes/stand_ins/triton/__init__.py",
            "//tools/artifacts:recipes/triton_export.py",
        ]),
    },
    # Not PATH: the result is the lock's, whatever was on it.
    environ = ["HEAD_TO_HEAD_MIRROR", "HEAD_TO_HEAD_PYTHON"],
)
