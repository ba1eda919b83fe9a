"""The way into builds for the PTX interpreter, and the way out again for what is the same everywhere."""

_ARCH = str(Label("//bazel/cuda:arch"))
_EMULATED = str(Label("//bazel/cuda:emulated"))
_REWRITTEN = str(Label("//bazel/cuda:rewritten"))
_RUNTIME = str(Label("@rules_cuda//cuda:runtime"))
_CHANGED = [_ARCH, _EMULATED, _REWRITTEN, _RUNTIME]

# What those were before, as JSON; empty where nothing was changed.
_BEFORE = str(Label("//bazel/cuda:before_emulation"))

def _emulation_impl(settings, attr):
    before = {name: settings[name] for name in [_ARCH, _EMULATED, _REWRITTEN]} | {_RUNTIME: str(settings[_RUNTIME])}
    return {
        _ARCH: attr.arch,
        _BEFORE: json.encode(before),
        _EMULATED: True,
        _REWRITTEN: False,
        _RUNTIME: "//Kernels/emulator/runtime:link",
    }

# To what --config=emulated sets, for the attribute `arch`.
emulation = transition(
    implementation = _emulation_impl,
    inputs = _CHANGED,
    outputs = _CHANGED + [_BEFORE],
)

def _no_emulation_impl(settings, _attr):
    before = settings[_BEFORE]
    return (json.decode(before) if before else {name: settings[name] for name in _CHANGED}) | {_BEFORE: ""}

# Back to what the command line builds for, so that a crate which knows nothing of kernels is compiled once.
no_emulation = transition(
    implementation = _no_emulation_impl,
    inputs = _CHANGED + [_BEFORE],
    outputs = _CHANGED + [_BEFORE],
)
