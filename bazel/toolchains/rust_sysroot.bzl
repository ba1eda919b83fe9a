"""The Rust toolchain as a repository: compiler, standard library, cargo, clippy and rustfmt."""

# The oldest rustc that compiles this repository (std's file locks).
_FLOOR = (1, 89)

# The official release; licence: MIT OR Apache-2.0. sha256 of the .tar.xz files.
_VERSION = "1.95.0"
_COMPONENTS = {
    "aarch64": {
        "cargo": "7c070aeba9bbf12073646995a03f36c346bb5f541d0078ba6d9dc2a7adaaf6af",
        "clippy": "fb021e0c0fc2238be9266d7614f4a26bc372544c4cba3528d729ab24ad229fc9",
        "rust-std": "3a21b271b1ff973b94d69b25e7a39992f9fbcae1ab6d9475844a23e6ad3908ac",
        "rustc": "0fe3689eeaed603e5ef24572d11597d3edadaefd2cb181674ad621260f2501d2",
        "rustfmt": "64cce868f0f3d29f1524e11e9bab01ac9d538a31665fea1cd6b78af46a1c0a41",
    },
    "x86_64": {
        "cargo": "e74edd2cf7d0f1f1383b4f00eb90c843750bc489e2ccf7214e6476678a907425",
        "clippy": "ac779bc9839dd47180806b133e4e2563c4a34716284cd5b8fede8ef289f452ca",
        "rust-std": "047ea7098803d3500fa1072e9cee5392697e21525559e4458128a2bf874aa382",
        "rustc": "8426a3d170a5879f5682f5fbdd024a1779b3951e7baba685af2d6dc32a6dfc15",
        "rustfmt": "f1b2a7301513ffdd95ebf22ebbdd932e4d17fc806f748d93924740d0297b1396",
    },
}

def _host_cpu(rctx):
    cpu = {"amd64": "x86_64"}.get(rctx.os.arch, rctx.os.arch)
    if cpu not in _COMPONENTS:
        fail("no Rust toolchain is pinned for {} hosts: {} are served".format(cpu, " and ".join(_COMPONENTS)))
    return cpu

def _triple(cpu):
    return cpu + "-unknown-linux-gnu"

def _download(rctx, cpu, components):
    triple = _triple(cpu)
    folders = {"clippy": "clippy-preview", "rust-std": "rust-std-" + triple, "rustfmt": "rustfmt-preview"}
    for component in components:
        name = "{}-{}-{}".format(component, _VERSION, triple)
        folder = folders.get(component, component)
        rctx.report_progress("Downloading Rust {}: {}".format(_VERSION, component))
        rctx.download_and_extract(
            url = "https://static.rust-lang.org/dist/{}.tar.xz".format(name),
            sha256 = _COMPONENTS[cpu][component],
            stripPrefix = "{}/{}".format(name, folder),
        )

def _machine_sysroot(rctx):
    rustc = rctx.which("rustc")
    if not rustc:
        fail("no rustc on PATH: install Rust {}.{} or newer".format(*_FLOOR))
    version = rctx.execute([rustc, "--version"]).stdout.split(" ")
    if len(version) < 2:
        fail("{} --version printed no version: is the Rust installation whole?".format(rustc))
    if tuple([int(part) for part in version[1].split("-")[0].split(".")[:2]]) < _FLOOR:
        fail("rustc {} is too old: install Rust {}.{} or newer".format(version[1], *_FLOOR))
    return rctx.execute([rustc, "--print", "sysroot"]).stdout.strip()

def _from_machine(rctx):
    """Whether the machine's Rust is wanted, else the pinned one is."""
    source = rctx.os.environ.get("HEAD_TO_HEAD_RUST", "pinned")
    if source not in ["machine", "pinned"]:
        fail("HEAD_TO_HEAD_RUST is '{}': use 'pinned' or 'machine'".format(source))
    return source == "machine"

def _sysroot_impl(rctx):
    cpu = _host_cpu(rctx)
    if _from_machine(rctx):
        sysroot = _machine_sysroot(rctx)
        for tool in ["cargo", "rustdoc", "clippy-driver", "cargo-clippy", "rustfmt"]:
            if not rctx.path(sysroot + "/bin/" + tool).exists:
                fail("the Rust installation at {} has no {}: add that component".format(sysroot, tool))
        rctx.symlink(sysroot + "/bin", "bin")
        rctx.symlink(sysroot + "/lib", "lib")
    else:
        _download(rctx, cpu, _COMPONENTS[cpu])
    rctx.file("version", rctx.execute([rctx.path("bin/rustc"), "--version"]).stdout)
    rctx.template("BUILD.bazel", rctx.attr._build_file, {"{cpu}": cpu, "{triple}": _triple(cpu)})

rust_sysroot = repository_rule(
    doc = """Lays out a Rust sysroot: the official pinned release, or with HEAD_TO_HEAD_RUST=machine the
    one of the rustc on PATH, which must meet a version floor.""",
    implementation = _sysroot_impl,
    attrs = {"_build_file": attr.label(default = ":rust_sysroot.BUILD")},
    environ = ["HEAD_TO_HEAD_RUST", "PATH"],
)

def _std_impl(rctx):
    triple = _triple(rctx.attr.cpu)
    if _from_machine(rctx):
        folder = "lib/rustlib/" + triple
        std = rctx.path("{}/{}".format(_machine_sysroot(rctx), folder))
        if not std.exists:
            fail("the machine's Rust has no standard library for {0}: run `rustup target add {0}`".format(triple))
        rctx.symlink(std, folder)
    else:
        _download(rctx, rctx.attr.cpu, ["rust-std"])
    rctx.template("BUILD.bazel", rctx.attr._build_file, {
        "{exec_triple}": _triple(_host_cpu(rctx)),
        "{triple}": triple,
    })

rust_std = repository_rule(
    doc = "The standard library for another CPU, from where rust_sysroot's is, as a toolchain with its compiler.",
    implementation = _std_impl,
    attrs = {
        "cpu": attr.string(mandatory = True, values = _COMPONENTS.keys()),
        "_build_file": attr.label(default = ":rust_std.BUILD"),
    },
    environ = ["HEAD_TO_HEAD_RUST", "PATH"],
)
