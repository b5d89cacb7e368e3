#!/usr/bin/env bash
# Set up, then fine-tune the embedded default: quickstart.sh [quickstart|quickstart_lm]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
recipe=${1:-quickstart}
case "$recipe" in
  quickstart) purpose=quickstart sentence="a warm, funny and moving film" ;;
  quickstart_lm) purpose=lm sentence="Who are you?" ;;
  *) printf 'unknown quickstart %s: quickstart or quickstart_lm\n' "$recipe" >&2; exit 2 ;;
esac
environment=$(bash scripts/setup.sh "$purpose")
PATH="$(cd "$environment/bin" && pwd):$PATH"
launcher run "$recipe" --new
# `runs`, or where the runs of a rented machine go.
runs=$(python -c 'import os, pathlib; from launcher.hardware.placement import runs_folder
print(runs_folder(os.environ, pathlib.Path.cwd()))')
cat <<END

The trained model is $runs/$recipe/final. Next, type:
  $environment/bin/launcher predict $runs/$recipe "$sentence"
  $environment/bin/launcher cat $recipe
  $environment/bin/launcher run $recipe --new training.learning_rate=1e-4
  $environment/bin/launcher ls
END
