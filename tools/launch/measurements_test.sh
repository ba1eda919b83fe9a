#!/usr/bin/env bash
# measurements.sh against a repository in a folder. usage: measurements_test.sh MEASUREMENTS.SH
set -euo pipefail
measurements=$(readlink -f "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export HOME=$scratch MEASUREMENTS_PAUSE_S=0
remote="$scratch/a repository.git"
git init --quiet --bare "$remote"

fail() { echo "FAILED: $1"; cat said 2> /dev/null; exit 1; }
run() { bash "$measurements" "$@" > said 2>&1; }
# ends CODE MESSAGE ARGUMENT...
ends() {
  local wanted=$1 message=$2 code=0
  shift 2
  run "$@" || code=$?
  [ "$code" -eq "$wanted" ] || fail "exit $code, not $wanted: $*"
  grep -qF -- "$message" said || fail "does not say: $message"
}
history() { git -C "$remote" show "measurements:$1/history.jsonl"; }

echo '{"run": 1}' > line
echo 'first base' > results.json
ends 3 "H200 has no base yet; run gpu.yml manually with new_base" base "$remote" H200 base.json
ends 0 "H200: a run" keep "$remote" H200 line
# A run is not the base because there is none.
ends 3 "H200 has no base yet" base "$remote" H200 base.json
[ ! -e base.json ] || fail "a base from nowhere"
ends 0 "H200: a run, and a new base" keep "$remote" H200 line results.json
ends 0 "the base of H200" base "$remote" H200 base.json
cmp base.json results.json || fail "another base"
ends 3 "B200 has no base yet" base "$remote" B200 other.json

# The history as it is, which may be nothing.
ends 0 "2 runs of H200 are in earlier.jsonl" history "$remote" H200 earlier.jsonl
cmp <(history H200) earlier.jsonl || fail "another history"
ends 0 "0 runs of B200 are in earlier.jsonl" history "$remote" B200 earlier.jsonl
[ -e earlier.jsonl ] && [ ! -s earlier.jsonl ] || fail "a history from nowhere"
ends 1 "cannot reach $scratch/nowhere" history "$scratch/nowhere" H200 earlier.jsonl

# The base stays until it is replaced; the history grows, also when two push at once.
for i in 1 2; do
  for card in H200 B200; do
    echo "{\"run\": \"$card $i\"}" > "line-$card-$i"
    bash "$measurements" keep "$remote" "$card" "line-$card-$i" > "said-$card-$i" 2>&1 &
  done
done
wait
cat said-* > said
[ "$(history H200 | wc -l)" -eq 4 ] && [ "$(history B200 | wc -l)" -eq 2 ] || fail "a run is missing in the history"
ends 0 "the base of H200" base "$remote" H200 base.json
cmp base.json results.json || fail "the base moved by itself"

ends 1 "cannot reach $scratch/nowhere" base "$scratch/nowhere" H200 base.json
ends 1 "cannot reach $scratch/nowhere" keep "$scratch/nowhere" H200 line
ends 1 "is empty or not there" keep "$remote" H200 line nothing.json
ends 1 "the line for the history, is empty or not there" keep "$remote" H200 nothing.jsonl
ends 1 "not the name of a card" base "$remote" ../H200 base.json
ends 1 "neither base, history nor keep" drop "$remote" H200 base.json
printf '#!/bin/sh\nexit 1\n' > "$remote/hooks/pre-receive"
chmod +x "$remote/hooks/pre-receive"
MEASUREMENTS_ATTEMPTS=2 ends 1 "could not push to the branch measurements" keep "$remote" H200 line
echo "measurements.sh: all as it should be"
