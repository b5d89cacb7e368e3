#!/usr/bin/env bash
# Set up, then every check that is no test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
environment=$(bash scripts/setup.sh test)
PATH="$(cd "$environment/bin" && pwd):$PATH"
ruff check .
ruff format --check .
mypy
lint-imports
