"""The Triton example of Kernels/examples, exported by its own script: PTX and the kernel.json that launches it."""

import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE)

import archive  # noqa: E402
import triton_export  # noqa: E402

EXAMPLE = os.path.join(HERE, *[os.pardir] * 3, "Kernels", "examples", "rmsnorm_triton", "rmsnorm.py")


def main():
    options = triton_export.arguments()
    if options.arch not in triton_export.VIRTUAL:
        raise SystemExit(f"the example is PTX, for a virtual architecture, not for {options.arch}")
    triton_export.prepare(options)
    spec = importlib.util.spec_from_file_location("rmsnorm", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    capability = triton_export.CAPABILITIES[triton_export.VIRTUAL[options.arch]]
    archive.write(options.out, example.export(capability))


if __name__ == "__main__":
    main()
