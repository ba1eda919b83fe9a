"""Gives the packaged Bazel server a Class-Path.

Debian starts the server with a class path of its own; the manifest carries it here instead,
relative to the jar, so that the tree works wherever it is unpacked.
"""

import os
import zipfile

# Needed at run time but absent from the list that the package ships.
EXTRA = [
    "opencensus-api",
    "opencensus-contrib-grpc-metrics",
    "perfmark-api",
    "protobuf",
    "protobuf-util",
    "zstd-jni",
]
LISTED = "usr/share/bazel/bazel_classpath_debian_depends.txt"


def class_path(tree):
    """The names of the jars that the server loads, whether or not they are there."""
    with open(os.path.join(tree, LISTED), encoding="utf-8") as file:
        names = [os.path.basename(line.strip()) for line in file]
    return names + [f"{name}.jar" for name in EXTRA]


def add_class_path(tree):
    present = [
        name
        for name in class_path(tree)
        if os.path.exists(os.path.join(tree, "usr/share/java", name))
    ]
    entry = "Class-Path: " + " ".join(f"../java/{name}" for name in present)
    # A manifest line holds 72 bytes; a continuation starts with a space.
    lines = [entry[:72]] + [" " + entry[i : i + 71] for i in range(72, len(entry), 71)]

    jar = os.path.join(tree, "usr/share/bazel/A-server.jar")
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(jar + ".new", "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename == "META-INF/MANIFEST.MF":
                data = data.rstrip(b"\r\n") + b"\n" + "\n".join(lines).encode() + b"\n\n"
            new.writestr(info, data)
    os.replace(jar + ".new", jar)
