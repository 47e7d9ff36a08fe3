#!/usr/bin/env python3
"""Events per second of PyTorch's and tensorboardX's writers and of ours, measured one after the other in one run.

  writer_speed.py PROGRAM        PROGRAM is writer_benchmark; run with a Python that has torch, tensorboard and numpy

Prints a table: scalars, histograms of 10,000 values and 242x242 pictures per second, opening and closing included.
"""
import json
import shutil
import subprocess
import sys
import tempfile
import time

COUNTS = {"scalars": 20000, "histograms": 500, "grids": 200}


def python_speed(make, kind):
    import numpy
    values = numpy.random.default_rng(0).normal(size=(10000,)).astype(numpy.float32)
    grid = numpy.random.default_rng(0).random((1, 242, 242), dtype=numpy.float32)
    logdir = tempfile.mkdtemp()
    writer = make(logdir)
    start = time.perf_counter()
    for step in range(COUNTS[kind]):
        if kind == "scalars":
            writer.add_scalar("Loss", step * 0.5, step)
        elif kind == "histograms":
            writer.add_histogram("conv1.weight", values, step)
        else:
            writer.add_image("images", grid, step)
    writer.close()
    seconds = time.perf_counter() - start
    shutil.rmtree(logdir)
    return COUNTS[kind] / seconds


def our_speeds(program):
    output = subprocess.run([program, "--benchmark_filter=^(Scalars|Histograms|Grids)", "--benchmark_format=json",
                             "--benchmark_min_time=0.5"], check=True, capture_output=True, text=True).stdout
    found = {}
    for entry in json.loads(output)["benchmarks"]:
        found[entry["name"].split("/")[0].lower()] = entry["items_per_second"]
    return found


def main():
    writers = {}
    try:
        from torch.utils.tensorboard import SummaryWriter
        writers["torch"] = SummaryWriter
    except ImportError:
        print("torch is not installed: left out")
    try:
        from tensorboardX import SummaryWriter
        writers["tensorboardX"] = SummaryWriter
    except ImportError:
        print("tensorboardX is not installed: left out")
    ours = our_speeds(sys.argv[1])
    print(f"{'per second':<14}{'ours':>12}" + "".join(f"{name:>14}{'ratio':>8}" for name in writers))
    for kind in COUNTS:
        line = f"{kind:<14}{ours[kind]:>12.0f}"
        for make in writers.values():
            speed = python_speed(make, kind)
            line += f"{speed:>14.0f}{ours[kind] / speed:>8.0f}"
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
