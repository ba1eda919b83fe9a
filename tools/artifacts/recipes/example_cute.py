"""The CuTe DSL example of Kernels/examples, exported by its own script: PTX and the kernel.json that launches it."""

import os
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))

import archive  # noqa: E402
import cute_export  # noqa: E402


def main():
    options = cute_export.arguments()
    if options.arch not in cute_export.VIRTUAL:
        raise SystemExit(f"the example is PTX, for a virtual architecture, not for {options.arch}")
    cute_export.prepare(options)
    example = archive.example("rmsnorm_cute", "rmsnorm")
    archive.write(options.out, example.export(cute_export.VIRTUAL[options.arch]))


if __name__ == "__main__":
    main()
