"""cross_cc: the machine's GNU cross compiler for another CPU as a C++ toolchain."""

load("@bazel_skylib//lib:paths.bzl", "paths")

_PROGRAMS = ["ar", "cpp", "gcc", "ld", "nm", "objcopy", "objdump", "strip"]

def _include_dirs(rctx, compiler):
    """The folders that the compiler searches by itself, as it prints them."""
    said = rctx.execute([compiler, "-E", "-x", "c++", "/dev/null", "-v"]).stderr
    listed = said.partition("#include <...> search starts here:")[2].partition("End of search list.")[0]
    return [paths.normalize(line.strip()) for line in listed.splitlines() if line.strip()]

def _impl(rctx):
    prefix = rctx.attr.cpu + "-linux-gnu-"
    compiler = rctx.which(prefix + "g++")
    if not compiler:
        fail("no {0}g++ on PATH, which compiles for {1} hosts: install g++-{1}-linux-gnu".format(
            prefix,
            rctx.attr.cpu.replace("_", "-"),
        ))
    programs = {name: str(rctx.which(prefix + name) or "/bin/false") for name in _PROGRAMS}
    rctx.template("BUILD.bazel", rctx.attr._build_file, {
        "{config}": str(Label("//bazel/toolchains:cross_cc_config.bzl")),
        "{cpu}": rctx.attr.cpu,
        "{include_dirs}": json.encode(_include_dirs(rctx, compiler)),
        # The C++ driver for C++: nvcc, too, asks what it calls for C++ headers.
        "{programs}": json.encode(programs | {"gcc": str(compiler)}),
    })

cross_cc = repository_rule(
    doc = "A C++ toolchain, :cc, of the <cpu>-linux-gnu-g++ on PATH, which must be there once it is needed.",
    implementation = _impl,
    attrs = {
        "cpu": attr.string(mandatory = True),
        "_build_file": attr.label(default = ":cross_cc.BUILD"),
    },
    configure = True,
    environ = ["PATH"],
)
