"""bazelw --doctor: 0 exactly if the README's commands will work, else a fix for each missing thing."""

import os
import time
import unittest

from machine import Answer, Machine


class Doctor(Machine):
    def setUp(self):
        super().setUp()
        self.packages()
        self.environment["BAZELW_ROAD"] = ""

    def online(self):
        self.release()
        self.serve["registry"] = self.serve["rust"] = Answer(b"{}")
        self.without("cargo", "rustc", "npm", "apt-get", "apt-helper", "dpkg-deb")

    def doctor(self, **environment):
        child = self.finish(self.start("--doctor", **environment))
        return child.returncode, child.said

    def misses(self, name, remedy, **environment):
        code, said = self.doctor(**environment)
        missing = [line for line in said.splitlines() if line.startswith("missing")]
        self.assertEqual((code, len(missing)), (1, 1), said)
        self.assertIn(name, missing[0])
        self.assertIn(remedy, missing[0])

    def test_official_road_needs_no_rust_no_npm_and_no_apt(self):
        self.online()
        code, said = self.doctor()
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"road +official")
        self.runs()

    def test_official_road_without_curl(self):
        self.online()
        self.without("curl")
        self.assertEqual(self.doctor()[0], 0)

    def test_packaged_road(self):
        code, said = self.doctor()
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"road +packaged")
        self.runs()
        self.assertEqual(self.doctor()[0], 0)

    def test_restart_without_network(self):
        self.online()
        self.runs()
        self.serve.clear()
        self.misses("modules", "BAZELW_ROAD=packaged", BAZELW_TEST_RUST=self.rust_there())
        os.mkdir(os.path.join(self.clone, "bazel-out"))
        self.assertEqual(self.doctor()[0], 0)

    def rust_there(self):
        self.serve["rust"] = Answer(b"{}")
        return self.url + "/rust"

    def test_no_compiler(self):
        self.online()
        self.without("g++")
        self.misses("g++", "install gcc and g++")

    def test_compiler_without_headers(self):
        self.online()
        self.tool("g++", "#!/bin/sh\necho 'optional: No such file' >&2; exit 1\n")
        self.misses("g++", "optional: No such file): install g++")

    def test_no_pip(self):
        self.online()
        self.tool("python3", "#!/bin/sh\necho no pip; exit 1\n")
        code, said = self.doctor()
        self.assertEqual(code, 1)
        self.assertIn("install python3-pip", said)

    def test_no_python(self):
        self.online()
        self.without("python3")
        self.misses("python3", "install python3 and python3-pip")

    def test_no_rust_on_the_packaged_road(self):
        self.without("cargo")
        self.misses("fetching", "install Rust 1.89 or newer")

    def test_no_npm_on_the_packaged_road(self):
        self.without("npm")
        self.misses("npm", "install npm")

    def test_cargo_without_network(self):
        self.misses(
            "fetching",
            "the network failed: check the proxy settings",
            STAND_IN_CARGO_SAYS="warning: spurious network error",
        )

    def test_package_gone(self):
        for path in [path for path in self.serve if "rules-rust" in path]:
            del self.serve[path]
        smallest = min(self.lock()["debs"], key=lambda entry: entry["size"])["path"]
        self.serve.pop("/debian/" + smallest, None)
        self.misses("fetching", "packaged.py --update")

    def test_cache_cannot_be_written(self):
        self.online()
        self.misses("cache", "set HEAD_TO_HEAD_CACHE", HEAD_TO_HEAD_CACHE="/proc/cache")

    def test_wrong_variable(self):
        self.online()
        self.misses("bazel", "fix or unset it", BAZEL="/nowhere/bazel")

    def test_tampered_bazel(self):
        self.online()
        self.runs()
        with open(self.official, "a", encoding="utf-8") as file:
            file.write("echo owned\n")
        self.misses("bazel", "remove it")

    def test_dead_network_is_told_in_time(self):
        name = self.release()
        self.serve["registry"] = self.serve["rust"] = Answer(b"{}" * (1 << 16), stall_s=60)
        self.serve[name].stall_s = 60
        for path in [path for path in self.serve if path.startswith("/debian")]:
            self.serve[path] = Answer(b"#" * (1 << 18), stall_s=60)
        start = time.monotonic()
        code, said = self.doctor(BAZELW_TEST_STALL_S="60")
        self.assertEqual(code, 1, said)
        self.assertLess(time.monotonic() - start, 20)


if __name__ == "__main__":
    unittest.main()
