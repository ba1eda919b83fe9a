#!/usr/bin/env bash
# One shard of the suite, as a task of a Slurm array. usage: slurm_shard.sh SUITE SHARDS OUT [SUITE OPTION...]
set -uo pipefail
suite=$1 shards=$2 out=$3
shift 3
folder=$out/shard-$SLURM_ARRAY_TASK_ID
rm -f "$folder.ended"
# A task that Slurm started again finds its own folder.
if [ -e "$folder/suite.json" ]; then
  "$suite" --resume "$folder"
else
  # The shard comes first: what follows may end with options for the benches, after --.
  "$suite" --shard "$SLURM_ARRAY_TASK_ID/$shards" --out "$folder" "$@"
fi
code=$?
echo "$code" > "$folder.ended"
exit "$code"
