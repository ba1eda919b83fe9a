"""Liger's SwiGLU, GEGLU, RoPE, norm, softmax and cross-entropy kernels, with the launch rules of
Liger's own functions.

The kernels of SwiGLU and GEGLU take a row's width as a constant, so there is one for each width of
the suites; likewise for the heads of RoPE. Those of norms, softmax and cross-entropy have the block
as a constant, the next power of two, and take the width at run time.
"""

import os
import sys
import types

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import triton_export  # noqa: E402

# Widths of bench_training_ops: llama, deepseek, trainscale, smoke.
WIDTHS = (768, 2048, 4096, 8192, 14336, 18432, 28672)
# (query heads, key heads, dim) of the same suites.
HEADS = ((8, 2, 64), (32, 8, 128), (64, 8, 128), (128, 1, 64))
# _triton_rope does not say: Triton's default.
ROPE_WARPS = 4
# Blocks of bench_norms: 768, 4096, then 6144 to 8192 columns.
BLOCKS = (1024, 4096, 8192)
# Vocabularies go to 12288.
VOCABULARY_BLOCKS = (*BLOCKS, 16384)
WEIGHTS = {"bf16": "*bf16:16", "f32": "*fp32:16"}
# Strides of rows, and of vectors: Triton makes a constant of every 1.
ROW = "i32:16"
ONE = 1


def main():
    options = triton_export.arguments(width=int, heads=heads_of)
    triton_export.prepare(options)
    not_intel()
    for package in ("liger_kernel", "liger_kernel.ops"):
        triton_export.bare_package(options.site, package)
    export = triton_export.Export("liger", "liger-kernel", options)
    if options.heads:
        export.attempt(rope, *options.heads)
    elif options.width is not None:
        width(export, options.width)
    else:
        suites(export)
    export.write(options.out)


def heads_of(text):
    """QUERYxKEYxDIM: 40x8x128."""
    query_heads, key_heads, dim = map(int, text.split("x"))
    return query_heads, key_heads, dim


def suites(export):
    for width in WIDTHS:
        swiglu(export, width)
        geglu(export, width)
    for heads in HEADS:
        rope(export, *heads)
    for block in BLOCKS:
        for weight in WEIGHTS:
            rmsnorm(export, block, weight)
            layernorm(export, block, weight)
        softmax(export, block)
    for block in VOCABULARY_BLOCKS:
        cross_entropy(export, block)


def width(export, columns):
    """The kernels for rows of one width."""
    from liger_kernel.ops.cross_entropy import MAX_FUSED_SIZE
    from triton import next_power_of_2 as padded

    export.attempt(swiglu, columns)
    export.attempt(geglu, columns)
    for weight in WEIGHTS:
        export.attempt(rmsnorm, padded(columns), weight)
        export.attempt(layernorm, padded(columns), weight)
    export.attempt(softmax, padded(columns))
    # Wider rows are read block by block.
    export.attempt(cross_entropy, min(padded(columns), MAX_FUSED_SIZE))


def not_intel():
    """The stand-in for torch has everything; Liger would believe in a GPU of Intel's."""
    import torch

    torch.xpu = types.SimpleNamespace(is_available=lambda: False)


def settings(width):
    """Block and warps of one row, by Liger's own rule."""
    from liger_kernel.ops.utils import calculate_settings

    return calculate_settings(width)


def stride(width):
    """As Triton would: it compiles other code for multiples of 16."""
    return ROW if width % 16 == 0 else "i32"


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
        signature |= {"stride": stride(width), "gate_multiplier": "fp32"}
        constants = {"BLOCK_SIZE": block}
        if tiled:
            signature["n_cols"] = stride(width)
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
        signature = {n: "*bf16:16" for n in function.arg_names[:3]} | {"stride": stride(width)}
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


def block_kernel(export, op, function, block, signature, constants, weight=None, **how):
    """One block for all widths that it is the next power of two of, and that are whole packets."""
    same, warps = settings(block)
    assert same == block
    suffix = f"_w{weight}" if weight else ""
    facts = {"op": op, "dtype": "bf16", "block": block} | ({"weight_dtype": weight} if weight else {})
    constants = {"BLOCK_SIZE": block, **constants}
    how = {"num_warps": warps, **how}
    name = f"{op}_bf16{suffix}_b{block}"
    export.add(name, function, signature, constants, **how, **facts)


def backward_kernels(export, op, function, block, signature, constants, weight):
    """For any number of rows a program, and for one: Triton makes a constant of that."""
    block_kernel(export, op, function, block, signature, constants, weight)
    signature = {name: kind for name, kind in signature.items() if name != "rows_per_program"}
    constants = {"rows_per_program": ONE, **constants}
    block_kernel(export, f"{op}_one", function, block, signature, constants, weight)


