"""flash-linear-attention's kernels for the selected and the compressed branch of native sparse attention.

Their sizes are constants, so there is one kernel for each shape of the suites. The library tunes
warps and stages on the device; every number of warps that it tries is exported, and the bench chooses
among them in the same way, outside the timed region. Stages change nothing in the selected branch,
because its loop has a condition inside and is not pipelined: `check_stages` proves it. The compressed
branch is tuned over warps alone, with Triton's usual number of stages.
"""

import os
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import triton_export  # noqa: E402

# (heads, groups, dim, block, selected) of bench_nsa's suites.
SHAPES = (
    (16, 1, 64, 32, 8),
    (16, 1, 64, 64, 4),
    (64, 4, 64, 32, 16),
    (64, 4, 64, 64, 8),
    (64, 4, 128, 64, 16),
)


def main():
    options = triton_export.arguments()
    triton_export.prepare(options)
    for package in ("fla", "fla.ops", "fla.ops.nsa"):
        triton_export.bare_package(options.site, package)
    sys.modules["fla"].__version__ = "0"  # its modules ask for it
    export = triton_export.Export("fla_nsa", "fla-core", options)
    for shape in SHAPES:
        selected(export, *shape)
    check_stages(export, *SHAPES[0])
    # How many blocks are selected is nothing to this branch.
    for shape in sorted({shape[:4] for shape in SHAPES}):
        compressed(export, *shape)
    export.write(options.out)


def selected(export, *shape):
    heads, groups, dim, block, selected = shape
    sizes = {"heads": heads, "groups": groups, "dim": dim, "block": block, "selected": selected}
    tuned, signature, constants = kernel(*shape)
    for warps in sorted({config.num_warps for config in tuned.configs}):
        name = f"selected_bf16_h{heads}g{groups}d{dim}n{block}k{selected}_w{warps}"
        facts = {"op": "nsa_selected_fwd", "dtype": "bf16", **sizes}
        export.add(name, tuned.fn, signature, constants, warps, 1, **facts)


def compressed(export, heads, groups, dim, block):
    from fla.ops.nsa import compression
    from triton import next_power_of_2 as padded

    tuned = compression.parallel_nsa_compression_fwd_kernel.fn
    signature = {
        **{name: "*bf16:16" for name in ("q", "k", "v", "o")},
        "lse": "*fp32:16",
        "scale": "fp32",
        "TQ": "i32:16",
        "TK": "i32:16",
    }
    constants = {
        **dict.fromkeys(("cu_seqlens_q", "cu_seqlens_k", "token_indices_q", "chunk_offsets")),
        "H": groups,
        "HQ": heads,
        "G": heads // groups,
        "K": dim,
        "V": dim,
        "BC": block,
        "BS": block,
        "BK": min(256, padded(dim)),
        "BV": min(256, padded(dim)),
        "IS_VARLEN": False,
    }
    sizes = {"heads": heads, "groups": groups, "dim": dim, "block": block}
    for config in tuned.configs:
        name = f"compressed_bf16_h{heads}g{groups}d{dim}n{block}_w{config.num_warps}"
        facts = {"op": "nsa_compressed_fwd", "dtype": "bf16", **sizes}
        options = (config.num_warps, config.num_stages)
        export.add(name, tuned.fn, signature, constants, *options, **facts)


def check_stages(export, *shape):
    tuned, signature, constants = kernel(*shape)
    for config in tuned.configs:
        options = (config.num_warps, config.num_stages)
        compiled = export.compile("check_stages", tuned.fn, signature, constants, *options)
        heads, groups, dim, block, selected = shape
        name = f"selected_bf16_h{heads}g{groups}d{dim}n{block}k{selected}_w{config.num_warps}"
        if export.code_of(compiled) != export.code[name]:
            raise SystemExit(f"{name}: {config.num_stages} stages give other code; export them too")


def kernel(heads, groups, dim, block, selected):
    """The library's tuner, and what a launch of this shape passes and fixes."""
    from fla.ops.nsa import parallel
    from triton import next_power_of_2 as padded

    tuned = parallel.parallel_nsa_fwd_kernel.fn
    signature = {
        **{name: "*bf16:16" for name in ("q", "k", "v", "o")},
        "lse": "*fp32:16",
        "scale": "fp32",
        "block_indices": "*i32:16",
        "TQ": "i32:16",
        "TK": "i32:16",
    }
    constants = {
        # Not used without variable lengths: None, as the library passes them.
        **dict.fromkeys(("cu_seqlens_q", "cu_seqlens_k", "token_indices_q")),
        # A number stands for a count that all queries share; the kernel then reads S.
        "block_counts": selected,
        "H": groups,
        "HQ": heads,
        "G": heads // groups,
        "K": dim,
        "V": dim,
        "S": selected,
        "BS": block,
        "BK": min(256, padded(dim)),
        "BV": min(256, padded(dim)),
        "IS_VARLEN": False,
        "USE_BLOCK_COUNTS": False,
    }
    return tuned, signature, constants


if __name__ == "__main__":
    main()
