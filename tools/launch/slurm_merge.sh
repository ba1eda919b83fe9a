#!/usr/bin/env bash
# Merges what the shards found. usage: slurm_merge.sh REPORT SHARDS OUT
set -uo pipefail
report=$1 shards=$2 out=$3
found=() code=0
for ((shard = 1; shard <= shards; shard++)); do
  ended=$(cat "$out/shard-$shard.ended" 2> /dev/null || echo "not")
  if [ "$ended" != 0 ]; then
    echo "shard $shard ended with '$ended'; its log is $out/logs/shard-$shard.log"
    code=1
  fi
  [ ! -e "$out/shard-$shard/results.json" ] || found+=("$out/shard-$shard/results.json")
done
[ ${#found[@]} -gt 0 ] || { echo "no shard has results"; exit 1; }
"$report" merge "${found[@]}" --output "$out/results.json" || exit 1
"$report" summarize "$out/results.json" --output "$out/summary.md" || exit 1
"$report" html "$out/results.json" --output "$out/report.html" || exit 1
"$report" plot "$out/results.json" --output "$out/plots" || exit 1
exit "$code"
