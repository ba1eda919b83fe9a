"""flash_attention_3_variants: instantiations of the library's kernel, one translation unit for each head dimension."""

load("@bazel_skylib//rules:write_file.bzl", "write_file")
load("//bazel:defs.bzl", "cuda_kernels")

# Products that are no power of two wide, which only tiles of 80 keys have: the compiler reads these headers for longer
# than it compiles the kernel.
_ODD_WIDTHS = ["-DCUTE_SM90_EXTENDED_MMA_SHAPES_ENABLED"]

def flash_attention_3_variants(name, variants, copts, deps):
    """Declares a library of all variants, and variants.inc, the table of them.

    Variants of equal head dimensions share most of their templates: together they compile almost as fast as one.

    Args:
      name: the library.
      variants: lists of (mask, lengths, heads per tile) by (head dimension, that of values); masks are causal or full,
        lengths same or varied, heads per tile one or group.
      copts: the library's own flags.
      deps: of every variant.
    """
    tables = {}
    for (head_dim, value_dim), kinds in variants.items():
        dims = "d{}x{}".format(head_dim, value_dim)
        table = []
        for mask, lengths, heads in kinds:
            sizes = [head_dim, value_dim, mask == "causal", lengths == "varied", heads == "group", 1]
            sizes = ", ".join([str(size).lower() for size in sizes])
            table.append("FLASH_ATTENTION_3_VARIANT({}_{}_{}_{}, {})".format(dims, mask, lengths, heads, sizes))
        tables[dims] = table
        write_file(
            name = dims + "_source",
            out = dims + ".cu",
            content = ["#include \"Kernels/baselines/flash_attention_3/kernel.cuh\""] + table + [""],
        )
        cuda_kernels(
            name = dims,
            srcs = [
                "attention.h",
                "kernel.cuh",
                dims + ".cu",
            ],
            copts = copts + (_ODD_WIDTHS if head_dim == 256 else []),
            # The first dimensions are in every build.
            one_of_many = len(tables) > 1,
            shelf = "hopper",
            deps = deps,
        )
    write_file(
        name = name + "_table",
        out = "variants.inc",
        content = [line for table in tables.values() for line in table] + [""],
    )
    cuda_kernels(
        name = name,
        shelf = "hopper",
        deps = [":" + dims for dims in tables],
    )
