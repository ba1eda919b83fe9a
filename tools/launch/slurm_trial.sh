#!/usr/bin/env bash
# slurm.sh against a real Slurm: a controller and two nodes on this machine, the suite's norms on the CPU in two
# shards, one shard requeued while it runs, the results merged; then shards that fail. usage: slurm_trial.sh
#
# Needs Slurm and munge (Debian: apt-get install --no-install-recommends slurm-wlm munge), no running service and
# no root: all daemons run as this user, with private keys, ports and folders, and stop with the script.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
tree=$(cd "$here/../.." && pwd)
ports=${SLURM_TRIAL_PORTS:-17817}  # the first of three
limit_s=${SLURM_TRIAL_LIMIT_S:-600}

die() { echo "slurm_trial: $1" >&2; exit 1; }
say() { echo "slurm_trial: $1"; }

PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd sbatch scontrol; do
  command -v "$program" > /dev/null || die "no $program: install Slurm and munge (Debian: slurm-wlm, munge)"
done
(cd "$tree" && ./bazelw build --config=cpu //Kernels/benchmarks/comparison:suite //Kernels/benchmarks/report)

# Socket paths must be short, so the scratch folder's is; that of the results has a blank.
scratch=$(mktemp -d "${TMPDIR:-/tmp}/slurm-trial.XXXXXX")
out="$scratch/the results"
daemons=()
clean_up() {
  [ -z "${array:-}" ] || scancel "$array" "$merge" 2> /dev/null || true
  for daemon in "${daemons[@]}"; do kill "$daemon" 2> /dev/null || true; done
  wait
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

start() {
  local name=$1
  shift
  "$@" > "$scratch/$name.log" 2>&1 &
  daemons+=($!)
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local seconds=$1 what=$2
  shift 2
  for ((i = 0; i < seconds * 2; i++)); do
    ! "$@" || return 0
    sleep 0.5
  done
  tail -n 20 "$scratch"/*.log "$out"/logs/*.log 2> /dev/null
  die "$what did not happen in $seconds seconds"
}

mkdir -p "$scratch"/{state,spool-a,spool-b}
# munge needs a socket that everybody can reach; the key beside it is private.
chmod 711 "$scratch"
head -c 1024 /dev/urandom > "$scratch/key"
chmod 600 "$scratch/key"
user=$(id -un)
cat > "$scratch/slurm.conf" << CONF
ClusterName=trial
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$ports
AuthType=auth/munge
AuthInfo=socket=$scratch/munge.socket
CredType=cred/munge
SlurmUser=$user
SlurmdUser=$user
StateSaveLocation=$scratch/state
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd-%n.pid
SlurmdSpoolDir=$scratch/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
SchedulerParameters=sched_interval=1
ReturnToService=2
InactiveLimit=0
MinJobAge=3600
NodeName=a NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((ports + 1)) CPUs=1
NodeName=b NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((ports + 2)) CPUs=1
PartitionName=all Nodes=a,b Default=YES State=UP
CONF
export SLURM_CONF="$scratch/slurm.conf"

start munged munged --foreground --key-file="$scratch/key" --socket="$scratch/munge.socket" \
  --pid-file="$scratch/munge.pid" --log-file="$scratch/munge-own.log" --seed-file="$scratch/munge.seed" \
  --num-threads=2
wait_for 10 "munge's socket" test -S "$scratch/munge.socket"
start slurmctld slurmctld -D -i
for node in a b; do start "slurmd-$node" slurmd -D -N "$node"; done
two_idle() { [ "$(sinfo --noheader --Node --states=idle --format=%N 2> /dev/null | sort -u | wc -l)" -eq 2 ]; }
wait_for 60 "two idle nodes" two_idle
say "$(slurmctld -V): nodes $(sinfo --noheader --Node --format='%N %T' | paste -sd, -)"

# submit SLURM.SH OPTION...: two shards; their jobs are $array and $merge.
submit() {
  local said
  said=$("$here/slurm.sh" --shards 2 --shard-sbatch --exclusive "$@") || die "slurm.sh failed"
  say "$said"
  array=$(sed -n 's/^shards: job \([0-9]*\);.*/\1/p' <<< "$said")
  merge=$(sed -n 's/.*merge: job \([0-9]*\);.*/\1/p' <<< "$said")
}
submit --out "$out" -- --ops rmsnorm_fwd,layernorm_fwd,softmax_fwd,softmax_bwd

field() { scontrol --oneliner show job "$1" 2> /dev/null | grep -o " $2=[^ ]*" | cut -d= -f2; }
is() { [ "$(field "$1" JobState)" = "$2" ]; }
ended() { [[ "$(field "$1" JobState)" =~ ^(COMPLETED|FAILED|CANCELLED|NODE_FAIL|TIMEOUT)$ ]]; }
both_run() { is "${array}_1" RUNNING && is "${array}_2" RUNNING; }
wait_for 60 "both shards running" both_run
nodes=$(for shard in 1 2; do field "${array}_$shard" NodeList; done | paste -sd' ' -)
say "shards 1 and 2 run at once, on nodes $nodes"
[ "$nodes" != "a a" ] && [ "$nodes" != "b b" ] || die "both shards are on one node"

# What a cluster does to reclaim a node.
wait_for 60 "a first row of shard 2" test -s "$out/shard-2/bench_norms.json"
scontrol requeue "${array}_2"
requeued() { [ "$(field "${array}_2" Restarts)" = 1 ]; }
wait_for 60 "the requeue of shard 2" requeued
say "shard 2 is requeued; the controller holds it for two minutes"
wait_for "$limit_s" "the end of the merge" ended "$merge"

for job in "${array}_1" "${array}_2" "$merge"; do
  say "job $job: $(field "$job" JobState), exit code $(field "$job" ExitCode), restarts: $(field "$job" Restarts)"
done
cat "$out/logs/merge.log"
is "$merge" COMPLETED || die "the merge failed"
grep '^shard 2 of 2' "$out/logs/shard-2.log"
grep "workloads are already measured" "$out/logs/shard-2.log" || die "shard 2 started from scratch"
rows() { grep -o '"contender":' "$1" | wc -l; }
total=$(($(rows "$out/shard-1/results.json") + $(rows "$out/shard-2/results.json")))
[ "$total" -gt 0 ] && [ "$(rows "$out/results.json")" -eq "$total" ] ||
  die "the merged file does not have every row of the shards"
for file in summary.md report.html; do [ -s "$out/$file" ] || die "no $file"; done
say "merged $total rows of two nodes into results.json, summary.md, report.html and plots"

# A failing shard: Slurm runs the merge anyway, and the merge job fails with it.
mkdir "$scratch/failing"
ln -s "$tree/bazel-bin/Kernels/benchmarks/report/report" "$scratch/failing/report"
printf '#!/bin/sh\necho "planted failure" >&2\nexit 7\n' > "$scratch/failing/suite"
chmod +x "$scratch/failing/suite"
submit --out "$scratch/failed" --programs "$scratch/failing"
wait_for 60 "the end of the second merge" ended "$merge"
is "$merge" FAILED || die "the merge passed although the shards failed"
grep -q "shard 2 exited with code 7" "$scratch/failed/logs/merge.log" || die "the merge does not name the shard"
say "shards that fail make the merge fail: $(head -n 1 "$scratch/failed/logs/merge.log")"