def rmsnorm(export, block, weight):
    """All in fp32 (casting mode `gemma`), as the bench has it; the other modes round in between."""
    import triton.language as tl
    from liger_kernel.ops import fused_add_rms_norm, rms_norm

    matrix, vector = "*bf16:16", WEIGHTS[weight]
    casting = {"casting_mode": rms_norm._CASTING_MODE_GEMMA.value}
    unit = {"W_row_stride": ONE, "RSTD_row_stride": ONE}
    ends = {"n_cols": "i32:16", "eps": "fp32", "offset": "fp32"}
    forward = {
        "Y_ptr": matrix,
        "Y_row_stride": ROW,
        "X_ptr": matrix,
        "X_row_stride": ROW,
        "W_ptr": vector,
        "RSTD_ptr": "*fp32:16",
        **ends,
    }
    affine = {"elementwise_affine": True}
    kernel = rms_norm._rms_norm_forward_kernel
    block_kernel(export, "rmsnorm_fwd", kernel, block, forward, casting | unit | affine, weight)

    fused = forward | {"S_ptr": matrix, "S_row_stride": ROW, "R_ptr": matrix, "R_row_stride": ROW}
    kernel = fused_add_rms_norm._fused_add_rms_norm_forward_kernel
    # fused_add_rms_norm_forward asks for two stages.
    block_kernel(
        export, "fused_add_rmsnorm", kernel, block, fused, casting | unit, weight, num_stages=2
    )

    backward = {
        "dY_ptr": matrix,
        "dY_row_stride": ROW,
        "dX_ptr": matrix,
        "dX_row_stride": ROW,
        "X_ptr": matrix,
        "X_row_stride": ROW,
        "W_ptr": vector,
        "RSTD_ptr": "*fp32:16",
        "dW_ptr": "*fp32:16",
        "dW_row_stride": ROW,
        "n_rows": "i32",
        "n_cols": "i32:16",
        "offset": "fp32",
        "rows_per_program": "i32",
    }
    constants = casting | unit | affine | {"X_dtype": tl.bfloat16, "COMPUTE_DW": True}
    kernel = rms_norm._rms_norm_backward_kernel
    backward_kernels(export, "rmsnorm_bwd", kernel, block, backward, constants, weight)


def layernorm(export, block, weight):
    from liger_kernel.ops import layer_norm

    matrix, vector, column = "*bf16:16", WEIGHTS[weight], "*fp32:16"
    forward = {
        "Y_ptr": matrix,
        "Y_row_stride": ROW,
        "X_ptr": matrix,
        "X_row_stride": ROW,
        "W_ptr": vector,
        "B_ptr": vector,
        "Mean_ptr": column,
        "RSTD_ptr": column,
        "n_cols": "i32:16",
        "eps": "fp32",
    }
    unit = {f"{name}_row_stride": ONE for name in ("W", "B", "Mean", "RSTD")}
    kernel = layer_norm._layer_norm_forward_kernel
    block_kernel(export, "layernorm_fwd", kernel, block, forward, unit, weight)

    backward = {
        "X_ptr": matrix,
        "stride_x": ROW,
        "W_ptr": vector,
        "Mean_ptr": column,
        "RSTD_ptr": column,
        "DX_ptr": matrix,
        "stride_dx": ROW,
        "DW_ptr": "*fp32:16",
        "stride_dw": ROW,
        "DB_ptr": "*fp32:16",
        "stride_db": ROW,
        "DY_ptr": matrix,
        "stride_dy": ROW,
        "n_rows": "i32",
        "n_cols": "i32:16",
        # A constant in Liger, which depends on rows and multiprocessors. Beyond 1 it only bounds the
        # loop over rows, together with n_rows, which is no constant.
        "rows_per_program": "i32",
    }
    constants = {"stride_mean": ONE, "stride_rstd": ONE, "COMPUTE_DW": True, "COMPUTE_DB": True}
    kernel = layer_norm._layer_norm_backward_kernel
    backward_kernels(export, "layernorm_bwd", kernel, block, backward, constants, weight)


def softmax(export, block):
    from liger_kernel.ops import softmax

    matrix = "*bf16:16"
    forward = {
        "Y_ptr": matrix,
        "Y_row_stride": ROW,
        "X_ptr": matrix,
        "X_row_stride": ROW,
        "n_cols": "i32:16",
    }
    kernel = softmax._softmax_single_block_forward_kernel
    block_kernel(export, "softmax_fwd", kernel, block, forward, {})
    backward = {
        "dy_ptr": matrix,
        "dy_stride": ROW,
        "y_ptr": matrix,
        "y_stride": ROW,
        "dx_ptr": matrix,
        "dx_stride": ROW,
        "n_cols": "i32:16",
    }
    kernel = softmax._softmax_single_block_backward_kernel
    block_kernel(export, "softmax_bwd", kernel, block, backward, {})


def cross_entropy(export, block):
    """Losses, and the gradient of their sum over the logits; no class weights, smoothing or z-loss."""
    from liger_kernel.ops import cross_entropy

    assert block <= cross_entropy.MAX_FUSED_SIZE
    signature = {
        "X_ptr": "*bf16:16",
        "X_stride": ROW,
        "Y_ptr": "*i64:16",
        "loss_ptr": "*fp32:16",
        "token_accuracy_stride": "i32:16",
        "predicted_tokens_stride": "i32:16",
        "n_cols": "i32:16",
        "n_non_ignore": "i32",
        "sum_non_ignore_weight": "i32",
        "weight_sum": "fp32",
        "ignore_index": "i32",
    }
    absent = ("weight_ptr", "z_loss_ptr", "token_accuracy_ptr", "predicted_tokens_ptr", "softcap")
    constants = dict.fromkeys(absent) | {
        "Y_stride": ONE,
        "loss_stride": ONE,
        "lse_square_scale": 0.0,
        "label_smoothing": 0.0,
        "reduction": "sum",
        "RETURN_Z_LOSS": False,
        "RETURN_TOKEN_ACCURACY": False,
        "RETURN_PREDICTED_TOKENS": False,
        "HAS_WEIGHT": False,
        "HAS_SOFTCAPPING": False,
        "HAS_GRADIENTS": True,
    }
    kernel = cross_entropy.liger_cross_entropy_kernel
    # By cross_entropy_forward: fewer on Blackwell, where elements have two bytes.
    warps = 8 if export.arch == "sm_100a" else 32
    op = "cross_entropy_fwd_bwd"
    block_kernel(export, op, kernel, block, signature, constants, num_warps=warps)


if __name__ == "__main__":
    main()
