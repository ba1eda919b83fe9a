#!/usr/bin/env bash
# Lints .github/workflows with the pinned zizmor: syntax, unpinned actions, injection, lingering credentials,
# broad permissions. First it must find the faults in a planted workflow.
# usage: lint.sh ZIZMOR
set -euo pipefail
zizmor=$(readlink -f "$1")
tree=$(dirname "$(readlink -f MODULE.bazel)")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

lint() { "$zizmor" --offline --no-progress --quiet --min-severity medium "$@"; }

mkdir -p "$scratch/.github/workflows"
cat > "$scratch/.github/workflows/planted.yml" << 'YAML'
on: issue_comment
jobs:
  planted:
    runs-on: ubuntu-24.04
    steps:
      - run: echo "${{ github.event.comment.body }}"
YAML
if lint "$scratch/.github/workflows" > "$scratch/found" 2>&1; then
  echo "the linter found nothing in a workflow with an injection"
  exit 1
fi
grep -q template-injection "$scratch/found" || { cat "$scratch/found"; exit 1; }

printf 'on: push\njobs:\n  broken:\n    steps: 7\n' > "$scratch/.github/workflows/planted.yml"
if lint "$scratch/.github/workflows" > "$scratch/found" 2>&1; then
  echo "the linter accepted a broken workflow"
  exit 1
fi

lint "$tree/.github/workflows"
echo "workflows are clean"
