#!/usr/bin/env bash
# Gives extract.sh a stand-in for cuobjdump: whatever is not FlashMLA's known machine code stops the build.
# usage: extract_test.sh EXTRACT
set -euo pipefail
extract=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/out"
echo "a library" > "$folder/library.so"

# Runs extract.sh with a tool that does this, and expects it to fail and to say that.
refuses() {
  local does=$1 says=$2 text
  printf '#!/usr/bin/env bash\n%s\n' "$does" > "$folder/tool"
  chmod +x "$folder/tool"
  if text=$("$extract" "$folder/tool" "$folder/library.so" "$folder/out" 2>&1); then
    echo "extract.sh accepted a tool that does: $does" >&2
    exit 1
  fi
  [[ $text == *"$says"* && $text == *"flash_mla/README.md"* ]] || {
    echo "extract.sh said: $text; expected: $says" >&2
    exit 1
  }
  [ -z "$(ls "$folder/out")" ] || { echo "extract.sh left $(ls "$folder/out")" >&2; exit 1; }
}

refuses 'exit 0' 'no cubin _C_legacy.abi3.165.sm_90a.cubin in'
refuses 'echo "cannot open the file"; exit 1' 'cuobjdump: cannot open the file'
refuses 'echo another > "$2"' 'has sha256 33a7b215065f2ee8635efb72620bc269a1efb889ba3026560334da7366742374'
if "$extract" only two 2> /dev/null; then echo "extract.sh took two arguments" >&2; exit 1; fi
