#!/usr/bin/env bash
# The branch `measurements` of a repository: for each card, base.json, with which later runs are compared, and
# history.jsonl, one line per run. A branch stays until somebody deletes it; caches and artifacts expire.
#   measurements.sh base REMOTE CARD FILE             copies the base into FILE; exit 3 if the card has none yet
#   measurements.sh history REMOTE CARD FILE          copies the history into FILE, empty if the card has none yet
#   measurements.sh keep REMOTE CARD LINE [BASE]      appends the file LINE to the history; BASE becomes the base
# GITHUB_TOKEN, if set, is the password for REMOTE.
set -euo pipefail
branch=measurements

die() { echo "measurements: $1" >&2; exit 1; }
[ $# -ge 4 ] || die "wrong usage; see the top of this file"
action=$1 remote=$2 card=$3
[[ $card =~ ^[A-Za-z0-9_-]+$ ]] || die "'$card' is not the name of a card, such as H200"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
authenticated=()
# Pass the token through the environment: command lines are visible to everybody.
[ -z "${GITHUB_TOKEN:-}" ] ||
  authenticated=(-c 'credential.helper=!f() { echo username=x-access-token; echo "password=$GITHUB_TOKEN"; }; f')
run_git() {
  GIT_TERMINAL_PROMPT=0 git -C "$scratch/tree" "${authenticated[@]}" \
    -c user.name=measurements -c user.email=measurements@localhost "$@"
}
git init --quiet "$scratch/tree"

# 0: the branch has been fetched; 2: the repository has none. Anything else is an error.
fetch() {
  local code=0
  run_git ls-remote --quiet --exit-code "$remote" "refs/heads/$branch" > /dev/null || code=$?
  case $code in
    0) run_git fetch --quiet --depth=1 "$remote" "$branch" || die "cannot fetch the branch $branch of $remote" ;;
    2) return 2 ;;
    *) die "cannot reach $remote" ;;
  esac
}

base() {
  local file=$1
  if ! fetch || ! run_git cat-file -e "FETCH_HEAD:$card/base.json" 2> /dev/null; then
    echo "measurements: $card has no base yet; run gpu.yml manually with new_base to create it" >&2
    exit 3
  fi
  run_git show "FETCH_HEAD:$card/base.json" > "$file"
  echo "measurements: the base of $card is in $file"
}

history() {
  local file=$1
  : > "$scratch/history.jsonl"
  if fetch && run_git cat-file -e "FETCH_HEAD:$card/history.jsonl" 2> /dev/null; then
    run_git show "FETCH_HEAD:$card/history.jsonl" > "$scratch/history.jsonl"
  fi
  cp "$scratch/history.jsonl" "$file"
  echo "measurements: $(wc -l < "$file") runs of $card are in $file"
}

keep() {
  local line=$1 new_base=${2:-} subject
  [ -s "$line" ] || die "$line, the line for the history, is empty or not there"
  [ -z "$new_base" ] || [ -s "$new_base" ] || die "$new_base, the new base, is empty or not there"
  subject="$card: a run${new_base:+, and a new base}"
  # Another run may push between our fetch and our push.
  for ((attempt = 1; attempt <= ${MEASUREMENTS_ATTEMPTS:-8}; attempt++)); do
    if fetch; then
      run_git checkout --quiet --detach --force FETCH_HEAD
    elif [ "$attempt" -eq 1 ]; then
      run_git checkout --quiet --orphan "$branch"
    fi
    mkdir -p "$scratch/tree/$card"
    cat "$line" >> "$scratch/tree/$card/history.jsonl"
    [ -z "$new_base" ] || cp "$new_base" "$scratch/tree/$card/base.json"
    run_git add --all
    run_git commit --quiet --message "$subject"
    if run_git push --quiet "$remote" "HEAD:refs/heads/$branch"; then
      echo "measurements: $subject"
      return
    fi
    sleep "$((RANDOM % (attempt * 4) * ${MEASUREMENTS_PAUSE_S:-1}))"
  done
  die "could not push to the branch $branch of $remote"
}

case $action in
  base) base "$4" ;;
  history) history "$4" ;;
  keep) keep "${@:4}" ;;
  *) die "'$action' is neither base, history nor keep" ;;
esac
