#!/usr/bin/env bash
# Set up, then every benchmark, each into benchmarks/results/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
environment=$(bash scripts/setup.sh test)
PATH="$(cd "$environment/bin" && pwd):$PATH"
for script in startup planning quickstart_quality; do
  python "benchmarks/$script.py" --save
done
python benchmarks/trainer.py
