#!/bin/bash
# The order, limits and results of tools/test --cuda, with scripts in place of programs, GPU and compute-sanitizer:
# cuda_parts_check.sh SOURCE
set -euo pipefail
source=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$work/sweep-carried results=$work/sweep-carried/build/cuda-results calls=$work/calls

fail() { echo "cuda_parts_check: $*"; exit 1; }

# script FILE: what standard input says. It finds the lists of calls and results in the environment.
script() { { echo '#!/bin/bash'; cat; } >"$1" && chmod +x "$1"; }
export CALLS=$calls RESULTS=$results
mkdir -p "$here"/{tools,build/{bin,tests,fallback}} "$work/bin"
touch "$here/CARRIED"
cp "$source"/tools/{test,common.sh,cuda_parts.sh} "$here/tools/"
script "$here/build/bin/sweep" <<'END'
[ "$1" = --version ] || echo 'cuda:0  a GPU'
END
# A test program: it has a test for every filter, and says with which filter it is called.
script "$here/build/tests/engine_tests" <<'END'
filter='*'
for flag in "$@"; do case $flag in --gtest_filter=*) filter=${flag#*=} ;; esac; done
case $filter in \*ConvPool*) name=kernels ;; All/LayerReference*) name=layers ;; -*) name=rest ;; *) name=$filter ;; esac
[[ $name != none ]] || { [[ $* = *list_tests* ]] && echo 'Suite.'; exit 0; }
[[ $* = *list_tests* ]] && { printf 'Suite.\n  Test\n'; exit 0; }
echo "${SANITIZER:+$SANITIZER }$name ${SWEEP_TEST_DEVICE:-} ${SWEEP_CUDA_KERNELS:-}; $(cut -d ' ' -f 1 "$RESULTS/summary.txt" | xargs)" >>"$CALLS"
if [ "$name" = "${HANGING:-}" ]; then sleep 600 & wait; fi
if [ "$name" = "${FAILING:-}" ]; then echo '[  FAILED  ] 1 test'; exit 1; fi
echo '[  PASSED  ] 1 test.'
END
printf 'tests/engine_tests\tSWEEP_TEST_DEVICE=cuda\ntests/engine_tests\tSWEEP_TEST_DEVICE=cuda-library\n' >"$here/build/gpu-tests.txt"
script "$here/tools/bench" <<'END'
echo "bench $*; $(cut -d ' ' -f 1 "$RESULTS/summary.txt" | xargs)" >>"$CALLS"
echo '| CNN | 4 ms |'
END
script "$work/bin/compute-sanitizer" <<'END'
tool=$2
echo '========= COMPUTE-SANITIZER'
case $SANITIZERS in
  unsupported) echo '========= Error: Device not supported. Please refer to the "Supported Devices" section'; exit 1 ;;
  hang) echo '[ RUN      ] Suite.Test'; sleep 600 & wait ;;
  hang-with-error) echo '========= Invalid __global__ read of size 4 bytes'; sleep 600 & wait ;;
  empty) echo '========= ERROR SUMMARY: 0 errors'; exit 0 ;;
esac
shift 4
SANITIZER=$tool exec "$@"
END

# parts STATUS ARGUMENT…: tools/test --cuda with these arguments has to end so; its messages are in $work/told.
parts() {
  local wanted=$1 status=0
  shift
  rm -f "$calls"
  env PATH="$work/bin:$PATH" "$here/tools/test" --cuda "$@" >"$work/told" 2>&1 </dev/null || status=$?
  [ "$status" = "$wanted" ] || fail "test --cuda $*: status $status, not $wanted: $(<"$work/told")"
}
# expect WHAT FILE TEXT: the file holds exactly this.
expect() { [ "$(cat "$2")" = "$3" ] || fail "$1: got:"$'\n'"$(cat "$2")"$'\n'"want:"$'\n'"$3"; }
# outcome PART OUTCOME: how the part ended, according to the summary.
outcome() { grep -qE "^$1 +$2 " "$results/summary.txt" || fail "want $1 $2: $(<"$results/summary.txt")"; }

