# shellcheck shell=bash
# What tools/test --cuda runs, in parts: those first that tell most for their time, because a machine with a GPU may be there for
# minutes only. A part's output is in PART.txt of the results while it runs, and a line on it in summary.txt as soon as it ends.
# Sourced by bash, after common.sh.

# Single kernels; then layers, losses and optimizers against PyTorch and the CPU engine: what shows most of the faults, and should do so
# within a minute.
kernel_tests='*ConvPool*:StackStep.*:AugmentSamples.*:ValueCounter.*'
layer_tests='All/LayerReference.*:Parity.*:All/OptimizerParity.*:Feed.*'
# Seconds that one program may take, for the kernels, for the layers and for the rest.
kernel_limit=60 layer_limit=120 rest_limit=400
# The benchmark starts nothing new after 540 s, and none of its parts takes longer than 75 s.
benchmark_limit=660
# With one budget for everything: what the tests leave to the benchmark, and what it needs to end after its last measurement.
benchmark_share=180 benchmark_end=15
cuda_end=0  # in $SECONDS; 0: no budget

# list_gpu_tests BUILD: a line for each test labelled gpu: its program, and after a tab its environment. The whole program is run,
# which is right because CTest labels all tests of these programs so.
list_gpu_tests() {
  ctest --test-dir "$1" --show-only=json-v1 -L '^gpu$' | python3 -c '
import json, os, sys
lines = {}
for test in json.load(sys.stdin)["tests"]:
    environment = [p["value"] for p in test.get("properties", []) if p["name"] == "ENVIRONMENT"]
    command = test.get("command") or sys.exit("not built: " + test["name"])
    lines["tests/" + os.path.basename(command[0]) + "\t" + " ".join(v for value in environment for v in value)] = 1
print("\n".join(lines))'
}

# limited SECONDS COMMAND…: ends the command and everything that it started after SECONDS, with 124 or 137. Ctrl-C also ends it.
limited() {
  local job status=0
  timeout --kill-after=10 "$@" </dev/null &
  job=$!
  # timeout makes a process group of its own, which the terminal's Ctrl-C does not reach.
  trap 'kill "$job" 2>/dev/null; exit 130' INT
  trap 'kill "$job" 2>/dev/null; exit 143' TERM
  wait "$job" || status=$?
  trap - INT TERM
  return $status
}

# within LIMIT [RESERVE]: so many seconds, or what is left of the budget without the reserve if that is less; at least one.
within() {
  local limit=$1 left=$((cuda_end - SECONDS - ${2:-0}))
  [ "$cuda_end" = 0 ] || [ "$left" -ge "$limit" ] || limit=$left
  echo $((limit > 1 ? limit : 1))
}

# part NAME COMMAND…: runs it, and notes how it ended. 77 means skipped, 75 unfinished. Never ends the script.
part() {
  local name=$1 begin=$SECONDS status=0 outcome why=''
  shift
  say "$name"
  "$@" 2>&1 | tee -i "$results/$name.txt" || status=$?
  case $status in
    0) outcome=passed ;;
    75) outcome=unfinished ;;
    77) outcome=skipped ;;
    *) outcome=FAILED failed=1 ;;
  esac
  [ $status = 0 ] || why=$(tail -n 1 "$results/$name.txt")
  printf '%-18s %-10s %5d s%s\n' "$name" $outcome $((SECONDS - begin)) "${why:+  $why}" >>"$results/summary.txt"
}

show_devices() {
  limited 60 "$build_dir/bin/sweep" devices || return 1
  ! command -v nvidia-smi >/dev/null || limited 60 nvidia-smi || true
}

# run_gpu_tests SECONDS FLAG…: every program that has tests under GoogleTest's flags, each for so long at most.
run_gpu_tests() {
  local limit=$1 program environment tests ended ran=0 failures=''
  shift
  while IFS=$'\t' read -r program environment; do
    tests=$("$build_dir/$program" --gtest_list_tests "$@" </dev/null) || { failures+=" $program cannot be started;" && continue; }
    grep -q '^  ' <<<"$tests" || continue
    ran=1 ended=0
    echo "${environment:+$environment }$program $*"
    # shellcheck disable=SC2086
    limited "$(within "$limit" $benchmark_share)" env $environment "$build_dir/$program" --gtest_brief=1 "$@" || ended=$?
    case $ended in
      0) ;;
      124 | 137) failures+=" ${environment:+$environment }$program was stopped by its limit;" ;;
      *) failures+=" ${environment:+$environment }$program;" ;;
    esac
  done <"$build_dir/gpu-tests.txt"
  [ $ran = 1 ] || failures+=" no program has tests under $*;"
  [ -z "$failures" ] || { echo "failed:${failures%;}" && return 1; }
}

