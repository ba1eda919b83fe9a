"""Triton kernels compiled ahead of time to cubins, or to PTX for the interpreter, without a GPU and without torch.

A recipe calls `prepare()` before it imports a kernel library, collects kernels in an `Export`, and
ends with `Export.write()`, which makes one archive:

    kernels.json    what each kernel is, how to launch it, and where its code is in kernels.bin
    kernels.bin     the cubins, one after the other; of a virtual architecture (compute_90a) the PTX texts
    lib.rs          the two as constants of a Rust crate
"""

import argparse
import importlib.metadata
import json
import os
import re
import stat
import sys
import types

import archive

HERE = os.path.dirname(os.path.abspath(__file__))
CAPABILITIES = {"sm_90a": 90, "sm_100a": 100}
# PTX is for virtual architectures.
VIRTUAL = {arch.replace("sm", "compute"): arch for arch in CAPABILITIES}
# What Triton appends to the parameters of every kernel.
SCRATCH_POINTERS = 2
CRATE = """//! Triton kernels compiled ahead of time.
pub const KERNELS: &str = include_str!("kernels.json");
pub const {}: &[u8] = include_bytes!("kernels.bin");
"""


def arguments(**variant):
    """The command line that every recipe has, and the sizes that a variant is built for, with their types."""
    parser = argparse.ArgumentParser()
    for size, kind in variant.items():
        parser.add_argument(f"--{size}", type=kind, help="instead of those of the suites")
    parser.add_argument("--arch", choices=[*CAPABILITIES, *VIRTUAL], required=True)
    parser.add_argument("--site", required=True, help="folder of unpacked wheels")
    parser.add_argument("--source", help="local checkout that stands before the wheels")
    parser.add_argument("--out", required=True, help="archive to write")
    return parser.parse_args()


def prepare(options):
    """Points imports at the wheels, and keeps this machine's paths out of the cubins."""
    os.environ.update(
        TRITON_CACHE_DIR=os.path.join(os.environ.get("TMPDIR", "/tmp"), "triton"),
        TRITON_DISABLE_LINE_INFO="1",
        TRITON_ALWAYS_COMPILE="1",
    )
    checkout = [os.path.abspath(options.source)] if options.source else []
    # The real triton stands before its stand-in, which another recipe needs.
    sys.path[:0] = [*checkout, options.site, os.path.join(HERE, "stand_ins")]
    import torch

    # Libraries ask it whether the GPU is AMD's, and choose warps by the answer.
    torch.version = types.SimpleNamespace(hip=None, cuda="13.0")
    programs = os.path.join(options.site, "triton", "backends", "nvidia", "bin")
    for program in os.listdir(programs):
        path = os.path.join(programs, program)
        if os.path.isfile(path):
            os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def bare_package(site, name):
    """Makes `name` importable without running its __init__, which imports all of the library."""
    package = types.ModuleType(name)
    package.__path__ = [
        path
        for path in (os.path.join(entry, *name.split(".")) for entry in sys.path)
        if os.path.isdir(path)
    ]
    if not package.__path__:
        raise SystemExit(f"no package {name} in {site}")
    sys.modules[name] = package


