#!/usr/bin/env python3
"""The same training in PyTorch: what tools/bench measures sweep against.

Reads the network from sweep's own file, so that both train the same layers, and the same Fashion-MNIST files, in file
order or shuffled. --data resident keeps all samples as float tensors on the device and slices them, the quickest way
PyTorch has; --data loader goes through a Dataset and a DataLoader, as most programs do. Without --plain it also writes
what sweep writes by default: scalars, histograms of parameters and gradients, an image grid and the graph.
--warm-up N trains N batches first, which are no part of any epoch's time: a GPU's libraries are loaded in them.
Prints one line per epoch: batch_size,epoch,loss,accuracy,seconds.
"""
import argparse
import gzip
import itertools
import json
import pathlib
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


def read_idx(path):
    """An IDX file of bytes: 0 0 8, the number of extents, the extents as big-endian 32-bit integers, the values.

    Packed as PATH.gz or plain."""
    packed = path.with_name(path.name + ".gz")
    raw = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    if raw[:3] != b"\0\0\x08":
        raise SystemExit(f"{path}: not an IDX file of bytes")
    header = 4 + 4 * raw[3]
    extents = [int.from_bytes(raw[i:i + 4], "big") for i in range(4, header, 4)]
    return torch.frombuffer(bytearray(raw[header:]), dtype=torch.uint8).reshape(extents)


class Residual(nn.Module):
    """layers(x) + shortcut(x)"""

    def __init__(self, layers, shortcut):
        super().__init__()
        self.layers, self.shortcut = layers, shortcut

    def forward(self, x):
        return self.layers(x) + self.shortcut(x)


class Images(Dataset):
    """Bytes become numbers in [0, 1] sample by sample, as torchvision's ToTensor does."""

    def __init__(self, pixels, labels):
        self.pixels, self.labels = pixels, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.pixels[i].float().div(255), self.labels[i]


def load_data(args):
    if args.random:
        channels, height, width, classes = args.random
        return Images(torch.randint(0, 256, (args.samples, channels, height, width), dtype=torch.uint8),
                      torch.randint(0, classes, (args.samples,)))
    count = args.limit or None
    return Images(read_idx(args.folder / "train-images-idx3-ubyte").unsqueeze(1)[:count],
                  read_idx(args.folder / "train-labels-idx1-ubyte").long()[:count])


def build(layers, shape):
    """A Sequential of the layers in a sweep network file; input sizes are found by passing one sample through."""
    network, x = nn.Sequential(), torch.zeros(1, *shape)
    for layer in layers:
        arguments = {k: v for k, v in layer.items() if k not in ("name", "type", "layers", "shortcut")}
        make = {
            "conv2d": lambda: nn.Conv2d(x.shape[1], **arguments),
            "linear": lambda: nn.Linear(x.shape[1], **arguments),
            "max_pool2d": lambda: nn.MaxPool2d(**arguments),
            "adaptive_avg_pool2d": lambda: nn.AdaptiveAvgPool2d(**arguments),
            "batch_norm2d": lambda: nn.BatchNorm2d(x.shape[1], **arguments),
            "residual": lambda: Residual(build(layer["layers"], x.shape[1:]),
                                         build(layer["shortcut"], x.shape[1:]) if "shortcut" in layer else nn.Identity()),
            "sequential": lambda: build(layer["layers"], x.shape[1:]),
            "relu": nn.ReLU,
            "flatten": nn.Flatten,
        }
        network.add_module(layer["name"], make[layer["type"]]().eval())
        x = network[-1](x)
    return network.train()


def batches(args, data, resident, batch_size):
    if args.data == "loader":
        for x, y in DataLoader(data, batch_size, shuffle=args.shuffle, num_workers=args.num_workers):
            yield x.to(args.device), y.to(args.device)
        return
    x, y = resident
    if args.shuffle:
        for rows in torch.randperm(len(y), device=args.device).split(batch_size):
            yield x[rows], y[rows]
    else:
        yield from zip(x.split(batch_size), y.split(batch_size))


def train_epoch(args, network, optimizer, data, resident, batch_size, most=None):
    """Mean loss and accuracy over the samples. Resident data is never waited for before the epoch ends."""
    loss_sum = correct = 0
    for x, y in itertools.islice(batches(args, data, resident, batch_size), most):
        outputs = network(x)
        loss = functional.cross_entropy(outputs, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch_loss, batch_correct = loss.detach() * len(y), outputs.argmax(1).eq(y).sum()
        if args.data == "loader":  # as most programs do, which wait for the device at every batch
            batch_loss, batch_correct = batch_loss.item(), batch_correct.item()
        loss_sum, correct = loss_sum + batch_loss, correct + batch_correct
    return float(loss_sum) / len(data), float(correct) / len(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--random", type=int, nargs=4, metavar=("CHANNELS", "HEIGHT", "WIDTH", "CLASSES"),
                        help="random samples instead of the folder's")
    parser.add_argument("--samples", type=int, default=1000, help="how many random ones")
    parser.add_argument("--limit", type=int, default=0, help="only the first N of the folder's samples")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--tf32", action="store_true", help="on a GPU, products that keep 10 of 23 bits: else in full float32")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--compile-mode", default="default", help="of torch.compile: reduce-overhead makes CUDA graphs")
    parser.add_argument("--warm-up", type=int, default=0)
    parser.add_argument("--data", choices=["resident", "loader"], default="resident")
    parser.add_argument("--batch-size", type=int, nargs="+", default=[1000])
    parser.add_argument("--optimizer", choices=["adam", "sgd"], default="adam")
    parser.add_argument("--lr", type=float, default=0.001)
    parser.add_argument("--shuffle", action="store_true")
    parser.add_argument("--num-workers", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--logdir", default="runs/pytorch")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)

    # PyTorch's own defaults differ between convolutions and linear layers, and between versions.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = args.tf32

    data = load_data(args)
    resident = None
    if args.data == "resident":
        layout = torch.channels_last if args.channels_last else torch.contiguous_format
        resident = data.pixels.float().div(255).to(args.device, memory_format=layout), data.labels.to(args.device)
    for batch_size in args.batch_size:
        torch.manual_seed(1)
        network = build(json.loads(args.network.read_text())["layers"], data.pixels.shape[1:]).to(args.device)
        if args.channels_last:
            network = network.to(memory_format=torch.channels_last)
        step = torch.compile(network, mode=args.compile_mode) if args.compile else network
        optimizer = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}[args.optimizer](network.parameters(), args.lr)
        writer = None
        if not args.plain:
            from torch.utils.tensorboard import SummaryWriter
            writer = SummaryWriter(f"{args.logdir}/batch_size={batch_size}")
            first = data.pixels[:64].float().div(255)
            writer.add_images("images", first)
            writer.add_graph(network, first[:1].to(args.device))
        if args.warm_up:
            train_epoch(args, step, optimizer, data, resident, batch_size, args.warm_up)
        for epoch in range(args.epochs):
            start = time.perf_counter()
            loss, accuracy = train_epoch(args, step, optimizer, data, resident, batch_size)
            seconds = time.perf_counter() - start
            if writer:
                writer.add_scalar("Loss/train", loss, epoch)
                writer.add_scalar("Accuracy/train", accuracy, epoch)
                for name, parameter in network.named_parameters():
                    writer.add_histogram(f"weights/{name}", parameter, epoch)
                    writer.add_histogram(f"gradients/{name}", parameter.grad, epoch)
            print(f"{batch_size},{epoch},{loss:.6f},{accuracy:.6f},{seconds:.6f}", flush=True)
        if writer:
            writer.close()


if __name__ == "__main__":
    main()
