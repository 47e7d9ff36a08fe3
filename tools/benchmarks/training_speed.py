#!/usr/bin/env python3
"""Measures training on the CPU against PyTorch and writes tables of medians. Every round runs all programs once.

  training_speed.py --sweep PROGRAM --engine-benchmark PROGRAM [--threads N] [--rounds N] [--epochs N]
                    [--only TEXT] [--no-compile] [--results PATH] [--commit NAME]

PATH.md and PATH.json are written; without --results the tables are printed only. Run with a Python that has torch;
without it PyTorch's columns say so. tools/bench does all that.
"""
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = ROOT / "sweeps" / "networks"


@dataclasses.dataclass
class Case:
    """An epoch of Fashion-MNIST, or of `samples` random samples of `shape`."""
    title: str
    network: str
    batch: int
    target: float  # times PyTorch's speed
    shape: tuple = ()
    classes: int = 10
    samples: int = 60000

    @property
    def name(self):
        return f"{self.title}, {self.batch}"

    @property
    def path(self):
        return NETWORKS / f"{self.network}.json"


CASES = [
    Case("CNN", "fashion-cnn", 100, 8), Case("CNN", "fashion-cnn", 1000, 10), Case("CNN", "fashion-cnn", 10000, 12),
    Case("CNN", "fashion-cnn", 20000, 12), Case("MLP", "mlp", 128, 6),
    Case("cats and dogs", "cats-dogs", 32, 1.4, (1, 50, 50), 2, 1000),
    Case("cats and dogs", "cats-dogs", 100, 1.4, (1, 50, 50), 2, 1000),
    Case("cats and dogs", "cats-dogs", 1000, 2, (1, 50, 50), 2, 1000),
    Case("residual network", "resnet", 128, 2, (3, 32, 32), 10, 1024),
]
SWEEP = "the 6 CPU runs of cpu-vs-cuda.json, whole program"
SWEEP_TARGET = 15
VARIANTS = {"eager": [], "channels-last": ["--channels-last"], "compile": ["--compile"]}


def run(command, timeout=None, environment=None):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(environment or {})}).stdout


def time_engine_epoch(args, case, device="cpu", placement="auto", environment=None):
    """Returns the seconds of one epoch over random samples, with the engine and a loader but without the rest of a sweep."""
    output = run([args.engine_benchmark, "--threads", args.threads, "--device", device, "--placement", placement,
                  "--network", case.path, "--input", ",".join(map(str, case.shape)), "--batch", case.batch,
                  "--samples", case.samples, "--benchmark_filter=epoch", "--benchmark_format=json",
                  "--benchmark_min_time=1"], environment=environment)
    return json.loads(output)["benchmarks"][0]["real_time"] / 1e3


def train_run(args, case, epochs, settings, environment=None, **dataset):
    """Trains one run on Fashion-MNIST without logs and returns its run.json. `settings` are keys of the sweep file."""
    nothing = dict.fromkeys(["graph", "histograms", "hparams", "text", "layout", "predictions"], False) | {"images": 0}
    sweep = {"name": "bench", "dataset": {"name": "fashion-mnist", **dataset}, "network": str(case.path),
             "optimizer": "adam", "lr": 0.001, "epochs": epochs, "seed": 1, "shuffle": True, "log": nothing,
             "batch_size": case.batch, **settings, "params": {"lr": [0.001]}}
    with tempfile.TemporaryDirectory() as work:
        file = Path(work) / "bench.json"
        file.write_text(json.dumps(sweep))
        run([args.sweep, file, "--logdir", f"{work}/runs", "--threads", args.threads, "--quiet", "--strict"],
            environment=environment)
        return json.loads(next(Path(work, "runs/bench").glob("*/run.json")).read_text())


def time_sweep_epochs(args, case):
    """Returns the seconds of each epoch: of the whole program for real data, of engine and loader for random samples."""
    if case.shape:
        return [time_engine_epoch(args, case)]
    run_record = train_run(args, case, args.epochs, {"device": "cpu"})
    return [epoch["epoch_seconds"] for epoch in run_record["epochs"]]


def torch_command(args, case, *options):
    """Returns the command that trains the case in PyTorch without logs."""
    command = [sys.executable, ROOT / "tools/benchmarks/pytorch_sweep.py", "--plain", "--shuffle", "--threads",
               args.threads, "--network", case.path, "--batch-size", case.batch, *options]
    if case.shape:
        command += ["--random", *case.shape, case.classes, "--samples", case.samples]
    elif "SWEEP_DATA" in os.environ:
        command += ["--folder", Path(os.environ["SWEEP_DATA"]) / "fashion-mnist"]
    return command


def parse_seconds(output):
    return [float(line.split(",")[4]) for line in output.splitlines()]


def time_torch_epochs(args, case, variant):
    """Returns the seconds of each epoch. With --compile the first epoch is left out, because it compiles."""
    compiles = variant == "compile"
    command = torch_command(args, case, "--data", "resident", "--epochs", args.epochs + compiles, *VARIANTS[variant])
    return parse_seconds(run(command))[compiles:]


def time_commands(*commands):
    start = time.perf_counter()
    for command in commands:
        run(command)
    return time.perf_counter() - start


def time_sweep(args):
    with tempfile.TemporaryDirectory() as work:
        return time_commands([args.sweep, ROOT / "sweeps/cpu-vs-cuda.json", "device=cpu", "--logdir", work, "--threads",
                              args.threads, "--quiet"])


def time_torch_sweep(args):
    with tempfile.TemporaryDirectory() as work:
        options = ["--data", "loader", "--shuffle", "--threads", args.threads, "--epochs", 2, "--lr", 0.01, "--network",
                   NETWORKS / "fashion-cnn.json", "--batch-size", 1000, 10000, 20000, "--logdir", work]
        return time_commands(*([sys.executable, ROOT / "tools/benchmarks/pytorch_sweep.py", "--num-workers", workers, *options]
                               for workers in (0, 1)))


