#!/usr/bin/env bash
# Checks that this machine's GPU is fit for measuring: right card, idle, cool, not throttled, clocks locked.
# usage: check_gpu.sh NAME   (part of the card's name, such as H200)
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: check_gpu.sh NAME, such as check_gpu.sh H200" >&2; exit 2; }
wanted=$1
idle_limit_c=60
problems=0

problem() { echo "check_gpu: $1" >&2; problems=$((problems + 1)); }

command -v nvidia-smi > /dev/null || { problem "no nvidia-smi on PATH: is the driver installed?"; exit 1; }
query() { nvidia-smi --id=0 --query-gpu="$1" --format=csv,noheader,nounits; }

name=$(query name)
case $name in
  *"$wanted"*) ;;
  *) problem "the card is '$name', not a $wanted; check the runner's label" ;;
esac

others=$(nvidia-smi --id=0 --query-compute-apps=pid,process_name --format=csv,noheader)
[ -z "$others" ] || problem "other processes use the card: $others"

temperature=$(query temperature.gpu)
[ "$temperature" -le "$idle_limit_c" ] ||
  problem "the idle card is at $temperature C; the limit is $idle_limit_c C"

for reason in hw_slowdown hw_thermal_slowdown sw_thermal_slowdown; do
  [ "$(query "clocks_event_reasons.$reason")" != "Active" ] || problem "clocks are throttled: $reason"
done

# A locked clock reads the same every time, and is not the idle clock.
clocks=$(for _ in 1 2 3; do query clocks.sm; sleep "${CHECK_GPU_PAUSE_S:-1}"; done | sort -un)
maximum=$(query clocks.max.sm)
if [ "$(wc -l <<< "$clocks")" -ne 1 ] || [ "$clocks" -lt $((maximum / 2)) ]; then
  problem "SM clocks are not locked (seen: ${clocks//$'\n'/, } MHz); lock them with nvidia-smi -lgc"
fi

[ "$problems" -eq 0 ] || exit 1
echo "$name is ready: $clocks MHz, $temperature C"
