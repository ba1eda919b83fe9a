"""Liger's SwiGLU, GEGLU and RoPE kernels, with the launch rules of Liger's own functions.

The row kernels take a row's width as a constant, so there is one for each width of the suites;
likewise for the heads of RoPE.
"""

import os
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import triton_export  # noqa: E402

# Widths of bench_training_ops: llama, deepseek, trainscale, smoke.
WIDTHS = (768, 2048, 4096, 8192, 14336, 18432, 28672)
# (query heads, key heads, dim) of the same suites.
HEADS = ((8, 2, 64), (32, 8, 128), (64, 8, 128), (128, 1, 64))
# _triton_rope does not say: Triton's default.
ROPE_WARPS = 4


def main():
    options = triton_export.arguments()
    triton_export.prepare(options)
    for package in ("liger_kernel", "liger_kernel.ops"):
        triton_export.bare_package(options.site, package)
    export = triton_export.Export("liger", "liger-kernel", options)
    for width in WIDTHS:
        swiglu(export, width)
        geglu(export, width)
    for heads in HEADS:
        rope(export, *heads)
    export.write(options.out)


def settings(width):
    """Block and warps of one row, by Liger's own rule."""
    from liger_kernel.ops.utils import calculate_settings

    return calculate_settings(width)


def swiglu(export, width):
    from liger_kernel.ops import swiglu

    block, warps = settings(width)
    # On Blackwell Liger cuts wide rows into tiles; see swiglu._should_tile.
    tiled = export.arch == "sm_100a" and block >= swiglu._SWIGLU_TILE_MIN_BLOCK
    if tiled:
        block, warps = swiglu._swiglu_tile_settings(width)
    kernels = {
        "swiglu_fwd": (swiglu._swiglu_forward_kernel, swiglu._swiglu_forward_kernel_tiled),
        "swiglu_bwd": (swiglu._swiglu_backward_kernel, swiglu._swiglu_backward_kernel_tiled),
    }
    for op, pair in kernels.items():
        function = pair[tiled]
        signature = {n: "*bf16:16" for n in function.arg_names[:3]}
        signature |= {"stride": "i32:16", "gate_multiplier": "fp32"}
        constants = {"BLOCK_SIZE": block}
        if tiled:
            signature["n_cols"] = "i32:16"
        else:
            constants["n_cols"] = width
        tiles = -(-width // block)
        facts = {"op": op, "dtype": "bf16", "width": width, "tiles": tiles}
        export.add(f"{op}_bf16_n{width}", function, signature, constants, warps, **facts)


def geglu(export, width):
    from liger_kernel.ops import geglu

    block, warps = settings(width)
    kernels = {
        "geglu_fwd": geglu._geglu_tanh_forward_kernel,
        "geglu_bwd": geglu._geglu_tanh_backward_kernel,
    }
    for op, function in kernels.items():
        signature = {n: "*bf16:16" for n in function.arg_names[:3]} | {"stride": "i32:16"}
        constants = {"n_cols": width, "BLOCK_SIZE": block}
        facts = {"op": op, "dtype": "bf16", "width": width, "tiles": 1}
        export.add(f"{op}_bf16_n{width}", function, signature, constants, warps, **facts)


def rope(export, query_heads, key_heads, dim):
    from liger_kernel.ops import rope
    from triton import next_power_of_2 as padded

    signature = {
        "q_ptr": "*bf16:16",
        "q_row_stride": "i32:16",
        "k_ptr": "*bf16:16",
        "k_row_stride": "i32:16",
        "cos": "*fp32:16",
        "cos_row_stride": "i32:16",
        "sin": "*fp32:16",
        "sin_row_stride": "i32:16",
        "sl": "i32:16",
    }
    for op, backward in (("rope_fwd", False), ("rope_bwd", True)):
        constants = {
            "bs": 1,  # the kernel does not look at it
            "cos_bs": 1,
            "n_qh": query_heads,
            "n_kh": key_heads,
            "hd": dim,
            "pad_n_qh": padded(query_heads),
            "pad_n_kh": padded(key_heads),
            "pad_hd": padded(dim),
            "pad_rd": padded(dim),
            "rd": dim,
            "BLOCK_SIZE": max(padded(query_heads), padded(key_heads)),
            "BACKWARD_PASS": backward,
        }
        heads = {"query_heads": query_heads, "key_heads": key_heads, "dim": dim}
        name = f"{op}_bf16_h{query_heads}k{key_heads}d{dim}"
        facts = {"op": op, "dtype": "bf16", **heads}
        export.add(name, rope._triton_rope, signature, constants, ROPE_WARPS, **facts)


if __name__ == "__main__":
    main()
