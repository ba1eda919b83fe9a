"""The official release: every way its download, its cache and its choice can go wrong."""

import os
import time
import unittest

from machine import VERSION, Answer, Machine

PAGE = b"<!DOCTYPE html><html><body>Please log in to the proxy</body></html>"
FULL = "trap '' XFSZ; ulimit -f 64"


class Official(Machine):
    def setUp(self):
        super().setUp()
        self.environment["BAZELW_ROAD"] = "official"

    def test_pins_are_for_the_version_that_is_asked_for(self):
        with open("bazel/bootstrap/official.sha256", encoding="utf-8") as file:
            pins = [line.split() for line in file]
        names = [f"bazel-{VERSION}-linux-{machine}" for machine in ("x86_64", "arm64")]
        self.assertEqual([name for _, name in pins], names)
        for digest, _ in pins:
            self.assertRegex(digest, "^[0-9a-f]{64}$")

    def test_downloads_once_and_is_silent_afterwards(self):
        self.release()
        self.assertIn("downloading the official", self.runs().complained)
        again = self.runs("build", "//x")
        self.assertEqual((again.complained, len(self.asked)), ("", 1))
        self.assertIn("with build //x", again.said)

    def test_python_downloads_where_there_is_no_curl(self):
        self.release()
        self.without("curl")
        self.runs()

    def test_neither_curl_nor_python(self):
        self.release()
        self.without("curl", "python3")
        self.refuses("neither curl nor python3 to download it with")

    def test_not_found(self):
        name = self.release()
        del self.serve[name]
        self.refuses("the server denied it or no longer has it: unset BAZELW_ROAD, or set BAZEL")

    def test_not_found_by_python(self):
        self.without("curl")
        self.test_not_found()

    def test_nothing_answers(self):
        self.release()
        self.refuses("the connection was refused", BAZELW_TEST_RELEASES="http://127.0.0.1:9")

    def test_nothing_answers_python(self):
        self.without("curl")
        self.test_nothing_answers()

    def test_proxy_page(self):
        name = self.release()
        self.serve[name] = Answer(PAGE)
        self.refuses("a proxy returned a web page instead")
        self.assertFalse(os.path.exists(self.official))

    def test_wrong_hash(self):
        name = self.release()
        self.serve[name] = Answer(b"\x7fELF another program")
        self.refuses("came with a wrong sha256", BAZELW_ROAD="")
        self.assertEqual([file for file in os.listdir(self.cache) if "official" in file], [])

    def test_stall(self):
        self.release(stall_s=30)
        self.refuses("the transfer stalled or was cut off")
        self.assertEqual([file for file in os.listdir(self.cache) if "official" in file], [])

    def test_stall_of_python(self):
        self.without("curl")
        self.test_stall()

    def test_full_disk(self):
        self.release()
        self.refuses("free some space", shell=FULL)
        self.runs()

    def test_full_disk_python(self):
        self.without("curl")
        self.test_full_disk()

    def test_read_only_home(self):
        self.release()
        del self.environment["HEAD_TO_HEAD_CACHE"]
        # Not even root can create a folder there.
        self.refuses(
            "cannot write /proc/.cache/head-to-head: set HEAD_TO_HEAD_CACHE to a folder you own",
            HOME="/proc",
        )

    def test_interrupted(self):
        name = self.release(stall_s=30)
        self.interrupt(self.start(), self.stalled.is_set)
        self.assertFalse(os.path.exists(self.official))
        self.serve[name].stall_s = 0
        self.runs()

    def test_half_a_file_is_not_trusted(self):
        self.release()
        os.makedirs(self.cache)
        with open(self.official + ".partial", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho half")
        self.assertIn("ran in", self.runs().said)

    def test_two_first_starts_at_once(self):
        self.release(stall_s=1)
        children = [self.start(), self.start()]
        complaints = [self.finish(child).complained for child in children]
        self.assertEqual([child.returncode for child in children], [0, 0], complaints)
        self.assertEqual(
            sum("waiting for another first run" in text for text in complaints), 1, complaints
        )
        self.assertEqual(len(self.asked), 1)

    def test_tampered_cache(self):
        self.release()
        self.runs()
        with open(self.official, "a", encoding="utf-8") as file:
            file.write("echo owned\n")
        self.refuses("is not the release (its sha256 differs): remove it")

    def test_cache_that_others_can_write(self):
        self.release()
        self.runs()
        self.assertEqual(os.stat(self.cache).st_mode & 0o777, 0o700)
        for mode in (0o777, 0o770, 0o1777, 0o722):
            os.chmod(self.cache, mode)
            self.refuses("writable by others (run chmod go-w on it), who could plant a Bazel there")
        os.chmod(self.cache, 0o755)
        self.runs()

    def test_cache_of_another_user(self):
        self.release()
        self.runs()
        # In a sandbox nobody can give a folder away.
        self.tool("stat", "#!/bin/sh\necho 12345 700\n")
        self.refuses("belongs to user 12345, who could plant a Bazel there")

    def test_official_means_official(self):
        self.packages()
        self.runs(BAZELW_ROAD="packaged")
        name = self.release()
        del self.serve[name]
        self.refuses("no official Bazel, because", BAZELW_ROAD="official")

    def test_a_folder_in_the_bootstrap_is_no_matter(self):
        self.release()
        os.makedirs(os.path.join(self.clone, "bazel/bootstrap/__pycache__/deep.py"))
        os.makedirs(os.path.join(self.clone, "bazel/bootstrap/notes.json"))
        self.runs()

    def test_touched_cache_is_hashed_again(self):
        self.release()
        self.runs()
        os.utime(self.official, (1, 1))
        self.assertEqual(self.runs().complained, "")

    def test_falls_back_in_words(self):
        self.packages()
        name = self.release()
        del self.serve[name]
        child = self.runs(BAZELW_ROAD="")
        self.assertIn(
            "no longer has it; using Debian packages instead",
            child.complained,
        )

    def test_unknown_road(self):
        self.refuses(
            "BAZELW_ROAD is 'scenic': set it to official or packaged", BAZELW_ROAD="scenic"
        )

    def test_foreign_bazel_on_path(self):
        self.release()
        self.tool("bazel", "#!/bin/sh\necho bazel 6.0.0\n")
        self.assertIn("ran in", self.runs(BAZELW_ROAD="").said)

    def test_matching_bazel_on_path(self):
        self.tool("bazel", f"#!/bin/sh\necho bazel {VERSION}\n")
        child = self.runs(BAZELW_ROAD="")
        self.assertEqual((child.said, child.complained, self.asked), (f"bazel {VERSION}\n", "", []))

    def test_bazel_on_path_is_this_script(self):
        self.release()
        os.symlink(os.path.join(self.clone, "bazelw"), os.path.join(self.bin, "bazel"))
        start = time.monotonic()
        self.assertIn("ran in", self.runs(BAZELW_ROAD="").said)
        # If it found itself, it would query its own version until the 20 s limit.
        self.assertLess(time.monotonic() - start, 15)

    def test_variable_names_no_program(self):
        self.refuses("$BAZEL is '/nowhere/bazel', which cannot be run", BAZEL="/nowhere/bazel")

    def test_from_another_folder_and_through_a_link(self):
        self.release()
        link = os.path.join(self.top, "link")
        os.symlink(os.path.join(self.clone, "bazelw"), link)
        for program in (None, link):
            said = self.runs("run", "//x", folder=self.top, program=program).said
            self.assertIn(
                f"ran in {os.path.realpath(self.clone)} for '{self.top}' with run //x", said
            )

    def test_space_in_the_home_folder(self):
        self.release()
        home, outputs = os.path.join(self.top, "a home"), os.path.join(self.top, "outputs")
        os.mkdir(outputs)
        said = self.runs(XDG_CACHE_HOME=home, BAZELW_TEST_VAR_TMP=outputs).said
        self.assertIn(f"--output_user_root={outputs}/head-to-head-{os.getuid()} info", said)
        self.refuses("is not yours: set XDG_CACHE_HOME", XDG_CACHE_HOME=home, BAZELW_TEST_VAR_TMP="/proc")

    def test_inside_the_workspace_nothing_is_exported(self):
        self.release()
        said = self.runs(folder=self.bootstrap, HEAD_TO_HEAD_WORKING_DIRECTORY="/stale").said
        self.assertIn(f"ran in {self.bootstrap} for ''", said)


if __name__ == "__main__":
    unittest.main()
