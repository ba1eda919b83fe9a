"""contender_kernel: a kernel without host code and its kernel.json, as a stranger would bring them."""

load(":arch.bzl", "NEEDS_EMULATION", "on_ptx")
load(":archs.bzl", "ARCH_VALUES")
load(":cuda_kernels.bzl", "cuda_kernels")
load(":visibility.bzl", "layer_visibility")

def contender_kernel(name, src = None, description = None, exported = None):
    """Declares `name`: the description, and beside it the PTX of one file, where kernels are PTX.

    Args:
      name: the files together.
      src: a .cu file; its PTX is called the same.
      description: the kernel.json.
      exported: instead of both, a recipe of tools/artifacts that another compiler makes them by.
    """
    if exported:
        native.filegroup(
            name = name,
            # Recipes are run for the SMs that CI builds for.
            srcs = on_ptx(**{
                sm: ["@{}_{}//:files".format(exported, sm.replace("sm", "compute"))]
                for sm in ARCH_VALUES["both"]
            }),
            target_compatible_with = NEEDS_EMULATION,
            visibility = layer_visibility(),
        )
        return
    cuda_kernels(
        name = name + "_kernels",
        srcs = [src],
    )
    ptx = src.removesuffix(".cu") + ".ptx"
    native.genrule(
        name = name + "_ptx",
        srcs = [":" + name + "_kernels"],
        outs = [ptx],
        cmd = """
            set -eu
            library=$$(realpath $$(printf '%s\\n' $(locations :{0}_kernels) | grep '[.]a$$' | head -n 1))
            tool=$$(realpath $(execpath @cuda_toolkit//:cuobjdump))
            out=$$(realpath $(@D))/{1}
            folder=$$(mktemp -d)
            (cd $$folder && $$tool -xptx all $$library >/dev/null && cat ./*.ptx) > $$out
            rm -r $$folder
        """.format(name, ptx),
        target_compatible_with = NEEDS_EMULATION,
        tools = ["@cuda_toolkit//:cuobjdump"],
    )
    native.filegroup(
        name = name,
        srcs = [description, ":" + ptx],
        target_compatible_with = NEEDS_EMULATION,
        visibility = layer_visibility(),
    )
