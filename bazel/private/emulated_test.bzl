"""emulated_test: a family's kernels under the PTX interpreter, with their host code unchanged; it needs no GPU."""

load("@rules_rust//rust:defs.bzl", "rust_test")
load(":arch.bzl", "NEEDS_EMULATION", "NEEDS_SHELF")
load(":archs.bzl", "SMS")
load(":emulated.bzl", "EMULATED_ARCH", "EMULATED_SMS", "UNLESS_NO_CUDA", "emulated_clippy", "emulated_run_test")

def emulated_test(name, srcs, deps = [], data = [], env = {}, size = "medium", shelf = None, tags = []):
    """Declares a test per SM, `<name>_<SM>`, in every configuration but --config=cpu, and `<name>_clippy`.

    Each is `name`, which can be run by itself with --config=emulated and emulated100a. It is built once for all SMs.

    Args:
      name: the test.
      srcs: its sources; the first is the root.
      deps: the family's bridge and whatever it is compared with.
      data: files it reads.
      env: variables it sees.
      size: Bazel's size, which sets its time limit.
      shelf: hopper or blackwell where its kernels are for that alone.
      tags: ["manual"] where its kernels take minutes to compile; it is then built for each SM by itself.
    """
    rust_test(
        name = name,
        size = size,
        srcs = srcs,
        crate_root = srcs[0],
        data = data,
        env = env,
        tags = ["manual"],
        target_compatible_with = NEEDS_EMULATION + (NEEDS_SHELF[shelf] if shelf else []),
        deps = deps + [
            "//Kernels/emulator/machine",
            "//Kernels/emulator/runtime",
        ],
    )
    sms = [sm for sm in EMULATED_SMS if shelf in (None, SMS[sm].shelf)]
    arch_of = {sm: sm if "manual" in tags else EMULATED_ARCH for sm in sms}
    for sm in sms:
        emulated_run_test(
            name = "{}_{}".format(name, sm.replace("_", "")),
            size = size,
            arch = arch_of[sm],
            program = name,
            sm = sm,
            tags = ["emulated"] + tags,
            target_compatible_with = UNLESS_NO_CUDA,
        )
    emulated_clippy(
        name = name + "_clippy",
        testonly = True,
        arch = arch_of[sms[0]],
        tags = tags,
        target_compatible_with = UNLESS_NO_CUDA,
        targets = [name],
    )
