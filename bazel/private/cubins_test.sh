#!/usr/bin/env bash
# cubins_test.sh CUOBJDUMP BINARY ARCH...: the binary holds machine code for just these architectures,
# and no PTX that a driver would have to compile.
set -euo pipefail
cuobjdump=$1 binary=$2
shift 2
expected=$(printf '%s\n' "$@" | sort -u)
found=$("$cuobjdump" --list-elf "$binary" | grep -oE '\.sm_[0-9]+[af]?\.' | tr -d . | sort -u)
if [ "$found" != "$expected" ]; then
  echo "machine code for: ${found:-nothing}; expected: $expected"
  exit 1
fi
ptx=$("$cuobjdump" --list-ptx "$binary" 2>/dev/null | grep '\.ptx' || true)
if [ -n "$ptx" ]; then
  echo "PTX is left in the binary: $ptx"
  exit 1
fi
count=$("$cuobjdump" --list-elf "$binary" | wc -l)
echo "$count cubins for $expected, no PTX"
