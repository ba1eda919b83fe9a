#!/usr/bin/env bash
# Writes an archive, unpacks it elsewhere, and races a kernel of one's own with nothing of this machine's environment.
# Usage: release_test.sh RELEASE
set -euo pipefail
release=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What is bound by a licence, as programs with kernels are, is refused unless that is accepted.
if ! archive=$("$release" --out "$folder/out" 2>"$folder/error"); then
    cat "$folder/error" >&2
    grep -q 'may not be passed on' "$folder/error"
    archive=$("$release" --out "$folder/out" --accept-licence)
fi
test "$(ls "$folder/out")" = "$(basename "$archive")"
if "$release" --out /dev/null/nowhere 2>"$folder/error"; then exit 1; fi
grep -q nowhere "$folder/error"

mkdir "$folder/elsewhere"
cd "$folder/elsewhere"
tar -xzf "$archive"
cd head-to-head-*
bare() { env -i PATH=/usr/bin:/bin "$@"; }
bare sha256sum --check --quiet SHA256SUMS
test "$(ls licences | wc -l)" -gt 50
test -s LICENSE

bare ./kit new rmsnorm
bare ./rmsnorm/build.sh
bare ./bench_norms --device cpu --op rmsnorm_fwd --configs 16x256 --budget-ms 20 --json run.json \
    --contender mine=./rmsnorm/librmsnorm.so
grep -q '"rmsnorm in C"' run.json
bare ./report --help >/dev/null
for bench in ./bench_*; do bare "$bench" --help >/dev/null; done
bare ./suite --help >/dev/null
bare sh -n ./fetch.sh
