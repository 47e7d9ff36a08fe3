#!/usr/bin/env python3
"""Measures the event writer against PyTorch's and writes a table of medians. Every round runs both once.

  writer_speed.py --program writer_benchmark --sweep sweep [--rounds N] [--results PATH] [--commit NAME]

Run with a Python that has torch, tensorboard and numpy; without torch its column says so. tools/bench --writer does all that.
"""
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import machine

# Events per round for PyTorch's writer: about a second each.
COUNTS = {"scalars": 20000, "histograms": 600, "grids": 40}
NAMES = {"scalars": "scalars a second", "histograms": "histograms of 10,000 values a second",
         "grids": "242x242 grids a second"}
# Targets: times PyTorch's speed, or the number itself and whether more is better.
TARGET_RATIOS = {"scalars": 100, "histograms": 50, "grids": 30}
NUMBERS = {"crc": ("CRC32C of 1 MiB, GB/s", 8, True), "add_scalar": ("add_scalar on the calling thread, median ns", 100, False),
           "fsck": ("sweep fsck, GB/s", 1, True)}


def measure_torch(kind):
    import numpy
    from torch.utils.tensorboard import SummaryWriter
    values = numpy.random.default_rng(0).normal(size=(10000,)).astype(numpy.float32)
    grid = numpy.random.default_rng(0).random((1, 242, 242), dtype=numpy.float32)
    with tempfile.TemporaryDirectory() as logdir:
        writer = SummaryWriter(logdir)
        start = time.perf_counter()
        for step in range(COUNTS[kind]):
            if kind == "scalars":
                writer.add_scalar("Loss", step * 0.5, step)
            elif kind == "histograms":
                writer.add_histogram("conv1.weight", values, step)
            else:
                writer.add_image("images", grid, step)
        writer.close()
        return COUNTS[kind] / (time.perf_counter() - start)


def measure_writer(program):
    """Returns the numbers of one round. They include opening and closing files, as PyTorch's do."""
    wanted = "^(Scalars|Histograms|Grids|AddScalarMedian|Crc32c/1048576)"
    output = machine.run([program, f"--benchmark_filter={wanted}", "--benchmark_format=json", "--benchmark_min_time=0.5"])
    found = {}
    for entry in json.loads(output)["benchmarks"]:
        name = entry["name"].split("/")[0].lower()
        if name == "addscalarmedian":
            found["add_scalar"] = entry["median_ns"]
        elif name == "crc32c":
            found["crc"] = entry["bytes_per_second"] / 1e9
        else:
            found[name] = entry["items_per_second"]
    return found


def fsck_speed(sweep, logdir, size):
    start = time.perf_counter()
    machine.run([sweep, "fsck", logdir])
    return size / (time.perf_counter() - start) / 1e9


def measure(arguments, torch):
    ours, theirs = {}, {kind: [] for kind in COUNTS}
    with tempfile.TemporaryDirectory() as logdir:
        machine.run([arguments.program, "--write", logdir])
        size = sum(path.stat().st_size for path in Path(logdir).rglob("*tfevents*"))
        for _ in machine.rounds(arguments.rounds):
            for name, value in {**measure_writer(arguments.program), "fsck": fsck_speed(arguments.sweep, logdir, size)}.items():
                ours.setdefault(name, []).append(value)
            for kind in COUNTS if torch else ():
                theirs[kind].append(measure_torch(kind))
    return ours, theirs


def cell(values):
    return machine.spread(values, "{:,.0f}" if values and min(values) >= 100 else "{:,.1f}")


def ratio(ours, theirs):
    return statistics.median(ours) / statistics.median(theirs) if theirs else None


def tables(ours, theirs):
    rows = []
    for kind, wanted in TARGET_RATIOS.items():
        times = ratio(ours[kind], theirs[kind])
        rows.append([NAMES[kind], cell(ours[kind]), cell(theirs[kind]), "missing" if times is None else f"{times:.0f}",
                     f"{wanted} or more"])
    for name, (title, wanted, more) in NUMBERS.items():
        rows.append([title, cell(ours[name]), "", "", f"{wanted} or {'more' if more else 'less'}"])
    return machine.table(["", "sweep", "PyTorch", "ratio", "wanted"], rows)


def main():
    parser = machine.parser_of(__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    version = machine.torch_version()
    about = machine.describe()
    ours, theirs = measure(arguments, version)
    machine.tell(arguments, about, "The TensorBoard writer and PyTorch's",
                 f"sweep {arguments.commit}, PyTorch {version or 'missing: not installed'}.\n"
                 f"Median (least to most) of {arguments.rounds} rounds, both writers in turn in every round; files are "
                 "opened and closed within the time.", tables(ours, theirs), {"pytorch": version or "missing"},
                 rounds=arguments.rounds, sweep=ours, pytorch=theirs,
                 ratios={kind: ratio(ours[kind], theirs[kind]) for kind in TARGET_RATIOS})
    return 0


if __name__ == "__main__":
    sys.exit(main())
