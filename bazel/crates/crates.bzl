"""crates: every crate of a Cargo.lock as Bazel targets, by the pinned cargo alone.

cargo fetches what the lock names, checks it against the lock's hashes and says who needs what with which features;
this rule writes that down as BUILD files. One road for every machine: cargo goes through whatever registry settings
the machine has, and no second program has to be downloaded or built to read cargo's answer.
"""

# What a crate's globs leave out: Bazel cannot name files with spaces.
_UNNAMEABLE = "**/* *"

def _cargo(rctx, arguments):
    """Runs cargo in a home of its own, under the machine's registry settings; returns what it prints."""
    cargo = rctx.path(rctx.attr._cargo)
    result = rctx.execute(
        [cargo] + arguments,
        environment = {
            "CARGO_HOME": str(rctx.path("home")),
            "CARGO_TERM_PROGRESS_WHEN": "never",
            "RUSTC": str(cargo.dirname.get_child("rustc")),
            "RUSTUP_TOOLCHAIN": "",
        },
        timeout = 1800,
    )
    if result.return_code:
        fail(("cargo {} failed; where crates cannot be reached directly, name a mirror or proxy in cargo's own " +
              "config: {}").format(arguments[0], result.stderr[-1500:]))
    return result.stdout

def _must(rctx, command):
    result = rctx.execute(command)
    if result.return_code:
        fail("{} failed: {}".format(command[0], result.stderr[-800:]))

def _link_settings(rctx):
    """The machine's registry settings, seen from the private home."""
    rctx.file("home/.keep", "")
    environment = rctx.os.environ
    home = environment.get("CARGO_HOME") or (environment["HOME"] + "/.cargo" if "HOME" in environment else "")
    for name in ["config.toml", "config", "credentials.toml"]:
        if home and rctx.path(home + "/" + name).exists:
            rctx.symlink(home + "/" + name, "home/" + name)

def _only(node, kind):
    """The dependencies of this kind (None: ordinary, "build": for the build script)."""
    return [dep for dep in node["deps"] if kind in [each["kind"] for each in dep["dep_kinds"]]]

def _library(package):
    """The target that others link: (target, whether it is a procedural macro); None where there is only a program."""
    for target in package["targets"]:
        for kind in target["kind"]:
            if kind in ["lib", "rlib", "proc-macro"]:
                return struct(name = target["name"], root = target["src_path"], macro = kind == "proc-macro")
    return None

def _label(package):
    return "//{name}-{version}:{name}".format(**package)

_FACTS = ["features", "deps", "macros", "build_deps", "build_macros", "links", "aliases"]

def _facts(node, packages, used):
    """What one platform's metadata says of a crate's needs, as lists of strings."""
    facts = {key: [] for key in _FACTS}
    facts["features"] = used[_label(packages[node["id"]])]
    for prefix, kind in [("", None), ("build_", "build")]:
        for dep in _only(node, kind):
            needed = packages[dep["pkg"]]
            library = _library(needed)
            if not library or _label(needed) not in used:
                continue
            facts[prefix + ("macros" if library.macro else "deps")].append(_label(needed))
            if needed["links"] and not kind:
                facts["links"].append(_label(needed))
            if dep["name"] != library.name.replace("-", "_"):
                facts["aliases"].append(_label(needed) + "=" + dep["name"])
    return facts

def _used(rctx, triple):
    """Label -> features of the crates that are built for a platform.

    cargo's metadata lists more than that: a feature such as "quinn?/ring" brings quinn into it though nothing
    asks for quinn. The tree is what cargo would build; a crate stands in it once per set of features.
    """
    tree = _cargo(rctx, [
        "tree",
        "--locked",
        "--offline",
        "--target=" + triple,
        "--edges=normal,build",
        "--prefix=none",
        "--format={p}|{f}",
    ])
    used = {}
    for line in tree.splitlines():
        crate, _, features = line.removesuffix(" (*)").partition("|")
        name, version = crate.split(" ")[:2]
        known = used.setdefault(_label({"name": name, "version": version.removeprefix("v")}), {})
        known.update([(feature, True) for feature in features.split(",") if feature])
    return {label: sorted(features) for label, features in used.items()}

