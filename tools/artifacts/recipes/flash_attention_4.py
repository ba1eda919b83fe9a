"""FlashAttention-4's forward kernels: dense and variable length, with its own tile heuristic.

The kernel classes are called through a small jitted function, because the library's own entry has
optional arguments that a C interface cannot express. Head dimension and GQA ratio are compiled in;
batch, lengths, head counts and strides are run-time values.
"""

import importlib
import itertools
import os
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cute_export  # noqa: E402

# Head dimension -> GQA ratios: those of the suites, and 1.
GQA_RATIOS = {64: (1, 2, 8), 128: (1, 4, 7, 8, 16)}
# Below this many query rows (times the GQA ratio, which is packed into rows) the library picks
# another config on sm_100a: these kernels are for prefill.
MINIMUM_PACKED_ROWS = 257
VECTOR = 8  # bf16 elements in 16 bytes


def main():
    options = cute_export.arguments("head-dim", "group")
    cute_export.prepare(options)
    import_without_front_end(options)
    export = cute_export.Export("flash_attention_4", "flash-attn-4", options)
    if options.head_dim is None:
        sizes, take = GQA_RATIOS, lambda *size: forward(export, *size)
    else:
        sizes = {options.head_dim: (options.group,)}
        take = lambda *size: export.attempt(forward, *size)  # noqa: E731
    for head_dim, ratios in sizes.items():
        for ratio in ratios:
            for causal in (True, False):
                for variable in (True, False):
                    take(head_dim, ratio, causal, variable)
    export.write(options.out)


def import_without_front_end(options):
    """Makes packages without their __init__: flash_attn's wants CUDA code that was built for torch,
    flash_attn.cute's is the torch front end."""
    folder = os.path.join(options.source or options.site, "flash_attn")
    for name, path in (("flash_attn", folder), ("flash_attn.cute", os.path.join(folder, "cute"))):
        package = types.ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package


def bake_multiprocessors(count):
    """A static persistent scheduler asks the driver for this count while it is traced.

    None: no other may ask, because its name would not say the answer.
    """
    import cutlass.utils.hardware_info as hardware

    def answer(self):
        if count is None:
            raise SystemExit("a kernel without a static persistent scheduler asks for the count")
        return count

    hardware.HardwareInfo.__init__ = lambda self, device_id=0: None
    hardware.HardwareInfo.get_device_multiprocessor_count = answer


def forward(export, head_dim, ratio, causal, variable):
    config = settled_config(export.arch, head_dim, ratio, causal, variable)
    kernel = kernel_class(export.arch, head_dim, ratio, causal, variable, config)
    function, arguments = entry(kernel, export.arch, head_dim, variable)
    shape = "varlen" if variable else "dense"
    mask = "causal" if causal else "full"
    facts = {
        "op": f"attention_fwd_{shape}",
        "dtype": "bf16",
        "causal": causal,
        "head_dim": head_dim,
        "gqa_ratio": ratio,
        "tile": [config.tile_m, config.tile_n],
        "minimum_packed_rows": 1 if export.arch == "sm_90a" else MINIMUM_PACKED_ROWS,
    }
    name = f"fwd_{shape}_{mask}_bf16_d{head_dim}_g{ratio}"
    if not config.is_static_persistent:
        bake_multiprocessors(None)
        export.add(name, export.compile(function, *arguments), **facts)
        return
    for count in cute_export.MULTIPROCESSORS[export.arch]:
        bake_multiprocessors(count)
        compiled = export.compile(function, *arguments)
        export.add(f"{name}_{count}_multiprocessors", compiled, **facts, multiprocessors=count)


def settled_config(arch, head_dim, ratio, causal, variable):
    """The library's choice, which must be one for all prefill shapes on all GPUs of the arch."""
    from flash_attn.cute.config import FwdHeuristicInputs, select_fwd_config

    heads_kv = 8
    choices = set()
    for batch, count in itertools.product((1, 8, 64), cute_export.MULTIPROCESSORS[arch]):
        for length in (MINIMUM_PACKED_ROWS, 1024, 8192, 131072):
            inputs = FwdHeuristicInputs(
                device_arch=90 if arch == "sm_90a" else 100,
                num_sms=count,
                dtype="torch.bfloat16",
                head_dim=head_dim,
                head_dim_v=head_dim,
                num_heads=heads_kv * ratio,
                num_heads_kv=heads_kv,
                batch_size=batch,
                total_q=batch * length,
                total_k=batch * length,
                max_seqlen_q=length,
                max_seqlen_k=length,
                causal=causal,
                has_cu_seqlens_q=variable,
                has_cu_seqlens_k=variable,
                has_lse=True,
                pack_gqa=ratio > 1,
                requested_num_splits=1,
            )
            choices.add(select_fwd_config(inputs))
    if len(choices) != 1:
        raise SystemExit(f"head_dim {head_dim}, ratio {ratio}: config depends on shape: {choices}")
    return choices.pop()


