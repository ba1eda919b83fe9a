"""cuda_library: CUDA sources compiled by nvcc into a static library that C++ and Rust targets link.

Device code is whole-program (rdc is refused), the host compiler is the C++ toolchain's, and objects are
always position independent.
"""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_cc//cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":archs.bzl", "gencode_flags")

_TOOLCHAIN = Label("//cuda:toolchain_type")
_HEADERS = [".cuh", ".h", ".hpp", ".hh", ".inl", ".inc"]
_SOURCES = [".cu", ".cc", ".cpp"]

# The rule decides architectures, phases and device linking; a target may not.
_RESERVED = [
    "-arch",
    "-code",
    "-gencode",
    "-rdc",
    "--generate-code",
    "--gpu-architecture",
    "--gpu-code",
    "--relocatable-device-code",
]

_MODE_FLAGS = {
    "dbg": ["-O0", "-g"],
    "fastbuild": ["-O0", "-Xcompiler", "-g1"],
    "opt": [
        "-O2",
        "-DNDEBUG",
        "--dopt",
        "on",
        "-Xcompiler",
        "-g0",
        "-Xcompiler",
        "-ffunction-sections",
        "-Xcompiler",
        "-fdata-sections",
    ],
}

_DefinesInfo = provider("Device defines that reach dependent targets.", fields = ["defines"])

def _allowed(options):
    for option in options:
        if [word for word in _RESERVED if option.strip().startswith(word)]:
            fail("'{}' is the rule's to set: use archs, or the arch flag".format(option))
    return options

def _host_flags(cc_toolchain, features):
    """The C++ toolchain's own compile flags, less those that are nvcc's to decide."""
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = cc_common.create_compile_variables(
            cc_toolchain = cc_toolchain,
            feature_configuration = features,
            user_compile_flags = [],
        ),
    )
    return [flag for flag in flags if flag != "-c" and not flag.startswith("-std=")]

def _include_dirs(ctx):
    dirs = []
    for include in ctx.attr.includes:
        parts = [p for p in [ctx.label.workspace_root, ctx.label.package, include] if p and p != "."]
        source = "/".join(parts) or "."
        dirs += [source, ctx.bin_dir.path + "/" + source]
    return dirs

def _nvcc_environment(toolkit, host_compiler):
    folders = [host_compiler.rpartition("/")[0]] + [p.dirname for p in toolkit.programs]
    folders += ["/usr/bin", "/bin"]
    environment = {"PATH": ":".join({folder: None for folder in folders if folder}.keys())}
    if toolkit.cicc:
        environment["CICC_PATH"] = toolkit.cicc.dirname
    if toolkit.libdevice:
        environment["NVVMIR_LIBRARY_DIR"] = toolkit.libdevice.dirname
    return environment

def _is_source(file):
    return bool([ending for ending in _SOURCES if file.basename.endswith(ending)])

