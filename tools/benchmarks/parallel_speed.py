#!/usr/bin/env python3
"""Compares ways to train one CNN on two cores: threads, two devices, two MPI ranks, and PyTorch's DistributedDataParallel.

  parallel_speed.py --program SWEEP [--allreduce PROGRAM] [--python PYTHON] [--batch N] [--rounds N] [--results PATH]

In every round all run once, one after the other. PYTHON has torch; without it PyTorch is left out. PROGRAM is allreduce_benchmark,
which `ninja -C build allreduce_benchmark` puts into build/tests: how long MPI takes for the same gradient, compared with how long a
step waits for it. PATH.md and PATH.json are written; without --results the table is printed only. An epoch has the 48,000 training
images of sweeps/parallel.json; PyTorch's are random numbers in memory.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine

ROOT = Path(__file__).resolve().parents[2]
IMAGES, EPOCHS = 48000, 3
MPI = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]
MPI_ENVIRONMENT = os.environ | {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
IN_PROCESSES = "data 2: two processes, MPI"


class SweepTimes:
    """Of the program, in seconds: the least epoch, and what a step of it waits for other devices."""

    def __init__(self, program, batch):
        self.program, self.batch = program, batch
        self.waiting, self.gradient_bytes = {}, 0

    def epoch(self, name, parallel, launcher=()):
        with tempfile.TemporaryDirectory() as logdir:
            subprocess.run([*launcher, self.program, ROOT / "sweeps/parallel.json", f"parallel={parallel}", f"batch_size={self.batch}",
                            f"epochs={EPOCHS}", "--threads", "2", "--logdir", logdir, "--quiet"], check=True, capture_output=True,
                           env=MPI_ENVIRONMENT)
            record, = machine.run_records(Path(logdir) / "parallel")
            if not self.gradient_bytes:
                run, = (path.parent for path in (Path(logdir) / "parallel").glob("*/run.json"))
                shown = subprocess.run([self.program, "show", run, "--parameters", "--json"], check=True, capture_output=True, text=True)
                self.gradient_bytes = 4 * sum(entry["elements"] for entry in json.loads(shown.stdout)["parameters"])
            least = min(record["epochs"], key=lambda epoch: epoch["epoch_seconds"])
            if "communication_seconds" in least:
                steps = math.ceil(IMAGES / self.batch)
                self.waiting.setdefault(name, []).append(
                    {"step": least["epoch_seconds"] / steps, "waits": least["communication_seconds"] / steps})
            return least["epoch_seconds"]


def allreduce_seconds(program, count):
    out = subprocess.run([*MPI, program, str(count)], check=True, capture_output=True, text=True, env=MPI_ENVIRONMENT)
    return float(out.stdout)


def share_of_mpi(times, allreduce):
    """A sentence about the step that waited least."""
    least = min(times.waiting[IN_PROCESSES], key=lambda step: step["waits"])
    return (f"With MPI a step of {least['step'] * 1e3:.2f} ms waits {least['waits'] * 1e6:.0f} µs ({least['waits'] / least['step']:.1%}) "
            f"for the other rank: to send it its images, to exchange the gradient, and because it is slower. MPI_Allreduce of the same "
            f"{times.gradient_bytes:,} bytes alone takes {min(allreduce) * 1e6:.0f} µs.")


def table(here, times, seconds, allreduce):
    least = min(seconds["one device, 2 threads"])
    lines = [f"An epoch of {IMAGES:,} images in batches of {times.batch}. {machine.sentence(here)}", "",
             "| | least | median | compared with one device |", "|---|---|---|---|"]
    lines += [f"| {name} | {min(epochs) * 1000:.0f} ms | {statistics.median(epochs) * 1000:.0f} ms | {min(epochs) / least:.2f} × |"
              for name, epochs in seconds.items()]
    if allreduce:
        lines += ["", share_of_mpi(times, allreduce)]
    return "\n".join(lines) + "\n"


def torch_seconds(python, batch, processes):
    out = subprocess.run([python, __file__, "--torch", str(processes), "--batch", str(batch)], check=True, capture_output=True, text=True)
    return float(out.stdout.split()[-1])


def train_with_torch(rank, processes, batch):
    import torch
    import torch.distributed as dist
    from torch import nn
    torch.set_num_threads(2 // processes)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 12, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(192, 120), nn.ReLU(), nn.Linear(120, 60), nn.ReLU(), nn.Linear(60, 10))
    if processes > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533", GLOO_SOCKET_IFNAME="lo")
        dist.init_process_group("gloo", rank=rank, world_size=processes)
        model = nn.parallel.DistributedDataParallel(model)
    optimizer, loss_of = torch.optim.Adam(model.parameters(), lr=1e-3), nn.CrossEntropyLoss()
    images, labels = torch.rand(IMAGES, 1, 28, 28), torch.randint(0, 10, (IMAGES,))
    least = float("inf")
    for epoch in range(EPOCHS):
        order = torch.randperm(IMAGES, generator=torch.Generator().manual_seed(epoch))
        begin = time.perf_counter()
        for first in range(0, IMAGES, batch):
            rows = order[first:first + batch][rank::processes]
            optimizer.zero_grad()
            loss = loss_of(model(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            loss.item()
        least = min(least, time.perf_counter() - begin)
    if rank == 0:
        print(least, flush=True)
    if processes > 1:
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath)
    parser.add_argument("--allreduce", type=os.path.abspath)
    parser.add_argument("--python")
    parser.add_argument("--batch", type=int, default=960)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--torch", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch:
        if arguments.torch == 1:
            train_with_torch(0, 1, arguments.batch)
        else:
            import torch.multiprocessing
            torch.multiprocessing.spawn(train_with_torch, (arguments.torch, arguments.batch), nprocs=arguments.torch)
        return
    if not arguments.program:
        parser.error("--program is needed")
    here = machine.describe()
    times = SweepTimes(arguments.program, arguments.batch)
    kinds = {"one device, 2 threads": ("none",), "data 2: threads of one process": ('{"data": 2}',), IN_PROCESSES: ('{"data": 2}', MPI)}
    ways = {name: lambda name=name, kind=kind: times.epoch(name, *kind) for name, kind in kinds.items()}
    if arguments.python:
        ways["PyTorch, one process, 2 threads"] = lambda: torch_seconds(arguments.python, arguments.batch, 1)
        ways["PyTorch DDP, gloo, two processes"] = lambda: torch_seconds(arguments.python, arguments.batch, 2)
    seconds, allreduce = {name: [] for name in ways}, []
    for _ in range(arguments.rounds):
        for name, measure in ways.items():
            seconds[name].append(measure())
        if arguments.allreduce:
            allreduce.append(allreduce_seconds(arguments.allreduce, times.gradient_bytes))
        text = table(here, times, seconds, allreduce)
        if arguments.results:  # what is measured so far, should the rest take too long
            machine.write_results(arguments.results, text, {
                "date": machine.now().isoformat(timespec="seconds"), "machine": here, "batch": arguments.batch, "seconds": seconds,
                "steps": times.waiting, "gradient_bytes": times.gradient_bytes, "allreduce_seconds": allreduce})
    print(text)


if __name__ == "__main__":
    sys.exit(main())
