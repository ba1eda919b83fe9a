"""Shared by the packaged road's files: the lock, messages to the user, the log, and processes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
LOCK = os.path.join(HERE, "packages.lock.json")
MACHINE = "Linux x86_64"
# The python3 that bazelw found, not the interpreter behind it: a virtual environment has its own pip.
PYTHON = shutil.which("python3") or sys.executable

# Causes found in a log, however deep, and what to do about them.
CAUSES = [
    (
        r"No space left on device|Disk quota exceeded|File too large",
        "the disk is full: free some space",
    ),
    (r"linker `?cc`? not found|error: linker", "the linker failed: install gcc and g++"),
    (
        r"HASHES|hashes? (?:do|does) not match",
        "a file arrived with a wrong sha256: try again, or use another mirror",
    ),
    (
        r"No matching distribution|Could not find a version",
        "pip's index does not have the pinned wheel",
    ),
    (
        r"spurious network error|Could not resolve|Connection refused|Temporary failure"
        r"|Network is unreachable"
        r"|failed to download|timed out|Connection (?:broken|reset)",
        "the network failed: check the proxy settings",
    ),
]


class Stop(Exception):
    """Stops with one sentence for the user."""


def say(text):
    print(f"bazelw: {text}", file=sys.stderr, flush=True)


def read_lock():
    with open(LOCK, encoding="utf-8") as file:
        return json.load(file)


def write_lock(lock):
    with open(LOCK + ".new", "w", encoding="utf-8") as file:
        json.dump(lock, file, indent=1)
        file.write("\n")
    os.replace(LOCK + ".new", LOCK)


def file_name(entry):
    return os.path.basename(entry["path"])


class Log:
    """Every command and its output, in one file that survives a failure."""

    def __init__(self, path):
        self.path = path
        self._file = open(path, "w", encoding="utf-8", errors="replace")
        self._lock = threading.Lock()

    def write(self, text):
        with self._lock:
            self._file.write(text.rstrip("\n") + "\n")
            self._file.flush()

    def remove(self):
        self._file.close()
        os.remove(self.path)


class Processes:
    """Children in their own process groups, so that whatever ends this program ends theirs too."""

    def __init__(self, log):
        self.log = log
        self._running = set()
        self._stopped = False
        self._lock = threading.Lock()

    def run(self, command, what, **options):
        """Runs a command to completion and returns its output; raises Stop with the cause."""
        code, output = self.attempt(command, **options)
        if code:
            raise Stop(f"{what}: {cause(output, code)}")
        return output

    def attempt(self, command, timeout=None, **options):
        with self._lock:
            if self._stopped:
                raise Stop("stopped")
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )
            self._running.add(child)
        try:
            output = child.communicate(timeout=timeout)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            kill(child)
            output = (
                child.communicate()[0].decode(errors="replace") + f"\ntimed out after {timeout} s"
            )
        finally:
            with self._lock:
                self._running.discard(child)
        self.log.write(f"$ {' '.join(command)}\n{output}[exit {child.returncode}]")
        return child.returncode, output

    def stop(self):
        with self._lock:
            self._stopped = True
            for child in self._running:
                kill(child)


def kill(child):
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def cause(output, code):
    for pattern, sentence in CAUSES:
        if re.search(pattern, output):
            return sentence
    said = [
        line.strip()
        for line in output.splitlines()
        if re.match(r"\s*(E:|ERROR|error|fatal|dpkg-deb: error)", line)
    ]
    return said[0] if said else f"it exited with code {code}"
