#!/usr/bin/env python3
"""tools/benchmarks/training_speed.py from end to end, with few samples: on the CPU, and on the host in a GPU's place.

  cuda_bench_test.py SOURCE_FOLDER SWEEP SWEEP_ON_CUDA_HOST [ENGINE_BENCHMARK ENGINE_BENCHMARK_ON_CUDA_HOST]

Exit codes: 0 all is as it should be, 1 it is not, 77 there is no Fashion-MNIST.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

source, sweep, stand_in = sys.argv[1:4]
engine_benchmark, stand_in_benchmark = sys.argv[4:6] if len(sys.argv) > 4 else (None, None)
for program in sys.argv[2:]:
    if not os.access(program, os.X_OK):
        sys.exit(f"there is no program {program}; build it first")
problems = []
BENCH = [sys.executable, "-B", f"{source}/tools/benchmarks/training_speed.py", "--quick", "--no-peers"]


def expect(good, what):
    if not good:
        problems.append(what)


def bench(results, program, *options):
    """The tables, what JSON has of them, and how it ended."""
    done = subprocess.run([*BENCH, "--sweep", program, "--engine-benchmark",
                           (stand_in_benchmark if program == stand_in else engine_benchmark) or "none", "--results", str(results), *options],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return "", {}, done
    return results.with_name(results.name + ".md").read_text(), \
        json.loads(results.with_name(results.name + ".json").read_text()), done


def seconds_of(result, case):
    return result.get("epochs", {}).get(case, {}).get("sweep", [])


with tempfile.TemporaryDirectory() as folder:
    work = Path(folder)
    text, result, done = bench(work / "cpu", sweep, "--device", "cpu", "--threads", "1")
    if "fashion-mnist" in done.stderr and "not found" in done.stderr:
        print(f"skipped: {done.stderr}")
        sys.exit(77)
    expect(done.returncode == 0, f"on the CPU: exit code {done.returncode}: {done.stderr}")
    cases = ["CNN, 100", "CNN, 1000", "CNN, 10000", "CNN, 20000", "MLP, 128"]
    if engine_benchmark:
        cases += ["cats and dogs, 32", "cats and dogs, 100", "cats and dogs, 1000", "residual network, 128"]
        expect(not result.get("missing"), f"on the CPU: missing {result.get('missing')}")
    for case in cases:
        expect(min(seconds_of(result, case), default=0) > 0, f"on the CPU: no seconds of {case}")
        expect(f"| {case} |" in text, f"on the CPU: {case} is not in the tables")
    expect(result.get("sweeps", {}).get("count") == 6, f"on the CPU: whole program: {result.get('sweeps')}")
    for words in ("| the 6 runs of cpu-vs-cuda.json", "the times mean nothing", "PyTorch left out", *(["16x32x32 to 16 k3"] if engine_benchmark else [])):
        expect(words in text, f"on the CPU: the report does not say {words!r}")

    text, result, done = bench(work / "stand-in", stand_in, "--device", "cuda", "--only", "CNN, 100")
    expect(done.returncode == 0, f"on the stand-in: exit code {done.returncode}: {done.stderr}")
    if engine_benchmark:
        expect(not result.get("missing"), f"on the stand-in: missing {result.get('missing')}")
        # Batches of --quick are so small that one kernel replaces several.
        for case in ("CNN, 100", "CNN, 1000", "CNN, 10000"):
            times = result.get("kernels", {}).get(case, {})
            kernels = {kernel["name"].split("<")[0]: kernel["us"] for kernel in times.get("kernels", [])}
            expect(len(kernels) == 3 and 0 < min(kernels.values()) <= max(kernels.values()) < times["step_us"],
                   f"on the stand-in: kernels of {case}: {times}")
            expect({"ConvPoolStackKernel", "StackStepKernel"} <= kernels.keys(), f"on the stand-in: names of kernels: {times}")
            expect(f"| {case} | StackStepKernel" in text, f"on the stand-in: kernels of {case} are not in the tables")
    devices = subprocess.run([stand_in_benchmark or "true", "--device", "cpu", "--kernel-times", "1", "--batch", "2", "--network",
                              f"{source}/sweeps/networks/fashion-cnn.json"], capture_output=True, text=True)
    expect(not stand_in_benchmark or (devices.returncode == 2 and "no kernel was seen" in devices.stderr),
           f"kernels of the CPU: {devices.returncode}, {devices.stderr}")
    expect("(12: " in text, "on the stand-in: the report does not say what is wanted of CNN, 100")
    details = result.get("details", {}).get("CNN, 1000", {})
    expect(details.get("placement") == "device", f"on the stand-in: {details}")
    for key in ("setup_seconds", "device_seconds"):
        expect(min(details.get(key) or [0]) > 0, f"on the stand-in: no {key}: {details}")
    choices = {(entry["what"], entry["case"]): sorted(entry["epochs"]) for entry in result.get("choices", [])}
    wanted = {("placement", "CNN, 1000"): ["device", "host, 0 workers", "host, 1 workers", "host, 4 workers"],
              ("steps in a graph", "CNN, 100"): ["1", "16", "4", "64"],
              ("limits of joined kernels", "CNN, 257"): ["sweep"],
              ("kernels", "CNN, 1000"): ["builtin", "by shape", "library"]}
    for key, programs in wanted.items():
        expect(choices.get(key) == programs, f"on the stand-in: {key}: {choices.get(key)}")

    # If the machine is lost in the middle of a case, those before it are there.
    stuck = work / "stuck"
    stuck.write_text(f'#!/bin/sh\ncase "$*" in *bench.json*) [ ! -e "{work}/bench.json" ] || exec sleep 600; cp "$1" "{work}" ;; esac\n'
                     f'exec "{sweep}" "$@"\n')
    stuck.chmod(0o755)
    lost = subprocess.Popen([*BENCH, "--sweep", stuck, "--engine-benchmark", "none", "--results", work / "lost"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def lost_result():
        try:
            return json.loads((work / "lost.json").read_text())
        except (OSError, ValueError):  # not there yet, or being written
            return {}

    end = time.monotonic() + 120
    while not seconds_of(lost_result(), "CNN, 100") and lost.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    expect(lost.poll() is None, "ended early: ended by itself")
    if lost.poll() is None:
        os.killpg(lost.pid, signal.SIGKILL)
    lost.wait()
    result = lost_result()
    expect(min(seconds_of(result, "CNN, 100"), default=0) > 0, f"ended early: no seconds of CNN, 100: {result}")
    expect(any("ended early" in text for text in result.get("missing", [])), f"ended early: {result.get('missing')}")

    # Both programs shuffle, as people do who train.
    trained = json.loads((work / "bench.json").read_text())
    expect(trained["shuffle"] is True, f"samples are not shuffled: {trained}")
    sys.path.insert(0, f"{source}/tools/benchmarks")
    import training_report
    import training_speed
    rows = list(training_report.sweep_table(argparse.Namespace(sweeps={"count": 6, "sweep": [3], "runs": [2]}, is_cuda=True)))
    expect("2 s (2 to 2) (1: **no**)" in rows[-1], f"what is wanted of a sweep on a GPU: {rows}")
    args = argparse.Namespace(threads=1, device="cuda", quick=False)
    peer = training_speed.torch_command(args, training_speed.CASES["cuda"][0])
    expect("--shuffle" in peer, f"PyTorch does not shuffle: {peer}")

    # What a search costs to show is measured although no two of its trials are a pair.
    import overhead_speed
    overhead_speed.SHOWN = 20
    times = overhead_speed.shown_search(argparse.Namespace(sweep=os.path.abspath(sweep)), folder)
    expect(set(times) == {"report", "show", "effects", "compare", "status", "ls"}, f"commands of a search: {times}")

    # Without a GPU nothing is measured, and it says why.
    devices = subprocess.run([sweep, "devices"], capture_output=True, text=True).stdout
    if "cannot be used" in devices:
        _, _, done = bench(work / "none", sweep, "--device", "cuda")
        expect(done.returncode == 77 and "SKIPPED" in done.stderr and "cannot be used" in done.stderr,
               f"without a GPU: exit code {done.returncode}: {done.stderr}")

for problem in problems:
    print(problem)
sys.exit(1 if problems else 0)
