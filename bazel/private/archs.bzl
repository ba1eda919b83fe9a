"""The SMs that kernels are compiled for: the only list of them."""

# Keyed by nvcc's name: the compute capability that nvidia-smi reports, and the shelf, the folder of kernels for that
# generation, that it runs besides the portable one. sm_120a (RTX 5090, RTX PRO 6000) has neither wgmma nor tcgen05.
SMS = {
    "sm_100a": struct(capability = "10.0", shelf = "blackwell"),
    "sm_103a": struct(capability = "10.3", shelf = "blackwell"),
    "sm_120a": struct(capability = "12.0", shelf = None),
    "sm_90a": struct(capability = "9.0", shelf = "hopper"),
}

# The SM that the rewriter makes code for, of the one that the code was written for.
REWRITTEN_SM = {"sm_100a": "sm_90a"}

SHELVES = {sm.shelf: None for sm in SMS.values() if sm.shelf}.keys()

# Values of the arch flag besides auto, and the SMs that each builds.
ARCH_VALUES = {"none": []} | {sm: [sm] for sm in SMS} | {"both": ["sm_90a", "sm_100a"]}

def values_with(built):
    """Returns the values of the arch flag that build a shelf or an SM.

    Args:
      built: its name.
    Returns:
      The values.
    """
    return [value for value, sms in ARCH_VALUES.items() if [sm for sm in sms if built in (sm, SMS[sm].shelf)]]
