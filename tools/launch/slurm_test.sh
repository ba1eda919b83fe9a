#!/usr/bin/env bash
# slurm.sh, slurm_shard.sh and slurm_merge.sh against stand-ins for Slurm, the suite and the report that fail in
# every way seen on clusters. slurm_trial.sh runs them on a real Slurm. usage: slurm_test.sh SLURM.SH
set -euo pipefail
launch=$(dirname "$(readlink -f "$1")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/a folder/programs" "$scratch/tools"
programs="$scratch/a folder/programs"
# Where Slurm is installed, PATH would find it.
for tool in bash env cat chmod dirname find readlink mkdir rm echo grep sed seq; do
  ln -s "$(command -v "$tool")" "$scratch/tools/$tool"
done
export PATH="$scratch/bin:$scratch/tools" STAND_IN_STATE="$scratch/state"
mkdir "$STAND_IN_STATE"

# sbatch: runs every task at once, as Slurm would later; FAKE_REFUSE names the job that it does not take.
cat > "$scratch/bin/sbatch" << 'STAND_IN'
#!/usr/bin/env bash
tasks=(none) name="" log=/dev/stderr
while [[ $1 == -* ]]; do
  case $1 in
    --array=1-*) mapfile -t tasks < <(seq "${1#--array=1-}") ;;
    --job-name=*) name=${1#*=} ;;
    --output=*) log=${1#*=} ;;
  esac
  echo "$1" >> "$STAND_IN_STATE/options"
  shift
done
if [ "$name" = "${FAKE_REFUSE:-}" ]; then echo "sbatch: error: invalid partition specified" >&2; exit 1; fi
job=$(cat "$STAND_IN_STATE/jobs" 2> /dev/null || echo 0)
echo $((job + 1)) > "$STAND_IN_STATE/jobs"
for task in "${tasks[@]}"; do
  [ "$task" != "${FAKE_LOST:-}" ] || continue
  [ "$task" = none ] || export SLURM_ARRAY_TASK_ID=$task
  "$@" >> "${log//%a/$task}" 2>&1 || echo "$task: $?" >> "$STAND_IN_STATE/failed"
done
echo "$((job + 1))${FAKE_CLUSTER:-}"
STAND_IN
printf '#!/usr/bin/env bash\necho "$*" >> "$STAND_IN_STATE/cancelled"\n' > "$scratch/bin/scancel"

cat > "$programs/suite" << 'STAND_IN'
#!/usr/bin/env bash
echo "suite $*"
shard=$2 folder=$4
mkdir -p "$folder"
echo '{}' > "$folder/suite.json"
[ "${shard%/*}" != "${FAKE_EMPTY:-}" ] || exit 2
echo "rows of $shard" > "$folder/results.json"
[ "${shard%/*}" != "${FAKE_FAIL:-}" ] || exit 1
STAND_IN
cat > "$programs/report" << 'STAND_IN'
#!/usr/bin/env bash
[ "$1" != "${FAKE_REPORT:-}" ] || { echo "report: $1: no space left" >&2; exit 2; }
case $1 in
  merge) cat "${@:2:$#-3}" > "${!#}" ;;
  plot) mkdir -p "${!#}" ;;
  *) echo "$1" > "${!#}" ;;
