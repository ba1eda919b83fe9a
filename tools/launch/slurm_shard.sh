#!/usr/bin/env bash
# One shard of the suite, as a task of a Slurm array. usage: slurm_shard.sh SUITE SHARDS OUT [SUITE OPTION...]
set -uo pipefail
suite=$1 shards=$2 out=$3
shift 3
shard=${SLURM_ARRAY_TASK_ID:?slurm_shard.sh is started by slurm.sh, as a task of an array}
folder=$out/shard-$shard
[ "$(cat "$out/shards" 2> /dev/null)" = "$shards" ] ||
  { echo "shard $shard of $shards: $out belongs to a run of $(cat "$out/shards" 2> /dev/null) shards"; exit 2; }
rm -f "$folder.ended"
# A task restarted by Slurm finds its own folder; the suite refuses to resume if the options have changed.
place=(--out "$folder")
[ ! -e "$folder/suite.json" ] || place=(--resume "$folder")
echo "shard $shard of $shards on ${SLURMD_NODENAME:-this node}: ${place[0]} $folder"
# The shard comes first: the rest may end with options for the benches, after --.
"$suite" --shard "$shard/$shards" "${place[@]}" "$@"
code=$?
echo "$code" > "$folder.ended"
exit "$code"