def kernel_class(arch, head_dim, ratio, causal, variable, config):
    from cutlass import BFloat16

    if arch == "sm_90a":
        library = importlib.import_module("flash_attn.cute.flash_fwd_sm90")
        return library.FlashAttentionForwardSm90(
            BFloat16,
            head_dim,
            head_dim,
            ratio,
            is_causal=causal,
            is_local=False,
            pack_gqa=ratio > 1,
            tile_m=config.tile_m,
            tile_n=config.tile_n,
            num_stages=2,
            num_threads=384,
            Q_in_regs=False,
            intra_wg_overlap=config.intra_wg_overlap,
            mma_pv_is_rs=config.mma_pv_is_rs,
            mask_mod=None,
            score_mod=None,
            has_aux_tensors=False,
            q_subtile_factor=1,
            paged_kv_non_tma=False,
        )
    library = importlib.import_module("flash_attn.cute.flash_fwd_sm100")
    return library.FlashAttentionForwardSm100(
        head_dim,
        head_dim,
        qhead_per_kvhead=ratio,
        is_causal=causal,
        is_local=False,
        is_split_kv=False,
        pack_gqa=ratio > 1,
        m_block_size=config.tile_m,
        n_block_size=config.tile_n,
        q_stage=config.q_stage,
        is_static_persistent=config.is_static_persistent,
        score_mod=None,
        mask_mod=None,
        has_aux_tensors=False,
        paged_kv_non_tma=False,
        is_varlen_q=variable,
        q_subtile_factor=1,
        kv_subtile_factor=1,
        use_2cta_instrs=config.use_2cta_instrs,
        use_clc_scheduler=config.use_clc_scheduler,
        seqlen_k_per_split=None,
        has_tile_count_semaphore=False,
        use_s_ping_pong=config.use_s_ping_pong,
    )


def entry(kernel, arch, head_dim, variable):
    """A function with a C signature, and the fake arguments that it is compiled with."""
    import cuda.bindings.driver as cuda
    import cutlass.cute as cute
    from cutlass import BFloat16, Float32, Int32
    from cutlass.cute.runtime import make_fake_stream
    from quack.compile_utils import make_fake_tensor as fake

    size, stream, scale = cute.sym_int, make_fake_stream(), Float32(1.0)
    if not variable:

        @cute.jit
        def dense(
            q: cute.Tensor,
            k: cute.Tensor,
            v: cute.Tensor,
            out: cute.Tensor,
            lse: cute.Tensor,
            softmax_scale: Float32,
            stream: cuda.CUstream,
        ):
            kernel(q, k, v, out, lse, softmax_scale, stream=stream)

        batch, rows_q, rows_k, heads_q, heads_k = (size() for _ in range(5))
        query = (batch, rows_q, heads_q, head_dim)
        key = (batch, rows_k, heads_k, head_dim)
        tensors = [fake(BFloat16, shape, VECTOR) for shape in (query, key, key, query)]
        lse = fake(Float32, (batch, heads_q, rows_q), 1)
        return dense, (*tensors, lse, scale, stream)

    rows_q, rows_k, bounds = size(), size(), size()
    # As in the library's own compile, head counts are separate symbols in each tensor.
    tensors = [fake(BFloat16, (n, size(), head_dim), VECTOR) for n in (rows_q, rows_k, rows_k)]
    tensors.append(fake(BFloat16, (rows_q, size(), head_dim), VECTOR))
    lse = fake(Float32, (size(), rows_q), 1)
    offsets = [fake(Int32, (bounds,), 1) for _ in range(2)]
    if arch == "sm_90a":

        @cute.jit
        def varlen(
            q: cute.Tensor,
            k: cute.Tensor,
            v: cute.Tensor,
            out: cute.Tensor,
            lse: cute.Tensor,
            softmax_scale: Float32,
            offsets_q: cute.Tensor,
            offsets_k: cute.Tensor,
            stream: cuda.CUstream,
        ):
            kernel(q, k, v, out, lse, softmax_scale, offsets_q, offsets_k, stream=stream)

        return varlen, (*tensors, lse, scale, *offsets, stream)

    @cute.jit
    def varlen_bounded(
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        out: cute.Tensor,
        lse: cute.Tensor,
        softmax_scale: Float32,
        offsets_q: cute.Tensor,
        offsets_k: cute.Tensor,
        longest_q: Int32,
        stream: cuda.CUstream,
    ):
        kernel(
            q,
            k,
            v,
            out,
            lse,
            softmax_scale,
            offsets_q,
            offsets_k,
            max_seqlen_q=longest_q,
            stream=stream,
        )

    return varlen_bounded, (*tensors, lse, scale, *offsets, Int32(1), stream)


if __name__ == "__main__":
    main()
