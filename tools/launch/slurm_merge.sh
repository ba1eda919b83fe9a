#!/usr/bin/env bash
# Merges the shards' results; exits with 1 if a shard failed or has no results. usage: slurm_merge.sh REPORT SHARDS OUT
set -uo pipefail
report=$1 shards=$2 out=$3
[ "$(cat "$out/shards" 2> /dev/null)" = "$shards" ] ||
  { echo "$out belongs to a run of $(cat "$out/shards" 2> /dev/null) shards, not $shards"; exit 1; }
found=() code=0
for ((shard = 1; shard <= shards; shard++)); do
  log="its log is $out/logs/shard-$shard.log"
  ended=$(cat "$out/shard-$shard.ended" 2> /dev/null) || ended=""
  case $ended in
    0) ;;
    "") echo "shard $shard never finished: it was killed or did not start; $log"; code=1 ;;
    *) echo "shard $shard exited with code $ended; $log"; code=1 ;;
  esac
  if [ -e "$out/shard-$shard/results.json" ]; then
    found+=("$out/shard-$shard/results.json")
  else
    echo "shard $shard has no results; $log"
    code=1
  fi
done
[ ${#found[@]} -gt 0 ] || { echo "no shard has results: nothing to merge"; exit 1; }
"$report" merge "${found[@]}" --output "$out/results.json" || exit 1
"$report" summarize "$out/results.json" --output "$out/summary.md" || exit 1
"$report" html "$out/results.json" --output "$out/report.html" || exit 1
"$report" plot "$out/results.json" --output "$out/plots" || exit 1
[ "$code" -eq 0 ] || echo "the merged results are incomplete; run slurm.sh again to continue those shards"
exit "$code"
