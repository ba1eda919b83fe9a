"""CuTe-DSL kernels compiled ahead of time to objects with a plain C interface, without a GPU.

A recipe calls `prepare()` before it imports the kernel library, collects kernels in an `Export`,
and ends with `Export.write()`, which makes one archive:

    kernels.json        what each kernel is and how to call it
    kernels.inc         one CUTE_KERNEL(name, init, load, entry, argument_count) line a kernel
    ptx.inc             of a virtual architecture (compute_90a): one {name, PTX} a kernel, as C++ strings
    objects/<name>.o    host launcher with the cubin inside
    headers/<name>.h    the header that the DSL generates, for reference
"""

import argparse
import importlib.metadata
import inspect
import json
import os
import re
import sys
import tempfile

import archive

HERE = os.path.dirname(os.path.abspath(__file__))
# Fixed host targets: the default is the building machine's own CPU, which changes the bytes.
HOST_TARGETS = {
    "x86_64": "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v2",
    "aarch64": "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=generic",
}
ARCHS = ("sm_90a", "sm_100a")
# PTX is for virtual architectures; objects still have the machine code, which the interpreter leaves alone.
VIRTUAL = {arch.replace("sm", "compute"): arch for arch in ARCHS}
# Multiprocessors of the GPUs that have each arch: H100 SXM, H200 and GH200; B200; GB200. Only
# persistent schedulers without a run-time count read it, while they are traced; kernels.json says
# so where it was used.
MULTIPROCESSORS = {"sm_90a": (132,), "sm_100a": (148, 152)}

# What ends a raw string of C++ with PTX in it.
PTX_END = ')PTX"'

DTYPES = {"BFloat16": "bf16", "Float32": "f32", "Int32": "i32", "Int64": "i64"}


def arguments(*variant):
    """The command line that every recipe has, and the sizes that a variant is built for."""
    parser = argparse.ArgumentParser()
    for size in variant:
        parser.add_argument(f"--{size}", type=int, help="instead of those of the suites")
    parser.add_argument("--arch", choices=[*ARCHS, *VIRTUAL], required=True)
    parser.add_argument("--cpu", choices=HOST_TARGETS, default="x86_64", help="of the host code")
    parser.add_argument("--site", required=True, help="folder of unpacked wheels")
    parser.add_argument("--source", help="local checkout that stands before the wheels")
    parser.add_argument("--out", required=True, help="archive to write")
    return parser.parse_args()


def prepare(options):
    """Points imports at the wheels and the code generator at the arch, not at this machine."""
    arch = VIRTUAL.get(options.arch, options.arch)
    if options.arch in VIRTUAL:
        os.environ.update(CUTE_DSL_KEEP="ptx", CUTE_DSL_DUMP_DIR=tempfile.mkdtemp())
    os.environ.update(
        CUTE_DSL_ARCH=arch,
        CUTE_DSL_DISABLE_FILE_CACHING="1",
        FLASH_ATTENTION_ARCH=arch,
        QUACK_ARCH=arch,
        QUACK_CACHE_ENABLED="0",
        TVM_FFI_DISABLE_TORCH_C_DLPACK="1",
    )
    wheels = [options.site, os.path.join(options.site, "nvidia_cutlass_dsl", "dsl_packages")]
    checkout = [os.path.abspath(options.source)] if options.source else []
    sys.path[:0] = [os.path.join(HERE, "stand_ins"), *checkout, *wheels]
    pickle_alike()


