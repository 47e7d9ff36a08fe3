#!/bin/bash
# The completion scripts, in real shells: completion_check.sh PROGRAM. zsh and fish only where they are installed.
set -euo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" && ln -s "$program" "$folder/bin/sweep"
PATH=$folder/bin:$PATH
cd "$folder"
mkdir -p work/runs && cd work
touch x.json

failed=0
sorted() { tr ' ' '\n' <<<"$1" | sort | tr '\n' ' '; }  # Shells have orders of their own.
expect_in() {  # SHELL WANTED LINE: the last word of the line has to be offered as WANTED, blank-separated
  local got
  got=$("complete_$1" "$3")
  [ "$(sorted "$got")" = "$(sorted "$2")" ] || { echo "$1, completing '$3': got '$got', want '$2'"; failed=1; }
}
# What is the same in all of them: whole words as they would be on the line.
expect_everywhere() {
  for shell in $shells; do expect_in "$shell" "$@"; done
}

# bash replaces only what comes after the last "=" or ":"; the rest is put before it here.
script=$(sweep completion bash)
bash -n <<<"$script"
eval "$script"
complete_bash() {
  local quoted= candidate words=()
  compopt() { [ "$2" != filenames ] || quoted=1; }
  COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
  _sweep
  local word=${1##* }
  local before=
  [[ $word == *[=:]* ]] && before=${word%"${word##*[=:]}"}
  for candidate in "${COMPREPLY[@]}"; do
    [ -z "$quoted" ] || candidate=${candidate// /\\ }
    words+=("$before$candidate")
  done
  echo "${words[*]}"
}
shells=bash
if command -v zsh >/dev/null; then
  shells+=' zsh'
  sweep completion zsh >_sweep
  zsh -n _sweep
  complete_zsh() {  # With the builtins of the completion system replaced by what prints their arguments.
    zsh -f -c '
      compset() { lead=$2 }
      _files() { local f; for f in "${words[CURRENT]#$~lead}"*(N); do print -r -- "${(Q)lead}$f"; done }
      compadd() { local -a all; eval "all=(\"\${${@[-1]}[@]}\")"; print -rl -- "${all[@]}" }
      words=(${=1}); [[ $1 == *" " ]] && words+=("")
      CURRENT=$#words
      # As compinit has it loaded at the first completion, and after that.
      if [[ $1 == *pl* ]]; then fpath=($PWD); autoload -U _sweep; else source ./_sweep; fi
      _sweep' zsh "$1" | tr '\n' ' ' | sed 's/ $//'
  }
else
  echo "zsh is not installed: its completion is not tested"
fi
if command -v fish >/dev/null; then
  shells+=' fish'
  sweep completion fish >sweep.fish
  complete_fish() {
    HOME=$folder fish --no-config -c 'source sweep.fish; complete -C "$argv[1]"' "$1" |
      cut -f 1 | sort -u | tr '\n' ' ' | sed 's/ $//'
  }
else
  echo "fish is not installed: its completion is not tested"
fi

expect_everywhere plan 'sweep pl'
expect_everywhere devices 'sweep dev'
expect_everywhere export-model 'sweep export-'
expect_everywhere --weights 'sweep predict --w'
expect_everywhere --fail-fast 'sweep x.json --fa'
expect_everywhere '' 'sweep x.json --prog'
expect_everywhere --logdir 'sweep run x.json --lo'
expect_everywhere --json 'sweep plan x.json --js'
expect_everywhere zsh 'sweep completion z'
expect_everywhere 'cifar10 cifar100' 'sweep data get ci'
expect_everywhere fsck 'sweep fs'
expect_everywhere --tag 'sweep export runs --t'
expect_everywhere x.json 'sweep x.j'
expect_everywhere x.json 'sweep plan x.j'
expect_everywhere '' 'sweep comple-'
# Keys and their values.
expect_everywhere 'optimizer= optimizer.' 'sweep x.json opti'
expect_everywhere lr= 'sweep run --epochs 3 x.json batch_size=100 lr'
expect_everywhere dataset.limit= 'sweep x.json dataset.lim'
expect_everywhere log.images= 'sweep x.json log.images'
expect_everywhere optimizer.nesterov= 'sweep x.json optimizer.nes'
expect_everywhere optimizer=adamw 'sweep x.json optimizer=adamw'
expect_everywhere shuffle=true 'sweep x.json shuffle=t'
expect_everywhere checkpoint=last,best 'sweep x.json checkpoint=last,b'
expect_everywhere dataset=fashion-mnist 'sweep plan x.json dataset=fa'
expect_everywhere dataset.format=idx 'sweep plan x.json dataset.format=id'
expect_everywhere epochs= 'sweep missing.json epo'
# Choices and files.
expect_everywhere markdown 'sweep export --format m'
expect_everywhere --format=markdown 'sweep export --format=m'
expect_everywhere '' 'sweep export --no-such-option m'
expect_in bash runs 'sweep show ru'
# Names of runs have "=".
mkdir runs/s && touch runs/s/lr=0.1,b=1 runs/s/lr=0.1,b=2 runs/s/other
expect_everywhere 'runs/s/lr=0.1,b=1 runs/s/lr=0.1,b=2' 'sweep show runs/s/lr=0.1,b'
expect_everywhere 'runs/s/lr=0.1,b=2' 'sweep show runs/s/lr=0.1,b=2'
expect_everywhere 'init=runs/s/lr=0.1,b=1 init=runs/s/lr=0.1,b=2' 'sweep x.json init=runs/s/lr=0.1'
expect_everywhere '--data=runs/s/other' 'sweep evaluate x --data=runs/s/o'
expect_everywhere cuda 'sweep predict runs --device cu'
# Words with blanks, which bash quotes.
mkdir 'my runs' && touch 'my runs/y z.json'
expect_in bash 'my\ runs' 'sweep show my'
for word in 'my\ runs/y\ ' '"my runs/y ' "'my runs/y "; do
  expect_in bash 'my\ runs/y\ z.json' "sweep show $word"
  expect_in bash 'my\ runs/y\ z.json' "sweep x.json init=$word"
done
expect_in bash --format "sweep show 'my runs' --form"
expect_in bash 'stop.metric=Number\ Correct/train stop.metric=Number\ Correct/validation' 'sweep x.json stop.metric=Num'
exit $failed
