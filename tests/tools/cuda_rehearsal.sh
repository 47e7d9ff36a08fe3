#!/bin/bash
# Rehearses `tools/test --cuda --minutes N` as on a machine with a GPU, but with the stand-in: cuda_rehearsal.sh SOURCE BUILD RESULTS [MINUTES].
# The programs find no compiler, no toolkit, no network, no torch, and neither the source nor what was built. The stand-in takes
# hundreds of times as long as a GPU, so the parts are smaller here: each test runs with one of the environments and not with all,
# and the benchmark takes few samples. Prints the summary; fails if it took longer, or if a part failed or was stopped by its limit.
set -euo pipefail
source=$(readlink -f "$1") build=$(readlink -f "$2") results=$(readlink -m "$3") minutes=${4:-10}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$work/sweep-carried

fail() { echo "cuda_rehearsal: $*"; exit 1; }
unshare -rmn true 2>/dev/null || { echo "skipped: this system lets no user hide folders and networks"; exit 77; }

mkdir -p "$here"/{build/{bin,tests,lib,fallback},tools/benchmarks/results,tests,data} "$results"
echo rehearsal >"$here/CARRIED"
cp "$source"/tools/{test,bench,common.sh,cuda_parts.sh} "$here/tools/"
cp "$source"/tools/benchmarks/*.py "$here/tools/benchmarks/"
cp -r "$source/sweeps" "$here/"
cp -r "$source/tests/data" "$here/tests/"
cp "$build/tests/sweep_on_cuda_host" "$here/build/bin/sweep"
cp "$build/tests/cuda_on_host_tests" "$here/build/tests/engine_tests"
cp "$build/tests/cuda_host_layer_tests" "$here/build/tests/cuda_kernel_tests.host"
# As on a GPU, it has only the tests of kernels: no rest.
printf '%s\n' '#!/bin/bash' 'case "$*" in *gtest_filter=-*) exit 0 ;; esac' 'exec "$0.host" "$@"' >"$here/build/tests/cuda_kernel_tests"
cp "$build/tests/cuda_on_host_program_tests" "$here/build/tests/cuda_program_tests"
# Epochs of larger networks would take minutes.
if [ -e "$build/tests/engine_benchmark_on_cuda_host" ]; then
  cp "$build/tests/engine_benchmark_on_cuda_host" "$here/build/tests/engine_benchmark.host"
  printf '%s\n' '#!/bin/bash' 'case "$*" in *--kernel-times*) exec "$0.host" "$@" ;; esac' 'exit 1' >"$here/build/tests/engine_benchmark"
  chmod +x "$here/build/tests/engine_benchmark"
fi
printf '%s\n' $'tests/engine_tests\tSWEEP_CUDA_KERNELS=builtin GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=0' \
  $'tests/engine_tests\tSWEEP_CUDA_KERNELS=library GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=1' \
  $'tests/cuda_kernel_tests\t' $'tests/cuda_program_tests\t' >"$here/build/gpu-tests.txt"
mv "$here/tools/bench" "$here/tools/bench.whole"
printf '#!/bin/bash\nexec "$0.whole" "$@" --quick\n' >"$here/tools/bench"
chmod +x "$here/tools/bench" "$here/build/tests/cuda_kernel_tests"
for folder in "${SWEEP_DATA:-}" /usr/share/datasets /usr/local/share/datasets; do
  [ ! -d "$folder/fashion-mnist" ] || { cp -rL "$folder/fashion-mnist" "$here/data/" && break; }
done

begin=$SECONDS status=0
env -i PATH=/usr/bin:/bin HOME="$work" unshare -rmn bash -c '
  for folder in "$1" "$2" /usr/local/cuda /usr/lib/gcc /usr/share/datasets /usr/local/share/datasets; do
    [ ! -d "$folder" ] || mount -t tmpfs none "$folder"
  done
  cd / && exec "$3/tools/test" --cuda --minutes "$4" --results "$5"' bash "$source" "$build" "$here" "$minutes" "$work/results" \
  >"$work/log" 2>&1 </dev/null || status=$?
cp -r "$work"/results/. "$work/log" "$results/" || fail "there are no results: $(tail "$work/log")"
seconds=$((SECONDS - begin))
cat "$results/summary.txt"
echo "in all $seconds s of $((60 * minutes)) s, status $status"
[ $seconds -le $((60 * minutes)) ] || fail "it took longer than $minutes minutes"
for part in devices kernels layers rest benchmark; do
  line=$(grep "^$part " "$results/summary.txt") || fail "$part had no turn"
  [[ $line != *FAILED* ]] || fail "$part failed: $(tail "$results/$part.txt")"
done
[ ! -e "$here/build/tests/engine_benchmark" ] || grep -q '| StackStepKernel' "$results"/*-cuda.md || fail "there are no times of kernels"
