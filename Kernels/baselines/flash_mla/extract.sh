#!/usr/bin/env bash
# Takes FlashMLA's cubins for dense decoding out of the library in its wheel, as C++ to include.
#
# usage: extract.sh CUOBJDUMP LIBRARY FOLDER
#
# Writes FOLDER/{decode,combine,schedule}.inc, the bytes of a cubin each, and FOLDER/kernels.inc, one
# FLASH_MLA_KERNEL(label, "symbol") per kernel. A cubin with another sha256 than the one whose parameters
# parameters.h describes is refused.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: extract.sh CUOBJDUMP LIBRARY FOLDER" >&2; exit 2; }
export LC_ALL=C

tool=$(realpath "$1")
library=$(realpath "$2")
folder=$(realpath "$3")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
  echo "FlashMLA: $*; Kernels/baselines/flash_mla/README.md says how to follow another release" >&2
  exit 1
}

# What cuobjdump calls the cubin, its sha256, and our name for it.
cubins='
_C_legacy.abi3.165.sm_90a.cubin e3cd1a812254d5e7767ac07d23b437bf996edbdac073c459273a5799bc9c645c decode
_C_legacy.abi3.213.sm_90a.cubin 4cc49712bda258ce5546e029f348ca4c73b74605d3c165e215f892fa17b4ad8b combine
_C_legacy.abi3.217.sm_90a.cubin 29bf616212b58ce949e5eccbc61715dca6c6cc444dedacefd8d7c68f6b703416 schedule
'
while read -r cubin sha256 label; do
  [ -n "$cubin" ] || continue
  "$tool" -xelf "$cubin" "$library" > log 2>&1 || fail "cuobjdump: $(tail -n 1 log)"
  [ -f "$cubin" ] || fail "no cubin $cubin in $library"
  read -r actual _ < <(sha256sum "$cubin")
  [ "$actual" = "$sha256" ] || fail "$cubin has sha256 $actual, its parameters are known for $sha256"
  od -An -v -t x1 "$cubin" | sed 's/ /,0x/g; s/^,//; s/$/,/' > "$folder/$label.inc"
  "$tool" -symbols "$cubin" | awk '$3 == "STO_ENTRY" {print $4}' >> symbols
done <<< "$cubins"

# bf16, of queries with 576 elements. The combining kernel exists for several numbers of splits.
sed -nE \
  -e 's/^(.*28flash_fwd_splitkv_mla_kernelINS2_6TraitsIN7cutlass10bfloat16_tELi576E.*)$/decode, "\1"/p' \
  -e 's/^(.*28flash_fwd_mla_combine_kernelIN7cutlass10bfloat16_tELi512ELi8ELi([0-9]+)E.*)$/combine_\2, "\1"/p' \
  -e 's/^(.*23get_mla_metadata_kernelE.*)$/schedule, "\1"/p' symbols |
  sed 's/.*/FLASH_MLA_KERNEL(&)/' > "$folder/kernels.inc"
found=$(wc -l < "$folder/kernels.inc")
[ "$found" -eq 10 ] || fail "$found kernels where 10 were expected"
