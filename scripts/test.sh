#!/usr/bin/env bash
# Set up, then run the tests: test.sh [pytest's arguments]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
environment=$(bash scripts/setup.sh test)
PATH="$(cd "$environment/bin" && pwd):$PATH"
# Tests start several processes on few cores: waiting threads that spin would cost most of the time.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-PASSIVE}"
# A file's tests stay together: their fixtures are made once. TEST_PROCESSES=0 runs them one after another.
exec python -m pytest -q -n "${TEST_PROCESSES:-2}" --dist loadfile "$@"
