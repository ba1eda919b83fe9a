"""What BUILD targets take from the arch flag."""

def per_arch(cuda, cpu):
    """A select between builds with CUDA and those without.

    Args:
      cuda: the value where some architecture is built for.
      cpu: the value where the arch is none.
    Returns:
      The select.
    """
    return select({
        "//bazel/cuda:none": cpu,
        "//conditions:default": cuda,
    })

def on_arch(sm_90a = [], sm_100a = []):
    """A select of what belongs to the architectures being built; empty where the arch is none.

    Args:
      sm_90a: the list for H100 and H200.
      sm_100a: the list for B200.
    Returns:
      The select.
    """
    return select({
        "//bazel/cuda:both": sm_90a + sm_100a,
        "//bazel/cuda:sm_100a": sm_100a,
        "//bazel/cuda:sm_90a": sm_90a,
        "//conditions:default": [],
    })

# A target with this attribute is skipped by wildcard builds where there is no CUDA.
NEEDS_CUDA = select({
    "//bazel/cuda:none": ["@platforms//:incompatible"],
    "//conditions:default": [],
})

# What nvcc compiles for: machine code only, no PTX that a driver would compile at start.
ARCHS = select({
    "//bazel/cuda:both": [
        "compute_90a:sm_90a",
        "compute_100a:sm_100a",
    ],
    "//bazel/cuda:sm_100a": ["compute_100a:sm_100a"],
    "//bazel/cuda:sm_90a": ["compute_90a:sm_90a"],
    "//conditions:default": [],
})

# The same for code of one architecture, and what skips it where that one is not built.
ARCH_ONLY = {
    "sm_100a": on_arch(sm_100a = ["compute_100a:sm_100a"]),
    "sm_90a": on_arch(sm_90a = ["compute_90a:sm_90a"]),
}
NEEDS_ARCH = {
    "sm_100a": select({
        "//bazel/cuda:both": [],
        "//bazel/cuda:sm_100a": [],
        "//conditions:default": ["@platforms//:incompatible"],
    }),
    "sm_90a": select({
        "//bazel/cuda:both": [],
        "//bazel/cuda:sm_90a": [],
        "//conditions:default": ["@platforms//:incompatible"],
    }),
}

# The same as words, for who looks into a binary.
ARCH_WORDS = select({
    "//bazel/cuda:both": ["sm_90a", "sm_100a"],
    "//bazel/cuda:none": [],
    "//bazel/cuda:sm_100a": ["sm_100a"],
    "//bazel/cuda:sm_90a": ["sm_90a"],
})

# The same as a word that env!() sees, for what a binary says of itself.
ARCH_ENV = select({
    "//bazel/cuda:both": {"HEAD_TO_HEAD_ARCH": "sm_90a+sm_100a"},
    "//bazel/cuda:none": {"HEAD_TO_HEAD_ARCH": "none"},
    "//bazel/cuda:sm_100a": {"HEAD_TO_HEAD_ARCH": "sm_100a"},
    "//bazel/cuda:sm_90a": {"HEAD_TO_HEAD_ARCH": "sm_90a"},
})
