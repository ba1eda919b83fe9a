"""Locks Debian's current packages: the only place where a suite and a keyring matter.

A private apt (its own lists, status and cache; the machine's own mirror and proxies) resolves Bazel,
the files are fetched and checked against apt's hashes, and packages that the server's class path does
not need are left out.
"""

import datetime
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

import tree as trees
from common import Log, Processes, Stop, file_name, read_lock, say, write_lock
from server_jar import class_path
from sources import Sources

SUITE = "forky"  # the Debian suite that packages Bazel 7.7.1 and rules_rust 0.54.1
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ROOTS = ["bazel-bootstrap", "bazel-rules-rust", "bazel-rules-shell"]
# The programs' shared libraries, the server's jars, and the modules behind bazel_dep.
WANTED = (
    r"bazel-.*|.*-java|lib.*-jni[0-9]*|junit4|velocity|librust-tinyjson-dev"
    r"|libc6|libgcc-s1|libstdc[+][+]6|zlib1g|libzstd1|libssl[0-9].*|libcares2|libre2-[0-9]+"
    r"|libabsl[0-9]+|libprotobuf[0-9]+t64|libgrpc.*t64"
)
UNWANTED = r"libmaven.*|libplexus.*|libwagon.*|ca-certificates.*"

CONFIGURATION = """
Dir::State "{0}/state";
Dir::State::status "{0}/status";
Dir::Cache "{0}/cache";
Dir::Etc::sourcelist "{0}/sources.list";
Dir::Etc::sourceparts "{0}/none";
Dir::Etc::preferencesparts "{0}/none";
Acquire::Languages "none";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
APT::Get::AllowUnauthenticated "false";
APT::Sandbox::User "";
"""


def update():
    folder = tempfile.mkdtemp()
    processes = Processes(Log(os.path.join(folder, "log")))
    try:
        lock = read_lock()
        sources = Sources(lock, processes)
        debs, snapshot = resolve(processes, sources, os.path.join(folder, "apt"))
        say(f"fetching {len(debs)} packages to see which are needed")
        lock["debs"] = sorted(needed(processes, sources, debs, folder), key=file_name)
        # Its contents would no longer match the packages.
        lock["snapshot"], lock["tree"] = snapshot, None
        write_lock(lock)
        size = sum(entry["size"] for entry in lock["debs"]) / 1e6
        say(
            f"locked {len(lock['debs'])} packages, {size:.0f} MB: see git diff, "
            "then try them with BAZELW_ROAD=packaged"
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def resolve(processes, sources, apt):
    """What apt would install for ROOTS from SUITE, as lock entries, and the suite's date."""
    if not os.access(KEYRING, os.R_OK):
        raise Stop(f"no {KEYRING}: install debian-archive-keyring")
    for name in ("state/lists/partial", "cache/archives/partial", "none"):
        os.makedirs(os.path.join(apt, name))
    trees.write(apt, "status", [])
    trees.write(apt, "apt.conf", [CONFIGURATION.format(apt)])
    environment = dict(os.environ, APT_CONFIG=os.path.join(apt, "apt.conf"))
    for base in sources.bases():
        trees.write(apt, "sources.list", [f"deb [signed-by={KEYRING}] {base} {SUITE} main"])
        if (
            processes.attempt(["apt-get", "-q", "update", "--error-on=any"], env=environment)[0]
            == 0
        ):
            break
    else:
        raise Stop(
            f"no configured source has the suite {SUITE} "
            f"(tried: {', '.join(sources.bases()) or 'none'})"
        )
    install = ["apt-get", "install", "-s", "--no-install-recommends", *ROOTS]
    plan = re.findall(
        r"^Inst (\S+)", processes.run(install, "apt cannot resolve Bazel", env=environment), re.M
    )
    names = [
        name for name in plan if re.fullmatch(WANTED, name) and not re.fullmatch(UNWANTED, name)
    ]
    records = processes.run(
        ["apt-cache", "show", "--no-all-versions", *names], "apt has no records", env=environment
    )
    entries = []
    for record in records.strip().split("\n\n"):
        field = dict(re.findall(r"^(Filename|Size|SHA256): (.*)$", record, re.M))
        entries.append(
            {"path": field["Filename"], "size": int(field["Size"]), "sha256": field["SHA256"]}
        )
    lists = os.path.join(apt, "state/lists")
    release = next(name for name in os.listdir(lists) if name.endswith("InRelease"))
    with open(os.path.join(lists, release), encoding="utf-8") as file:
        date = re.search(r"^Date: (.*) UTC$", file.read(), re.M).group(1)
    # The snapshot at or before the suite's own date has all of its files.
    moment = datetime.datetime.strptime(date, "%a, %d %b %Y %H:%M:%S")
    return entries, moment.strftime("%Y%m%dT%H%M%SZ")


def needed(processes, sources, debs, folder):
    """The packages that contain a jar of the class path, a library, or part of Bazel."""
    jars = None
    # Bazel's own data first: it lists the class path.
    for entry in sorted(debs, key=lambda entry: "bazel-bootstrap-data" not in entry["path"]):
        path = sources.fetch(entry, folder)
        if jars is None:
            trees.unpack_deb(processes, path, os.path.join(folder, "data"))
            jars = {f"./usr/share/java/{name}" for name in class_path(os.path.join(folder, "data"))}
        names = contents(path)
        if any(
            name in jars
            or not name.startswith("./usr/share/")
            or name.startswith("./usr/share/bazel/")
            or name.startswith("./usr/share/cargo/")
            for name in names
        ):
            yield entry
        os.remove(path)


def contents(deb):
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as child:
        with tarfile.open(fileobj=child.stdout, mode="r|") as archive:
            return [
                member.name if member.name.startswith("./") else "./" + member.name
                for member in archive
                if not member.isdir()
            ]
