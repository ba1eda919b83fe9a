"""Import-only stand-in for triton: Quack's autotuner, which is not used here, names these."""

import types

__version__ = "0"
runtime = types.SimpleNamespace(
    cache=types.SimpleNamespace(FileCacheManager=type("FileCacheManager", (), {}))
)
testing = types.SimpleNamespace(do_bench=None)
