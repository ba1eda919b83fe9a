"""The operations of two benches through PyTorch, to hold the baselines' numbers against.

    ncu --clock-control base --cache-control all --kernel-name regex:"nvjet|sdpa|flash" \
        --metrics gpu__time_duration.sum,sm__cycles_elapsed.max --csv python3 against_torch.py once
    python3 against_torch.py events OVERHEAD_US   # timer_overhead_us of a bench's file

`once` runs every operation once, for ncu at a fixed clock. `events` times products the way the benches do: the
L2 displaced by a write and a read of twice its size, the stream held while everything is queued, one call between
two events, the median of the samples that fit 60 ms, less what events show beyond the work.
"""

import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(1)


def unit(*shape):
    return (torch.rand(*shape, device="cuda") * 2 - 1).to(torch.bfloat16)


def product(n):
    a, b, out = unit(n, n), unit(n, n), torch.empty(n, n, dtype=torch.bfloat16, device="cuda")
    return lambda: torch.mm(a, b.t(), out=out)


def once():
    for n in (1024, 2048, 4096, 8192):
        product(n)()
    for length in (2048, 4096, 8192, 16384):
        q, k, v = (unit(1, length, heads, 128).transpose(1, 2) for heads in (32, 8, 8))
        for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION):
            with sdpa_kernel(backend):
                F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    torch.cuda.synchronize()


def sample_us(run, flush):
    flush.add_(1)
    flush.view(torch.int64).sum()
    torch.cuda._sleep(200_000)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3


def events(overhead_us):
    flush = torch.empty(128 << 20, dtype=torch.int8, device="cuda")
    for n in (1024, 2048, 4096):
        run = product(n)
        warm = time.perf_counter()
        while time.perf_counter() - warm < 0.025:
            run()
            torch.cuda.synchronize()
        samples = []
        while len(samples) < 11 or (sum(samples) < 60e3 and len(samples) < 200):
            samples.append(sample_us(run, flush))
        print(n, f"{statistics.median(samples) - overhead_us:.2f} us of {len(samples)} samples")


if sys.argv[1] == "once":
    once()
else:
    events(float(sys.argv[2]))