esac
STAND_IN
chmod +x "$scratch/bin"/* "$programs"/*

fail() { echo "FAILED: $1"; cat "$scratch/said" "$out"/logs/*.log 2> /dev/null; exit 1; }

# launch [VARIABLE=VALUE]... -- OPTION...: into the folder $out, which is kept.
launch() {
  local settings=()
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  rm -rf "$STAND_IN_STATE" && mkdir "$STAND_IN_STATE"
  env "${settings[@]}" bash "$launch/slurm.sh" "$@" > "$scratch/said" 2>&1
}
# refuses MESSAGE [VARIABLE=VALUE]... -- OPTION...
refuses() {
  local message=$1
  shift
  ! launch "$@" || fail "must be refused: $message"
  grep -qF -- "$message" "$scratch/said" || fail "does not say: $message"
}
# merge_says MESSAGE [VARIABLE=VALUE]...: submitted, but the merge's job fails and says so.
merge_says() {
  local message=$1
  shift
  rm -rf "$out"
  launch "$@" -- "${usual[@]}" || fail "was not submitted"
  grep -q "^none: 1$" "$STAND_IN_STATE/failed" || fail "the merge must fail: $message"
  grep -qF -- "$message" "$out/logs/merge.log" || fail "the merge does not say: $message"
}

out="$scratch/the results"
usual=(--shards 3 --out "$out" --programs "$programs")

launch -- "${usual[@]}" --sbatch --partition=h200 -- --suites dsv3 -- --seed 7 || fail "the plain case"
grep -qF "shards: job 1; merge: job 2; results: $out" "$scratch/said" || fail "does not name the jobs"
[ ! -e "$STAND_IN_STATE/failed" ] || fail "a job failed"
[ "$(cat "$out/results.json")" = $'rows of 1/3\nrows of 2/3\nrows of 3/3' ] || fail "not every shard is merged"
grep -qF "suite --shard 2/3 --out $out/shard-2 --suites dsv3 -- --seed 7" "$out/logs/shard-2.log" ||
  fail "the options do not arrive"
[ "$(grep -c -- --partition=h200 "$STAND_IN_STATE/options")" -eq 2 ] || fail "--sbatch is not for both jobs"
[ "$(grep -c -- --gres=gpu:1 "$STAND_IN_STATE/options")" -eq 1 ] || fail "only the shards want a GPU"

# Again into the same folder: every shard resumes, with the options that the suite then compares.
launch -- "${usual[@]}" -- --suites dsv3 || fail "the second start"
grep -qF "suite --shard 2/3 --resume $out/shard-2 --suites dsv3" "$out/logs/shard-2.log" ||
  fail "shard 2 did not resume"

# With another number of shards: neither side finds the other's results.
refuses "holds a run of 3 shards, not 2: use --shards 3" -- --shards 2 --out "$out" --programs "$programs"
[ "$(cat "$out/results.json")" = $'rows of 1/3\nrows of 2/3\nrows of 3/3' ] || fail "the first run was touched"
rm "$out/shards"
refuses "shards of a run whose number is not known" -- "${usual[@]}"
echo 4 > "$out/shards"
! SLURM_ARRAY_TASK_ID=1 bash "$launch/slurm_shard.sh" "$programs/suite" 3 "$out" > "$scratch/said" 2>&1 ||
  fail "a shard of 3 in a run of 4"
grep -q "belongs to a run of 4 shards" "$scratch/said" || fail "a shard of 3 in a run of 4"
! bash "$launch/slurm_merge.sh" "$programs/report" 3 "$out" > "$scratch/said" 2>&1 || fail "a merge of 3 of 4"
grep -q "belongs to a run of 4 shards" "$scratch/said" || fail "a merge of 3 of 4"
echo 3 > "$out/shards"

launch "FAKE_CLUSTER=;east" -- "${usual[@]}" || fail "on a federation"
grep -qF "shards: job 1; merge: job 2;" "$scratch/said" || fail "a job's cluster is taken for its number"

merge_says "shard 2 exited with code 1; its log is $out/logs/shard-2.log" FAKE_FAIL=2
grep -q "rows of 3/3" "$out/results.json" || fail "what the other shards found is lost"
merge_says "shard 3 has no results; its log is $out/logs/shard-3.log" FAKE_EMPTY=3
merge_says "shard 2 never finished: it was killed or did not start" FAKE_LOST=2
merge_says "report: plot: no space left" FAKE_REPORT=plot

refuses "sbatch rejected the shards" FAKE_REFUSE=head-to-head -- "${usual[@]}"
grep -q "invalid partition" "$scratch/said" || fail "sbatch's own reason is lost"
refuses "sbatch rejected the merge, so the shards were cancelled" FAKE_REFUSE=head-to-head-merge -- "${usual[@]}"
[ "$(cat "$STAND_IN_STATE/cancelled")" = 1 ] || fail "the shards were not cancelled"
refuses "--shards must be a number" -- --shards 0 --out "$out"
refuses "--out is missing" -- --shards 2
refuses "--out needs a value" -- --shards 2 --out
refuses "'--shard' is not an option" -- --shard 2
refuses "Slurm expands %" -- --shards 2 --out "$scratch/100%" --programs "$programs"
refuses "no $scratch/suite; build //Kernels/benchmarks/comparison:suite" \
  -- --shards 2 --out "$out" --programs "$scratch"
echo > "$scratch/a file"
refuses "cannot write into $scratch/a file/x" -- --shards 2 --out "$scratch/a file/x" --programs "$programs"
rm "$scratch/bin/sbatch"
refuses "no sbatch on PATH: run this where jobs are submitted" -- "${usual[@]}"
! bash "$launch/slurm_shard.sh" suite 2 out > "$scratch/said" 2>&1 || fail "a shard outside Slurm"
grep -q "started by slurm.sh" "$scratch/said" || fail "a shard outside Slurm"
echo "slurm.sh: all as it should be"
