"""The nvcc toolchain: which files it is made of and which version it has."""

CudaToolkitInfo = provider(
    "The programs of a CUDA toolkit that nvcc calls.",
    fields = ["cicc", "libdevice", "programs"],
)
_NvccInfo = provider("A toolkit and its nvcc's version.", fields = ["toolkit", "version"])

def _toolkit_impl(ctx):
    programs = [ctx.file.cicc, ctx.file.ptxas, ctx.file.fatbinary, ctx.file.bin2c, ctx.file.nvlink]
    return CudaToolkitInfo(
        cicc = ctx.file.cicc,
        libdevice = ctx.file.libdevice,
        programs = [program for program in programs if program],
    )

cuda_toolkit_info = rule(
    implementation = _toolkit_impl,
    attrs = {
        name: attr.label(allow_single_file = True)
        for name in ["bin2c", "cicc", "fatbinary", "libdevice", "link_stub", "nvlink", "ptxas"]
    } | {
        "path": attr.string(mandatory = True),
        "version": attr.string(mandatory = True),
    },
)

def _config_impl(ctx):
    return _NvccInfo(
        toolkit = ctx.attr.cuda_toolkit[CudaToolkitInfo],
        version = (ctx.attr.nvcc_version_major, ctx.attr.nvcc_version_minor),
    )

cuda_toolchain_config_nvcc = rule(
    implementation = _config_impl,
    attrs = {
        "cuda_toolkit": attr.label(mandatory = True, providers = [CudaToolkitInfo]),
        "nvcc_version_major": attr.int(),
        "nvcc_version_minor": attr.int(),
        "toolchain_identifier": attr.string(mandatory = True, values = ["nvcc"]),
    },
)

def _toolchain_impl(ctx):
    config = ctx.attr.toolchain_config[_NvccInfo]
    return platform_common.ToolchainInfo(
        nvcc = ctx.executable.compiler_label,
        files = depset(transitive = [target.files for target in ctx.attr.compiler_files]),
        toolkit = config.toolkit,
        version = config.version,
    )

cuda_toolchain = rule(
    implementation = _toolchain_impl,
    attrs = {
        "compiler_files": attr.label_list(allow_files = True, cfg = "exec"),
        "compiler_label": attr.label(
            allow_single_file = True,
            cfg = "exec",
            executable = True,
            mandatory = True,
        ),
        "toolchain_config": attr.label(mandatory = True, providers = [_NvccInfo]),
    },
)
