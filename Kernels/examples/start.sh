#!/usr/bin/env bash
# From an empty folder to a row of one's own: kit, one line edited, plain compiler, race. Also the test of all that.
# Usage: start.sh KIT BENCH_NORMS LIBRARY...   (the libraries are examples, raced next to it)
set -euo pipefail
kit=$(realpath "$1") bench=$(realpath "$2")
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
start=$SECONDS

"$kit" new rmsnorm --into "$folder/mine"
cd "$folder/mine"
# The line that everybody edits first: another name.
sed -i 's/\.name = "rmsnorm in C"/.name = "my own"/' rmsnorm.c
./build.sh
race() {
    "$bench" --device cpu --op rmsnorm_fwd --configs 32x768 --budget-ms 50 --json "$1.json" "${@:2}"
}
race first --dtype bf16,f32 --contender mine=./librmsnorm.so
grep -q '"my own"' first.json
grep -q '"seccomp"' first.json

# Wrong on purpose: a row with the reason, and the others as before.
sed -i 's/row\[i\] \* scale \* load/row[i] * scale + load/' rmsnorm.c
./build.sh
if race second --dtype bf16 --contender mine=./librmsnorm.so; then
    echo "a wrong kernel passed" >&2
    exit 1
fi
grep -q 'the oracle says' second.json
cd - >/dev/null

for library in "$@"; do
    race "$folder/example" --dtype f32 --contender "$(basename "$library" .so)=$library"
done
echo "from nothing to a race in $((SECONDS - start)) s"
test $((SECONDS - start)) -lt 120
