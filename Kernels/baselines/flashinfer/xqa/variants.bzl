"""xqa_variants: FlashInfer's XQA kernels, which have all sizes compiled in."""

load("@bazel_skylib//rules:write_file.bzl", "write_file")
load("//bazel:defs.bzl", "cuda_kernels")

def xqa_variants(name, variants):
    """Declares a library of all variants, one translation unit each, and xqa/variants.inc, the table of them.

    Args:
      name: the library.
      variants: (cache, head dim, query heads per KV head, tokens per page, new tokens per sequence) of each; caches are
        bf16 or fp8, new tokens one or many.
    """
    table = []
    seen = {}
    for cache, head_dim, group, page_size, new_tokens in variants:
        variant = "xqa_{}_d{}_g{}_p{}_{}".format(cache, head_dim, group, page_size, new_tokens)
        fp8, many = cache == "fp8", new_tokens == "many"
        sizes = [fp8, head_dim, group, page_size, many]
        kind = (cache, new_tokens)
        table.append((variant, ", ".join([str(size).lower() for size in sizes])))
        cuda_kernels(
            name = variant,
            srcs = [
                "xqa/kernel.h",
                "xqa/mha.cu",
            ],
            # This and the definitions are what the library itself compiles with (flashinfer/jit/xqa.py).
            copts = ["--use_fast_math"],
            local_defines = [
                "XQA_NAME=" + variant,
                "HEAD_ELEMS={}".format(head_dim),
                "HEAD_GRP_SIZE={}".format(group),
                "TOKENS_PER_PAGE={}".format(page_size),
                "CACHE_ELEM_ENUM={}".format(2 if fp8 else 0),
                "SPEC_DEC={}".format(1 if many else 0),
                "INPUT_FP16=0",
                "DTYPE=__nv_bfloat16",
                "BEAM_WIDTH=1",
                "LOW_PREC_OUTPUT=0",
                "MLA_WRAPPER=0",
                "SLIDING_WINDOW=0",
                "USE_CUSTOM_BARRIER=1",
                "USE_INPUT_KV=0",
            ],
            # The first of each kind is in every build.
            one_of_many = kind in seen,
            shelf = "hopper",
            deps = [
                "//Kernels/device:left_out",
                "@flashinfer//:xqa",
            ],
        )
        seen[kind] = True
    write_file(
        name = name + "_table",
        out = "xqa/variants.inc",
        content = ["XQA_VARIANT({}, {})".format(variant, sizes) for variant, sizes in table] + [""],
    )
    cuda_kernels(
        name = name,
        hdrs = ["xqa/kernel.h"],
        shelf = "hopper",
        deps = [":" + variant for variant, _ in table],
    )
