#!/usr/bin/env bash
# Set up, then run the tests: test.sh [pytest's arguments]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
environment=$(bash scripts/setup.sh test)
PATH="$(cd "$environment/bin" && pwd):$PATH"
exec python -m pytest -q "$@"
