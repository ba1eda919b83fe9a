"""local_gpu: which of the architectures that are compiled here the machine's GPU has, for arch=auto."""

_SUPPORTED = {
    "9.0": "sm_90a",
    "10.0": "sm_100a",
}

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
        print("compute capability {}: kernels here are for 9.0 and 10.0; building for the CPU".format(capabilities[0]))
    arch = "both" if len(archs) > 1 else archs[0] if archs else "none"
    rctx.file("BUILD.bazel", "")
    rctx.file("arch.bzl", "ARCH = \"{}\"\n".format(arch))

local_gpu = repository_rule(
    implementation = _impl,
    configure = True,
    environ = ["PATH"],
)
