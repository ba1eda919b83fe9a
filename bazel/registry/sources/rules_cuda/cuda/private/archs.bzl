"""Architecture lists ("sm_90a", "compute_90a:sm_90a,compute_90a;...") as nvcc's -gencode flags."""

def _number(arch):
    digits = arch.split("_", 1)[1].rstrip("af")
    return int(digits)

def gencode_flags(specification):
    """Turns a ';'-separated list of architectures into -gencode flags.

    Args:
      specification: each element "[virtual:]real[,real...]"; without a virtual architecture the lowest
        of the real ones gives it.
    Returns:
      The flags, in the order given.
    """
    flags = []
    for element in [e.strip() for e in specification.split(";") if e.strip()]:
        virtual, colon, reals = element.rpartition(":")
        reals = [real.strip() for real in reals.split(",")]
        for arch in reals + ([virtual] if colon else []):
            if not (arch.startswith("sm_") or arch.startswith("compute_")):
                fail("'{}': '{}' is neither sm_* nor compute_*".format(element, arch))
        if not colon:
            virtual = "compute_" + sorted(reals, key = _number)[0].split("_", 1)[1]
        for real in reals:
            flags += ["-gencode", "arch={},code={}".format(virtual, real)]
    return flags
