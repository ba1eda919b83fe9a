"""What select() keys on: the arch flag and the libraries flag, each with what the machine has where it is auto."""

load("@bazel_skylib//lib:selects.bzl", "selects")
load("@bazel_skylib//rules:common_settings.bzl", "string_flag")
load(":archs.bzl", "ARCH_VALUES", "SHELVES", "SMS", "values_with")

def arch_settings(name, detected):
    """Declares the arch flag, `is_<value>` for each of its values, `none`, and one for each shelf and SM that is built.

    A value holds when the flag has it, or is auto and the machine's GPU has it. `native_<value>`,
    `emulated_<value>` and `rewritten_<value>` also say whether kernels are machine code, PTX for the interpreter,
    or machine code of PTX that was rewritten for another SM.

    Args:
      name: the flag.
      detected: what the machine's GPU has.
    """
    string_flag(
        name = name,
        build_setting_default = "auto",
        values = ["auto"] + ARCH_VALUES.keys(),
    )
    native.config_setting(
        name = "is_auto",
        flag_values = {":" + name: "auto"},
    )
    for value in ARCH_VALUES:
        native.config_setting(
            name = value + "_given",
            flag_values = {":" + name: value},
        )
        selects.config_setting_group(
            name = "is_" + value,
            match_any = [value + "_given"] + (["is_auto"] if detected == value else []),
        )
        for code in ["emulated", "native", "rewritten"]:
            selects.config_setting_group(
                name = "{}_{}".format(code, value),
                match_all = ["is_" + value, "is_" + code],
            )
    native.alias(
        name = "none",
        actual = "is_none",
    )
    for built in SHELVES + SMS.keys():
        selects.config_setting_group(
            name = built,
            match_any = ["is_" + value for value in values_with(built)],
        )
        selects.config_setting_group(
            name = "machine_code_" + built,
            match_all = [built, "is_native"],
        )
        selects.config_setting_group(
            name = "ptx_" + built,
            match_all = [built, "is_emulated"],
        )

def libraries_setting(name, detected):
    """True when CUDA is built, and the libraries flag is lock, or auto where the machine has a GPU.

    `<name>_of_cpu`, for libraries that run on the CPU, is true unless the flag is none.

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
        match_any = SMS.keys(),
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

    # Those that run on the CPU are small, and every build can run them.
    selects.config_setting_group(
        name = name + "_not_none",
        match_any = [name + "_given", name + "_auto"],
    )
    selects.config_setting_group(
        name = name + "_of_cpu",
        match_all = [name + "_not_none", name + "_cpu"],
    )
