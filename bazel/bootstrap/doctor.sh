# bazelw --doctor: what this machine has and lacks for the README's commands; sourced by bazelw.
# Exits with 0 exactly if nothing is missing. Probes run in parallel, each with its own time limit.

# Where plain Bazel finds modules, and the pinned Rust toolchain.
registry_url=https://bcr.bazel.build/bazel_registry.json
rust_url=https://static.rust-lang.org/dist/channel-rust-1.95.0.toml.sha256
probe_s=8
before="using what was fetched before"
output_mib=6000 # CPU and one CUDA architecture, tests and all

bad=0
report() { printf '%-8s %-9s %s\n' "$1" "$2" "$3"; [ "$1" != missing ] || bad=1; }

# reaches URL: its first bytes arrive, through the machine's proxy if any.
reaches() {
  if type -P curl >/dev/null; then
    curl -fsSL -r 0-0 --connect-timeout 5 --max-time $probe_s -o /dev/null "$1"
  else
    timeout $probe_s python3 -I -c 'import sys, urllib.request
urllib.request.urlopen(sys.argv[1], timeout=5).read(1)' "$1"
  fi 2>/dev/null
}

# Sets doctor_road and doctor_bazel, as a start would choose.
choose_road() {
  doctor_road=official
  if [ -n "${BAZEL:-}" ]; then doctor_bazel="\$BAZEL = $BAZEL"
  elif [ "$road" = any ] && doctor_bazel=$(on_path); then :
  elif [ "$(made)" = official ]; then doctor_bazel="$official (official release)"
  elif [ "$(made)" = packaged ]; then
    doctor_road=packaged doctor_bazel="$(readlink -f "$packaged") (Debian's packages)"
  elif [ "$road" != packaged ] && wait "$official_probe"; then
    doctor_bazel="the official release, at the first start"
  else doctor_road=packaged doctor_bazel="from Debian's packages, at the first start"; fi
}

check_bazel() {
  if [ -n "${BAZEL:-}" ] && ! is_wanted "$BAZEL"; then
    report missing bazel "$doctor_bazel is not Bazel $version: fix or unset it"
  elif [ "$(made)" = official ] && [ "$doctor_bazel" = "$official (official release)" ] &&
    ! genuine "$official.stamp" <<< "$(official_sum | cut -c1-64)  $official"; then
    report missing bazel "$official is not the release: remove it"
  elif [ "$road" = official ] && [ $doctor_road = packaged ]; then
    report missing bazel "BAZELW_ROAD is official, which cannot be reached: unset it"
  else report ok bazel "$doctor_bazel"; fi
}

# check_space NAME FOLDER MIB REMEDY
check_space() {
  local folder=$2 free
  if ! mkdir -p "$folder" 2>/dev/null || ! [ -w "$folder" ]; then
    report missing "$1" "cannot write $folder: $4"; return
  fi
  free=$(df -Pm "$folder" | tail -n 1 | tr -s ' ' | cut -d' ' -f4)
  if [ "$free" -ge "$3" ]; then report ok "$1" "$folder, $((free / 1024)) GiB free"
  else report missing "$1" "$folder has $free MiB free, but $3 are needed: free some, or $4"; fi
}

# A real compilation: compilers without the library's headers or a linker are common.
check_compiler() {
  local scratch said
  type -P g++ >/dev/null || { report missing g++ "install gcc and g++"; return; }
  scratch=$(mktemp -d)
  if said=$(g++ -std=c++17 -fuse-ld=bfd -x c++ - -o "$scratch/program" 2>&1 \
    <<< '#include <optional>
int main() { return std::optional<int>(0).value(); }'); then report ok g++ "$(type -P g++)"
  else report missing g++ "cannot build C++17 (${said%%$'\n'*}): install g++ and binutils"; fi
  rm -rf "$scratch"
}

check_python() {
  type -P python3 >/dev/null || { report missing python3 "install python3 and python3-pip"; return; }
  report ok python3 "$(type -P python3)"
  if python3 -I -m pip --version >/dev/null 2>&1; then report ok pip "wheels come through it"
  else report missing pip "install python3-pip (wheels come through it)"; fi
}

# Without a network, what was fetched before is enough for a restart, so nothing is missing then.
check_reached() {
  if wait "$2"; then report ok "$1" "$3"
  elif [ -e "$here/bazel-out" ]; then report absent "$1" "$3 is out of reach; $before"
  else report missing "$1" "$3 is out of reach: check proxies, or set BAZELW_ROAD=packaged"; fi
}

# check_fetched KIND...: one small file of each kind arrives.
check_fetched() {
  local sentences sentence
  type -P python3 >/dev/null || return 0
  if sentences=$(python3 -B "$bootstrap/packaged.py" --check "$@" 2>&1); then
    report ok fetching "$*"
  elif [ $doctor_road = official ] && [ -e "$here/bazel-out" ]; then
    report absent fetching "$*: $before"
  else while read -r sentence; do report missing fetching "$sentence"; done <<< "$sentences"; fi
}

check_program() {
  if type -P "$1" >/dev/null; then report ok "$1" "$(type -P "$1")"; else report missing "$1" "$2"; fi
}

doctor() {
  local official_probe registry_probe rust_probe found sum
  sum=$(official_sum) || sum=
  releases=${BAZELW_TEST_RELEASES:-https://github.com/bazelbuild/bazel/releases/download}
  { [ -n "$sum" ] && reaches "$releases/$version/${sum#*  }"; } & official_probe=$!
  reaches "${BAZELW_TEST_REGISTRY:-$registry_url}" & registry_probe=$!
  reaches "${BAZELW_TEST_RUST:-$rust_url}" & rust_probe=$!

  choose_road
  case $doctor_road in
    official) report road official "modules from Bazel's registry, Rust from its own site" ;;
    packaged) report road packaged "modules from Debian's packages, Rust from this machine" ;;
  esac
  check_bazel
  check_space cache "$cache" 200 "set HEAD_TO_HEAD_CACHE to a folder you own"
  case $caches in
    *[[:space:]]*) check_space output /var/tmp $output_mib "set XDG_CACHE_HOME to one without spaces" ;;
    *) check_space output "$caches" $output_mib "set XDG_CACHE_HOME to a folder with room" ;;
  esac
  check_compiler
  check_python
  if [ $doctor_road = official ]; then
    check_reached modules "$registry_probe" "Bazel's registry"
    check_reached rust "$rust_probe" "Rust's site"
    check_fetched wheels
  else
    if [ -z "$(made)" ]; then check_fetched debs wheels crates
    else
      check_program cargo "install Rust 1.89 or newer"
      check_program rustc "install Rust 1.89 or newer"
    fi
    check_program npm "install npm (a formatter of the tests comes by it where GitHub is out of reach)"
  fi
  if found=$(nvidia-smi --query-gpu=name,compute_cap --format=csv,noheader 2>/dev/null); then
    report ok gpu "$found"
  else report absent gpu "benches run on the CPU; --config=sm90a or sm100a still compiles CUDA"; fi
  return $bad
}