# The layers come first, then the rest, each after the results of what was before it are on disk. Nothing else is run unasked.
parts 0
expect "the parts" "$calls" 'kernels cuda ; devices
kernels cuda-library ; devices
layers cuda ; devices kernels
layers cuda-library ; devices kernels
rest cuda ; devices kernels layers
rest cuda-library ; devices kernels layers'
outcome devices passed
outcome layers passed
outcome rest passed
grep -q 'a GPU' "$results/devices.txt" || fail "the devices are not in the results"
parts 0 --bench
expect "the benchmark's place" <(tail -n 3 "$calls") "bench --cuda --seconds 540 --results-folder $results; devices kernels layers
rest cuda ; devices kernels layers benchmark
rest cuda-library ; devices kernels layers benchmark"
grep -q '4 ms' "$results/benchmark.txt" || fail "the benchmark is not in the results"
[ ! -e "$results/memcheck.txt" ] || fail "a sanitizer ran unasked"

# A part that fails does not keep the others from running, and is told at the end.
FAILING=layers parts 1
outcome layers FAILED
outcome rest passed
grep -q 'layers .*SWEEP_TEST_DEVICE=cuda tests/engine_tests;.*cuda-library tests/engine_tests' "$work/told" || fail "what failed: $(<"$work/told")"
# Flags choose tests; a filter that finds none is a mistake.
parts 0 --gtest_filter=Some.Test
expect "chosen tests" "$calls" 'Some.Test cuda ; devices
Some.Test cuda-library ; devices'
parts 1 --gtest_filter=none
outcome chosen FAILED
mv "$here/build/tests/engine_tests" "$work/"
parts 1
grep -q 'cannot be started' "$results/layers.txt" || fail "a missing program: $(<"$results/layers.txt")"
mv "$work/engine_tests" "$here/build/tests/"

# One budget for all: programs that hang are stopped, and the benchmark comes last, with what is left.
begin=$SECONDS there=$work/there
HANGING=rest RESULTS=$there parts 1 --minutes 1 --results "$there"
[ $((SECONDS - begin)) -lt 50 ] || fail "one minute took $((SECONDS - begin)) s before the benchmark"
grep -qE '^rest +FAILED .*was stopped by its limit' "$there/summary.txt" || fail "a hanging program: $(<"$there/summary.txt")"
grep -qE '^benchmark +passed ' "$there/summary.txt" || fail "no benchmark: $(<"$there/summary.txt")"
grep -qE "^bench --cuda --seconds ([1-9]|[1-3][0-9]|4[0-5]) --results-folder $there; devices kernels layers rest\$" "$calls" || fail "what is left: $(<"$calls")"
parts 2 --minutes soon
grep -q 'got "soon", want a number of minutes' "$work/told" || fail "--minutes soon: $(<"$work/told")"

# Sanitizers: at the end, on request, each with its limit.
SANITIZERS=work parts 0 --sanitize 60
expect "sanitizers" <(tail -n 4 "$calls") 'memcheck layers cuda builtin; devices kernels layers rest
initcheck layers cuda builtin; devices kernels layers rest memcheck
racecheck layers cuda builtin; devices kernels layers rest memcheck initcheck
memcheck layers cuda library; devices kernels layers rest memcheck initcheck racecheck'
SANITIZERS=unsupported parts 0 --sanitize 60
outcome memcheck skipped
grep -q 'memcheck-library .*does not support this device' "$work/told" || fail "an unsupported device: $(<"$work/told")"
SANITIZERS=empty parts 1 --sanitize 60
outcome memcheck FAILED
FAILING=layers SANITIZERS=work parts 1 --sanitize 60
outcome racecheck FAILED
begin=$SECONDS
SANITIZERS=hang parts 0 --sanitize 1
outcome memcheck unfinished
SANITIZERS=hang-with-error parts 1 --sanitize 1
outcome memcheck FAILED
[ $((SECONDS - begin)) -lt 60 ] || fail "sanitizers that hang took $((SECONDS - begin)) s"
parts 2 --sanitize soon
grep -q 'got "soon", want seconds' "$work/told" || fail "--sanitize soon: $(<"$work/told")"
echo "cuda_parts_check: all is as it should be"
