"""Gives the packaged Bazel server a Class-Path: server_jar.py PREFIX.

Debian starts the server with a class path of its own; the manifest carries it here instead, relative
to the jar, so that the tree works wherever it is unpacked.
"""

import os
import sys
import zipfile

# Needed at run time but absent from the list that the package ships.
EXTRA = ["opencensus-api", "opencensus-contrib-grpc-metrics", "perfmark-api", "protobuf", "protobuf-util", "zstd-jni"]


def main(prefix):
    share = os.path.join(prefix, "usr/share/bazel")
    with open(os.path.join(share, "bazel_classpath_debian_depends.txt"), encoding="utf-8") as file:
        names = [os.path.basename(line.strip()) for line in file]
    names += [f"{name}.jar" for name in EXTRA]
    present = [name for name in names if os.path.exists(os.path.join(prefix, "usr/share/java", name))]
    entry = "Class-Path: " + " ".join(f"../java/{name}" for name in present)
    # A manifest line holds 72 bytes; a continuation starts with a space.
    lines = [entry[:72]] + [" " + entry[i : i + 71] for i in range(72, len(entry), 71)]

    jar = os.path.join(share, "A-server.jar")
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(jar + ".new", "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename == "META-INF/MANIFEST.MF":
                data = data.rstrip(b"\r\n") + b"\n" + "\n".join(lines).encode() + b"\n\n"
            new.writestr(info, data)
    os.replace(jar + ".new", jar)


main(sys.argv[1])
