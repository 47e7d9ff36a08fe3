"""Trains a small network on Fashion-MNIST with PyTorch, and writes its loss and accuracy for TensorBoard."""
import argparse
import gzip
import os
from pathlib import Path

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--batch-size", type=int, default=100)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--data", default=os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist"))
options = parser.parse_args()


def read(name, header):
    file = Path(options.data, name)
    data = gzip.open(f"{file}.gz").read() if not file.exists() else file.read_bytes()
    return torch.frombuffer(bytearray(data[header:]), dtype=torch.uint8)


images = read("train-images-idx3-ubyte", 16).reshape(-1, 784).float() / 255
labels = read("train-labels-idx1-ubyte", 8).long()

torch.manual_seed(options.seed)
network = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(network.parameters(), lr=options.lr)
writer = SummaryWriter(os.environ.get("SWEEP_RUN_DIR", "runs/alone"))

for epoch in range(1, options.epochs + 1):
    total_loss, correct = 0.0, 0
    for batch in torch.randperm(len(images)).split(options.batch_size):
        outputs = network(images[batch])
        loss = nn.functional.cross_entropy(outputs, labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss += loss.item() * len(batch)
        correct += (outputs.argmax(1) == labels[batch]).sum().item()
    writer.add_scalar("Loss/train", total_loss / len(images), epoch)
    writer.add_scalar("Accuracy/train", correct / len(images), epoch)
    writer.flush()
    print(f"epoch {epoch}: loss {total_loss / len(images):.4f}")
writer.close()
