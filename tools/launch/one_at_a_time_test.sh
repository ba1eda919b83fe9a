#!/usr/bin/env bash
# one_at_a_time.sh: turns, exit codes, what a command leaves behind. usage: one_at_a_time_test.sh ONE_AT_A_TIME.SH
set -euo pipefail
alone=$(readlink -f "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export ONE_AT_A_TIME_LOCK="$scratch/lock"
cd "$scratch"

fail() { echo "FAILED: $1"; exit 1; }

# Four at once: nobody finds a mark that another has not yet removed.
for i in 1 2 3 4; do
  bash "$alone" bash -c 'mkdir mark && sleep 0.1 && rmdir mark && echo turn >> turns' 2>> said &
done
wait
[ "$(wc -l < turns)" -eq 4 ] || fail "two held the lock at once"
grep -q "waiting for the command that holds" said || fail "does not say that it waits"

code=0
bash "$alone" bash -c 'exit 7' || code=$?
[ "$code" -eq 7 ] || fail "the command's exit code is lost: $code"

# A daemon that the command starts does not keep the lock.
bash "$alone" bash -c 'sleep 30 > /dev/null 2>&1 & echo $! > daemon'
ONE_AT_A_TIME_WAIT_S=1 bash "$alone" true || fail "a daemon holds the lock"
kill "$(cat daemon)"

exec 8< lock
flock 8
code=0
ONE_AT_A_TIME_WAIT_S=0.1 bash "$alone" true 2> said || code=$?
[ "$code" -eq 75 ] && grep -q "no turn in 0.1 s" said || fail "waits without end"
! bash "$alone" 2> said || fail "no command"
grep -q "usage" said || fail "no usage"
echo "one_at_a_time.sh: all as it should be"
