"""RMSNorm in Triton, compiled ahead of time to PTX and the kernel.json that launches it.

    out[row, i] = x[row, i] / sqrt(mean(x[row]^2) + epsilon) * weight[i], in bf16

It needs neither a GPU nor torch:

    pip install triton
    python3 rmsnorm.py --capability 90 --out .       # 80 for A100, 90 for H100 and H200, 100 for B200
    bench_norms --op rmsnorm_fwd --contender triton=./kernel.json
"""

import argparse
import json
import os
import re

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

WARPS = 4
SIGNATURE = {"x": "*bf16", "weight": "*bf16", "out": "*bf16", "columns": "i32", "epsilon": "fp32"}
CONSTANTS = {"BLOCK": 1024}


@triton.jit
def rmsnorm(x, weight, out, columns, epsilon, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        value = tl.load(x + start + at, mask=at < columns, other=0).to(tl.float32)
        squares += value * value
    scale = 1 / tl.sqrt(tl.sum(squares) / columns + epsilon)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < columns
        value = tl.load(x + start + at, mask=inside, other=0).to(tl.float32)
        factor = tl.load(weight + at, mask=inside, other=0).to(tl.float32)
        tl.store(out + start + at, (value * scale * factor).to(tl.bfloat16), mask=inside)


def export(capability):
    """The two files, by name."""
    names = rmsnorm.arg_names
    types = {name: SIGNATURE.get(name, "constexpr") for name in names}
    constants = {(names.index(name),): value for name, value in CONSTANTS.items()}
    source = ASTSource(rmsnorm, types, constexprs=constants)
    target = GPUTarget("cuda", capability, 32)
    compiled = triton.compile(source, target=target, options={"num_warps": WARPS})
    ptx, metadata = compiled.asm["ptx"], compiled.metadata
    parameters = re.search(r"\.entry \w+\((.*?)\)", ptx, re.S).group(1).count(".param")
    arguments = [
        {"tensor": "x"},
        {"tensor": "weight"},
        {"tensor": "out"},
        {"axis": ["columns", "i32"]},
        {"axis": ["epsilon", "f32"]},
    ]
    # Triton appends pointers to scratch memory, which this kernel does not use.
    arguments += [{"value": [0, "u64"]}] * (parameters - len(arguments))
    description = {
        "kernel_version": 1,
        "code": "rmsnorm.ptx",
        "entry": metadata.name,
        "ops": ["rmsnorm_fwd"],
        "dtypes": ["bf16"],
        "grid": ["rows"],
        "block": [32 * WARPS],
        "shared_bytes": metadata.shared,
        "arguments": arguments,
    }
    return {
        "rmsnorm.ptx": ptx.encode(),
        "kernel.json": (json.dumps(description, indent=2) + "\n").encode(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--out", default=".", help="folder to write to")
    options = parser.parse_args()
    for name, content in export(options.capability).items():
        with open(os.path.join(options.out, name), "wb") as file:
            file.write(content)


if __name__ == "__main__":
    main()
