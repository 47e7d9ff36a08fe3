#!/usr/bin/env python3
"""Compares ways to train one CNN on two cores: threads, two devices, two MPI ranks, and PyTorch's DistributedDataParallel.

  parallel_speed.py --sweep PROGRAM [--batch N] [--rounds N] [--results PATH] [--commit NAME]

In every round all run once, one after the other. Run with a Python that has torch; without it PyTorch is left out. An epoch has the 48,000
training images of sweeps/parallel.json; PyTorch's are random numbers in memory. tools/bench --parallel does all that.
"""
import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import machine
from machine import ROOT, run

IMAGES, EPOCHS = 48000, 3
MPI = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"]
MPI_ENVIRONMENT = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
ALONE = "one device, 2 threads"


def least_epoch(arguments, parallel, launcher=()):
    with tempfile.TemporaryDirectory() as logdir:
        run([*launcher, os.path.abspath(arguments.sweep), ROOT / "sweeps/parallel.json", f"parallel={parallel}",
             f"batch_size={arguments.batch}", f"epochs={EPOCHS}", "--threads", 2, "--logdir", logdir, "--quiet"],
            environment=MPI_ENVIRONMENT)
        record, = machine.run_records(Path(logdir) / "parallel")
        return min(epoch["epoch_seconds"] for epoch in record["epochs"])


def least_torch_epoch(arguments, processes):
    return float(run([sys.executable, __file__, "--sweep", "", "--torch", processes, "--batch", arguments.batch]).split()[-1])


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
    parser = machine.parser_of(__doc__)
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--batch", type=int, default=960)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torch", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch:
        import torch.multiprocessing
        torch.multiprocessing.spawn(train_with_torch, (arguments.torch, arguments.batch), nprocs=arguments.torch)
        return
    about = machine.describe()
    torch = machine.torch_version()
    ways = {ALONE: lambda: least_epoch(arguments, "none"),
            "data 2: threads of one process": lambda: least_epoch(arguments, '{"data": 2}'),
            "data 2: two processes, MPI": lambda: least_epoch(arguments, '{"data": 2}', MPI)}
    if torch:
        ways |= {"PyTorch, one process, 2 threads": lambda: least_torch_epoch(arguments, 1),
                 "PyTorch DDP, gloo, two processes": lambda: least_torch_epoch(arguments, 2)}
    found = {name: [] for name in ways}
    for _ in machine.rounds(arguments.rounds):
        for name, measure in ways.items():
            found[name].append(measure())
    rows = [[name, machine.seconds(values), f"{min(values) / min(found[ALONE]):.2f} ×"] for name, values in found.items()]
    machine.tell(arguments, about, "Two cores, one network",
                 f"sweep {arguments.commit}, PyTorch {torch or 'missing: not installed'}. The least of {EPOCHS} epochs of {IMAGES:,} images in "
                 f"batches of {arguments.batch}: median (least to most) over {arguments.rounds} rounds.",
                 machine.table(["", "an epoch", "least, compared with one device"], rows), {"pytorch": torch or "missing"},
                 batch=arguments.batch, seconds=found)


if __name__ == "__main__":
    sys.exit(main())
