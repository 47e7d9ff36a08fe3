#!/usr/bin/env python3
# Makes curves.json with PyTorch: losses and accuracies, in double, of whole sweeps on data of several forms, which
# curves_test.cpp has the program train. Run by hand when a curve is added:
#
#   python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
#   /tmp/torch/bin/python tests/data/make_curves.py
#
# {"torch": version, "curves": [{"name", "data": which data, "train", "validation", "test": numbers of samples,
# "sweep": the keys of the sweep file besides data set and network, "network": its layers,
# "epochs": [{loss, accuracy or rmse, validation_loss, …} from epoch 1, or 0 with evaluate_first], "test_…": …}]}.
#
# Nothing else has to be kept, as both sides compute the rest: pictures by the formulas of
# tests/support/generated_pictures.h, the order of the samples by make_shuffled_orders.py, and as initial weights, in
# the order of state_dict(), bound * (2 * (state div 256) / 2^24 - 1) with state = 1664525 state + 1013904223 mod 2^32
# from 12345 on, and bound = 1 / sqrt(inputs of an output).
# A training loss is the mean of those of an epoch's batches, weighted by their sizes; others are over the whole set.
import csv
import json
import math
import pathlib

import numpy as np
import torch
from torch.nn import functional

from make_shuffled_orders import order
from torch_networks import build, layer

HERE = pathlib.Path(__file__).resolve().parent
SWEEPS = HERE.parent.parent / "sweeps"
torch.set_default_dtype(torch.float64)
SEED = 1


# --- data: (samples, targets) as they are fed to the network ------------------------------------------------

def noise(i, y, x, c=0):
    return (i * 2654435761 % 2**32 ^ y * 40503 ^ x * 69069 ^ c * 362437) >> 7 & 63


