"""RMSNorm in CuTe DSL, compiled ahead of time to PTX and the kernel.json that launches it.

    out[row, i] = x[row, i] / sqrt(mean(x[row]^2) + epsilon) * weight[i], in bf16

It needs neither a GPU nor torch:

    pip install nvidia-cutlass-dsl
    python3 rmsnorm.py --arch sm_90a --out .         # sm_80 for A100, sm_90a for H100 and H200, sm_100a for B200
    bench_norms --op rmsnorm_fwd --contender cute=./kernel.json
"""

import argparse
import json
import os
import re
import tempfile

import cutlass.cute as cute
from cutlass import BFloat16, Float32, Int32, Int64
from cutlass.cute.runtime import make_ptr

THREADS = 256
WARPS = THREADS // cute.arch.WARP_SIZE
# Elements that a thread loads at once: 16 bytes.
VECTOR = 8


@cute.kernel
def rmsnorm(
    x: cute.Pointer, weight: cute.Pointer, out: cute.Pointer, columns: Int32, epsilon: Float32
):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    # A row as (element of a vector, vector).
    vectors = columns // VECTOR
    layout = cute.make_layout((VECTOR, vectors))
    start = cute.assume(Int64(row) * columns, divby=VECTOR)
    x = cute.make_tensor(x + start, layout)
    out = cute.make_tensor(out + start, layout)
    weight = cute.make_tensor(weight, layout)

    squares = Float32(0)
    for i in range(thread, vectors, THREADS):
        value = x[None, i].load().to(Float32)
        squares += (value * value).reduce(cute.ReductionOp.ADD, Float32(0), 0)
    squares = cute.arch.warp_reduction_sum(squares)
    sums = cute.make_tensor(cute.arch.alloc_smem(Float32, WARPS), cute.make_layout(WARPS))
    # Where the whole warp is: it shuffles.
    warp = cute.arch.warp_idx()
    if cute.arch.lane_idx() == 0:
        sums[warp] = squares
    cute.arch.sync_threads()
    total = sums.load().reduce(cute.ReductionOp.ADD, Float32(0), 0)
    scale = cute.math.rsqrt(total / columns + epsilon)

    for i in range(thread, vectors, THREADS):
        value = x[None, i].load().to(Float32) * scale * weight[None, i].load().to(Float32)
        out[None, i].store(value.to(BFloat16))


@cute.jit
def launch(
    x: cute.Pointer,
    weight: cute.Pointer,
    out: cute.Pointer,
    rows: Int32,
    columns: Int32,
    epsilon: Float32,
):
    kernel = rmsnorm(x, weight, out, columns, epsilon)
    kernel.launch(grid=[rows, 1, 1], block=[THREADS, 1, 1])


def export(arch):
    """The two files, by name."""
    pointer = make_ptr(BFloat16, 16, cute.AddressSpace.gmem, assumed_align=2 * VECTOR)
    sizes = Int32(1), Int32(VECTOR), Float32(1)
    with tempfile.TemporaryDirectory() as folder:
        options = f"--gpu-arch {arch} --keep-ptx --dump-dir {folder}"
        compiled = cute.compile(launch, pointer, pointer, pointer, *sizes, options=options)
        ptx = compiled.__ptx__.rstrip("\0")
    description = {
        "kernel_version": 1,
        "code": "rmsnorm.ptx",
        "entry": re.search(r"\.entry (\w+)", ptx).group(1),
        "ops": ["rmsnorm_fwd"],
        "dtypes": ["bf16"],
        "multiples_of": {"columns": VECTOR},
        "grid": ["rows"],
        "block": [THREADS],
        "arguments": [
            {"tensor": "x"},
            {"tensor": "weight"},
            {"tensor": "out"},
            {"axis": ["columns", "i32"]},
            {"axis": ["epsilon", "f32"]},
        ],
    }
    return {
        "rmsnorm.ptx": ptx.encode(),
        "kernel.json": (json.dumps(description, indent=2) + "\n").encode(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--out", default=".", help="folder to write to")
    options = parser.parse_args()
    for name, content in export(options.arch).items():
        with open(os.path.join(options.out, name), "wb") as file:
            file.write(content)


if __name__ == "__main__":
    main()
