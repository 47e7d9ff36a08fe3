#!/bin/bash
# The completion scripts, in real shells: completion_check.sh PROGRAM. zsh and fish only where they are installed.
set -euo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" && ln -s "$program" "$folder/bin/sweep"
PATH=$folder/bin:$PATH
cd "$folder"
mkdir -p work/networks work/runs/fashion/lr=0.1,x=a work/runs/fashion/lr=0.2,x=a && cd work
cat >x.json <<'END'
{
  // with a comment
  "name": "x", "dataset": "fashion-mnist", "network": "networks/n.json", "optimizer": "adam",
  "params": {"lr": [0.01, 0.001], "batch_size": [100, 1000], "dataset.limit": [500]},
}
END
echo '{"layers": [{"name": "conv1", "type": "conv2d", "out_channels": 6, "kernel_size": 5}, {"type": "relu"}]}' >networks/n.json
cp x.json runs/fashion/sweep.json

failed=0
sorted() { tr ' ' '\n' <<<"$1" | sort | tr '\n' ' '; }  # Shells have orders of their own.
expect_in() {  # SHELL WANTED LINE: the last word of the line has to be offered as WANTED, blank-separated
  local got
  got=$("complete_$1" "$3")
  [ "$(sorted "$got")" = "$(sorted "$2")" ] || { echo "$1, completing '$3': got '$got', want '$2'"; failed=1; }
}
# What is the same in all of them: whole words as they would stand on the line.
expect_everywhere() {
  for shell in $shells; do expect_in "$shell" "$@"; done
}

# bash replaces what comes behind the last "=" or ":" only; the rest is put before it here.
script=$(sweep completion bash)
bash -n <<<"$script"
eval "$script"
complete_bash() {
  COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
  _sweep
  local word=${1##* }
  local before=
  [[ $word == *[=:]* ]] && before=${word%"${word##*[=:]}"}
  local words=("${COMPREPLY[@]/#/$before}")
  echo "${words[*]}"
}
shells=bash
if command -v zsh >/dev/null; then
  shells+=' zsh'
  sweep completion zsh >sweep.zsh
  zsh -n sweep.zsh
  complete_zsh() {  # With the builtins of the completion system replaced by what prints their arguments.
    zsh -f -c '
      compset() { : }
      _files() { local f; for f in "${words[CURRENT]##*=}"*(N); do print -r -- "$f"; done }
      compadd() { local -a all; eval "all=(\"\${${@[-1]}[@]}\")"; print -rl -- "${all[@]}" }
      source ./sweep.zsh
      words=(${=1}); [[ $1 == *" " ]] && words+=("")
      CURRENT=$#words
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
expect_everywhere --logdir 'sweep run x.json --lo'
expect_everywhere --json 'sweep plan x.json --js'
expect_everywhere zsh 'sweep completion z'
expect_everywhere fsck 'sweep fs'
expect_everywhere --tag 'sweep export runs --t'
expect_everywhere x.json 'sweep x.j'
expect_everywhere x.json 'sweep plan x.j'
expect_everywhere '' 'sweep comple-'
# Keys, in the file and beyond it, and their values.
expect_everywhere 'optimizer= optimizer.' 'sweep x.json opti'
expect_everywhere lr= 'sweep x.json lr'
expect_everywhere lr= 'sweep run --epochs 3 x.json batch_size=100 lr'
expect_everywhere dataset.limit= 'sweep x.json dataset.lim'
expect_everywhere log.images= 'sweep x.json log.images'
expect_everywhere weight_decay= 'sweep x.json wei'
expect_everywhere network.layers. 'sweep x.json network.l'
expect_everywhere 'network.layers.1. network.layers.conv1.' 'sweep x.json network.layers.'
expect_everywhere network.layers.conv1.out_channels= 'sweep x.json network.layers.conv1.out'
expect_everywhere network.layers.0.out_channels= 'sweep x.json network.layers.0.out'
expect_everywhere network.layers.conv1.out_channels=6 'sweep x.json network.layers.conv1.out_channels='
expect_everywhere optimizer=adamw 'sweep x.json optimizer=adamw'
expect_everywhere shuffle=true 'sweep x.json shuffle=t'
expect_everywhere device=cuda 'sweep x.json device=cu'
expect_everywhere lr=0.01,0.001 'sweep x.json lr=0.01,'
expect_everywhere dataset=fashion-mnist 'sweep plan x.json dataset=fa'
expect_in bash 'optimizer=adam optimizer=sgd optimizer=adamw optimizer=rmsprop' 'sweep x.json optimizer='
expect_in bash 'lr=0.01 lr=0.001' 'sweep x.json lr='
expect_in bash 'shuffle=true shuffle=false' 'sweep x.json shuffle='
# Sweeps, runs, columns and keys of a sweep.
expect_everywhere runs/fashion/ 'sweep show runs/fa'
expect_everywhere runs/ 'sweep ls ru'
expect_everywhere 'runs/fashion/lr=0.1,x=a/ runs/fashion/lr=0.2,x=a/' 'sweep evaluate runs/fashion/'
expect_everywhere batch_size 'sweep compare runs/fashion --by ba'
expect_everywhere --by=batch_size 'sweep compare runs/fashion --by=ba'
expect_everywhere test_accuracy 'sweep show runs/fashion --sort test_acc'
expect_everywhere lr,test_accuracy 'sweep show runs/fashion --columns lr,test_acc'
expect_everywhere markdown 'sweep export --format m'
expect_everywhere auto 'sweep x.json --jobs a'
expect_everywhere mnist 'sweep data get mn'
# A file that is not there, or no JSON, is no reason to say nothing.
echo '{' >broken.json
expect_everywhere epochs= 'sweep broken.json epo'
expect_everywhere epochs= 'sweep missing.json epo'
exit $failed
