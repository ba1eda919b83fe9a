"""Turns third_party/artifacts.lock.json into external repositories, fetched when first needed.

Every fetched artifact is a repository of its own, named like the artifact with "_" for what a label cannot
hold, with one target, :files. Those in _TREES are laid out by a BUILD file of ours instead.
"""

load(":repository.bzl", "artifact_tree")

# Repository -> the artifacts unpacked into it; third_party/<repository>/<repository>.BUILD lays them out.
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
    "curand": ["nvidia-curand"],
    "flashinfer": ["flashinfer-python"],
    "zizmor": ["zizmor"],
}

# What must be executable in them.
_PROGRAMS = {
    "buildifier": ["package/buildifier-linux_amd64"],
    "clang_format": ["clang_format/data/bin"],
    "cuda_toolkit": [
        "nvidia/cu13/bin",
        "nvidia/cu13/nvvm/bin",
    ],
    "zizmor": ["zizmor-1.32.0.data/scripts"],
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
    for name, entry in entries.items():
        repository = name.replace("-", "_").replace(".", "_")
        if repository not in _TREES and entry["source"]["kind"] != "recipe":
            artifact_tree(
                name = repository,
                artifacts = [json.encode(entry)],
                build_file = Label("//bazel/artifacts:files.BUILD"),
            )

artifacts = module_extension(implementation = _impl)
