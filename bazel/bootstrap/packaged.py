"""Bazel from Debian packages and two wheels, every file locked in packages.lock.json.

  packaged.py --make PREFIX    builds the tree; bazelw calls this under its lock
  packaged.py --check KIND...  checks whether debs, wheels, crates can be fetched (bazelw --doctor)
  packaged.py --update         locks Debian's current packages
  packaged.py --publish OUT    writes the unpacked tree to OUT as one archive and locks it

The tree is built at PREFIX.<random> (its absolute path is patched into the programs), and PREFIX becomes
a symbolic link to it as the very last step, so an existing PREFIX is complete. Leftovers of an interrupted
run are removed by the next. After a failure the log stays at PREFIX.log.
"""

import concurrent.futures
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import tree as trees
from common import HERE, MACHINE, Log, Processes, Stop, file_name, read_lock, say
from sources import Sources

RUST_FLOOR = (1, 89)
NEEDED_MIB = 2000
AT_ONCE = 4
PROGRESS_S = 5
PROBE_S = 8


def bazel_version():
    with open(os.path.join(HERE, "../../.bazelversion"), encoding="utf-8") as file:
        return file.read().strip()


def preflight(folder):
    """Yields a sentence for each thing missing on this machine."""
    machine = (
        subprocess.run(["uname", "-sm"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    )
    if machine != MACHINE:
        yield (
            f"Debian's Bazel is locked for {MACHINE}, but this is {machine}: "
            f"use the official Bazel, or set BAZEL to a Bazel {bazel_version()}"
        )
        return
    if not shutil.which("dpkg-deb"):
        yield (
            "no dpkg-deb: this road needs a Debian-like system, "
            f"or set BAZEL to a Bazel {bazel_version()}"
        )
    if not shutil.which("g++"):
        yield "no g++: install gcc and g++"
    floor = ".".join(map(str, RUST_FLOOR))
    rust = trees.rust_version()
    if rust is None:
        yield f"no rustc and cargo on PATH: install Rust {floor} or newer"
    elif rust < RUST_FLOOR:
        yield f"rustc {'.'.join(map(str, rust))} is too old: install Rust {floor} or newer"
    free_mib = shutil.disk_usage(folder).free >> 20
    if free_mib < NEEDED_MIB:
        yield (
            f"{folder} has {free_mib} MiB free, but {NEEDED_MIB} are needed: "
            "free some, or set HEAD_TO_HEAD_CACHE"
        )


def assemble(lock, sources, processes, folder, scratch):
    """Fills folder with the tree, ready to publish."""
    wanted = lock["wheels"] + lock["debs"]
    megabytes = sum(entry["size"] for entry in wanted) / 1e6
    say(f"downloading {len(wanted)} packages ({megabytes:.0f} MB)")
    downloads = os.path.join(scratch, "downloads")
    os.mkdir(downloads)
    pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
    pending = {pool.submit(sources.fetch, entry, downloads): entry for entry in wanted}
    done, done_bytes, spoke = 0, 0, time.monotonic()
    try:
        while pending:
            ready, _ = concurrent.futures.wait(
                pending, PROGRESS_S, concurrent.futures.FIRST_COMPLETED
            )
            for future in ready:
                entry, path = pending.pop(future), future.result()
                if path.endswith(".whl"):
                    trees.unpack_wheel(path, folder, os.path.join(scratch, file_name(entry) + ".d"))
                else:
                    trees.unpack_deb(processes, path, folder)
                os.remove(path)
                done += 1
                done_bytes += entry["size"]
            if time.monotonic() - spoke > PROGRESS_S:
                spoke = time.monotonic()
                say(f"  {done} of {len(wanted)}, {done_bytes / 1e6:.0f} of {megabytes:.0f} MB")
        trees.finish(folder)
    except BaseException:
        for future in pending:
            future.cancel()
        processes.stop()
        raise
    finally:
        pool.shutdown(wait=False)


def from_published(lock, sources, processes, folder, scratch):
    """Gets the finished tree from the mirror or the store; False if neither has it."""
    entry = lock.get("tree")
    if not entry or not (sources.mirror or lock["store"]):
        return False
    try:
        archive = sources.fetch(entry, scratch, own_only=True)
    except Stop as stop:
        processes.log.write(str(stop))
        say(
            f"{file_name(entry)} is neither on the mirror nor in the store; "
            "fetching single packages"
        )
        return False
    say("unpacking the published tree")
    shutil.unpack_archive(archive, folder, "gztar")
    os.remove(archive)
    return True


def make(prefix):
    cache = os.path.dirname(prefix)
    for sentence in preflight(cache):
        raise Stop(sentence)
    for name in os.listdir(cache):
        if name.startswith(os.path.basename(prefix) + "."):
            path = os.path.join(cache, name)
            (
                shutil.rmtree(path)
                if os.path.isdir(path) and not os.path.islink(path)
                else os.remove(path)
            )
    log = Log(prefix + ".log")
    processes = Processes(log)
    folder = tempfile.mkdtemp(prefix=os.path.basename(prefix) + ".", dir=cache)
    scratch = os.path.join(folder, "scratch")
    try:
        os.chmod(folder, 0o755)
        os.mkdir(scratch)
        say(f"first use: building Bazel from Debian packages in {cache}")
        lock = read_lock()
        sources = Sources(lock, processes)
        if not from_published(lock, sources, processes, folder, scratch):
            assemble(lock, sources, processes, folder, scratch)
        trees.bake(processes, folder)
        trees.check(processes, folder, bazel_version(), scratch)
        trees.seal(folder)
        shutil.rmtree(scratch)
        os.symlink(folder, prefix + ".link")
        os.replace(prefix + ".link", prefix)
    except BaseException as error:
        processes.stop()
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            error = Stop(
                f"{error}: free some space in {cache}, or set HEAD_TO_HEAD_CACHE to a folder you own"
            )
        if isinstance(error, Stop):
            log.write(str(error))
            raise Stop(f"{error} (log: {log.path})") from error
        raise
    log.remove()
    say("Bazel is ready")


def ask_for_a_crate(processes, folder):
    """Has cargo look up a crate as bazel/crates will, in a home with only the user's settings."""
    home, crate = os.path.join(folder, "cargo-home"), os.path.join(folder, "crate")
    theirs = os.environ.get("CARGO_HOME") or os.path.join(os.path.expanduser("~"), ".cargo")
    os.mkdir(home)
    for name in ("config", "config.toml"):
        if os.path.exists(os.path.join(theirs, name)):
            os.symlink(os.path.join(theirs, name), os.path.join(home, name))
    os.makedirs(os.path.join(crate, "src"))
    with open(os.path.join(crate, "src", "lib.rs"), "w", encoding="utf-8"):
        pass
    with open(os.path.join(crate, "Cargo.toml"), "w", encoding="utf-8") as file:
        file.write(
            '[package]\nname = "asks"\nversion = "0.0.0"\nedition = "2021"\n'
            '[dependencies]\ncfg-if = "1"\n'
        )
    processes.run(
        ["cargo", "generate-lockfile", "--manifest-path", os.path.join(crate, "Cargo.toml")],
        "cargo cannot read its registry",
        timeout=60,
        env=dict(os.environ, CARGO_HOME=home, CARGO_NET_RETRY="1", CARGO_HTTP_TIMEOUT="20"),
    )


def check(kinds):
    """Prints a line per missing thing; fetching one small file of each kind reveals a dead network."""
    folder = tempfile.mkdtemp()
    processes = Processes(Log(os.path.join(folder, "log")))
    missing = list(preflight(folder)) if "debs" in kinds else []
    lock = read_lock()
    sources = Sources(lock, processes)
    probes = {}
    pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
    for kind in [] if missing else kinds:
        if kind == "crates":
            probes[pool.submit(ask_for_a_crate, processes, folder)] = "cargo's registry"
        else:
            entry = min(lock[kind], key=lambda entry: entry["size"])
            probes[pool.submit(sources.fetch, entry, folder)] = file_name(entry)
    concurrent.futures.wait(probes, PROBE_S)
    for probe, name in probes.items():
        if not probe.done():
            missing.append(
                f"{name}: no answer in {PROBE_S} s: check the network and the proxy settings"
            )
        elif probe.exception():
            missing.append(str(probe.exception()))
    processes.stop()
    shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(missing))
    return 1 if missing else 0


def main(arguments):
    def interrupt(*_):
        raise KeyboardInterrupt

    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, interrupt)
    try:
        if arguments[:1] == ["--make"] and len(arguments) == 2:
            make(os.path.abspath(arguments[1]))
        elif arguments[:1] == ["--check"] and set(arguments[1:]) <= {"debs", "wheels", "crates"}:
            return check(arguments[1:])
        elif arguments == ["--update"]:
            import update

            update.update()
        elif arguments[:1] == ["--publish"] and len(arguments) == 2:
            import publish

            publish.publish(arguments[1])
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except Stop as stop:
        say(str(stop))
        return 1
    except KeyboardInterrupt:
        say("interrupted; nothing was kept, and the next run starts over")
        return 130
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    # Not sys.exit, which would wait for downloads that are no longer wanted.
    os._exit(status)
