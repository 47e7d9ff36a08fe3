#!/usr/bin/env python3
"""Measures training on the CPU or on a GPU against PyTorch on the same device, and writes tables of medians.

  training_speed.py --sweep PROGRAM --engine-benchmark PROGRAM [--device cpu|cuda] [--rounds N] [--seconds N] [--only TEXT] [--quick]

Every round runs all programs once, except what is slow on a GPU, PyTorch with a compiler or a DataLoader: that is run only in the first
round and only if there is a target for it. The results are written before each measurement, because a GPU may be gone before the last.
Run with a Python whose torch sees the device; without it PyTorch's columns say so. Nothing new is started after --seconds, and no peer on
a GPU may take longer than --peer-seconds: what is missing then is named. --quick takes few samples: it shows that all of this works, and
its times mean nothing. tools/bench does all that.
"""
import dataclasses
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import training_report
from machine import ROOT, run

NETWORKS = ROOT / "sweeps" / "networks"
QUICK_SAMPLES = 60


@dataclasses.dataclass
class Case:
    """An epoch of Fashion-MNIST, or of `samples` random samples of `shape`. `wanted`: at most so many milliseconds ("ms"), and at least so
    many times the speed of each of PyTorch's variants, or of the fastest ("best")."""
    title: str
    network: str
    batch: int
    wanted: dict = dataclasses.field(default_factory=dict)
    shape: tuple = ()
    classes: int = 10
    samples: int = 60000

    @property
    def name(self):
        return f"{self.title}, {self.batch}"

    @property
    def path(self):
        return NETWORKS / f"{self.network}.json"


@dataclasses.dataclass
class Variant:
    """A form of PyTorch's program."""
    title: str
    options: list
    epochs: int = 0       # 0: as many as sweep trains
    is_slow: bool = False


def pets(batch, wanted):
    return Case("cats and dogs", "cats-dogs", batch, {"best": wanted}, (1, 50, 50), 2, 1000)


def residual(wanted):
    return Case("residual network", "resnet", 128, {"best": wanted}, (3, 32, 32), 10, 1024)


RESIDENT = ["--data", "resident"]
CASES = {
    "cpu": [*(Case("CNN", "fashion-cnn", batch, {"best": wanted}) for batch, wanted in ((100, 8), (1000, 10), (10000, 12), (20000, 12))),
            Case("MLP", "mlp", 128, {"best": 6}), pets(32, 1.4), pets(100, 1.4), pets(1000, 2), residual(2)],
    "cuda": [Case("CNN", "fashion-cnn", 100, {"ms": 12, "eager": 20, "compile": 4, "loader": 200}),
             Case("CNN", "fashion-cnn", 1000, {"ms": 4, "eager": 8, "compile": 4, "loader": 500}),
             *(Case("CNN", "fashion-cnn", batch, {"ms": 4, "eager": 3, "compile": 2, "loader": 500}) for batch in (10000, 20000)),
             Case("MLP", "mlp", 128), pets(100, 1.5), residual(1.5)],
}
# All in full float32, as sweep trains, except "tf32". With a DataLoader one epoch is long enough.
VARIANTS = {
    "cpu": {"eager": Variant("eager", RESIDENT), "channels-last": Variant("channels-last", [*RESIDENT, "--channels-last"]),
            "compile": Variant("compiled", [*RESIDENT, "--compile"])},
    "cuda": {"eager": Variant("eager, data on the GPU", RESIDENT, 3), "tf32": Variant("the same with TF32", [*RESIDENT, "--tf32"], 3),
             "compile": Variant("compiled, reduce-overhead", [*RESIDENT, "--compile", "--compile-mode", "reduce-overhead"], 3, True),
             "loader": Variant("eager, DataLoader", ["--data", "loader"], 1, True)},
}
# The largest batches that joined kernels take, and the smallest that they do not: conv_pool_stack up to 132 images, StackStepKernel
# up to 256. The difference says what joining saves.
EDGES = [Case("CNN", "fashion-cnn", batch) for batch in (132, 133, 256, 257)]
# Steps over which the time of a kernel is a median, and the most seconds that a network and batch may take for that.
KERNEL_STEPS, KERNEL_SECONDS = 200, 10
SKIPPED = 77
UNFINISHED = "what comes after these measurements: they ended early, or are still going on"


def torch_command(args, case, *options):
    """Returns the command that trains the case in PyTorch."""
    command = [sys.executable, ROOT / "tools/benchmarks/pytorch_sweep.py", "--shuffle", "--threads", args.threads, "--network", case.path,
               "--batch-size", case.batch, "--device", args.device, *options]
    if case.shape:
        return [*command, "--random", *case.shape, case.classes, "--samples", case.samples]
    if args.quick:
        command += ["--limit", QUICK_SAMPLES]
    if "SWEEP_DATA" in os.environ:
        command += ["--folder", Path(os.environ["SWEEP_DATA"]) / "fashion-mnist"]
    return command


