"""The TRT-LLM-gen attention cubins that the suites need, out of flashinfer-cubin's 1.6 GB.

The archive keeps the wheel's layout below cubins/, which is what FlashInfer's runner asks for:
<hash>/fmha/trtllm-gen/<kernel>.cubin, with include/flashInferMetaInfo.h beside them. Every file is
checked against the wheel's own list of sha256.
"""

import glob
import hashlib
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import archive  # noqa: E402
import cute_export  # noqa: E402

# bf16 prefill and decode (head dim 128), MLA prefill (192/128), MLA decode (576/512).
WANTED = re.compile(
    r"fmhaSm100[af]Kernel_QkvBfloat16OBfloat16"
    r"(H128|HQk192HV128|HQk576HV512(HVPerCta\d+)?)(PackedQkv|PagedKv|Contiguous|Separate)"
)
# Masks and shortcuts that no suite uses.
UNWANTED = re.compile(r"SkipsSoftmax|SlidingOrChunked|Sparse|Custom")
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
        wanted = WANTED.match(name) and not UNWANTED.search(name)
        if wanted or name == METADATA:
            with open(os.path.join(folder, name), "rb") as file:
                content = file.read()
            actual = hashlib.sha256(content).hexdigest()
            if actual != sha256:
                raise SystemExit(f"{name}: sha256 {actual}, its wheel says {sha256}")
            entries[os.path.relpath(os.path.join(folder, name), cubins)] = content
    print(f"{len(entries)} files, {sum(map(len, entries.values()))} bytes", flush=True)
    archive.write(options.out, entries)


if __name__ == "__main__":
    main()