class Export:
    """Kernels exported so far."""

    def __init__(self, library, package, options):
        (wheel,) = importlib.metadata.distributions(name=package, path=[options.site])
        self.library, self.version, self.named = library, wheel.version, options.arch
        self.arch = VIRTUAL.get(options.arch, options.arch)
        self.stage = "ptx" if options.arch in VIRTUAL else "cubin"
        self.kernels, self.code, self.refused = [], {}, []

    def add(self, name, function, signature, constants, num_warps, num_stages=3, **facts):
        """Compiles one specialisation.

        Args:
          name: what the bridge calls it.
          function: Triton's JITFunction.
          signature: parameter -> type, in order: "*bf16", "i32"; ":16" after it promises that the
            value is a multiple of 16, as Triton's own launcher finds out for itself.
          constants: parameter -> value, for all parameters that are not in `signature`.
          num_warps: warps of a block.
          num_stages: stages of software pipelines.
          **facts: go to the kernel's entry of kernels.json unchanged.
        """
        compiled = self.compile(name, function, signature, constants, num_warps, num_stages)
        metadata, code = compiled.metadata, self.code_of(compiled)
        parameters = [n for n in function.arg_names if n in signature]
        self.check(name, compiled, parameters)
        if name in self.code:
            raise SystemExit(f"{name} was exported twice")
        self.code[name] = code
        self.kernels.append(
            {
                "name": name,
                **facts,
                "symbol": metadata.name,
                "threads": 32 * num_warps,
                "shared_bytes": metadata.shared,
                "num_stages": num_stages,
                "parameters": [
                    {
                        "name": n,
                        "type": signature[n].removesuffix(":16"),
                        "multiple_of_16": signature[n].endswith(":16"),
                    }
                    for n in parameters
                ],
            }
        )
        print(f"{name}: {len(code)} bytes of {self.stage}", flush=True)

    def compile(self, name, function, signature, constants, num_warps, num_stages):
        """Compiles as `add` does, and keeps nothing."""
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        names = list(function.arg_names)
        unknown = set(names) ^ (set(signature) | set(constants))
        if unknown:
            raise SystemExit(f"{name}: parameters {sorted(unknown)} are not its own or not given")
        types_of = {n: signature.get(n, "constexpr").removesuffix(":16") for n in names}
        aligned = {
            (index,): [["tt.divisibility", 16]]
            for index, parameter in enumerate(names)
            if signature.get(parameter, "").endswith(":16")
        }
        source = ASTSource(function, types_of, constexprs=constants, attrs=aligned)
        target = GPUTarget("cuda", CAPABILITIES[self.arch], 32)
        options = {"num_warps": num_warps, "num_stages": num_stages}
        return triton.compile(source, target=target, options=options)

    def code_of(self, compiled):
        """The machine code of a kernel, or its PTX if that is what is exported."""
        code = compiled.asm[self.stage]
        return code.encode() if isinstance(code, str) else code

    def check(self, name, compiled, parameters):
        """Refuses what the bridge does not know how to launch."""
        ptx, metadata = compiled.asm["ptx"], compiled.metadata
        entry = re.search(r"\.entry \w+\((.*?)\)", ptx, re.S).group(1)
        if entry.count(".param") != len(parameters) + SCRATCH_POINTERS:
            raise SystemExit(f"{name}: {parameters} are not the parameters of {entry}")
        if f".target {self.arch}" not in ptx:
            raise SystemExit(f"{name}: not compiled for {self.arch}")
        for field in ("global_scratch_size", "profile_scratch_size"):
            if getattr(metadata, field, 0):
                raise SystemExit(f"{name}: needs {field} {getattr(metadata, field)}")
        if tuple(getattr(metadata, "cluster_dims", (1, 1, 1))) != (1, 1, 1):
            raise SystemExit(f"{name}: wants clusters of {metadata.cluster_dims}")

    def attempt(self, function, *sizes):
        """Exports what was asked for as far as the library takes the sizes; why not goes to kernels.json."""
        archive.attempt(self.refused, function, self, *sizes)

    def write(self, path):
        archive.check_some(self.kernels, self.refused)
        self.kernels.sort(key=lambda kernel: kernel["name"])
        together = b""
        for kernel in self.kernels:
            code = self.code[kernel["name"]]
            kernel |= {"offset": len(together), "bytes": len(code)}
            together += code
        document = {
            "library": self.library,
            "version": self.version,
            "triton": importlib.metadata.version("triton"),
            "arch": self.named,
            "kernels": self.kernels,
        }
        if self.refused:
            document["refused"] = self.refused
        entries = {
            "kernels.json": (json.dumps(document, indent=2) + "\n").encode(),
            "kernels.bin": together,
            "lib.rs": CRATE.format({"cubin": "CUBINS", "ptx": "PTX"}[self.stage]).encode(),
        }
        archive.write(path, entries)
