"""What select() keys on: the arch flag and the libraries flag, each with what the machine has where it is auto."""

load("@bazel_skylib//lib:selects.bzl", "selects")

def arch_setting(name, detected):
    """True when the arch flag has this value, or is auto and the machine's GPU has it.

    Args:
      name: one of the flag's values.
      detected: what the machine's GPU has.
    """
    native.config_setting(
        name = name + "_given",
        flag_values = {":arch": name},
    )
    native.config_setting(
        name = name + "_auto",
        flag_values = {":arch": "auto"},
    )
    selects.config_setting_group(
        name = name,
        match_any = [name + "_given"] + ([name + "_auto"] if detected == name else []),
    )

def libraries_setting(name, detected):
    """True when CUDA is built, and the libraries flag is lock, or auto where the machine has a GPU.

    Args:
      name: the setting.
      detected: what the machine's GPU has.
    """
    native.config_setting(
        name = name + "_given",
        flag_values = {":libraries": "lock"},
    )
    native.config_setting(
        name = name + "_auto",
        flag_values = {":libraries": "auto"},
    )
    selects.config_setting_group(
        name = name + "_wanted",
        match_any = [name + "_given"] + ([name + "_auto"] if detected != "none" else []),
    )
    selects.config_setting_group(
        name = name + "_cuda",
        match_any = [":sm_90a", ":sm_100a", ":both"],
    )

    # The lock has them for this CPU alone; elsewhere a variable names the machine's own.
    native.config_setting(
        name = name + "_cpu",
        constraint_values = ["@platforms//cpu:x86_64"],
    )
    selects.config_setting_group(
        name = name,
        match_all = [name + "_wanted", name + "_cuda", name + "_cpu"],
    )
