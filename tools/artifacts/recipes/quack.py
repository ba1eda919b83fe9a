"""Quack's norm, softmax and cross-entropy kernels, through Quack's own compile functions."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cute_export  # noqa: E402

# Row widths of the suites: quack (4096), decode and dsv3 (4096 to 8192), dsv3's cross-entropy (3072 to 12288).
NORM_WIDTHS = (4096, 6144, 7168, 8192)
CROSS_ENTROPY_WIDTHS = (3072, 4096, 6144, 7168, 8192, 12288)
# Rows, for a heuristic that may look at them. `check_rows` proves that it does not at our widths.
ROWS = 65536


def main():
    options = cute_export.arguments("width")
    cute_export.prepare(options)
    export = cute_export.Export("quack", "quack-kernels", options)
    if options.width is None:
        suites(export)
    else:
        for family in (norms, softmax, cross_entropy):
            export.attempt(family, options.width)
    export.write(options.out)


def suites(export):
    for width in NORM_WIDTHS:
        norms(export, width)
        softmax(export, width)
    for width in CROSS_ENTROPY_WIDTHS:
        cross_entropy(export, width)


def norms(export, width):
    from cutlass import BFloat16, Float32

    rmsnorm = module("rmsnorm")
    forward = uncached(rmsnorm._compile_rmsnorm_fwd)
    backward = uncached(rmsnorm._compile_rmsnorm_bwd)
    partials = partial_rows(export.arch, width)
    check_rows(width)
    x = BFloat16
    for weight_name, w in (("f32", Float32), ("bf16", BFloat16)):
        suffix = f"bf16_w{weight_name}_n{width}"
        common = {"dtype": "bf16", "weight_dtype": weight_name, "width": width}
        # (operation, residual, bias, writes rstd, writes mean, layernorm)
        for op, residual, bias, rstd, mean, layer in (
            ("rmsnorm_fwd", None, None, False, False, False),
            ("rmsnorm_fwd_rstd", None, None, True, False, False),
            ("add_rmsnorm_fwd", x, None, False, False, False),
            ("layernorm_fwd", None, w, False, False, True),
            ("layernorm_fwd_stats", None, w, True, True, True),
        ):
            compiled = forward(x, x, residual, w, bias, residual, width, rstd, mean, layer, False)
            export.add(f"{op}_{suffix}", compiled, op=op, **common)
        for op, layer in (("rmsnorm_bwd", False), ("layernorm_bwd", True)):
            compiled = backward(
                width, x, x, x, w, layer, None, None, True, False, T_hint=ROWS, is_layernorm=layer
            )
            facts = {"op": op, **common, "partial_rows_per_multiprocessor": partials}
            export.add(f"{op}_{suffix}", compiled, **facts)


def softmax(export, width):
    from cutlass import BFloat16 as x

    kernels = module("softmax")
    facts = {"dtype": "bf16", "width": width}
    forward = uncached(kernels.Softmax.compile)(x, x, width)
    export.add(f"softmax_fwd_bf16_n{width}", forward, op="softmax_fwd", **facts)
    backward = uncached(kernels.SoftmaxBackward.compile)(x, x, x, width)
    export.add(f"softmax_bwd_bf16_n{width}", backward, op="softmax_bwd", **facts)


def cross_entropy(export, width):
    from cutlass import BFloat16 as x
    from cutlass import Int64

    kernels = module("cross_entropy")
    facts = {"dtype": "bf16", "width": width}
    compile_forward = uncached(kernels.CrossEntropy.compile)
    for op, gradient in (("cross_entropy_fwd", False), ("cross_entropy_fwd_bwd", True)):
        forward = compile_forward(x, Int64, None, width, True, gradient, None, 1)
        export.add(f"{op}_bf16_n{width}", forward, op=op, **facts)
    backward = uncached(kernels.CrossEntropyBackward.compile)(x, Int64, width, None)
    export.add(f"cross_entropy_bwd_bf16_n{width}", backward, op="cross_entropy_bwd", **facts)


def module(name):
    """quack/__init__.py hides its submodules behind functions of the same names."""
    import quack  # noqa: F401
    import quack.cross_entropy  # noqa: F401

    return sys.modules[f"quack.{name}"]


def uncached(function):
    return getattr(function, "__wrapped__", function)


def partial_rows(arch, width):
    """Rows of dW partials that Quack launches, as a fraction of the multiprocessor count."""
    config = module("rmsnorm_config")
    hopper, blackwell = config._get_sm_count_hopper, config._get_sm_count_blackwell
    rows_of_two = (hopper if arch == "sm_90a" else blackwell)(width, 2)
    return rows_of_two / 2


def check_rows(width):
    config = module("rmsnorm_config").RmsNormBwdConfig.from_analytical_heuristic
    for accumulators in (1, 2):
        choices = {config(width, 16, 16, T_hint=1 << k, num_acc=accumulators) for k in range(24)}
        if len(choices) != 1:
            raise SystemExit(f"width {width}: Quack's backward config depends on rows: {choices}")


if __name__ == "__main__":
    main()