def _expression(facts_by_cpu, key):
    """A list in Starlark: what all platforms share, and a select over the rest."""
    lists = {cpu: {value: True for value in facts[key]} for cpu, facts in facts_by_cpu.items()}
    everywhere = [value for value in sorted(lists.values()[0]) if all([value in values for values in lists.values()])]
    text = json.encode(everywhere)
    special = {cpu: [value for value in sorted(values) if value not in everywhere] for cpu, values in lists.items()}
    if any(special.values()):
        cases = {"@platforms//cpu:" + cpu: values for cpu, values in special.items()}
        cases["//conditions:default"] = []
        text += " + select({})".format(json.encode(cases))
    return text

_HEADER = """load("@rules_rust//cargo:defs.bzl", "cargo_build_script")
load("@rules_rust//rust:defs.bzl", "rust_library", "rust_proc_macro")

package(default_visibility = ["//visibility:public"])

_FILES = glob(["**"], exclude = ["{unnameable}", "BUILD.bazel"], allow_empty = True)
_SOURCES = glob(["**/*.rs"], exclude = ["{unnameable}"], allow_empty = True)
_TAGS = ["manual", "noclippy", "norustfmt"]

filegroup(
    name = "licences",
    srcs = glob(
        ["COPYING*", "COPYRIGHT*", "LICENCE*", "LICENSE*", "LICENSES/*", "NOTICE*", "UNLICENSE*", "license*"],
        exclude = ["{unnameable}"],
        allow_empty = True,
    ),
)
"""

_LIBRARY = """
{rule}(
    name = "{name}",
    srcs = _SOURCES,
    aliases = {aliases},
    compile_data = _FILES,
    crate_features = {features},
    crate_name = "{crate_name}",
    crate_root = "{crate_root}",
    deps = {deps} + {own_deps},
    edition = "{edition}",
    proc_macro_deps = {macros},
    rustc_flags = {flags},
    tags = _TAGS,
    version = "{version}",
)
"""

_BUILD_SCRIPT = """
cargo_build_script(
    name = "build_script",
    srcs = _SOURCES,
    aliases = {aliases},
    compile_data = _FILES,
    crate_features = {features},
    crate_name = "build_script_build",
    crate_root = "{crate_root}",
    data = _FILES,
    deps = {build_deps},
    edition = "{edition}",
    link_deps = {links},
    {links_line}
    pkg_name = "{name}",
    proc_macro_deps = {build_macros},
    rustc_flags = ["--cap-lints=allow"],
    tags = _TAGS,
    version = "{version}",
)
"""

def _write_crate(rctx, package, facts_by_cpu, addition):
    """Writes the BUILD file of one crate beside its sources."""
    folder = "{name}-{version}".format(**package)
    root = package["manifest_path"].removesuffix("Cargo.toml")
    library = _library(package)
    scripts = [target for target in package["targets"] if "custom-build" in target["kind"]]
    expressions = {key: _expression(facts_by_cpu, key) for key in facts_by_cpu.values()[0]}
    renamed = {alias: True for facts in facts_by_cpu.values() for alias in facts["aliases"]}
    expressions["aliases"] = json.encode({alias.split("=")[0]: alias.split("=")[1] for alias in renamed})
    common = {"edition": package["edition"], "name": package["name"], "version": package["version"]}

    text = _HEADER.format(unnameable = _UNNAMEABLE)
    own_deps = []
    if addition:
        text += "\n" + rctx.read(addition)
        own_deps.append(":{}_cc".format(package["name"]))
    elif scripts:
        text += _BUILD_SCRIPT.format(
            crate_root = scripts[0]["src_path"].removeprefix(root),
            links_line = 'links = "{}",'.format(package["links"]) if package["links"] else "",
            **(common | expressions)
        )
        own_deps.append(":build_script")
    quick = package["name"] in rctx.attr.unoptimized
    text += _LIBRARY.format(
        crate_name = library.name.replace("-", "_"),
        crate_root = library.root.removeprefix(root),
        flags = json.encode(["--cap-lints=allow"] + (["-Copt-level=0"] if quick else [])),
        own_deps = json.encode(own_deps),
        rule = "rust_proc_macro" if library.macro else "rust_library",
        **(common | expressions)
    )
    rctx.file(folder + "/BUILD.bazel", text)

