#!/bin/bash
# The bash completion, in a real bash: completion_check.sh PROGRAM
set -euo pipefail
script=$("$1" completion bash)
bash -n <<<"$script"
eval "$script"
complete_words() {  # WORDS… -> what is offered for the last of them
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  _sweep
  echo "${COMPREPLY[*]}"
}
expect() {
  local wanted=$1
  shift
  local got
  got=$(complete_words "$@")
  [ "$got" = "$wanted" ] || { echo "completing '$*': got '$got', want '$wanted'"; exit 1; }
}
cd "$(mktemp -d)"  # No file is offered here.
expect plan sweep pl
expect devices sweep dev
expect export-model sweep export-
expect --weights sweep predict --w
expect --fail-fast sweep x.json --fa
expect --logdir sweep run x.json --lo
expect --json sweep plan x.json --j
expect "zsh" sweep completion z
expect fsck sweep fs
expect "--tag" sweep export runs --t
