"""Import-only stand-in for torch, so that kernels can be traced with fake tensors.

It holds data types and inert names; no tensor arithmetic. `torch.cuda.is_available()` is False,
so a library that asks for a device takes its compile-only road or fails loudly.
"""

import importlib.abc
import importlib.machinery
import sys
import types

__version__ = "2.9.0"


class dtype:
    def __init__(self, name, itemsize):
        self.name = name
        self.itemsize = itemsize

    def __repr__(self):
        return f"torch.{self.name}"


_ITEM_SIZES = {
    "bool": 1,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1,
}
globals().update({name: dtype(name, size) for name, size in _ITEM_SIZES.items()})


class Tensor:
    pass


class Size(tuple):
    pass


class device:
    def __init__(self, *_):
        pass


class Inert:
    """Whatever else torch has: an attribute sink that also works as a decorator or a base."""

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return Inert(f"{self.__name__}.{attribute}")

    def __call__(self, *args, **kwargs):
        decorates = len(args) == 1 and not kwargs
        if decorates and isinstance(args[0], (types.FunctionType, type)):
            return args[0]
        return Inert(f"{self.__name__}()")

    def __mro_entries__(self, _):
        return (object,)

    def __or__(self, _):
        return self

    __ror__ = __or__

    def __hash__(self):
        return hash(self.__name__)


class CustomOp:
    """torch.library.custom_op: calls through, and ignores what it is told about autograd."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)

    def register_fake(self, function):
        return function

    register_autograd = register_kernel = register_effect = register_fake


def _custom_op(_name, function=None, **_options):
    return CustomOp(function) if function else CustomOp


def _disable(function=None, **_options):
    return function if function else (lambda decorated: decorated)


class Module:
    pass


# What a submodule needs beyond inert names.
_SUBMODULES = {
    "torch.cuda": {"is_available": lambda: False, "device_count": lambda: 0},
    "torch.nn": {"Module": Module, "RMSNorm": Module, "LayerNorm": Module, "Linear": Module},
    "torch.autograd": {"Function": type("Function", (), {})},
    "torch.compiler": {"is_compiling": lambda: False, "disable": _disable},
    "torch.library": {
        "custom_op": _custom_op,
        "register_fake": lambda *_args, **_options: (lambda function: function),
    },
}


class InertModule(types.ModuleType):
    def __getattr__(self, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return Inert(f"{self.__name__}.{attribute}")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.startswith("torch."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = InertModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        for name, value in _SUBMODULES.get(module.__name__, {}).items():
            setattr(module, name, value)


sys.meta_path.append(Finder())

import torch.autograd  # noqa: E402
import torch.compiler  # noqa: E402
import torch.cuda  # noqa: E402
import torch.library  # noqa: E402
import torch.nn  # noqa: E402
import torch.nn.functional  # noqa: E402, F401


def __getattr__(attribute):
    if attribute.startswith("__"):
        raise AttributeError(attribute)
    return Inert(f"torch.{attribute}")
