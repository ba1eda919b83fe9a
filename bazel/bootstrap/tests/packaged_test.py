"""Debian packages: every way a source, a tool, the disk or the user can stop the build of a tree."""

import json
import os
import subprocess
import sys
import unittest
import urllib.parse

from machine import VERSION, Answer, Machine

DEB = "bazel-bootstrap_0_amd64.deb"
POOL = "/debian/pool/main/b/"


class Packaged(Machine):
    def setUp(self):
        super().setUp()
        self.packages()

    def nothing_is_trusted(self):
        kept = [
            name
            for name in os.listdir(self.cache)
            if "packaged" in name and not name.endswith(".log")
        ]
        self.assertEqual(kept, [])

    def makes(self):
        """How often a tree was made: pip notes each wheel."""
        with open(self.notes, encoding="utf-8") as file:
            return len(file.readlines()) / len(self.lock()["wheels"])

    def fill_mirror(self):
        wheels = self.environment["STAND_IN_WHEELS"]
        for name in os.listdir(wheels):
            os.rename(os.path.join(wheels, name), os.path.join(self.mirror, name))
        for path in [path for path in self.serve if path.startswith(POOL)]:
            with open(os.path.join(self.mirror, os.path.basename(path)), "wb") as file:
                file.write(self.serve.pop(path).data)

    def packaged_py(self, *words):
        program = os.path.join(self.bootstrap, "packaged.py")
        return subprocess.run(
            [os.path.join(self.bin, "python3"), "-B", program, *words],
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    def test_makes_a_tree_once_and_is_silent_afterwards(self):
        self.assertIn("Bazel is ready", self.runs().complained)
        again = self.runs("build", "//x")
        self.assertEqual((again.complained, self.makes()), ("", 1))
        self.assertIn("--bazelrc=", again.said)
        self.assertEqual([name for name in os.listdir(self.cache) if name.endswith(".log")], [])

    def test_the_registry_is_an_address_even_in_a_folder_with_a_space(self):
        said = self.runs("build", "//x").said
        name = next(name for name in os.listdir(self.cache) if name.startswith("registry-"))
        self.assertIn(f"--bazelrc={os.path.join(self.cache, name)}", said)
        with open(os.path.join(self.cache, name), encoding="utf-8") as file:
            address = file.read().strip().removeprefix("common --registry=")
        self.assertIn("%20", address)
        self.assertEqual(
            urllib.parse.unquote(address), f"file://{self.clone}/bazel/registry"
        )

    def test_editing_a_test_or_a_download_does_not_remake_it(self):
        self.runs()
        with open(os.path.join(self.bootstrap, "sources.py"), "a", encoding="utf-8") as file:
            file.write("# edited\n")
        self.assertEqual(self.runs().complained, "")

    def test_first_source_is_somebody_elses(self):
        self.sources("nvidia", "debian")
        self.runs()

    def test_file_gone_from_the_pool(self):
        del self.serve[POOL + DEB]
        child = self.refuses(f"cannot get {DEB}")
        self.assertIn("404", child.complained)
        self.assertIn("HEAD_TO_HEAD_MIRROR", child.complained)
        self.assertIn("packaged.py --update", child.complained)
        self.nothing_is_trusted()

    def test_file_gone_from_the_pool_and_kept_by_snapshot(self):
        self.serve["/snapshot/20000101T000000Z/pool/main/b/" + DEB] = self.serve.pop(POOL + DEB)
        self.runs()

    def test_wrong_hash(self):
        self.serve[POOL + DEB] = Answer(b"something else")
        self.refuses("wrong contents (14 of ")
        self.nothing_is_trusted()

    def test_proxy_page(self):
        self.serve[POOL + DEB] = Answer(b"<html>blocked</html>")
        self.refuses("a web page instead of the file, as from a proxy")

    def test_stall(self):
        self.serve[POOL + DEB].stall_s = 30
        self.refuses(f"cannot get {DEB}")
        self.nothing_is_trusted()

    def test_no_sources_at_all(self):
        self.without("apt-get")
        self.refuses(".deb (snapshot: 404")

    def test_mirror_folder_alone(self):
        self.fill_mirror()
        self.without("apt-get", "apt-helper")
        self.runs(HEAD_TO_HEAD_MIRROR=self.mirror, STAND_IN_PIP_SAYS="no pip here")
        self.assertEqual(self.asked, [])

    def test_mirror_address(self):
        for path in [path for path in self.serve if path.startswith(POOL)]:
            self.serve["/mirror/" + os.path.basename(path)] = self.serve.pop(path)
        self.runs(HEAD_TO_HEAD_MIRROR=self.url + "/mirror")

    def test_store(self):
        for path in [path for path in self.serve if path.startswith(POOL)]:
            self.serve["/store/" + os.path.basename(path)] = self.serve.pop(path)
        self.write_lock({**self.lock(), "store": [self.url + "/store"]})
        self.runs()

    def test_committed_lock_is_whole(self):
        with open("bazel/bootstrap/packages.lock.json", encoding="utf-8") as file:
            lock = json.load(file)
        for entry in lock["debs"] + lock["wheels"]:
            self.assertRegex(entry["sha256"], "^[0-9a-f]{64}$")
            self.assertGreater(entry["size"], 0)
            self.assertRegex(entry["path"], r"^pool/main/\S+\.deb$|^[^/\s]+\.whl$")
        names = [os.path.basename(entry["path"]) for entry in lock["debs"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(sum(name.startswith(f"bazel-bootstrap_{VERSION}") for name in names), 1)
        self.assertRegex(lock["snapshot"], r"^\d{8}T\d{6}Z$")

    def test_mirror_with_a_wrong_file_is_passed_over(self):
        with open(os.path.join(self.mirror, DEB), "w", encoding="utf-8") as file:
            file.write("wrong")
        self.runs(HEAD_TO_HEAD_MIRROR=self.mirror)

    def test_full_disk(self):
        self.refuses("free some space", shell="trap '' XFSZ; ulimit -f 64")
        self.nothing_is_trusted()
        self.runs()

    def test_read_only_home(self):
        del self.environment["HEAD_TO_HEAD_CACHE"]
        self.refuses("set HEAD_TO_HEAD_CACHE to a folder you own", HOME="/proc")

    def test_interrupted(self):
        child = self.start(STAND_IN_PIP_S="60")
        self.interrupt(child, lambda: os.path.exists(self.notes))
        self.assertIn("interrupted; nothing was kept", child.complained)
        self.nothing_is_trusted()
        self.runs()

    def test_two_first_starts_at_once(self):
        children = [self.start(STAND_IN_PIP_S="1"), self.start(STAND_IN_PIP_S="1")]
        complaints = [self.finish(child).complained for child in children]
        self.assertEqual([child.returncode for child in children], [0, 0], complaints)
        self.assertEqual(self.makes(), 1)

    def test_leftovers_of_a_killed_run_are_removed(self):
        self.runs()
        link = next(
            name
            for name in os.listdir(self.cache)
            if os.path.islink(os.path.join(self.cache, name))
        )
        os.remove(os.path.join(self.cache, link))
        self.runs()
        trees = [name for name in os.listdir(self.cache) if name.startswith(link + ".")]
        self.assertEqual(len(trees), 1)

    def test_tampered_tree(self):
        self.runs()
        link = next(
            name
            for name in os.listdir(self.cache)
            if os.path.islink(os.path.join(self.cache, name))
        )
        with open(os.path.join(self.cache, link, "bazelrc"), "a", encoding="utf-8") as file:
            file.write("common --config=owned\n")
        self.refuses("was modified after it was built: remove it and try again")

    def test_another_version_in_the_packages(self):
        self.packages(version="6.0.0")
        self.refuses(f"says 'bazel 6.0.0', not 'bazel {VERSION}'")
        self.nothing_is_trusted()

    def test_no_pip(self):
        self.refuses(
            "python3 has no pip: install python3-pip",
            STAND_IN_PIP_SAYS="/bin/python3: No module named pip",
        )

    def test_pip_with_a_wrong_hash(self):
        said = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."
        self.refuses("THESE PACKAGES DO NOT MATCH THE HASHES", STAND_IN_PIP_SAYS=said)

    def test_pip_py_in_the_folder_is_not_pip(self):
        self.tool("python3", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        for folder in (self.clone, self.top):
            with open(os.path.join(folder, "pip.py"), "w", encoding="utf-8") as file:
                file.write(f"open({self.notes + '.owned'!r}, 'w')\n")
        # The real pip finds no such wheel; what matters is that nothing else ran in its place.
        self.refuses("-0-py3-none-any.whl (pip: ", PIP_NO_INDEX="1")
        self.assertFalse(os.path.exists(self.notes + ".owned"))

    def test_no_python(self):
        self.without("python3")
        self.refuses("no python3 to unpack Debian packages with: install python3 and python3-pip")

    def test_no_dpkg(self):
        self.without("dpkg-deb")
        self.refuses("no dpkg-deb: this road needs a Debian-like system, or set BAZEL")

    def test_no_compiler(self):
        self.without("g++")
        self.refuses("no g++: install gcc and g++")

    def test_no_rust(self):
        self.without("cargo")
        self.refuses("no rustc and cargo on PATH: install Rust 1.89 or newer")

    def test_old_rust(self):
        self.tool("rustc", "#!/bin/sh\necho rustc 1.63.0\n")
        self.refuses("rustc 1.63 is too old: install Rust 1.89 or newer")

    def test_another_architecture(self):
        self.tool("uname", "#!/bin/sh\necho Linux aarch64\n")
        self.refuses("this is Linux aarch64: use the official Bazel, or set BAZEL")

    def test_published_tree_from_a_mirror(self):
        published = self.packaged_py("--publish", self.mirror)
        self.assertEqual(published.returncode, 0, published.stderr)
        first = self.lock()["tree"]
        self.packaged_py("--publish", self.mirror)
        self.assertEqual(self.lock()["tree"], first)
        # Nothing but the mirror: no packages, no wheels.
        self.serve.clear()
        self.without("apt-get")
        child = self.runs(
            "build",
            "//x",
            HEAD_TO_HEAD_MIRROR=self.mirror,
            STAND_IN_PIP_SAYS="not needed",
        )
        self.assertIn("unpacking the published tree", child.complained)
        self.assertIn(f"--install_base={self.cache}", child.said)

    def test_published_tree_is_nowhere(self):
        self.packaged_py("--publish", self.mirror)
        child = self.runs(HEAD_TO_HEAD_MIRROR=self.top)
        self.assertIn(
            "is neither on the mirror nor in the store; fetching single packages", child.complained
        )

    def test_published_tree_is_damaged(self):
        self.packaged_py("--publish", self.mirror)
        with open(os.path.join(self.mirror, self.lock()["tree"]["path"]), "ab") as file:
            file.write(b"more")
        self.assertIn(
            "fetching single packages", self.runs(HEAD_TO_HEAD_MIRROR=self.mirror).complained
        )


if __name__ == "__main__":
    unittest.main()
