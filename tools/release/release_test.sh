#!/usr/bin/env bash
# Writes an archive, unpacks it elsewhere, and races a kernel of one's own with nothing of this machine's environment.
# Usage: release_test.sh RELEASE
set -euo pipefail
release=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What is bound by a licence, as programs with kernels are, is refused unless that is accepted.
accept=()
if ! archive=$("$release" --out "$folder/out" 2>"$folder/error"); then
    cat "$folder/error" >&2
    grep -q 'may not be passed on' "$folder/error"
    accept=(--accept-licence)
    archive=$("$release" --out "$folder/out" "${accept[@]}")
fi
test "$(ls "$folder/out")" = "$(basename "$archive")"
if "$release" --out /dev/null/nowhere "${accept[@]}" 2>"$folder/error"; then exit 1; fi
grep -q nowhere "$folder/error"

mkdir "$folder/elsewhere"
cd "$folder/elsewhere"
tar -xzf "$archive"
cd head-to-head-*
bare() { env -i PATH=/usr/bin:/bin "$@"; }
bare sha256sum --check --quiet SHA256SUMS
test "$(ls licences | wc -l)" -gt 50
test -s LICENSE
case $(basename "$PWD") in
    *-cpu-*) missing='built without CUDA' ;;
    *)
        test ${#accept[@]} -gt 0
        # What kernels are made of.
        for part in cuda_toolkit cutlass.txt cutlass_dsl deep_gemm fla_core flash_attn/ flash_attn_4 flashinfer_python \
            liger quack; do
            text=$(find licences -path "*$part*" -type f -size +0)
            test -n "$text" || { echo "no licence of $part" >&2; exit 1; }
        done
        missing='libcuda.so.1 cannot be loaded'
        ;;
esac

bare ./kit new rmsnorm
bare ./rmsnorm/build.sh
bare ./bench_norms --device cpu --op rmsnorm_fwd --configs 16x256 --budget-ms 20 --json run.json \
    --contender mine=./rmsnorm/librmsnorm.so
grep -q '"rmsnorm in C"' run.json
for program in $(find . -maxdepth 1 -type f -perm -u+x ! -name fetch.sh); do bare "$program" --help >/dev/null; done
# Without a driver, a sentence that says so.
if [ ! -e /dev/nvidiactl ]; then
    if bare ./bench_norms --device cuda --op rmsnorm_fwd --configs 16x256 2>"$folder/error"; then exit 1; fi
    grep -q "$missing" "$folder/error"
fi

# All that the kit starts from is there.
for language in cuda kernel cute triton rust; do bare ./kit new rmsnorm --language $language --into "$language"; done
bare ./kit new gemm --language cutlass --into cutlass
for language in c cuda kernel; do bare ./kit new mine --own-op --language $language --into "own_$language"; done
if bare ./cutlass/build.sh 2>"$folder/error"; then exit 1; fi
grep -q 'CUTLASS: set it to a checkout' "$folder/error"

# What is not in it is fetched by digest, or not at all: here from a mirror that has nothing.
mkdir "$folder/mirror"
if bare ./fetch.sh --cache "$folder/cache" --mirror "$folder/mirror" --python /nowhere 2>"$folder/error"; then
    exit 1
fi
grep -q onednn "$folder/error"
test ! -e lib
