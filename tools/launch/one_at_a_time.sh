#!/usr/bin/env bash
# Runs a command while no other command runs this way on this machine, so that nobody else measures on the card.
# A GitHub concurrency group would not do: it keeps one run waiting and cancels the others.
#   usage: one_at_a_time.sh COMMAND...      ONE_AT_A_TIME_WAIT_S: how long to wait for a turn [default: 14400]
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: one_at_a_time.sh COMMAND..." >&2; exit 2; }
lock=${ONE_AT_A_TIME_LOCK:-/tmp/head-to-head.lock}
wait_s=${ONE_AT_A_TIME_WAIT_S:-14400}

# Several users may share the machine: the first one creates the file, everybody can lock it.
[ -e "$lock" ] || (umask 0; : >> "$lock") || { echo "one_at_a_time: cannot make $lock" >&2; exit 2; }
exec 9< "$lock"
if ! flock --nonblock 9; then
  echo "one_at_a_time: waiting for the command that holds $lock" >&2
  flock --timeout "$wait_s" 9 || { echo "one_at_a_time: no turn in $wait_s s; who holds $lock?" >&2; exit 75; }
fi
# The command does not inherit the lock: a Bazel server outlives the command that starts it.
"$@" 9<&-
