"""The Triton example of Kernels/examples, exported by its own script: PTX and the kernel.json that launches it."""

import os
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import archive  # noqa: E402
import triton_export  # noqa: E402


def main():
    options = triton_export.arguments()
    if options.arch not in triton_export.VIRTUAL:
        raise SystemExit(f"the example is PTX, for a virtual architecture, not for {options.arch}")
    triton_export.prepare(options)
    example = archive.example("rmsnorm_triton", "rmsnorm")
    capability = triton_export.CAPABILITIES[triton_export.VIRTUAL[options.arch]]
    archive.write(options.out, example.export(capability))


if __name__ == "__main__":
    main()
