#!/usr/bin/env bash
# Runs the cases of one Python file, each by name.
set -euo pipefail
exec python3 -B "$1" --verbose