def measure_kernels(args):
    """Returns the FLOP/s of each kernel on one core, and the peak, measured in the same process."""
    output = run([args.engine_benchmark, "--benchmark_filter=peak|conv", "--benchmark_format=json",
                  "--benchmark_min_time=0.3"])
    found = {}
    for entry in json.loads(output)["benchmarks"]:
        found[entry["name"].removesuffix("/real_time")] = entry["FLOP/s"]
    return found


def measure(args, torch, cases):
    figures, kernels = {}, {}

    def record(name, program, values):
        figures.setdefault(name, {}).setdefault(program, []).extend(values)

    for number in range(args.rounds):
        for case in cases:
            print(f"round {number + 1} of {args.rounds}: {case.name}", file=sys.stderr, flush=True)
            record(case.name, "sweep", time_sweep_epochs(args, case))
            for variant in args.variants if torch else ():
                record(case.name, variant, time_torch_epochs(args, case, variant))
        if not args.only:
            print(f"round {number + 1} of {args.rounds}: whole program", file=sys.stderr, flush=True)
            record(SWEEP, "sweep", [time_sweep(args)])
            if torch and number < args.sweep_rounds:
                record(SWEEP, "loader", [time_torch_sweep(args)])
        for name, value in measure_kernels(args).items() if not args.only else ():
            kernels.setdefault(name, []).append(value)
    return figures, kernels


def cell(values):
    """Median (least to most) of seconds."""
    if not values:
        return "missing"
    middle = statistics.median(values)
    unit, factor = ("s", 1) if middle >= 1 else ("ms", 1e3)
    return f"{middle * factor:.3g} {unit} ({min(values) * factor:.3g} to {max(values) * factor:.3g})"


def best_ratio(programs):
    """Of the medians: the fastest of the others over ours."""
    others = [statistics.median(values) for name, values in programs.items() if name != "sweep"]
    return min(others) / statistics.median(programs["sweep"]) if others else None


def epoch_table(figures, cases, variants):
    yield f"| network, batch | sweep | {' | '.join('PyTorch ' + v for v in variants)} | best / sweep | wanted |"
    yield "|---" * (4 + len(variants)) + "|"
    for case in cases:
        programs = figures[case.name]
        ratio = best_ratio(programs)
        yield (f"| {case.name} | {cell(programs['sweep'])} | " +
               " | ".join(cell(programs.get(v, [])) for v in variants) +
               f" | {'missing' if ratio is None else f'{ratio:.1f}'} | {case.target:g} |")


def sweep_table(programs):
    ratio = best_ratio(programs)
    yield "| | sweep | PyTorch with DataLoader | ratio | wanted |"
    yield "|---|---|---|---|---|"
    yield (f"| {SWEEP} | {cell(programs['sweep'])} | {cell(programs.get('loader', []))} | "
           f"{'missing' if ratio is None else f'{ratio:.1f}'} | {SWEEP_TARGET} |")


def kernel_table(kernels):
    peak = statistics.median(kernels["multiply_add_peak"])
    yield f"One core multiplies and adds at most {peak / 1e9:.0f} GFLOP/s."
    yield ""
    yield ("| convolution (one block of 16 images) | GFLOP/s: forward | weights' gradient | input's gradient |")
    yield "|---|---|---|---|"
    shapes = list(dict.fromkeys(name.split("/")[1] for name in kernels if name.startswith("conv/")))
    for shape in shapes:
        rates = [statistics.median(kernels[f"conv/{shape}/{kernel}"]) for kernel in ("forward", "weights", "input")]
        yield (f"| {shape.replace('_', ' ')} | " +
               " | ".join(f"{rate / 1e9:.0f} ({100 * rate / peak:.0f} %)" for rate in rates) + " |")


def about_times(args, torch):
    return (f"{args.threads} threads each; sweep {args.commit}, PyTorch {torch or 'missing: not installed'}.\n"
            f"Medians (least to most) over {args.rounds} rounds, all programs in turn in every round; samples are shuffled "
            "in every epoch, and nothing is logged in the first table. Fashion-MNIST's 60,000 samples for CNN and MLP; "
            "1,000 random samples of 50x50 for cats and dogs, 1,024 of 3x32x32 for the residual network; PyTorch has them in memory as floats. Optimizer: Adam.")


def report(args, cases, figures, kernels):
    lines = ["Time of an epoch:", "", *epoch_table(figures, cases, args.variants)]
    if SWEEP in figures:
        lines += ["", "Time of a sweep with its logs, from start to exit:", "", *sweep_table(figures[SWEEP])]
    return [*lines, "", *kernel_table(kernels)] if kernels else lines


def main():
    parser = machine.parser_of(__doc__)
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--engine-benchmark", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sweep-rounds", type=int, default=1, help="rounds of PyTorch's whole program, which takes minutes")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--only", default="", help="only cases with this in their name")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile, which takes a minute a case")
    args = parser.parse_args()
    args.variants = [v for v in VARIANTS if v != "compile" or not args.no_compile]
    try:
        from importlib import metadata
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = None
        print("PyTorch is not installed for this Python: its columns are missing", file=sys.stderr)
    about = machine.describe()
    cases = [case for case in CASES if args.only in case.name]
    figures, kernels = measure(args, torch, cases)
    machine.tell(args, about, "Training on the CPU, and PyTorch's", about_times(args, torch),
                 report(args, cases, figures, kernels), {"pytorch": torch or "missing"},
                 threads=args.threads, rounds=args.rounds, unit="seconds", epochs=figures, kernels=kernels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