class Bench:
    def __init__(self, args, torch):
        self.args, self.torch = args, torch
        self.end = time.monotonic() + args.seconds
        self.epochs, self.details, self.sweeps, self.choices, self.kernels, self.missing = {}, {}, {}, {}, {}, []
        self.is_cuda = args.device == "cuda"
        self.save = lambda: None  # writes what has been measured

    def seconds_left(self):
        return self.end - time.monotonic()

    def attempt(self, label, measure):
        """Returns the result of `measure`, or None if it fails or no time is left; the other measurements go on."""
        self.save()
        if self.seconds_left() < 5:
            self.missing.append(f"{label}: {training_report.NO_TIME}")
            return None
        print(label + (f" ({self.seconds_left():.0f} s left)" if math.isfinite(self.end) else ""), file=sys.stderr, flush=True)
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

    def engine_epoch(self, case, placement, environment):
        """Returns the seconds of one epoch over random samples, with the engine and a loader but without the rest of a sweep."""
        output = run([self.args.engine_benchmark, "--threads", max(1, self.args.threads), "--device", self.args.device, "--placement",
                      placement, "--network", case.path, "--input", ",".join(map(str, case.shape)), "--batch", case.batch,
                      "--samples", case.samples, "--benchmark_filter=epoch", "--benchmark_format=json",
                      "--benchmark_min_time=1"], environment=environment)
        return json.loads(output)["benchmarks"][0]["real_time"] / 1e3

    def run_record(self, case, placement, workers, environment):
        """Trains one run on Fashion-MNIST without logs and returns its run.json."""
        nothing = dict.fromkeys(["graph", "histograms", "hparams", "text", "layout", "predictions"], False) | {"images": 0}
        dataset = {"name": "fashion-mnist", "placement": placement} | ({"limit": QUICK_SAMPLES} if self.args.quick else {})
        sweep = {"name": "bench", "dataset": dataset, "network": str(case.path), "optimizer": "adam", "lr": 0.001,
                 "epochs": 1 if self.args.quick else self.args.epochs, "seed": 1, "shuffle": True, "log": nothing,
                 "batch_size": case.batch, "device": self.args.device, "num_workers": workers, "params": {"lr": [0.001]}}
        with tempfile.TemporaryDirectory() as work:
            file = Path(work) / "bench.json"
            file.write_text(json.dumps(sweep))
            run([self.args.sweep, file, "--logdir", f"{work}/runs", "--threads", self.args.threads, "--quiet", "--strict"],
                environment=environment)
            return machine.run_records(Path(work, "runs/bench"))[0]

    def sweep_epochs(self, case, placement="auto", workers=0, environment=None):
        """Returns the seconds of each epoch, without what the run does before the first one."""
        name, case = case.name, self.scale_down(case)
        if case.shape:
            return [self.engine_epoch(case, placement, environment)]
        record = self.run_record(case, placement, workers, environment)
        if environment is None and placement == "auto":
            measured = self.details.setdefault(name, {"setup_seconds": [], "device_seconds": []})
            measured["setup_seconds"].append(record["seconds"]["setup"])
            measured["device_seconds"] += [e["device_seconds"] for e in record["epochs"] if "device_seconds" in e]
            measured["placement"] = record["placement"]
        return [epoch["epoch_seconds"] for epoch in record["epochs"]]

    def run_peer(self, command):
        return run(command, timeout=max(1, min(self.args.peer_seconds, self.seconds_left())) if self.is_cuda else None)

    def torch_epochs(self, case, name):
        variant = self.args.variants[name]
        compiles = name == "compile"  # The first epoch compiles and records graphs, so it is left out.
        epochs = 1 if self.args.quick else variant.epochs or self.args.epochs
        output = self.run_peer(torch_command(self.args, self.scale_down(case), "--plain", *variant.options, "--epochs", epochs + compiles,
                                             *(["--warm-up", 3] if self.is_cuda else [])))
        return [float(line.split(",")[4]) for line in output.splitlines()][compiles:]

    def add_result(self, table, name, program, values):
        if values is not None:
            table.setdefault(name, {}).setdefault(program, []).extend(values)

    def measure_torch(self, title, case, is_slow):
        for name, variant in self.args.variants.items() if self.torch else ():
            if variant.is_slow == is_slow and (not is_slow or name in case.wanted):
                self.add_result(self.epochs, case.name, name,
                                self.attempt(f"{title}, PyTorch {name}", lambda: self.torch_epochs(case, name)))

    def measure_epochs(self, number):
        for case in self.args.cases:
            title = f"round {number + 1}: {case.name}"
            self.add_result(self.epochs, case.name, "sweep", self.attempt(title, lambda: self.sweep_epochs(case)))
            self.measure_torch(title, case, False)

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
        sizes = (20, 30, 60) if self.args.quick else (1000, 10000, 20000)
        start = time.perf_counter()
        for workers in (0, 1):
            with tempfile.TemporaryDirectory() as work:
                self.run_peer(torch_command(self.args, Case("", "fashion-cnn", sizes[0]), "--data", "loader", "--num-workers", workers,
                                            "--epochs", 2, "--lr", 0.01, "--logdir", work, "--batch-size", *sizes))
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

    def measure_gpu_kernels(self):
        """Measures each kernel of a training step by events."""
        for case in (case for case in self.args.cases if case.network == "fashion-cnn" and case.batch <= 10000):
            command = [self.args.engine_benchmark, "--device", self.args.device, "--network", case.path, "--batch",
                       self.scale_down(case).batch, "--kernel-times", 3 if self.args.quick else KERNEL_STEPS]
            found = self.attempt(f"{case.name}, kernels", lambda: json.loads(run(command, timeout=KERNEL_SECONDS)))
            if found:
                self.kernels[case.name] = found

    def measure_cpu_kernels(self):
        """Measures the FLOP/s of each kernel on one core, and the peak, in the same process."""
        command = [self.args.engine_benchmark, "--benchmark_filter=peak|conv", "--benchmark_format=json",
                   f"--benchmark_min_time={0.01 if self.args.quick else 0.3}"]
        found = self.attempt("kernels", lambda: json.loads(run(command))["benchmarks"])
        for entry in found or ():
            self.kernels.setdefault(entry["name"].removesuffix("/real_time"), []).append(entry["FLOP/s"])

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
        if self.is_cuda:
            self.measure_gpu_kernels()
        for number in range(self.args.rounds):
            self.measure_epochs(number)
            if not self.args.only:
                self.measure_sweeps(number)
            if not self.args.only and not self.is_cuda:
                self.measure_cpu_kernels()
            for case in self.args.cases if number == 0 else ():
                self.measure_torch(case.name, case, True)
        # The least important measurements come last, since time may run out.
        for number in range(self.args.rounds) if self.is_cuda else ():
            self.measure_choices(number)


