"""What BUILD targets take from the arch flag."""

load(":archs.bzl", "ARCH_VALUES", "REWRITTEN_SM", "SHELVES", "SMS")

def per_arch(cuda, cpu):
    """A select between builds with CUDA and those without.

    Args:
      cuda: the value where some SM is built for.
      cpu: the value where the arch is none.
    Returns:
      The select.
    """
    return select({
        "//bazel/cuda:none": cpu,
        "//conditions:default": cuda,
    })

def per_device(gpu, emulated):
    """A select by what runs the kernels; nothing where there are none.

    Args:
      gpu: the list where they are machine code.
      emulated: the list where they are PTX for the interpreter.
    Returns:
      The select.
    """
    return select({
        "//bazel/cuda:none": [],
        "//bazel/cuda:is_emulated": emulated,
        "//conditions:default": gpu,
    })

def on_shelf(**lists):
    """A list of what belongs to the shelves of kernels that are being built; empty where the arch is none.

    Args:
      **lists: by shelf: hopper (H100, H200), blackwell (B200, B300); or by SM, for what only that one has.
    Returns:
      The selects, added up.
    """
    return _where_built("shelf or SM", SHELVES + SMS.keys(), lists, "")

def on_sm(**lists):
    """The same by SM: for machine code that was compiled elsewhere, which runs on no other and is not interpreted.

    Args:
      **lists: by SM, as nvcc names it.
    Returns:
      The selects, added up.
    """
    return _where_built("SM", SMS.keys(), lists, "machine_code_")

def on_ptx(**lists):
    """The same for PTX that was compiled elsewhere, which only the interpreter runs.

    Args:
      **lists: by SM, as nvcc names it.
    Returns:
      The selects, added up.
    """
    return _where_built("SM", SMS.keys(), lists, "ptx_")

def _where_built(kind, known, lists, prefix):
    unknown = [name for name in lists if name not in known]
    if unknown:
        fail("no {} is called {}; there are {}".format(kind, unknown[0], known))
    total = []
    for name, part in lists.items():
        total = total + select({
            "//bazel/cuda:" + prefix + name: part,
            "//conditions:default": [],
        })
    return total

# A target with this attribute is skipped by wildcard builds where there is no CUDA.
NEEDS_CUDA = select({
    "//bazel/cuda:none": ["@platforms//:incompatible"],
    "//conditions:default": [],
})

# And with this, where the shelf or SM is not built.
NEEDS_SHELF = {
    shelf: select({
        "//bazel/cuda:" + shelf: [],
        "//conditions:default": ["@platforms//:incompatible"],
    })
    for shelf in SHELVES + SMS.keys()
}

# And with this, where no machine code of the shelf is built.
NEEDS_MACHINE_CODE = {
    shelf: select({
        "//bazel/cuda:machine_code_" + sm: []
        for sm, facts in SMS.items()
        if facts.shelf == shelf
    } | {"//conditions:default": ["@platforms//:incompatible"]})
    for shelf in SHELVES
}

def _nvcc_targets(shelf):
    choices = {}
    for value, sms in ARCH_VALUES.items():
        wanted = [sm for sm in sms if shelf in (None, sm, SMS[sm].shelf)]
        numbers = [sm.removeprefix("sm_") for sm in wanted]
        choices["//bazel/cuda:native_" + value] = ["compute_{0}:sm_{0}".format(number) for number in numbers]
        choices["//bazel/cuda:emulated_" + value] = ["compute_{0}:compute_{0}".format(number) for number in numbers]
        choices["//bazel/cuda:rewritten_" + value] = choices["//bazel/cuda:native_" + value]
    return select(choices)

# What nvcc compiles for: machine code only, no PTX that a driver would compile at start; or PTX only, for the
# interpreter.
NVCC_TARGETS = _nvcc_targets(None)

# The same for code of one shelf or SM.
NVCC_TARGETS_OF_SHELF = {shelf: _nvcc_targets(shelf) for shelf in SHELVES + SMS.keys()}

# The interpreter reads PTX as it is.
EMULATION_COPTS = select({
    "//bazel/cuda:is_emulated": ["--no-compress"],
    "//conditions:default": [],
})
NEEDS_EMULATION = select({
    "//bazel/cuda:is_emulated": [],
    "//conditions:default": ["@platforms//:incompatible"],
})

# What Kernels/device/built.h reads: the shelves that are built, and whether another SM emulates them.
BUILT_DEFINES = on_shelf(**{shelf: ["H2H_BUILT_" + shelf.upper()] for shelf in SHELVES}) + select({
    "//bazel/cuda:is_rewritten": ["H2H_REWRITTEN"],
    "//conditions:default": [],
})

# What instantiations of others' templates read: whether they are to be left out.
LEFT_OUT_DEFINES = select({
    "//bazel/cuda:is_one_instance": ["H2H_LEFT_OUT"],
    "//conditions:default": [],
})

# What Kernels/device/machine.cu reads: the SMs that are built.
BUILT_SM_DEFINES = on_shelf(**{sm: ["H2H_BUILT_" + sm.upper()] for sm in SMS})

# The feature of crates that care whether they run on a card that emulates another.
REWRITTEN_FEATURES = select({
    "//bazel/cuda:is_rewritten": ["rewritten"],
    "//conditions:default": [],
})

def _arch_words():
    choices = {}
    for value, sms in ARCH_VALUES.items():
        choices["//bazel/cuda:native_" + value] = sms
        choices["//bazel/cuda:emulated_" + value] = sms
        choices["//bazel/cuda:rewritten_" + value] = [REWRITTEN_SM.get(sm, sm) for sm in sms]
    return select(choices)

# The SMs of a binary's machine code as words, for who looks into it.
ARCH_WORDS = _arch_words()

def _arch_env():
    choices = {}
    for value, sms in ARCH_VALUES.items():
        virtual = [sm.replace("sm_", "compute_") for sm in sms]
        choices["//bazel/cuda:native_" + value] = {"HEAD_TO_HEAD_ARCH": "+".join(sms) or "none"}
        choices["//bazel/cuda:emulated_" + value] = {"HEAD_TO_HEAD_ARCH": "+".join(virtual) or "none"}
        on = ["{}_on_{}".format(sm, REWRITTEN_SM[sm]) if sm in REWRITTEN_SM else sm for sm in sms]
        choices["//bazel/cuda:rewritten_" + value] = {"HEAD_TO_HEAD_ARCH": "+".join(on) or "none"}
    return select(choices)

# And as a word that env!() sees, for what a binary says of itself; PTX is for virtual architectures.
ARCH_ENV = _arch_env()
