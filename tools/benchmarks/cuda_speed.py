#!/usr/bin/env python3
"""Measures training on a GPU against PyTorch on the same GPU, and writes tables of medians.

  cuda_speed.py --sweep PROGRAM --engine-benchmark PROGRAM [--device-limits PROGRAM] [--device cuda|cpu] [--rounds N]
                [--seconds N] [--only TEXT] [--quick] [--results PATH | --results-folder FOLDER] [--commit NAME]

Every round runs all programs once; PyTorch with a compiler or a DataLoader is slow, so it is run only in the first round and
only if there is a target for it.
PATH.md and PATH.json are written, or FOLDER/<date>-<GPU>-cuda.{md,json}: before each measurement, with all that came before it,
because the GPU may be gone before the last. Run with a Python whose torch sees the GPU; without it PyTorch's columns say so. Nothing new is
started after --seconds, and no peer may take longer than --peer-seconds: what is missing then is named. --quick takes few
samples, and with --device cpu no GPU: it shows that all of this works, and its times mean nothing. tools/bench --cuda
does all that.
"""
import argparse
import dataclasses
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cuda_report
import machine
from training_speed import Case, ROOT, time_engine_epoch, train_run, parse_seconds, run, torch_command

CASES = [
    Case("CNN", "fashion-cnn", 100, 0), Case("CNN", "fashion-cnn", 1000, 0), Case("CNN", "fashion-cnn", 10000, 0),
    Case("CNN", "fashion-cnn", 20000, 0), Case("MLP", "mlp", 128, 0),
    Case("cats and dogs", "cats-dogs", 100, 0, (1, 50, 50), 2, 1000),
    Case("residual network", "resnet", 128, 0, (3, 32, 32), 10, 1024),
]
# The largest batches that joined kernels take, and the smallest that they do not: conv_pool_stack up to 132 images, StackStepKernel
# up to 256. The difference says what joining saves.
EDGES = [Case("CNN", "fashion-cnn", batch, 0) for batch in (132, 133, 256, 257)]
# Options of PyTorch's program, and epochs. With a DataLoader one epoch is long enough.
VARIANTS = {
    "eager": (["--data", "resident"], 3),
    "tf32": (["--data", "resident", "--tf32"], 3),
    "compile": (["--data", "resident", "--compile", "--compile-mode", "reduce-overhead"], 3),
    "loader": (["--data", "loader"], 1),
}
# Steps over which the time of a kernel is a median, and the most seconds that a network and batch may take for that.
KERNEL_STEPS, KERNEL_SECONDS = 200, 10
LIMITS_SECONDS = 20  # for the GPU's limits
QUICK_SAMPLES = 60
SKIPPED = 77
UNFINISHED = "what comes after these measurements: they ended early, or are still going on"


