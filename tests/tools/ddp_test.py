#!/usr/bin/env python3
"""Two devices compared with PyTorch's DistributedDataParallel: from the same weights, on the same batches, the same loss after
every epoch.

  ddp_test.py --sweep PROGRAM --peers PYTHON

PyTorch is that of $SWEEP_TORCH_PYTHON, an interpreter, or of PYTHON, which tools/bench installs; without it the test is skipped.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support/python"))
import environments  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
EPOCHS, BATCH, PICTURES, SIDE = 6, 128, 1024, 28
NETWORKS = {"fashion-cnn": {"name": "adam", "lr": 0.0003}, "mlp": {"name": "sgd", "lr": 0.003, "momentum": 0.9}}
# Beside a loss of about 1. Sums are added in another order, and the differences grow from step to step.
TOLERANCE = 1e-5


def our_losses(program, folder, name, devices):
    optimizer = dict(NETWORKS[name])
    sweep = {"name": name, "dataset": {"name": "quarters", "path": "data"}, "network": f"{name}.network.json", "lr": optimizer.pop("lr"),
             "optimizer": optimizer, "init": f"{name}.safetensors", "parallel": {"data": devices}, "batch_size": BATCH, "epochs": EPOCHS,
             "shuffle": False, "device": "cpu"}
    (folder / f"{name}.json").write_text(json.dumps(sweep))
    subprocess.run([program, f"{name}.json", "--logdir", f"runs-{devices}", "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    record = json.loads((folder / f"runs-{devices}" / name / "run/run.json").read_text())
    return [epoch["loss"] for epoch in record["epochs"]]


def network_of(folder, name):
    import torch
    import torch_networks
    torch.manual_seed(1)
    layers = json.loads((folder / f"{name}.network.json").read_text())["layers"]
    described = [{"name": layer.pop("name"), "type": layer.pop("type"), "arguments": layer} for layer in layers]
    return torch_networks.build(described, (1, SIDE, SIDE))


def train_rank(rank, ranks, folder, name):
    """Rank 0 writes the losses."""
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/{name}.store", rank=rank, world_size=ranks)
    optimizer = dict(NETWORKS[name])
    model = torch.nn.parallel.DistributedDataParallel(network_of(folder, name))
    kind = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[optimizer.pop("name")]
    step, loss_of = kind(model.parameters(), **optimizer), torch.nn.CrossEntropyLoss()
    images, labels = ((folder / f"data/train-{part}").read_bytes()[skip:] for part, skip in (("images-idx3-ubyte", 16), ("labels-idx1-ubyte", 8)))
    images = torch.frombuffer(bytearray(images), dtype=torch.uint8).reshape(PICTURES, 1, SIDE, SIDE) / 255
    labels = torch.frombuffer(bytearray(labels), dtype=torch.uint8).long()
    losses = []
    for _ in range(EPOCHS):
        total = torch.zeros((), dtype=torch.float64)
        for first in range(0, PICTURES, BATCH):
            part = slice(first + BATCH // ranks * rank, first + BATCH // ranks * (rank + 1))
            step.zero_grad()
            loss = loss_of(model(images[part]), labels[part])
            loss.backward()
            step.step()
            total += loss.detach() * (BATCH // ranks)
        dist.all_reduce(total)
        losses.append(total.item() / PICTURES)
    if rank == 0:
        (folder / f"{name}.losses").write_text(json.dumps(losses))
    dist.destroy_process_group()


def compare(program, folder, name):
    import torch.multiprocessing
    import torch_networks
    network = json.loads((ROOT / f"sweeps/networks/{name}.json").read_text())
    (folder / f"{name}.network.json").write_text(json.dumps(network))
    torch_networks.write_safetensors(folder / f"{name}.safetensors", network_of(folder, name).state_dict(), {})
    torch.multiprocessing.spawn(train_rank, (2, folder, name), nprocs=2)
    theirs = json.loads((folder / f"{name}.losses").read_text())
    ours = our_losses(program, folder, name, 2)
    difference = max(abs(our - their) for our, their in zip(ours, theirs, strict=True))
    print(f"{name}: losses {ours[0]:.4f} to {ours[-1]:.4f}, differ from DistributedDataParallel's by {difference:.2g} at most")
    assert ours[-1] < 0.8 * ours[0], f"{name} learns nothing: {ours}"
    assert difference < TOLERANCE, f"{name}: {ours} {theirs}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--peers")
    arguments = parser.parse_args()
    if arguments.peers:
        paths = [str(ROOT / folder) for folder in ("tests/data", "tests/torture")]  # also of the ranks
        return environments.run_with_torch(arguments.peers, "--sweep", os.path.abspath(arguments.sweep),
                                           PYTHONPATH=os.pathsep.join(paths), GLOO_SOCKET_IFNAME="lo")
    import torture_sweep
    with tempfile.TemporaryDirectory(prefix="ddp-test.") as directory:
        folder = Path(directory)
        torture_sweep.write_pictures(folder / "data", {"train": PICTURES, "t10k": 16}, SIDE)
        for name in NETWORKS:
            compare(arguments.sweep, folder, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
