"""rules_rust's crate generator, built from its packaged source: no registry has a release of it."""

import json
import os
import shutil

SOURCE = "usr/share/bazel/rules/rust/crate_universe"
# The package that holds it: fetched first, so that cargo compiles while the rest is downloaded.
PACKAGE = "bazel-rules-rust_"


def private_cargo_home(folder):
    """A cargo home that has the user's registry settings and nothing else of theirs."""
    os.makedirs(folder)
    theirs = os.environ.get("CARGO_HOME") or os.path.join(os.path.expanduser("~"), ".cargo")
    for name in ("config", "config.toml"):
        if os.path.exists(os.path.join(theirs, name)):
            os.symlink(os.path.join(theirs, name), os.path.join(folder, name))
    return folder


def build(processes, scratch, target):
    """Builds the generator from the package unpacked in scratch and moves it to target.

    The dev profile: it runs once per change of the crates.
    """
    environment = dict(
        os.environ,
        CARGO_HOME=private_cargo_home(os.path.join(scratch, "cargo-home")),
        CARGO_TARGET_DIR=os.path.join(scratch, "target"),
        CARGO_INCREMENTAL="0",
        CARGO_PROFILE_DEV_DEBUG="0",
        CARGO_PROFILE_DEV_STRIP="symbols",
    )
    # The same bytes wherever it is built: a published tree can be checked by making it again.
    remap = json.dumps([f"--remap-path-prefix={scratch}=/generator"])
    processes.run(
        [
            "cargo",
            "build",
            "--locked",
            "--config",
            f"build.rustflags={remap}",
            "--bin",
            "cargo-bazel",
            "--manifest-path",
            os.path.join(scratch, SOURCE, "Cargo.toml"),
        ],
        "the crate generator did not build",
        env=environment,
    )
    shutil.move(os.path.join(scratch, "target", "debug", "cargo-bazel"), target)


def prime_index(processes, home, scratch):
    """Has cargo open its registry in home, and names the index as the older generator expects it."""
    crate = os.path.join(scratch, "index")
    os.makedirs(os.path.join(crate, "src"))
    with open(os.path.join(crate, "Cargo.toml"), "w", encoding="utf-8") as file:
        file.write(
            '[package]\nname = "index"\nversion = "0.0.0"\nedition = "2021"\n'
            '[dependencies]\ncfg-if = "1"\n'
        )
    with open(os.path.join(crate, "src", "lib.rs"), "w", encoding="utf-8"):
        pass
    processes.run(
        ["cargo", "generate-lockfile", "--manifest-path", os.path.join(crate, "Cargo.toml")],
        "cargo cannot read its registry",
        timeout=60,
        env=dict(os.environ, CARGO_HOME=home, CARGO_NET_RETRY="1", CARGO_HTTP_TIMEOUT="20"),
    )
    indexes = os.path.join(home, "registry", "index")
    for name in os.listdir(indexes) if os.path.isdir(indexes) else []:
        if name.endswith("-1949cf8c6b5b557f"):
            os.symlink(name, os.path.join(indexes, name.rsplit("-", 1)[0] + "-6f17d22bba15001f"))
