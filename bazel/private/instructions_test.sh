#!/usr/bin/env bash
# instructions_test.sh CUOBJDUMP FILE... -- INSTRUCTION...: the machine code of the library among these files has each
# of these instructions, as nvdisasm writes them, and no product of the tensor cores before Blackwell's: mma.sync or
# wgmma.
set -euo pipefail
cuobjdump=$(realpath "$1")
shift
library=
while [ "$1" != -- ]; do
  case $1 in *.a) library=$1 ;; esac
  shift
done
shift
[ -n "$library" ] || { echo "there is no archive to look into"; exit 1; }
# cuobjdump asks nvdisasm, which lies beside it.
code=$(PATH="$(dirname "$cuobjdump"):$PATH" "$cuobjdump" --dump-sass "$library")
bad=0
for instruction in "$@"; do
  count=$(grep -cF -- " $instruction " <<< "$code" || true)
  echo "$count $instruction"
  [ "$count" -gt 0 ] || bad=1
done
# HMMA, IMMA, QMMA, ... of mma.sync, HGMMA, ... of wgmma; those of tcgen05 are UTCHMMA, UTCQMMA, ...
older=$(grep -oE ' [BDHIOQ]G?MMA[.0-9A-Z]*' <<< "$code" | sort | uniq -c || true)
[ -z "$older" ] || { echo "older products:"; echo "$older"; bad=1; }
exit $bad
