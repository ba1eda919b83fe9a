"""contender_kernel: a kernel without host code and its kernel.json, as a stranger would bring them."""

load(":arch.bzl", "NEEDS_EMULATION", "on_ptx")
load(":archs.bzl", "ARCH_VALUES")
load(":cuda_kernels.bzl", "cuda_kernels")
load(":visibility.bzl", "layer_visibility")

def contender_kernel(name, src = None, description = None, exported = None):
    """Declares `name`: the description and the PTX of one file for each SM that is built, where kernels are PTX.

    The SM is in the name of the folder that a file for it alone is in.

    Args:
      name: the files together.
      src: a .cu file; its PTX is called the same.
      description: the kernel.json.
      exported: instead of both, a recipe of tools/artifacts that another compiler makes them by.
    """

    # Recipes are run for the SMs that CI builds for.
    sms = ARCH_VALUES["both"]
    if exported:
        native.filegroup(
            name = name,
            srcs = on_ptx(**{
                sm: ["@{}_{}//:files".format(exported, sm.replace("sm", "compute"))]
                for sm in sms
            }),
            target_compatible_with = NEEDS_EMULATION,
            visibility = layer_visibility(),
        )
        return
    cuda_kernels(
        name = name + "_kernels",
        srcs = [src],
    )
    for sm in sms:
        native.genrule(
            name = "{}_{}".format(name, sm),
            srcs = [":" + name + "_kernels"],
            outs = ["{}/{}.ptx".format(sm, src.removesuffix(".cu"))],
            cmd = """
                set -eu
                library=$$(realpath $$(printf '%s\n' $(locations :{0}_kernels) | grep '[.]a$$' | head -n 1))
                tool=$$(realpath $(execpath @cuda_toolkit//:cuobjdump))
                out=$$(realpath $(@D))/$$(basename $@)
                folder=$$(mktemp -d)
                (cd $$folder && $$tool -xptx all $$library >/dev/null && cat ./*.{1}.ptx) > $$out
                rm -r $$folder
            """.format(name, sm),
            tags = ["manual"],
            target_compatible_with = NEEDS_EMULATION,
            tools = ["@cuda_toolkit//:cuobjdump"],
        )
    native.filegroup(
        name = name,
        srcs = [description] + on_ptx(**{sm: [":{}_{}".format(name, sm)] for sm in sms}),
        target_compatible_with = NEEDS_EMULATION,
        visibility = layer_visibility(),
    )