def _impl(ctx):
    attr = ctx.attr
    if attr.rdc:
        fail("rdc = True needs the full rules_cuda")
    cuda = ctx.toolchains[_TOOLCHAIN]
    cc_toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    host_compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
    )

    dep_info = cc_common.merge_cc_infos(cc_infos = [d[CcInfo] for d in attr.deps + [attr._runtime]])
    dep_context = dep_info.compilation_context
    own_headers = ctx.files.hdrs + [file for file in ctx.files.srcs if not _is_source(file)]
    headers = depset(own_headers, transitive = [dep_context.headers])
    root = ctx.label.workspace_root or "."
    quote_dirs = [root, ctx.bin_dir.path + ("/" + root if root != "." else "")]
    system_dirs = _include_dirs(ctx)
    defines = depset(
        attr.defines,
        transitive = [dep[_DefinesInfo].defines for dep in attr.deps if _DefinesInfo in dep],
    )

    flags = ctx.actions.args()
    flags.add_all(["-x", "cu", "-ccbin", host_compiler, "-Xcompiler", "-fPIC"])
    flags.add_all(gencode_flags(";".join(attr.archs) or attr._archs[BuildSettingInfo].value))
    flags.add_all(quote_dirs, before_each = "-I")
    flags.add_all(dep_context.quote_includes, before_each = "-I")
    flags.add_all(dep_context.includes, before_each = "-I")
    flags.add_all(system_dirs, before_each = "-isystem")
    flags.add_all(dep_context.system_includes, before_each = "-isystem")
    flags.add_all(getattr(dep_context, "external_includes", depset()), before_each = "-isystem")
    flags.add_all(_MODE_FLAGS[ctx.var["COMPILATION_MODE"]])
    flags.add_all(
        attr.local_defines + attr.host_local_defines + attr.host_defines,
        format_each = "-D%s",
    )
    flags.add_all(defines, format_each = "-D%s")
    flags.add_all(dep_context.defines, format_each = "-D%s")
    flags.add_all(attr._copts[BuildSettingInfo].value + _allowed(attr.copts))
    flags.add_all(_allowed(attr.ptxasopts), before_each = "-Xptxas")
    host_flags = attr._host_copts[BuildSettingInfo].value + attr.host_copts
    flags.add_all(
        host_flags + _host_flags(cc_toolchain, features),
        before_each = "-Xcompiler",
        uniquify = False,
    )
    flags.add_all(["--expt-relaxed-constexpr", "--extended-lambda"])

    objects = []
    for source in [file for file in ctx.files.srcs if _is_source(file)]:
        name = source.short_path.replace("../", "")
        object = ctx.actions.declare_file("_objs/{}/{}.pic.o".format(attr.name, name))
        own = ctx.actions.args()
        own.add_all(["-c", source, "-o", object])
        if cuda.version >= (12, 9):
            own.add(object, format = "--frandom-seed=%s")
        ctx.actions.run(
            executable = cuda.nvcc,
            arguments = [flags, own],
            inputs = depset([source], transitive = [headers, cc_toolchain.all_files, cuda.files]),
            outputs = [object],
            env = _nvcc_environment(cuda.toolkit, host_compiler),
            mnemonic = "CudaCompile",
            progress_message = "Compiling " + source.short_path,
        )
        objects.append(object)

    linking, linked = cc_common.create_linking_context_from_compilation_outputs(
        name = attr.name,
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        # Both lists: with pic_objects alone the archive for a non-PIC link would be empty.
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        user_link_flags = attr.host_linkopts,
        alwayslink = attr.alwayslink,
        linking_contexts = [dep_info.linking_context],
        disallow_dynamic_library = True,
    )
    context = cc_common.create_compilation_context(
        headers = headers,
        quote_includes = depset(quote_dirs),
        system_includes = depset(system_dirs),
        defines = depset(attr.host_defines),
    )
    archive = linked.library_to_link
    archives = [archive.pic_static_library, archive.static_library] if archive else []
    return [
        DefaultInfo(files = depset([file for file in archives if file])),
        cc_common.merge_cc_infos(
            direct_cc_infos = [CcInfo(compilation_context = context, linking_context = linking)],
            cc_infos = [dep_info],
        ),
        _DefinesInfo(defines = defines),
    ]

cuda_library = rule(
    implementation = _impl,
    attrs = {
        "alwayslink": attr.bool(),
        "archs": attr.string_list(),
        "copts": attr.string_list(),
        "defines": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = _HEADERS),
        "host_copts": attr.string_list(),
        "host_defines": attr.string_list(),
        "host_linkopts": attr.string_list(),
        "host_local_defines": attr.string_list(),
        "includes": attr.string_list(),
        "local_defines": attr.string_list(),
        "ptxasopts": attr.string_list(),
        "rdc": attr.bool(),
        "srcs": attr.label_list(allow_files = _SOURCES + _HEADERS),
        "_archs": attr.label(default = "//cuda:archs"),
        "_copts": attr.label(default = "//cuda:copts"),
        "_host_copts": attr.label(default = "//cuda:host_copts"),
        "_runtime": attr.label(default = "//cuda:runtime"),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = use_cc_toolchain() + [_TOOLCHAIN],
)
