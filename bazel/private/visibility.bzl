"""Who may depend on what, in one table: the law of the repository's layers.

Kernels know nothing of benchmarks, baselines nothing of kernels; only comparison/ joins the two.
"""

_COMPARISON = "//Kernels/benchmarks/comparison:__subpackages__"

# The longest matching folder wins.
_MAY_SEE = {
    "Kernels": [_COMPARISON],
    "Kernels/benchmarks": ["//Kernels/benchmarks:__subpackages__"],
    "Kernels/benchmarks/comparison": [
        "//Kernels/benchmarks:__subpackages__",
        "//Kernels/examples:__subpackages__",
        "//tools/release:__pkg__",
    ],
    "Kernels/benchmarks/comparison/bring_up": ["//tools/bring_up:__pkg__"],
    "Kernels/benchmarks/report": [
        "//Kernels/benchmarks:__subpackages__",
        "//Kernels/examples:__subpackages__",
        "//tools/release:__pkg__",
    ],
    "Kernels/bridge": ["//Kernels:__subpackages__"],
    "Kernels/device": ["//Kernels:__subpackages__"],
    "Kernels/emulator": [
        "//Kernels/baselines:__subpackages__",
        "//Kernels/benchmarks:__subpackages__",
        "//Kernels/emulator:__subpackages__",
        "//tools:__subpackages__",
    ],
    "Kernels/host": ["//Kernels:__subpackages__"],
    "Kernels/libraries": ["//Kernels:__subpackages__"],
    "Kernels/on_demand": [
        "//Kernels:__subpackages__",
        "//tools/artifacts:__subpackages__",
    ],
    "Kernels/examples": [
        _COMPARISON,
        "//Kernels/examples:__subpackages__",
    ],
    "Kernels/reference": ["//Kernels/benchmarks:__subpackages__"],
    "tools": ["//tools:__subpackages__"],
    "tools/children": [
        "//Kernels/benchmarks:__subpackages__",
        "//tools:__subpackages__",
    ],
    "tools/fuzz": [
        "//Kernels/benchmarks:__subpackages__",
        "//tools:__subpackages__",
    ],
    "tools/kit": [
        "//Kernels/examples:__subpackages__",
        "//tools/release:__pkg__",
    ],
    "tools/workspace": [
        "//Kernels/benchmarks:__subpackages__",
        "//tools:__subpackages__",
    ],
}

def layer_visibility():
    """The visibility of targets in the package being loaded.

    Returns:
      The package and those below it, and the layers above that may see it.
    """
    package = native.package_name()
    folder = package
    for _ in range(package.count("/") + 1):
        if folder in _MAY_SEE:
            return ["//{}:__subpackages__".format(package)] + _MAY_SEE[folder]
        folder = folder.rpartition("/")[0]
    fail("//{}: no layer in bazel/private/visibility.bzl covers this folder; add it there".format(package))
