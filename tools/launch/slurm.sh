#!/usr/bin/env bash
# Runs the suite as a Slurm job array, one shard per GPU, then one job that merges the results.
#   tools/launch/slurm.sh --shards N --out FOLDER [--programs FOLDER] [--sbatch OPTION]... [-- SUITE OPTION...]
#
# --out       a folder that every node sees; each shard writes into FOLDER/shard-<i>
# --programs  folder with suite, report and bench_*, on every node [default: what Bazel built in this checkout]
# --sbatch    an option for both jobs, e.g. --sbatch --partition=h200; repeatable
# --shard-sbatch  an option for the shards only [default: --gres=gpu:1]; repeatable
# Run it again with the same --out to continue after a failure: shards keep their rows.
set -euo pipefail

die() { echo "slurm.sh: $1" >&2; exit 2; }

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
shards="" out="" programs=""
both=() for_shards=() suite_options=()
while [ $# -gt 0 ]; do
  case $1 in
    --shards | --out | --programs | --sbatch | --shard-sbatch)
      [ $# -gt 1 ] || die "$1 needs a value; see the top of this file" ;;
  esac
  case $1 in
    --shards) shards=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --programs) programs=$2; shift 2 ;;
    --sbatch) both+=("$2"); shift 2 ;;
    --shard-sbatch) for_shards+=("$2"); shift 2 ;;
    --) shift; suite_options=("$@"); break ;;
    *) die "'$1' is not an option; see the top of this file" ;;
  esac
done
[[ $shards =~ ^[1-9][0-9]*$ ]] || die "--shards must be a number, such as 8"
[ -n "$out" ] || die "--out is missing"
# Slurm expands % in log names.
[[ $out != *%* ]] || die "--out $out: Slurm expands % in file names; choose a folder without it"
command -v sbatch > /dev/null || die "no sbatch on PATH: run this where jobs are submitted"
[ ${#for_shards[@]} -gt 0 ] || for_shards=(--gres=gpu:1)

if [ -z "$programs" ]; then
  built=$(cd "$here/../.." && pwd)/bazel-bin/Kernels/benchmarks
  suite=$built/comparison/suite
  report=$built/report/report
else
  suite=$programs/suite
  report=$programs/report
fi
for program in "$suite" "$report"; do
  [ -x "$program" ] || die "no $program; build //Kernels/benchmarks/comparison:suite and //Kernels/benchmarks/report"
done
mkdir -p "$out/logs" || die "cannot write into $out"
out=$(readlink -f "$out")
# Shards of another number have other workloads: their results would be merged with these.
if [ -e "$out/shards" ]; then
  earlier=$(cat "$out/shards")
  [ "$earlier" = "$shards" ] ||
    die "$out holds a run of $earlier shards, not $shards: use --shards $earlier to continue it, or another folder"
elif [ -n "$(find "$out" -maxdepth 1 -name 'shard-*' -print -quit)" ]; then
  die "$out holds shards of a run whose number is not known: choose another folder"
fi
echo "$shards" > "$out/shards" || die "cannot write into $out"

# A restarted task appends to its log.
submit() { sbatch --parsable --open-mode=append "$@"; }
array=$(submit --job-name=head-to-head --array="1-$shards" --output="$out/logs/shard-%a.log" \
  "${both[@]}" "${for_shards[@]}" \
  "$here/slurm_shard.sh" "$(readlink -f "$suite")" "$shards" "$out" "${suite_options[@]}") ||
  die "sbatch rejected the shards; its reason is above"
# On a federation the answer is JOB;CLUSTER.
array=${array%%;*}
# Results are merged whatever happened to the shards; a failed shard also fails the merge job.
merge=$(submit --job-name=head-to-head-merge --dependency="afterany:$array" \
  --output="$out/logs/merge.log" "${both[@]}" \
  "$here/slurm_merge.sh" "$(readlink -f "$report")" "$shards" "$out") || {
  scancel "$array" || echo "slurm.sh: scancel failed; job $array is still queued" >&2
  die "sbatch rejected the merge, so the shards were cancelled; its reason is above"
}
echo "shards: job $array; merge: job ${merge%%;*}; results: $out"