def _impl(rctx):
    rctx.symlink(rctx.attr.manifest, "Cargo.toml")
    rctx.symlink(rctx.attr.lockfile, "Cargo.lock")
    rctx.file("lib.rs", "")
    _link_settings(rctx)

    # Everything of the lock at once: cargo downloads in parallel, and only what these platforms need.
    rctx.report_progress("Fetching crates with cargo")
    targets = [option for triple in rctx.attr.triples.values() for option in ["--target", triple]]
    _cargo(rctx, ["fetch", "--locked"] + targets)
    packages, facts, roots = {}, {}, {}
    for cpu, triple in rctx.attr.triples.items():
        metadata = json.decode(_cargo(rctx, [
            "metadata",
            "--format-version=1",
            "--locked",
            "--offline",
            "--filter-platform=" + triple,
        ]))
        packages |= {package["id"]: package for package in metadata["packages"]}
        used = _used(rctx, triple)
        for node in metadata["resolve"]["nodes"]:
            package = packages[node["id"]]
            if node["id"] == metadata["resolve"]["root"]:
                roots |= {packages[dep["pkg"]]["name"]: _label(packages[dep["pkg"]]) for dep in _only(node, None)}
            elif _label(package) in used and _library(package):
                facts.setdefault(node["id"], {})[cpu] = _facts(node, packages, used)

    additions = {name: file for file, name in rctx.attr.additions.items()}
    empty = {key: [] for key in _FACTS}
    for identity, facts_by_cpu in facts.items():
        package = packages[identity]
        folder = package["manifest_path"].removesuffix("/Cargo.toml")
        _must(rctx, ["mv", folder, "{name}-{version}".format(**package)])
        by_cpu = {cpu: facts_by_cpu.get(cpu, empty) for cpu in rctx.attr.triples}
        _write_crate(rctx, package, by_cpu, additions.get(package["name"]))

    # BUILD files that crates bring along would cut them into packages of their own.
    foreign = ["(", "-name", "BUILD", "-o", "-name", "BUILD.bazel", ")"]
    _must(rctx, ["find", ".", "-mindepth", "3"] + foreign + ["-type", "f", "-delete"])
    rctx.delete("home")
    names = sorted(roots)
    aliases = [(name, roots[name]) for name in names]
    aliases += [(name + "_cc", roots[name].split(":")[0] + ":" + name + "_cc") for name in sorted(additions)]
    licences = ["//{name}-{version}:licences".format(**packages[identity]) for identity in sorted(facts)]
    loads = 'load("@@//bazel/private:shared_crate.bzl", "shared_crate")\n\n'
    rctx.file("BUILD.bazel", loads + 'package(default_visibility = ["//visibility:public"])\n' + "".join([
        '\nshared_crate(\n    name = "{}",\n    tags = ["manual"],\n    deps = ["{}"],\n)\n'.format(name, label)
        for name, label in aliases
    ]) + '\nfilegroup(\n    name = "licences",\n    srcs = {},\n)\n'.format(json.encode(licences)))

crates = repository_rule(
    doc = "The crates of a Cargo.lock; those that the manifest names are aliases at the root, as @crates//:serde.",
    implementation = _impl,
    attrs = {
        "additions": attr.label_keyed_string_dict(
            doc = """Files that take the place of a crate's build script: each is added to the BUILD file of the
            crate that it maps to, and defines <crate>_cc, which the crate links.""",
        ),
        "lockfile": attr.label(mandatory = True),
        "manifest": attr.label(mandatory = True),
        "triples": attr.string_dict(
            doc = "CPU, as @platforms//cpu names it, to Rust's target triple",
            mandatory = True,
        ),
        "unoptimized": attr.string_list(doc = "crates that take longer to optimise than they ever run"),
        "_cargo": attr.label(default = "@rust_sysroot//:bin/cargo"),
    },
)
