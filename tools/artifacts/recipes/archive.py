"""What all recipes have in common: sizes that a library may refuse, examples, and the archive.

The archive is a zip whose bytes depend only on its entries: sorted, stored, one fixed date and mode.
Entries are stored, not deflated, because compressed bytes differ between zlib builds.
"""

import importlib.util
import os
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, *[os.pardir] * 3, "Kernels", "examples")
DATE = (1980, 1, 1, 0, 0, 0)


def write(path, entries):
    """Writes `entries` (name -> bytes) to `path`; a reader never sees half a file."""
    partial = f"{path}.partial"
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(entries):
            entry = zipfile.ZipInfo(name, DATE)
            entry.create_system = 3  # Unix, on every host
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, entries[name])
    os.replace(partial, path)


def attempt(refused, function, export, *sizes):
    """Calls `function`; if the library does not take the sizes, its reason is added to `refused`."""
    try:
        function(export, *sizes)
    except (Exception, SystemExit) as error:  # libraries assert, raise and abort
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        asked = ", ".join(map(str, sizes))
        refused.append(f"{function.__name__}({asked}): {reason}")


def check_some(kernels, refused):
    if not kernels:
        raise SystemExit("the library takes none of the sizes: " + "; ".join(refused))


def example(folder, name):
    """A script of Kernels/examples as a module."""
    path = os.path.join(EXAMPLES, folder, f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
