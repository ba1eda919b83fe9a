#!/usr/bin/env bash
# The README's commands in a fresh container: only the README's packages, an ordinary user, a folder with a blank in
# its name; then once more after restarting Bazel without a network. Needs docker.
#   usage: quickstart.sh IMAGE HOW     e.g. quickstart.sh debian:13 packaged
# HOW  official   ./bazelw with the official Bazel and the central registry
#      packaged   ./bazelw with Debian packages, as on a network that only reaches package registries
#      bazelisk   this machine's bazelisk instead of ./bazelw
set -euo pipefail

die() { echo "quickstart: $1" >&2; exit 1; }
[ $# -eq 2 ] || die "usage: quickstart.sh IMAGE official|packaged|bazelisk"
image=$1 how=$2
tree=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
command -v docker > /dev/null || die "no docker on PATH"

# The packages named in the README, and git for the clone.
case $image in
  debian:* | ubuntu:*)
    install="apt-get update && apt-get install --yes --no-install-recommends"
    packages="g++ python3 python3-pip git ca-certificates" ;;
  fedora:*) install="dnf install --assumeyes" packages="gcc-c++ python3 python3-pip git" ;;
  *) die "no list of packages for $image" ;;
esac
environment=() bazel=./bazelw after_install=true
case $how in
  official) environment=(--env BAZELW_ROAD=official) ;;
  packaged)
    [[ $image != fedora:* ]] || die "the packaged road needs a Debian-like system, not $image"
    environment=(--env BAZELW_ROAD=packaged)
    # This road uses the machine's Rust, 1.89 or newer; distributions have older ones, but they have rustup.
    packages="$packages npm rustup"
    after_install="rustup toolchain install 1.95.0 --profile minimal --component clippy,rustfmt" ;;
  bazelisk) bazel=bazelisk ;;
  *) die "'$how' is not one of official, packaged, bazelisk" ;;
esac

scratch=$(mktemp -d)
container=""
clean_up() {
  [ -z "$container" ] || docker rm --force "$container" > /dev/null
  rm -rf "$scratch"
}
trap clean_up EXIT

as_root() { docker exec "$container" bash -c "$1" || die "$image, $how: failed: $1"; }
as_user() {
  echo "== $1"
  docker exec --user guest "${environment[@]}" "$container" bash -lc "$1" || die "$image, $how: failed: $1"
}
in_clone() { as_user "cd ~/'a clone' && $1"; }

container=$(docker run --detach "$image" sleep infinity)
as_root "$install $packages && useradd --create-home guest"
if [ "$how" = bazelisk ]; then
  docker cp --follow-link "$(command -v bazelisk || die "no bazelisk on PATH")" "$container:/usr/local/bin/bazelisk"
fi
git -C "$tree" bundle create --quiet "$scratch/tree.bundle" HEAD
docker cp "$scratch/tree.bundle" "$container:/tmp/tree.bundle"
as_root "chmod a+r /tmp/tree.bundle"
as_user "$after_install"
as_user "git clone --quiet /tmp/tree.bundle ~/'a clone'"

[ "$bazel" != ./bazelw ] || in_clone "./bazelw --doctor"
in_clone "$bazel run //Kernels/benchmarks/comparison:bench_norms"
in_clone "$bazel test --config=ci //..."

# A machine that loses its network keeps working.
docker network disconnect bridge "$container"
in_clone "$bazel shutdown"
in_clone "$bazel run //Kernels/benchmarks/comparison:bench_norms"
in_clone "$bazel test --config=ci //Kernels/host/..."
echo "quickstart: $image, $how: all commands of README passed, the last ones without a network"
