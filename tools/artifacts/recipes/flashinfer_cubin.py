"""The TRT-LLM-gen attention cubins that the suites need, out of flashinfer-cubin's 1.6 GB.

The archive has cubins/<kernel>.cubin, and include/flashInferMetaInfo.h, the library's list of all its
kernels, as it is in the wheel. Every file is checked against the wheel's own list of sha256.
"""

import glob
import hashlib
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import archive  # noqa: E402
import cute_export  # noqa: E402

# What FlashInfer's selection can come to for bf16 queries: ragged prefill with heads of 128, of 256, and of 192 with
# values of 128; decode over pages with heads of 64, 128 and 256, of bf16 and of e4m3; and decode of latent attention
# over pages of 32 and 64.
PREFILL = r"(H128|H256|HQk192HV128)SeparateQkv(Causal|Dense)VarSeqQ128Kv128PersistentContext"
PAGES = r"(P16|P32|P64|Paged)"
DECODE = (
    rf"H(64|128|256)PagedKvCausal{PAGES}"
    r"(MultiCtasKv(Cga)?VarSeqQ\d+Kv128Static|VarSeqQ\d+Kv128Persistent)(Swaps|Keeps)AbForGen"
)
# The library calls a causal mask of one token dense.
DECODE_FP8 = (
    rf"H(64|128|256)PagedKvDense{PAGES}"
    r"(MultiCtasKv(Cga)?VarSeqQ(8|16)Kv128Static|VarSeqQ(8|16)Kv128Persistent)SwapsAbForGen"
)
LATENT = (
    r"HQk576HV512(HVPerCta\d+)?PagedKvDense(P32|P64)"
    r"(MultiCtasKv(GmemSep)?VarSeqQ(8|16|64)Kv128Static|VarSeqQ(8|16|64)Kv128Persistent)"
    r"(2Cta)?(Swaps|Keeps)AbForGen"
)
WANTED = re.compile(
    rf"fmhaSm100[af]Kernel_(QkvBfloat16OBfloat16({PREFILL}|{DECODE}|{LATENT})"
    rf"|QBfloat16KvE4m3OBfloat16{DECODE_FP8})\.cubin"
)
METADATA = "include/flashInferMetaInfo.h"


def main():
    options = cute_export.arguments()
    if options.arch != "sm_100a":
        raise SystemExit(f"flashinfer-cubin has attention cubins for sm_100a, not {options.arch}")
    package = options.source or os.path.join(options.site, "flashinfer_cubin")
    cubins = os.path.join(package, "cubins")
    found = glob.glob(os.path.join(cubins, "*", "fmha", "trtllm-gen", "checksums.txt"))
    if len(found) != 1:
        raise SystemExit(f"{cubins}: {len(found)} lists of trtllm-gen cubins, not one")
    folder = os.path.dirname(found[0])
    entries = {}
    for sha256, name in map(str.split, open(found[0])):
        wanted = WANTED.fullmatch(name)
        if wanted or name == METADATA:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            actual = hashlib.sha256(content).hexdigest()
            if actual != sha256:
                raise SystemExit(f"{name}: sha256 {actual}, its wheel says {sha256}")
            entries[f"cubins/{name}" if wanted else name] = content
    print(f"{len(entries)} files, {sum(map(len, entries.values()))} bytes", flush=True)
    archive.write(options.out, entries)


if __name__ == "__main__":
    main()