def label_of(i):
    return (i * 7 + i // 10) % 10


def grid(count, channels, height, width):
    return np.meshgrid(*(np.arange(n, dtype=np.int64) for n in (count, channels, height, width)), indexing="ij")


def digits(count):
    i, c, y, x = grid(count, 1, 28, 28)
    label = label_of(i)
    return noise(i, y, x) // 2 + np.where((x // 5 == label % 5) & (y // 14 == label // 5), 150, 0), label_of(np.arange(count))


def pets(count):
    i, c, y, x = grid(count, 1, 50, 50)
    pixels = noise(i, y, x) + np.where(np.where(i % 2 == 1, x, y) // 8 % 2 == i // 2 % 2, 140, 40)
    return pixels, np.arange(count) % 2


def cifar(count):
    i, c, y, x = grid(count, 3, 32, 32)
    label = label_of(i)
    is_bright = (c == np.where(label % 2 == 0, 0, 2)) & (y // 8 == 1 + label // 2 % 2) & (x // 6 == label // 2)
    return noise(i, y, x, c) + np.where(is_bright, 100, 0), label_of(np.arange(count))


def pictures(make, train, validation, test, by_class=False, normalized=False):
    values, labels = make(train + validation + test)
    values = values / 255
    parts, first = {}, 0
    for name, count in (("train", train), ("validation", validation), ("test", test)):
        # A folder of pictures is read class by class.
        chosen = sorted(range(first, first + count), key=lambda i: labels[i] if by_class else 0)
        parts[name] = values[chosen], labels[chosen]
        first += count
    if normalized:
        mean, std = (f(parts["train"][0], axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.std))
        parts = {name: ((x - mean) / std, y) for name, (x, y) in parts.items()}
    return {name: (torch.tensor(x), torch.tensor(y)) for name, (x, y) in parts.items()}


def table(name, validation):
    with open(HERE / "tables" / f"{name}.csv") as file:
        rows = list(csv.DictReader(file))
    target = "target" if "target" in rows[0] else "label"
    features = np.array([[float(v) for k, v in row.items() if k not in (target, "split")] for row in rows])
    if target == "label":
        classes = sorted({row["label"] for row in rows})
        targets = np.array([classes.index(row["label"]) for row in rows])
    else:
        targets = np.array([[float(row["target"])] for row in rows])
    is_test = np.array([row["split"] == "test" for row in rows])
    trained = np.flatnonzero(~is_test)
    parts = {"train": trained[:-validation], "validation": trained[-validation:], "test": np.flatnonzero(is_test)}
    mean, std = features[parts["train"]].mean(0), features[parts["train"]].std(0)
    return {part: (torch.tensor((features[rows] - mean) / std), torch.tensor(targets[rows])) for part, rows in parts.items()}


# --- training -----------------------------------------------------------------------------------------------

def weights(network):
    state, values = 12345, {}
    fan_in = 1
    for name, tensor in network.state_dict().items():
        if tensor.dim() > 1:
            fan_in = tensor[0].numel()
        drawn = []
        for _ in range(tensor.numel()):
            state = (1664525 * state + 1013904223) % 2**32
            drawn.append((2 * (state >> 8) / 2**24 - 1) / math.sqrt(fan_in))
        # As float32 has them.
        values[name] = torch.tensor(np.array(drawn, np.float32).astype(np.float64)).reshape(tensor.shape)
    return values


def loss_of(spec, outputs):
    spec = {"name": spec} if isinstance(spec, str) else spec
    if spec["name"] == "cross_entropy":
        weight = torch.tensor(spec["class_weights"], dtype=torch.float64) if "class_weights" in spec else None
        return lambda x, y: functional.cross_entropy(x, y, weight=weight)
    pointwise = {"mse": functional.mse_loss, "bce_with_logits": functional.binary_cross_entropy_with_logits}[spec["name"]]
    if outputs == 1:
        return lambda x, y: pointwise(x, y.double().reshape(-1, 1))
    return lambda x, y: pointwise(x, functional.one_hot(y, outputs).double())


class Sums:
    def __init__(self):
        self.loss, self.correct, self.squares, self.samples = 0.0, 0, 0.0, 0

    def add(self, loss, outputs, targets):
        self.loss += loss.item() * len(targets)
        self.samples += len(targets)
        if targets.is_floating_point():
            self.squares += (outputs - targets).square().sum().item()
        else:
            predicted = (outputs[:, 0] > 0).long() if outputs.shape[1] == 1 else outputs.argmax(1)
            self.correct += (predicted == targets).sum().item()

    def values(self, prefix, numbers):
        quality = {"rmse": math.sqrt(self.squares / self.samples)} if numbers else {"accuracy": self.correct / self.samples}
        return {prefix + key: value for key, value in ({"loss": self.loss / self.samples} | quality).items()}


def curve(name, data, parts, layers, sweep):
    x, y = parts["train"]
    numbers = y.is_floating_point()
    network = build(layers, x.shape[1:])
    network.load_state_dict(weights(network))
    outputs = network(x[:1]).shape[1]
    loss = loss_of(sweep.get("loss", "cross_entropy"), outputs)
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[sweep["optimizer"]](network.parameters(), lr=sweep["lr"])
    size = sweep["batch_size"]

    def measure(part, prefix):
        sums = Sums()
        with torch.no_grad():
            batches = parts[part][0].split(size)
            result, targets = torch.cat([network(batch) for batch in batches]), parts[part][1]
            sums.add(loss(result, targets), result, targets)
        return sums.values(prefix, numbers)

    epochs = [measure("validation", "validation_")] if sweep.get("evaluate_first") else []
    for epoch in range(sweep["epochs"]):
        sums, rows = Sums(), order(len(y), SEED, 0, epoch)
        for first in range(0, len(y), size):
            chosen = rows[first:first + size]
            optimizer.zero_grad()
            result = network(x[chosen])
            value = loss(result, y[chosen])
            value.backward()
            optimizer.step()
            sums.add(value, result, y[chosen])
        epochs.append(sums.values("", numbers) | measure("validation", "validation_"))
        print(name, epochs[-1], flush=True)
    return {"name": name, "data": data, **{part: len(parts[part][1]) for part in parts},
            "sweep": sweep | {"seed": SEED}, "network": layers, "epochs": epochs, **measure("test", "test_")}


def shipped(name):
    layers = json.loads((SWEEPS / "networks" / f"{name}.json").read_text())["layers"]
    return [layer(item["name"], item["type"], **{k: v for k, v in item.items() if k not in ("name", "type")})
            for item in layers]


def small(outputs):
    return [layer("fc1", "linear", out_features=32), layer("relu1", "relu"), layer("out", "linear", out_features=outputs)]


adam = {"optimizer": "adam", "lr": 0.001}
mlp = {"epochs": 3, "batch_size": 128, "evaluate_first": True}
pictures_of_pets = pictures(pets, 120, 40, 20, by_class=True)
cats_dogs = adam | {"epochs": 3, "batch_size": 20}
tables = adam | {"lr": 0.005, "epochs": 6, "batch_size": 16}
curves = [
    curve("MlpWithValidationSgd", "digits", pictures(digits, 640, 200, 100), shipped("mlp"), mlp | {"optimizer": "sgd", "lr": 0.5}),
    curve("MlpWithValidationAdam", "digits", pictures(digits, 640, 200, 100), shipped("mlp"), mlp | adam),
    curve("CatsDogsMse", "pets", pictures_of_pets, shipped("cats-dogs"), cats_dogs | {"loss": "mse"}),
    curve("CatsDogsCrossEntropy", "pets", pictures_of_pets, shipped("cats-dogs"), cats_dogs | {"loss": "cross_entropy"}),
    curve("CifarNormalized", "cifar", pictures(cifar, 400, 100, 100, normalized=True), shipped("cifar-cnn"),
          adam | {"epochs": 3, "batch_size": 50}),
    curve("RegressionOnDiabetes", "diabetes", table("diabetes", 60), small(1), tables | {"lr": 0.05, "loss": "mse"}),
    curve("ClassWeightsOnWine", "wine", table("wine", 30), small(3),
          tables | {"loss": {"name": "cross_entropy", "class_weights": [0.5, 2, 1]}}),
    curve("BceOnBreastCancer", "breast_cancer", table("breast_cancer", 80), small(1), tables | {"loss": "bce_with_logits"}),
]
text = ",\n".join(json.dumps(item) for item in curves)
(HERE / "curves.json").write_text(f'{{"torch": "{torch.__version__}", "curves": [\n{text}\n]}}\n')
