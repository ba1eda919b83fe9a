"""local_gpu: which of the architectures that are compiled here the machine's GPU has, for arch=auto."""

load("//bazel/private:archs.bzl", "ARCH_VALUES", "SMS")

_SUPPORTED = {sm.capability: name for name, sm in SMS.items()}

def _impl(rctx):
    smi = rctx.which("nvidia-smi")
    capabilities = []
    if smi:
        result = rctx.execute([smi, "--query-gpu=compute_cap", "--format=csv,noheader"], timeout = 60)
        if result.return_code == 0:
            capabilities = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    archs = {_SUPPORTED[capability]: None for capability in capabilities if capability in _SUPPORTED}.keys()
    if capabilities and not archs:
        # buildifier: disable=print
        print("compute capability {}: kernels here are for {}; building for the CPU".format(
            capabilities[0],
            " and ".join(_SUPPORTED),
        ))

    # The value of the flag that builds these and no others.
    matching = [value for value, sms in ARCH_VALUES.items() if sorted(sms) == sorted(archs)]
    if not matching:
        fail("no value of --//bazel/cuda:arch builds for {}; give one".format(" and ".join(archs)))
    arch = matching[0]
    rctx.file("BUILD.bazel", "")
    rctx.file("arch.bzl", "ARCH = \"{}\"\n".format(arch))

local_gpu = repository_rule(
    implementation = _impl,
    configure = True,
    environ = ["PATH"],
)
