"""arch_setting: true when the arch flag has this value, or is auto and the machine's GPU has it."""

load("@bazel_skylib//lib:selects.bzl", "selects")

def arch_setting(name, detected):
    """Declares the setting that select() keys name.

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
