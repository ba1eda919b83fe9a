"""The Rust toolchain as a repository: compiler, standard library, cargo, clippy and rustfmt."""

_TRIPLE = "x86_64-unknown-linux-gnu"

# The oldest rustc that compiles this repository (std's file locks).
_FLOOR = (1, 89)

# The official release; licence: MIT OR Apache-2.0. sha256 of the .tar.xz files.
_VERSION = "1.95.0"
_COMPONENTS = {
    "cargo": "e74edd2cf7d0f1f1383b4f00eb90c843750bc489e2ccf7214e6476678a907425",
    "clippy": "ac779bc9839dd47180806b133e4e2563c4a34716284cd5b8fede8ef289f452ca",
    "rust-std": "047ea7098803d3500fa1072e9cee5392697e21525559e4458128a2bf874aa382",
    "rustc": "8426a3d170a5879f5682f5fbdd024a1779b3951e7baba685af2d6dc32a6dfc15",
    "rustfmt": "f1b2a7301513ffdd95ebf22ebbdd932e4d17fc806f748d93924740d0297b1396",
}

def _download(rctx):
    folders = {"clippy": "clippy-preview", "rust-std": "rust-std-" + _TRIPLE, "rustfmt": "rustfmt-preview"}
    for component, sha256 in _COMPONENTS.items():
        name = "{}-{}-{}".format(component, _VERSION, _TRIPLE)
        folder = folders.get(component, component)
        rctx.report_progress("Downloading Rust {}: {}".format(_VERSION, component))
        rctx.download_and_extract(
            url = "https://static.rust-lang.org/dist/{}.tar.xz".format(name),
            sha256 = sha256,
            stripPrefix = "{}/{}".format(name, folder),
        )

def _link_machine(rctx):
    rustc = rctx.which("rustc")
    if not rustc:
        fail("no rustc on PATH: install Rust {}.{} or newer".format(*_FLOOR))
    version = rctx.execute([rustc, "--version"]).stdout.split(" ")
    if len(version) < 2:
        fail("{} --version printed no version: is the Rust installation whole?".format(rustc))
    if tuple([int(part) for part in version[1].split("-")[0].split(".")[:2]]) < _FLOOR:
        fail("rustc {} is too old: install Rust {}.{} or newer".format(version[1], *_FLOOR))
    sysroot = rctx.execute([rustc, "--print", "sysroot"]).stdout.strip()
    for tool in ["cargo", "rustdoc", "clippy-driver", "cargo-clippy", "rustfmt"]:
        if not rctx.path(sysroot + "/bin/" + tool).exists:
            fail("the Rust installation at {} has no {}: add that component".format(sysroot, tool))
    rctx.symlink(sysroot + "/bin", "bin")
    rctx.symlink(sysroot + "/lib", "lib")

def _impl(rctx):
    source = rctx.os.environ.get("HEAD_TO_HEAD_RUST", "pinned")
    if source == "machine":
        _link_machine(rctx)
    elif source == "pinned":
        _download(rctx)
    else:
        fail("HEAD_TO_HEAD_RUST is '{}': use 'pinned' or 'machine'".format(source))
    rctx.file("version", rctx.execute([rctx.path("bin/rustc"), "--version"]).stdout)
    rctx.template("BUILD.bazel", rctx.attr._build_file, substitutions = {"{triple}": _TRIPLE})

rust_sysroot = repository_rule(
    doc = """Lays out a Rust sysroot: the official pinned release, or with HEAD_TO_HEAD_RUST=machine the
    one of the rustc on PATH, which must meet a version floor.""",
    implementation = _impl,
    attrs = {"_build_file": attr.label(default = ":rust_sysroot.BUILD")},
    environ = ["HEAD_TO_HEAD_RUST", "PATH"],
)
