#!/usr/bin/env bash
# check_gpu.sh against a stand-in for nvidia-smi.
set -euo pipefail
check=$(readlink -f "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat > "$scratch/nvidia-smi" << 'STAND_IN'
#!/usr/bin/env bash
case "$*" in
  *query-compute-apps*) echo -n "${FAKE_APPS:-}" ;;
  *=name*) echo "NVIDIA H200" ;;
  *temperature*) echo "${FAKE_TEMPERATURE:-35}" ;;
  *hw_thermal*) echo "${FAKE_THERMAL:-Not Active}" ;;
  *clocks_event_reasons*) echo "Not Active" ;;
  *clocks.max.sm*) echo 1980 ;;
  *clocks.sm*) echo "${FAKE_CLOCK:-1500}" ;;
esac
STAND_IN
chmod +x "$scratch/nvidia-smi"
export PATH="$scratch:$PATH" CHECK_GPU_PAUSE_S=0

bash "$check" H200 | grep -q "NVIDIA H200 is ready: 1500 MHz, 35 C"

# refuses NAME MESSAGE [VARIABLE=VALUE]: the check must fail and say so.
refuses() {
  local name=$1 message=$2
  shift 2
  if env "$@" bash "$check" "$name" > "$scratch/said" 2>&1; then
    echo "check_gpu.sh passed but should say: $message"
    exit 1
  fi
  grep -q "$message" "$scratch/said" || { cat "$scratch/said"; exit 1; }
}
refuses B200 "not a B200" A=
refuses H200 "other processes use the card: 17, python" "FAKE_APPS=17, python"
refuses H200 "the idle card is at 80 C" FAKE_TEMPERATURE=80
refuses H200 "throttled: hw_thermal_slowdown" FAKE_THERMAL=Active
refuses H200 "not locked (seen: 345 MHz)" FAKE_CLOCK=345
echo "check_gpu.sh: all as it should be"
