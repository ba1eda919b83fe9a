"""Where a locked file comes from. In order: $HEAD_TO_HEAD_MIRROR, the lock's own store, Debian's pool
through this machine's apt, Debian's snapshot service; wheels come through pip after the first two.

Size and sha256 are checked here, whoever serves the file; no apt or pip setting can weaken that.
"""

import hashlib
import os
import re
import shutil
import threading
import urllib.parse

from common import PYTHON, Stop, file_name
from download import Failed, download

# BAZELW_TEST_*: for tests only, here and in the other files.
SNAPSHOT = os.environ.get("BAZELW_TEST_SNAPSHOT", "https://snapshot.debian.org/archive/debian")
STALL_S = 20
# Time limit for one file through apt, whatever its size; the largest is 35 MB.
APT_LIMIT_S = 600


class Sources:
    def __init__(self, lock, processes):
        self.lock = lock
        self.processes = processes
        self.mirror = os.environ.get("HEAD_TO_HEAD_MIRROR", "")
        self.apt_helper = shutil.which("apt-helper") or existing("/usr/lib/apt/apt-helper")
        self._bases = None
        self._bases_lock = threading.Lock()

    def fetch(self, entry, folder, own_only=False):
        """Fetches an entry of the lock to folder; raises Stop, naming every source."""
        name = file_name(entry)
        path = os.path.join(folder, name)
        refused = []
        for label, attempt in self.ways(entry, own_only):
            partial = path + ".partial"
            try:
                attempt(partial)
                check(entry, partial)
                os.replace(partial, path)
                return path
            except Failed as failure:
                if failure.code == 23:
                    raise Stop(f"{folder}: {failure}: free some space") from failure
                refused.append(f"{label}: {failure}")
                self.processes.log.write(f"{name}: {refused[-1]}")
            finally:
                if os.path.exists(partial):
                    os.remove(partial)
        raise Stop(
            f"cannot get {name} ({'; '.join(refused) or 'no source is configured'}): "
            f"{self.remedy(entry)}"
        )

    def remedy(self, entry):
        if "requirement" in entry:
            return "configure pip to reach an index, or point HEAD_TO_HEAD_MIRROR at a folder that has it"
        return (
            "point HEAD_TO_HEAD_MIRROR at a folder or URL that has it; if it has left Debian's pool, "
            "bazel/bootstrap/packaged.py --update locks what the pool has now"
        )

    def ways(self, entry, own_only):
        name = file_name(entry)
        for label, base in [("mirror", self.mirror)] + [
            ("store", base) for base in self.lock["store"]
        ]:
            if base:
                yield f"{label} {base}", lambda partial, base=base: from_folder(base, name, partial)
        if own_only:
            return
        if "requirement" in entry:
            yield "pip", lambda partial: self.from_pip(entry, partial)
            return
        if self.apt_helper:
            for base in self.bases():
                yield f"pool {base}", lambda partial, base=base: self.from_pool(
                    base, entry["path"], partial
                )
        url = f"{SNAPSHOT}/{self.lock['snapshot']}/{quote(entry['path'])}"
        yield "snapshot", lambda partial: download(url, partial)

    def bases(self):
        """Every repository that apt knows, the one that last had a file first."""
        with self._bases_lock:
            if self._bases is None:
                listed = []
                for command in (
                    ["apt-get", "indextargets", "--format", "$(REPO_URI)"],
                    ["apt-get", "update", "--print-uris"],
                ):
                    # The second knows sources whose lists were never fetched, as in a fresh container.
                    if shutil.which("apt-get"):
                        output = self.processes.attempt(command, timeout=20)[1]
                        listed += re.findall(
                            r"^'?((?:https?|ftp|file):/[^'\s]+?)(?:/dists/\S*)?/?'?(?:\s|$)",
                            output,
                            re.M,
                        )
                # Security archives have their own pool, without Bazel.
                self._bases = [base for base in dict.fromkeys(listed) if "security" not in base]
            return list(self._bases)

    def from_pool(self, base, path, partial):
        options = ["-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=1"]
        for scheme in ("http", "https"):
            options += ["-o", f"Acquire::{scheme}::Timeout={STALL_S}"]
        code, output = self.processes.attempt(
            [self.apt_helper, *options, "download-file", f"{base}/{path}", partial],
            timeout=APT_LIMIT_S,
        )
        if code:
            if re.search("No space left|Disk quota|File too large", output):
                raise Failed(23, "the disk is full")
            said = re.findall(r"^(?:E: Failed to fetch \S+|W: \S+:?)\s+(.*)$", output, re.M)
            raise Failed(
                22,
                (
                    re.sub(r"\s*\[IP:.*", "", said[0])
                    if said
                    else f"apt-helper exited with code {code}"
                ),
            )
        with self._bases_lock:
            self._bases.sort(key=lambda known: known != base)

    def from_pip(self, entry, partial):
        folder = partial + ".pip"
        os.mkdir(folder)
        try:
            requirements = os.path.join(folder, "requirements.txt")
            with open(requirements, "w", encoding="utf-8") as file:
                file.write(f"{entry['requirement']} --hash=sha256:{entry['sha256']}\n")
            # Isolated: a pip.py in the user's working directory is not pip.
            code, output = self.processes.attempt(
                [
                    PYTHON,
                    "-I",
                    "-m",
                    "pip",
                    "download",
                    "-q",
                    "--no-deps",
                    "--only-binary",
                    ":all:",
                    "--require-hashes",
                    "--retries",
                    "2",
                    "--timeout",
                    str(STALL_S),
                    "-r",
                    requirements,
                    "-d",
                    folder,
                ],
                cwd=folder,
            )
            if code:
                if "No module named pip" in output:
                    raise Failed(1, "python3 has no pip: install python3-pip")
                if re.search("No space left|Disk quota|File too large", output):
                    raise Failed(23, "the disk is full")
                said = re.findall(r"^ERROR: (.*)$", output, re.M)
                raise Failed(22, said[-1] if said else f"exited with code {code}")
            os.replace(os.path.join(folder, file_name(entry)), partial)
        except FileNotFoundError as error:
            raise Failed(22, f"it downloaded a file other than {file_name(entry)}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def from_folder(base, name, partial):
    if "://" in base:
        download(f"{base.rstrip('/')}/{quote(name)}", partial)
        return
    try:
        shutil.copyfile(os.path.join(base, name), partial)
    except FileNotFoundError as error:
        raise Failed(22, "not there") from error
    except OSError as error:
        raise Failed(23 if error.filename is None else 22, error.strerror) from error


def check(entry, path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        start = file.read(512)
        file.seek(0)
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    if digest.hexdigest() == entry["sha256"] and os.path.getsize(path) == entry["size"]:
        return
    if b"<html" in start.lower() or b"<!doctype" in start.lower():
        raise Failed(22, "got a web page instead of the file, as from a proxy")
    raise Failed(
        22, f"wrong contents ({os.path.getsize(path)} of {entry['size']} bytes, sha256 differs)"
    )


def quote(path):
    return urllib.parse.quote(path, safe="/+~")


def existing(path):
    return path if os.path.exists(path) else None