class Bench:
    def __init__(self, args, torch):
        self.args, self.torch = args, torch
        self.end = time.monotonic() + args.seconds
        self.epochs, self.details, self.sweeps, self.choices, self.kernels, self.missing = {}, {}, {}, {}, {}, []
        self.dataset = {"limit": QUICK_SAMPLES} if args.quick else {}
        self.save = lambda: None  # writes what has been measured

    def seconds_left(self):
        return self.end - time.monotonic()

    def attempt(self, label, measure):
        """Returns the result of `measure`, or None if it fails or no time is left; the other measurements go on."""
        self.save()
        if self.seconds_left() < 5:
            self.missing.append(f"{label}: {cuda_report.NO_TIME}")
            return None
        print(f"{label} ({self.seconds_left():.0f} s left)", file=sys.stderr, flush=True)
        try:
            return measure()
        except subprocess.TimeoutExpired as error:
            self.missing.append(f"{label}: took longer than {error.timeout:.0f} s")
        except subprocess.CalledProcessError as error:
            lines = (error.stderr or error.stdout or "").strip().splitlines() or [f"exit code {error.returncode}"]
            self.missing.append(f"{label}: {lines[-1][:300]}")
        except OSError as error:
            self.missing.append(f"{label}: {error}")
        return None

    def scale_down(self, case):
        """Returns the case, with --quick one of few samples."""
        if not self.args.quick:
            return case
        return dataclasses.replace(case, batch=min(case.batch, QUICK_SAMPLES // 2), samples=QUICK_SAMPLES)

    def sweep_epochs(self, case, placement="auto", workers=0, environment=None):
        """Returns the seconds of each epoch, without what the run does before the first one."""
        name, case = case.name, self.scale_down(case)
        if case.shape:
            return [time_engine_epoch(self.args, case, self.args.device, placement, environment)]
        settings = {"device": self.args.device, "num_workers": workers}
        record = train_run(self.args, case, 1 if self.args.quick else 10, settings, environment,
                           placement=placement, **self.dataset)
        if environment is None and placement == "auto":
            measured = self.details.setdefault(name, {"setup_seconds": [], "device_seconds": []})
            measured["setup_seconds"].append(record["seconds"]["setup"])
            measured["device_seconds"] += [e["device_seconds"] for e in record["epochs"] if "device_seconds" in e]
            measured["placement"] = record["placement"]
        return [epoch["epoch_seconds"] for epoch in record["epochs"]]

    def measure_kernels(self):
        """Measures each kernel of a training step by events."""
        for case in (case for case in self.args.cases if case.network == "fashion-cnn" and case.batch <= 10000):
            command = [self.args.engine_benchmark, "--device", self.args.device, "--network", case.path, "--batch",
                       self.scale_down(case).batch, "--kernel-times", 3 if self.args.quick else KERNEL_STEPS]
            found = self.attempt(f"{case.name}, kernels", lambda: json.loads(run(command, timeout=KERNEL_SECONDS)))
            if found:
                self.kernels[case.name] = found

    def run_peer(self, command):
        return run(command, timeout=max(1, min(self.args.peer_seconds, self.seconds_left())))

    def torch_epochs(self, case, variant):
        options, epochs = VARIANTS[variant]
        compiles = variant == "compile"  # The first epoch compiles and records graphs, so it is left out.
        command = torch_command(self.args, self.scale_down(case), *options, "--device", self.args.device, "--warm-up", 3,
                                "--epochs", (1 if self.args.quick else epochs) + compiles,
                                *(["--limit", QUICK_SAMPLES] if self.args.quick and not case.shape else []))
        return parse_seconds(self.run_peer(command))[compiles:]

    def add_result(self, table, name, program, values):
        if values is not None:
            table.setdefault(name, {}).setdefault(program, []).extend(values)

    def measure_epochs(self, number):
        for case in self.args.cases:
            title = f"round {number + 1}: {case.name}"
            self.add_result(self.epochs, case.name, "sweep", self.attempt(title, lambda: self.sweep_epochs(case)))
            if self.torch:
                for variant in ("eager", "tf32"):
                    self.add_result(self.epochs, case.name, variant,
                                    self.attempt(f"{title}, PyTorch {variant}", lambda: self.torch_epochs(case, variant)))

    def measure_slow_peers(self):
        for variant in ("loader", "compile"):
            for case in self.args.cases if self.torch else ():
                if variant not in cuda_report.TARGETS.get(case.name, {}):
                    continue
                self.add_result(self.epochs, case.name, variant,
                                self.attempt(f"{case.name}, PyTorch {variant}", lambda: self.torch_epochs(case, variant)))

    def time_sweep(self):
        """Returns the seconds of the whole program, those of its runs without their setup, and the number of runs."""
        with tempfile.TemporaryDirectory() as work:
            limit = [f"dataset.limit={QUICK_SAMPLES}", "batch_size=20,30,60"] if self.args.quick else []
            start = time.perf_counter()
            run([self.args.sweep, ROOT / "sweeps/cpu-vs-cuda.json", f"device={self.args.device}", *limit, "--logdir",
                 work, "--threads", self.args.threads, "--quiet", "--strict"])
            whole = time.perf_counter() - start
            records = machine.run_records(Path(work) / "cpu-vs-cuda")
        return whole, sum(r["seconds"]["run"] - r["seconds"]["setup"] for r in records), len(records)

    def time_torch_sweep(self):
        limit = ["--limit", QUICK_SAMPLES] if self.args.quick else []
        sizes = (20, 30, 60) if self.args.quick else (1000, 10000, 20000)
        start = time.perf_counter()
        for workers in (0, 1):
            with tempfile.TemporaryDirectory() as work:
                command = torch_command(self.args, Case("", "fashion-cnn", sizes[0], 0), "--data", "loader",
                                        "--num-workers", workers, "--epochs", 2, "--lr", 0.01, "--device",
                                        self.args.device, "--logdir", work, *limit)
                command.remove("--plain")
                at = command.index("--batch-size") + 1
                self.run_peer([*command[:at], *sizes, *command[at + 1:]])
        return time.perf_counter() - start

    def measure_sweeps(self, number):
        found = self.attempt(f"round {number + 1}: whole program", self.time_sweep)
        if found:
            self.sweeps.setdefault("sweep", []).append(found[0])
            self.sweeps.setdefault("runs", []).append(found[1])
            self.sweeps["count"] = found[2]
        if self.torch and number == 0:
            seconds = self.attempt("whole program, PyTorch", self.time_torch_sweep)
            if seconds:
                self.sweeps["loader"] = [seconds]

    def measure_choices(self, number):
        """Measures the engine's own choices against the alternatives."""
        cases = {case.name: case for case in self.args.cases}

        def measure(group, name, program, **options):
            if name in cases:
                self.add_result(self.choices, (group, name), program,
                                self.attempt(f"round {number + 1}: {name}, {group} {program}",
                                             lambda: self.sweep_epochs(cases[name], **options)))

        for workers in (0, 1, 4):
            measure("placement", "CNN, 1000", f"host, {workers} workers", placement="host", workers=workers)
        measure("placement", "CNN, 1000", "device", placement="device")
        measure("placement", "residual network, 128", "host, 0 workers", placement="host")
        measure("placement", "residual network, 128", "device", placement="device")
        for steps in (1, 4, 16, 64):
            measure("steps in a graph", "CNN, 100", str(steps), environment={"SWEEP_CUDA_STEPS": str(steps)})
        for case in EDGES if "CNN, 100" in cases else ():
            cases[case.name] = case
            measure("limits of joined kernels", case.name, "sweep")
        for name in ("CNN, 1000", "MLP, 128", "cats and dogs, 100", "residual network, 128"):
            for choice, kernels in (("builtin", "builtin"), ("library", "library"), ("by shape", "")):
                measure("kernels", name, choice, environment={"SWEEP_CUDA_KERNELS": kernels})

    def run_all(self):
        """Measures everything."""
        if self.args.device == "cuda":
            self.measure_kernels()
        for number in range(self.args.rounds):
            self.measure_epochs(number)
            if not self.args.only:
                self.measure_sweeps(number)
            if number == 0:
                self.measure_slow_peers()
        # The least important measurements come last, since time may run out.
        for number in range(self.args.rounds) if self.args.device == "cuda" else ():
            self.measure_choices(number)


def gpu_facts(args):
    """Returns facts about the GPU, its driver and its limits, as far as they are available."""
    facts = {}
    if shutil.which("nvidia-smi") and args.device == "cuda":
        names = ["name", "driver_version", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.limit", "memory.total"]
        asked = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader"],
                               capture_output=True, text=True)
        if asked.returncode == 0 and asked.stdout:
            facts = dict(zip(names, (value.strip() for value in asked.stdout.splitlines()[0].split(","))))
    if args.device_limits and args.device == "cuda":
        try:
            asked = subprocess.run([args.device_limits], capture_output=True, text=True, timeout=LIMITS_SECONDS)
            facts["limits"] = machine.parsed(asked.stdout) if asked.returncode == 0 else asked.stderr.strip()
        except subprocess.TimeoutExpired:
            facts["limits"] = f"they took longer than {LIMITS_SECONDS} s"
    facts["devices"] = run([args.sweep, "devices"]).strip().splitlines()
    return facts


def torch_version(device):
    """Returns the version of a PyTorch that can use the device, or None, and a text for the report."""
    try:
        import torch
    except ImportError:
        return None, "missing: not installed for this Python"
    if device == "cuda" and not torch.cuda.is_available():
        return None, f"missing: {torch.__version__} sees no GPU"
    return torch.__version__, torch.__version__


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--engine-benchmark", required=True)
    parser.add_argument("--device-limits", help="program that measures what the GPU can do at most")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=540, help="nothing is started later")
    parser.add_argument("--peer-seconds", type=float, default=75, help="no peer may take longer")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    parser.add_argument("--no-peers", action="store_true", help="without PyTorch")
    parser.add_argument("--quick", action="store_true", help="few samples: does it work?")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--results-folder", type=Path)
    parser.add_argument("--commit", default="unknown")
    args = parser.parse_args()
    args.cases = [case for case in CASES if args.only in case.name]
    if args.quick:
        args.rounds = 1
    return args


def main():
    args = parse_arguments()
    about = machine.describe()
    facts = gpu_facts(args)
    if args.device == "cuda":
        why = next((line for line in facts["devices"] if line.startswith("cuda") and "cannot be used" in line), None)
        if why:
            print(f"SKIPPED, there is no GPU to measure: {why}", file=sys.stderr)
            return SKIPPED
    torch, torch_text = (None, "left out") if args.no_peers else torch_version(args.device)
    bench = Bench(args, torch)
    start = time.monotonic()
    path = args.results
    if args.results_folder and not path:
        name = re.sub("[^a-z0-9]+", "-", facts.get("name", "no-gpu").lower()).strip("-")
        path = args.results_folder / f"{machine.now():%Y-%m-%d}-{name}-cuda"

    def write():
        text = cuda_report.report(bench, about, facts, torch_text, time.monotonic() - start)
        if path:
            machine.write_results(path, text, cuda_report.as_json(bench, about, facts, torch_text))
        return text

    def save():
        bench.missing.append(UNFINISHED)
        write()
        bench.missing.remove(UNFINISHED)

    bench.save = save
    bench.run_all()
    print(write())
    if path:
        print(f"written: {path}.md and .json", file=sys.stderr)
    if not any(programs.get("sweep") for programs in bench.epochs.values()):
        print("no measurement of sweep succeeded", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
