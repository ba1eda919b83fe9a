#!/usr/bin/env bash
# The same as start.sh on a GPU, with plain nvcc: kit, one line edited, race. Also the test of all that.
# Usage: start_cuda.sh KIT BENCH_NORMS [RESULT [CONTENDER...]]   (RESULT gets the race of all)
set -euo pipefail
for program in nvidia-smi nvcc; do
    if ! command -v "$program" >/dev/null; then
        echo "SKIPPED: no $program here"
        exit 0
    fi
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
start=$SECONDS
kit=$(realpath "$1") bench=$(realpath "$2") result=$(realpath "${3:-$folder/all.json}")
examples=()
for example in "${@:4}"; do examples+=(--contender "$example"); done

race() {
    "$bench" --device cuda --op rmsnorm_fwd --dtype bf16 --configs 4096x7168 --json "$@"
}
"$kit" new rmsnorm --language cuda --into "$folder/mine"
"$kit" new rmsnorm --language kernel --into "$folder/kernel"
cd "$folder/mine"
# The line that everybody edits first: another name.
sed -i 's/"rmsnorm in CUDA C++"/"my own"/' rmsnorm.cu
./build.sh
race first.json --contender mine=./librmsnorm.so
grep -q '"my own"' first.json
echo "from nothing to a race in $((SECONDS - start)) s"
test $((SECONDS - start)) -lt 120

# A kernel without host code, and everybody else's, in one race.
(cd ../kernel && ./build.sh)
race "$result" --contender mine=./librmsnorm.so --contender kernel=../kernel/kernel.json "${examples[@]}"

# Wrong on purpose: a row with the reason.
sed -i 's/\* scale \* __bfloat162float/* scale + __bfloat162float/' rmsnorm.cu
./build.sh
if race second.json --contender mine=./librmsnorm.so; then
    echo "a wrong kernel passed" >&2
    exit 1
fi
grep -q 'the oracle says' second.json