def pickle_alike():
    """An object holds its function's signature, pickled: in one way under every Python.

    How an enum is pickled changed between 3.11.2 and 3.11.7; this is the newer way.
    """
    kind = type(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    kind.__reduce_ex__ = lambda self, protocol: (kind, (self._value_,))


class Export:
    """Kernels exported so far."""

    def __init__(self, library, package, options):
        import cutlass.cute

        (wheel,) = importlib.metadata.distributions(name=package, path=[options.site])
        self.library, self.version, self.named = library, wheel.version, options.arch
        self.arch = VIRTUAL.get(options.arch, options.arch)
        self.texts = {} if options.arch in VIRTUAL else None
        self._target = f"--gpu-arch {self.arch} --host-target '{HOST_TARGETS[options.cpu]}'"
        self.kernels, self.entries, self.refused = [], {}, []
        self._compile = cutlass.cute.compile
        self._arguments = ()
        # Libraries call cute.compile themselves, for their Python front end; this one keeps
        # their kernel and fake tensors, and asks for the C interface instead.
        cutlass.cute.compile = self.compile

    def compile(self, function, *args, options="", **kwargs):
        from cutlass.cute.runtime import make_fake_stream

        streamed = [make_fake_stream() if _is_stream(a) else a for a in args]
        self._arguments = [a for a in streamed if a is not None]
        return self._compile(function, *streamed, options=self._target, **kwargs)

    def add(self, name, compiled, **facts):
        """Adds a compiled kernel; `facts` go to its entry of kernels.json unchanged."""
        prefix = f"{self.library}_{name}_{self.arch}"
        with tempfile.TemporaryDirectory() as folder:
            compiled.export_to_c(folder, prefix, function_prefix=prefix)
            with open(os.path.join(folder, f"{prefix}.h"), "rb") as file:
                header = file.read()
            with open(os.path.join(folder, f"{prefix}.o"), "rb") as file:
                code = file.read()
        described = describe(header.decode(), prefix, self._arguments)
        self.entries[f"objects/{name}.o"] = code
        self.entries[f"headers/{name}.h"] = header
        if self.texts is not None:
            self.texts[name] = ptx_of(name, compiled)
        self.kernels.append({"name": name, **facts, "object": f"objects/{name}.o", **described})
        print(f"{name}: {len(code)} bytes", flush=True)

    def attempt(self, function, *sizes):
        """Exports what was asked for as far as the library takes the sizes; why not goes to kernels.json."""
        archive.attempt(self.refused, function, self, *sizes)

    def write(self, path):
        archive.check_some(self.kernels, self.refused)
        self.kernels.sort(key=lambda kernel: kernel["name"])
        document = {
            "library": self.library,
            "version": self.version,
            "arch": self.named,
            "kernels": self.kernels,
        }
        if self.texts is not None:
            self.entries["ptx.inc"] = "".join(map(_text, sorted(self.texts.items()))).encode()
        if self.refused:
            document["refused"] = self.refused
        self.entries["kernels.json"] = (json.dumps(document, indent=2) + "\n").encode()
        self.entries["kernels.inc"] = "".join(map(_line, self.kernels)).encode()
        archive.write(path, self.entries)


def ptx_of(name, compiled):
    """The PTX that the DSL kept of a kernel."""
    text = compiled.__ptx__
    if not text or ".entry" not in text or PTX_END in text:
        raise SystemExit(f"{name}: the DSL kept no PTX")
    return text.rstrip("\0")


def describe(header, prefix, arguments):
    """Symbols and arguments, read from the generated header and from the fake tensors.

    The two must agree on how many shapes and strides are dynamic, or nothing is exported.
    """
    entry = re.search(rf"^void (_mlir_{prefix}__mlir_ciface_\w+)\(", header, re.M).group(1)
    wrapper = re.search(rf"cute_dsl_{prefix}_wrapper\((.*?)\)", header).group(1)
    parameters = [part.strip().rsplit(" ", 1) for part in wrapper.split(",")][1:]
    if len(parameters) != len(arguments):
        raise SystemExit(f"{prefix}: header has {len(parameters)} arguments, not {len(arguments)}")
    return {
        "init": f"_mlir_{prefix}_cuda_init",
        "load": f"_mlir_{prefix}_cuda_load_to_device",
        "entry": entry,
        "argument_count": len(parameters) + 1,  # the last one is the int32 status
        "arguments": [
            _argument(header, prefix, kind.strip("* "), name.strip("*"), value)
            for (kind, name), value in zip(parameters, arguments)
        ],
    }


def _argument(header, prefix, kind, name, value):
    if kind == "cudaStream_t":
        return {"name": name, "kind": "stream"}
    if not kind.startswith(f"{prefix}_Tensor_"):
        return {"name": name, "kind": "scalar", "type": kind}
    body = re.search(rf"typedef struct {{([^}}]*)}} {kind};", header).group(1)
    shape = [_static(extent) for extent in value.shape]
    strides = [_static(stride) for stride in value.stride]
    for field, values in (("dynamic_shapes", shape), ("dynamic_strides", strides)):
        declared = re.search(rf"{field}\[(\d+)\]", body)
        if int(declared.group(1) if declared else 0) != values.count(None):
            raise SystemExit(f"{prefix}: {name}.{field} is not what its fake tensor says: {body}")
    return {
        "name": name,
        "kind": "tensor",
        "dtype": DTYPES[value.element_type.__name__],
        "shape": shape,
        "strides": strides,
    }


def _static(value):
    return value if isinstance(value, int) else None


def _is_stream(value):
    return type(value).__name__ == "_FakeStream"


def _text(item):
    name, text = item
    return f'{{"{name}", R"PTX({text}{PTX_END}}},\n'


def _line(kernel):
    fields = ("name", "init", "load", "entry", "argument_count")
    return "CUTE_KERNEL({})\n".format(", ".join(str(kernel[field]) for field in fields))
