#!/usr/bin/env python3
"""Compares ways to train one CNN on two cores: threads, two devices, two MPI ranks, and PyTorch's DistributedDataParallel.

  parallel_speed.py --program SWEEP [--python PYTHON] [--batch N] [--rounds N] [--results PATH]

In every round all run once, one after the other. PYTHON has torch; without it PyTorch is left out. PATH.md and PATH.json are
written; without --results the table is printed only. An epoch has the 48,000 training images of sweeps/parallel.json; PyTorch's
are random numbers in memory.
"""
import argparse
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
IMAGES, EPOCHS = 48000, 3
MPI = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]


def sweep_seconds(program, batch, parallel, launcher=()):
    """The least time of an epoch."""
    with tempfile.TemporaryDirectory() as logdir:
        subprocess.run([*launcher, program, ROOT / "sweeps/parallel.json", f"parallel={parallel}", f"batch_size={batch}",
                        f"epochs={EPOCHS}", "--threads", "2", "--logdir", logdir, "--quiet"], check=True, capture_output=True,
                       env=os.environ | {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"})
        record, = machine.run_records(Path(logdir) / "parallel")
        return min(epoch["epoch_seconds"] for epoch in record["epochs"])


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
    ways = {"one device, 2 threads": lambda: sweep_seconds(arguments.program, arguments.batch, "none"),
            "data 2: threads of one process": lambda: sweep_seconds(arguments.program, arguments.batch, '{"data": 2}'),
            "data 2: two processes, MPI": lambda: sweep_seconds(arguments.program, arguments.batch, '{"data": 2}', MPI)}
    if arguments.python:
        ways["PyTorch, one process, 2 threads"] = lambda: torch_seconds(arguments.python, arguments.batch, 1)
        ways["PyTorch DDP, gloo, two processes"] = lambda: torch_seconds(arguments.python, arguments.batch, 2)
    seconds = {name: [] for name in ways}
    for _ in range(arguments.rounds):
        for name, measure in ways.items():
            seconds[name].append(measure())
    least = min(seconds["one device, 2 threads"])
    lines = [f"An epoch of {IMAGES:,} images in batches of {arguments.batch}. {machine.sentence(here)}", "",
             "| | least | median | beside one device |", "|---|---|---|---|"]
    lines += [f"| {name} | {min(times) * 1000:.0f} ms | {statistics.median(times) * 1000:.0f} ms | {min(times) / least:.2f} × |"
              for name, times in seconds.items()]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.results:
        machine.write_results(arguments.results, text, {"date": machine.now().isoformat(timespec="seconds"), "machine": here, "batch": arguments.batch, "seconds": seconds})


if __name__ == "__main__":
    sys.exit(main())
