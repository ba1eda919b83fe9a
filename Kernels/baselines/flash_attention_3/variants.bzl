"""flash_attention_3_variants: instantiations of the library's kernel, one translation unit each."""

load("@bazel_skylib//rules:write_file.bzl", "write_file")
load("//bazel:defs.bzl", "cuda_kernels")

def flash_attention_3_variants(name, variants, copts, deps):
    """Declares a library of all variants, and variants.inc, the table of them.

    Args:
      name: the library.
      variants: (head dimension, that of values, mask, lengths, heads per tile) of each; masks are causal or full,
        lengths same or varied, heads per tile one or group.
      copts: the library's own flags.
      deps: of every variant.
    """
    table = []
    for head_dim, value_dim, mask, lengths, heads in variants:
        variant = "d{}x{}_{}_{}_{}".format(head_dim, value_dim, mask, lengths, heads)
        causal, varlen, packs_heads = mask == "causal", lengths == "varied", heads == "group"
        sizes = [head_dim, value_dim, causal, varlen, packs_heads, 1]
        table.append((variant, ", ".join([str(size).lower() for size in sizes])))
        cuda_kernels(
            name = variant,
            srcs = [
                "attention.h",
                "kernel.cuh",
                "variant.cu",
            ],
            copts = copts,
            local_defines = [
                "FLASH_ATTENTION_3_NAME=launch_" + variant,
                "FLASH_ATTENTION_3_HEAD_DIM={}".format(head_dim),
                "FLASH_ATTENTION_3_VALUE_DIM={}".format(value_dim),
                "FLASH_ATTENTION_3_CAUSAL={}".format(int(causal)),
                "FLASH_ATTENTION_3_VARLEN={}".format(int(varlen)),
                "FLASH_ATTENTION_3_PACKS_HEADS={}".format(int(packs_heads)),
            ],
            shelf = "hopper",
            deps = deps,
        )
    write_file(
        name = name + "_table",
        out = "variants.inc",
        content = ["FLASH_ATTENTION_3_VARIANT({}, {})".format(variant, sizes) for variant, sizes in table] + [""],
    )
    cuda_kernels(
        name = name,
        shelf = "hopper",
        deps = [":" + variant for variant, _ in table],
    )
