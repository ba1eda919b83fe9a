"""Turns third_party/artifacts.lock.json into external repositories, fetched when first needed."""

load(":repository.bzl", "artifact_tree")

# Repositories made of several artifacts unpacked over one another, or laid out by a BUILD file of ours.
_TREES = {
    "buildifier": ["buildifier"],
    "clang_format": ["clang-format"],
    "cuda_toolkit": [
        "nvidia-cuda-cccl",
        "nvidia-cuda-crt",
        "nvidia-cuda-cuobjdump",
        "nvidia-cuda-cupti",
        "nvidia-cuda-nvcc",
        "nvidia-cuda-nvdisasm",
        "nvidia-cuda-runtime",
        "nvidia-nvtx",
        "nvidia-nvvm",
    ],
}

# What must be executable in them.
_PROGRAMS = {
    "buildifier": ["package/buildifier-linux_amd64"],
    "clang_format": ["clang_format/data/bin"],
    "cuda_toolkit": [
        "nvidia/cu13/bin",
        "nvidia/cu13/nvvm/bin",
    ],
}

_LOCK = Label("//third_party:artifacts.lock.json")

def _impl(module_ctx):
    lock = json.decode(module_ctx.read(_LOCK))
    entries = {entry["name"]: entry for entry in lock["artifacts"]}
    for tree, names in _TREES.items():
        missing = [name for name in names if name not in entries]
        if missing:
            fail("{} has no '{}', which @{} is made of".format(_LOCK, missing[0], tree))
        artifact_tree(
            name = tree,
            artifacts = [json.encode(entries[name]) for name in names],
            build_file = Label("//third_party/{}:{}.BUILD".format(tree, tree)),
            programs = _PROGRAMS.get(tree, []),
        )

artifacts = module_extension(implementation = _impl)