# sanitize SECONDS TOOL KERNELS: the layers under a tool of compute-sanitizer. NVIDIA's libraries are worth memcheck only: it shows
# whether they are given wrong addresses.
sanitize() {
  local limit=$1 tool=$2 kernels=$3 seen=$results/.seen.txt status=0
  limited "$limit" env SWEEP_TEST_DEVICE=cuda "SWEEP_CUDA_KERNELS=$kernels" "$sanitizer" --tool "$tool" --error-exitcode 1 \
    "$build_dir/tests/engine_tests" --gtest_filter="$layer_tests" 2>&1 | tee -i "$seen" || status=$?
  if grep -qi 'device not supported' "$seen"; then
    echo "compute-sanitizer does not support this device"
    return 77
  elif [ $status = 124 ] || [ $status = 137 ]; then
    echo "stopped after $limit s, before all tests had been run"
    ! grep '^=========' "$seen" | grep -qv COMPUTE-SANITIZER || return 1
    return 75
  elif [ $status = 0 ] && ! grep -q '\[  PASSED  \] [1-9]' "$seen"; then
    # Some versions of compute-sanitizer do not start programs that they do not understand, and report no error.
    echo "no test was run"
    return 1
  fi
  return $status
}

# measure: the benchmark, whose results are also in files of their own there.
measure() {
  local status=0
  limited "$(within $benchmark_limit)" "$root/tools/bench" --cuda --seconds "$(within $((benchmark_limit - 120)) $benchmark_end)" \
    --results-folder "$results" || status=$?
  [ $status != 124 ] && [ $status != 137 ] || echo "the benchmark was stopped by its limit"
  return $status
}

# run_cuda_parts BENCHMARK SANITIZE_SECONDS MINUTES RESULTS [FLAG…]: with 1 for BENCHMARK also the benchmark; with seconds above 0
# the sanitizers, each for up to that long; with minutes above 0 all parts and the benchmark together take no longer. With flags for
# GoogleTest only the tests that they choose. Returns whether all was well.
run_cuda_parts() {
  local benchmark=$1 sanitize_seconds=$2 minutes=$3 results=$4 failed=0 sanitizer='' tool
  shift 4
  # A program that is stopped has ten seconds to end.
  [ "$minutes" = 0 ] || cuda_end=$((SECONDS + 60 * minutes - 15))
  if [ "$sanitize_seconds" -gt 0 ]; then
    sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) ||
      die "--sanitize: compute-sanitizer is not installed; it comes with the CUDA toolkit"
  fi
  mkdir -p "$results" || give_up "cannot create $results"
  rm -f "$results"/*.txt
  trap 'exit 130' INT
  trap 'exit 143' TERM
  part devices show_devices
  if [ $# -gt 0 ]; then
    part chosen run_gpu_tests "$rest_limit" "$@"
  else
    part kernels run_gpu_tests "$kernel_limit" --gtest_filter="$kernel_tests"
    part layers run_gpu_tests "$layer_limit" --gtest_filter="$layer_tests"
    [ "$benchmark" = 0 ] || [ "$minutes" != 0 ] || part benchmark measure
    part rest run_gpu_tests "$rest_limit" --gtest_filter="-$kernel_tests:$layer_tests"
    [ "$minutes" = 0 ] || part benchmark measure
  fi
  if [ -n "$sanitizer" ]; then
    for tool in memcheck initcheck racecheck; do part "$tool" sanitize "$sanitize_seconds" $tool builtin; done
    part memcheck-library sanitize "$sanitize_seconds" memcheck library
  fi
  rm -f "$results/.seen.txt"
  say "the parts, with their output in ${results#"$root/"}:"
  cat "$results/summary.txt" >&2
  return $failed
}
