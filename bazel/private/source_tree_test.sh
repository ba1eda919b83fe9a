#!/usr/bin/env bash
# Becomes the program that the arguments name.
set -euo pipefail
exec "$@"
