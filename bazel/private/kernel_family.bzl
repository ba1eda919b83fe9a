"""kernel_family: the targets of one kernel family, derived from its file names."""

load(":arch.bzl", "NEEDS_MACHINE_CODE", "on_shelf")
load(":archs.bzl", "SHELVES")
load(":cuda_kernels.bzl", "cuda_kernels")
load(":cxx_bridge.bzl", "cxx_bridge")
load(":host_library.bzl", "host_library", "host_test")

# Defines of each element type in `instances`.
_INSTANCES = {
    "bf16": ["H2H_ELEMENT=__nv_bfloat16", "H2H_CACHE_BYTES=2"],
    "f16": ["H2H_ELEMENT=__half", "H2H_CACHE_BYTES=2"],
    "fp8": ["H2H_ELEMENT=__nv_fp8_e4m3"],
    "fp8_ue8m0": ["H2H_ELEMENT=gemm::Fp8Ue8m0"],
    "mxfp4": ["H2H_ELEMENT=gemm::Mxfp4"],
    "mxfp8": ["H2H_ELEMENT=gemm::Mxfp8"],
    "nvfp4": ["H2H_ELEMENT=gemm::Nvfp4"],
    "fp8_cache": ["H2H_ELEMENT=__half", "H2H_CACHE_BYTES=1"],
}

def kernel_family(
        name,
        shelves = [],
        instances = [],
        blackwell_instances = [],
        blackwell_code = {},
        config_deps = []):
    """Declares a family whose files have the conventional names.

    `:config` is host code: config.{h,cc} and whatever it shares with kernels, also per shelf. config_test.cc tests it.
    Each shelf is a folder whose instance.cu is compiled once per element type, so that the types compile in parallel.
    `:kernels` has the rest of the CUDA code, and the crate `name` is the bridge in lib.rs.

    Args:
      name: the family and its folder.
      shelves: folders with kernels: portable, hopper, blackwell.
      instances: element types: bf16, f16, fp8, fp8_cache.
      blackwell_instances: those of the shelf blackwell besides: fp8_ue8m0, mxfp4, mxfp8, nvfp4.
      blackwell_code: by instance, instructions that its machine code must have, as nvdisasm writes them. It must
        not have products of older tensor cores.
      config_deps: host libraries that :config uses besides //Kernels/device:host.
    """
    host_library(
        name = "config",
        srcs = native.glob(
            ["*.cc"] + [shelf + "/*.cc" for shelf in shelves],
            exclude = ["bridge.cc", "*_test.cc"],
            allow_empty = True,
        ),
        hdrs = native.glob(
            ["*.h"] + [shelf + "/*.h" for shelf in shelves],
            exclude = ["bridge.h"],
            allow_empty = True,
        ),
        deps = ["//Kernels/device:host"] + config_deps,
    )
    for test in native.glob(["config_test.cc"], allow_empty = True):
        host_test(
            name = "config_test",
            srcs = [test],
            deps = [
                ":config",
                "//Kernels/device:testing",
            ],
        )
    cuda_kernels(
        name = "headers",
        hdrs = native.glob(
            ["*.cuh"] + [shelf + "/*.cuh" for shelf in shelves],
            allow_empty = True,
        ),
        deps = [
            ":config",
            "//Kernels/device",
        ],
    )
    libraries = {}
    for shelf in shelves:
        libraries[shelf] = []
        for instance in instances + (blackwell_instances if shelf == "blackwell" else []):
            library = "{}_{}".format(shelf, instance)
            cuda_kernels(
                name = library,
                srcs = [shelf + "/instance.cu"],
                local_defines = _INSTANCES[instance],
                shelf = shelf if shelf in SHELVES else None,
                deps = [":headers"],
            )
            libraries[shelf].append(":" + library)
    for instance, instructions in blackwell_code.items():
        # buildifier: disable=native-sh-test
        native.sh_test(
            name = "blackwell_{}_instructions_test".format(instance),
            size = "small",
            srcs = ["//bazel/private:instructions_test.sh"],
            args = [
                "$(rootpath @cuda_toolkit//:cuobjdump)",
                "$(rootpaths :blackwell_{})".format(instance),
                "--",
            ] + instructions,
            data = [
                ":blackwell_" + instance,
                "@cuda_toolkit//:cuobjdump",
            ],
            target_compatible_with = NEEDS_MACHINE_CODE["blackwell"],
        )
    portable = libraries.pop("portable", [])
    cuda_kernels(
        name = "kernels",
        srcs = native.glob(["*.cu"]),
        deps = [":headers"] + portable + (on_shelf(**libraries) if libraries else []),
    )
    cxx_bridge(
        name = name,
        cc_hdrs = ["bridge.h"],
        cc_srcs = ["bridge.cc"],
        deps = [
            ":kernels",
            "//Kernels/bridge:plan",
        ],
        rust_deps = ["//Kernels/bridge"],
    )