def gpu_facts(args):
    """Returns facts about the GPU and its driver, as far as they are available."""
    facts = {"devices": run([args.sweep, "devices"]).strip().splitlines()}
    if shutil.which("nvidia-smi") and args.device == "cuda":
        names = ["name", "driver_version", "clocks.sm", "clocks.max.sm", "clocks.mem", "power.limit", "memory.total"]
        asked = subprocess.run(["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader"],
                               capture_output=True, text=True)
        if asked.returncode == 0 and asked.stdout:
            facts |= zip(names, (value.strip() for value in asked.stdout.splitlines()[0].split(",")))
    return facts


def usable_torch(args):
    """Returns the version of a PyTorch that can use the device, or None, and a text for the report."""
    version = None if args.no_peers else machine.torch_version()
    if version and args.device == "cuda":
        import torch
        if not torch.cuda.is_available():
            return None, f"missing: {version} sees no GPU"
    return version, version or ("left out" if args.no_peers else "missing: not installed for this Python")


def parse_arguments():
    parser = machine.parser_of(__doc__)
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--engine-benchmark", required=True)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, help="default: 2 on the CPU, one per core with a GPU")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="that sweep trains in each; default: 2, 10 on a GPU")
    parser.add_argument("--seconds", type=float, help="nothing is started later; default: never, 540 on a GPU")
    parser.add_argument("--peer-seconds", type=float, default=75, help="no peer on a GPU may take longer")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile, which takes a minute a case")
    parser.add_argument("--no-peers", action="store_true", help="without PyTorch")
    parser.add_argument("--quick", action="store_true", help="few samples: does it work?")
    args = parser.parse_args()
    of_cpu, of_gpu = {"threads": 2, "epochs": 2, "seconds": math.inf}, {"threads": 0, "epochs": 10, "seconds": 540}
    for name, default in (of_gpu if args.device == "cuda" else of_cpu).items():
        if getattr(args, name) is None:
            setattr(args, name, default)
    args.cases = [case for case in CASES[args.device] if args.only in case.name]
    args.variants = {name: variant for name, variant in VARIANTS[args.device].items() if name != "compile" or not args.no_compile}
    if args.quick:
        args.rounds = 1
    return args


def main():
    args = parse_arguments()
    about = machine.describe()
    facts = gpu_facts(args)
    why = next((line for line in facts["devices"] if line.startswith("cuda") and "cannot be used" in line), None)
    if why and args.device == "cuda":
        print(f"SKIPPED, there is no GPU to measure: {why}", file=sys.stderr)
        return SKIPPED
    torch, torch_text = usable_torch(args)
    bench = Bench(args, torch)
    start = time.monotonic()

    def write(is_last):
        training_report.tell(bench, about, facts, torch_text, time.monotonic() - start, is_last)

    def save():
        bench.missing.append(UNFINISHED)
        write(False)
        bench.missing.remove(UNFINISHED)

    bench.save = save
    bench.run_all()
    write(True)
    if not any(programs.get("sweep") for programs in bench.epochs.values()):
        print("no measurement of sweep succeeded", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
