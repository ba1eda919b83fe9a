#!/usr/bin/env bash
# quickstart.sh against a stand-in for docker. usage: quickstart_test.sh QUICKSTART.SH
set -euo pipefail
quickstart=$(readlink -f "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/tree/tools/launch"
# A repository of its own: the script takes the one that it lies in.
cp "$quickstart" "$scratch/tree/tools/launch/quickstart.sh"
export HOME=$scratch GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
git -C "$scratch/tree" init --quiet
git -C "$scratch/tree" add --all
git -C "$scratch/tree" commit --quiet --message tree

cat > "$scratch/bin/docker" << 'STAND_IN'
#!/usr/bin/env bash
echo "$*" >> "$DOCKER_LOG"
[ "$1" != run ] || echo the-container
[ -z "${FAKE_FAIL:-}" ] || [[ "$*" != *"$FAKE_FAIL"* ]]
STAND_IN
printf '#!/bin/sh\n' > "$scratch/bin/bazelisk"
chmod +x "$scratch/bin"/*
export PATH="$scratch/bin:$PATH" DOCKER_LOG="$scratch/log"

fail() { echo "FAILED: $1"; cat "$scratch/said" "$DOCKER_LOG"; exit 1; }
run() {
  : > "$DOCKER_LOG"
  bash "$scratch/tree/tools/launch/quickstart.sh" "$@" > "$scratch/said" 2>&1
}
# order PATTERN...: the log has them, one after the other.
order() {
  local at=0 found
  for pattern in "$@"; do
    found=$(tail -n "+$((at + 1))" "$DOCKER_LOG" | grep -nF -m 1 -- "$pattern" | cut -d: -f1) || found=""
    [ -n "$found" ] || fail "not there, or too early: $pattern"
    at=$((at + found))
  done
}

run debian:12 official || fail "debian:12 official"
order "run --detach debian:12" "g++ python3 python3-pip git ca-certificates && useradd" \
  "./bazelw --doctor" \
  "./bazelw run //Kernels/benchmarks/comparison:bench_norms" "./bazelw test --config=ci //..." \
  "network disconnect bridge the-container" "./bazelw shutdown" \
  "./bazelw run //Kernels/benchmarks/comparison:bench_norms" "rm --force the-container"
grep -q -- "--user guest --env BAZELW_ROAD=official" "$DOCKER_LOG" || fail "not as an ordinary user on that road"
! grep -q "rustup\|npm" "$DOCKER_LOG" || fail "more than README's packages"
run debian:13 packaged || fail "debian:13 packaged"
order "rustup" "BAZELW_ROAD=packaged" "./bazelw test"
run fedora:latest bazelisk || fail "fedora bazelisk"
order "gcc-c++" "cp --follow-link $scratch/bin/bazelisk" \
  "bazelisk run" "bazelisk test" "bazelisk shutdown" "bazelisk run"

# refuses MESSAGE IMAGE HOW
refuses() {
  local message=$1
  shift
  ! run "$@" || fail "must fail: $message"
  grep -qF -- "$message" "$scratch/said" || fail "does not say: $message"
}
for step in "--doctor" "test --config=ci //..." "network disconnect" "apt-get"; do
  FAKE_FAIL=$step
  export FAKE_FAIL
  ! run ubuntu:22.04 official || fail "passes although '$step' fails"
  order "rm --force the-container"
done
FAKE_FAIL=--doctor refuses "ubuntu:22.04, official: failed: cd ~/'a clone' && ./bazelw --doctor" ubuntu:22.04 official
unset FAKE_FAIL
refuses "no list of packages for arch:latest" arch:latest official
refuses "needs a Debian-like system, not fedora:latest" fedora:latest packaged
refuses "'other' is not one of" debian:12 other
echo "quickstart.sh: all as it should be"
