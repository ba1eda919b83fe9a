#!/usr/bin/env bash
# From an empty folder to a raced table of an operation that no bench has: kit, plain compiler, race, page. Also the
# test of all that.
# Usage: start_own.sh KIT BENCH_OWN REPORT
set -euo pipefail
kit=$(realpath "$1") bench=$(realpath "$2") report=$(realpath "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$kit" new my_op --own-op --into "$folder/mine"
cd "$folder/mine"
./build.sh
cp libmy_op.so libsame.so
race() {
    "$bench" --device cpu --problem problem.json --oracle ./liboracle.so --budget-ms 50 --json "$1.json" "${@:2}"
}
race first --contender ./libmy_op.so --contender other=./libsame.so | tee first.txt
grep -q '^my_op bf16 on ' first.txt
grep -q '^own/512x768  *my_op  *[0-9]' first.txt
grep -q 'my_op f32 own: my_op vs other' first.txt
grep -q '"seccomp"' first.json
"$report" html first.json -o first.html
grep -q my_op first.html

# Wrong on purpose: a row with the reason.
sed -i 's/sqrtf(sum + it->epsilon)/sqrtf(sum - it->epsilon * 1e6f)/' my_op.c
./build.sh
if race second --contender ./libmy_op.so --configs 8x64; then
    echo "a wrong contender passed" >&2
    exit 1
fi
grep -q 'the oracle says' second.json

# An oracle that is wrong about its own sizes is an error, not a verdict on anybody.
sed -i 's/i < columns; ++i) to/i <= columns; ++i) to/' oracle.c
./build.sh
if race third --contender other=./libsame.so --configs 1x64; then
    echo "an oracle that writes out of bounds was believed" >&2
    exit 1
fi
grep -q 'the oracle: writes out of bounds' third.json
