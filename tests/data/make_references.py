#!/usr/bin/env python3
# Makes the reference values of the training tests with PyTorch. Run by hand when a reference is added:
#
#   python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
#   /tmp/torch/bin/python tests/data/make_references.py [layers] [weights] [short] [long] [schedules] [pretrained]
#
# Without arguments everything is made (a few minutes); the training set is Debian's dataset-fashion-mnist. Writes,
# next to itself:
#   cnn.safetensors, mlp.safetensors   initial weights of the two networks, PyTorch's names, F32
#   training_short.json                per-batch losses of short trainings, in float32 and in double
#   training_curves.json               epoch losses of whole trainings on all 60,000 samples, in float32
#   pretrained.safetensors             a state_dict with buffers and counts, and outputs of the network
#   schedules.json                     learning rates and momenta of every step, by PyTorch's schedulers
#   training_schedules.json            as training_short.json, in double, with schedules
#   layer_gradients.safetensors        outputs and gradients of small odd-sized networks; see layer_references.py
#
# training_*.json: {"torch": version, "runs": [{network, weights, optimizer, arguments, lr, batch_size, limit,
# epochs: [{loss, number_correct, ...}]}]}. loss is the mean over the samples of the losses seen while training, and
# number_correct also counts while training. Samples come in file order; pixels are byte / 255; the last batch may be
# short. test_loss and test_number_correct are those of the whole test set after the epoch.
#
# schedules.json: {"torch", "cases": [{schedule (as in a sweep file), lr, epochs, steps_per_epoch, optimizer,
# learning_rates, momenta: a number per step}]}; momenta is empty if the schedule does not change them. Runs of
# training_schedules.json have the member "schedule".
import gzip
import json
import pathlib
import struct
import sys
from collections import OrderedDict

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from layer_references import make_layers
from torch_networks import Residual, build, layer, write_safetensors

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")


def read_idx(name):
    content = gzip.decompress((DATA / name).read_bytes())
    dimensions = content[3]
    extents = struct.unpack(f">{dimensions}I", content[4:4 + 4 * dimensions])
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(extents).copy())


CNN = [
    layer("conv1", "conv2d", out_channels=6, kernel_size=5), layer("relu1", "relu"),
    layer("pool1", "max_pool2d", kernel_size=2, stride=2),
    layer("conv2", "conv2d", out_channels=12, kernel_size=5), layer("relu2", "relu"),
    layer("pool2", "max_pool2d", kernel_size=2, stride=2), layer("flatten", "flatten"),
    layer("fc1", "linear", out_features=120), layer("relu3", "relu"),
    layer("fc2", "linear", out_features=60), layer("relu4", "relu"), layer("out", "linear", out_features=10),
]
MLP = [layer("flatten", "flatten"), layer("fc1", "linear", out_features=32), layer("relu1", "relu"),
       layer("out", "linear", out_features=10)]
NETWORKS = {"cnn": CNN, "mlp": MLP}


# --- networks and trainings ---------------------------------------------------------------------------------

def make_weights():
    for name, layers in NETWORKS.items():
        torch.manual_seed(0)
        network = build(layers, (1, 28, 28))
        write_safetensors(HERE / f"{name}.safetensors", network.state_dict(),
                          {"origin": f"tests/data/make_references.py, torch {torch.__version__}, manual_seed(0)"})


def initial_network(name):
    torch.manual_seed(0)
    return build(NETWORKS[name], (1, 28, 28))


OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
              "rmsprop": torch.optim.RMSprop}


def evaluate(network, pixels, labels, dtype):
    loss, correct = 0.0, 0
    with torch.no_grad():
        for first in range(0, len(labels), 1000):
            logits = network(pixels[first:first + 1000].to(dtype).unsqueeze(1) / 255)
            loss += functional.cross_entropy(logits, labels[first:first + 1000], reduction="sum").item()
            correct += (logits.argmax(1) == labels[first:first + 1000]).sum().item()
    return loss / len(labels), correct


def make_scheduler(spec, steps, lr, epochs, steps_per_epoch):
    """A scheduler for "schedule" of a sweep file, and whether it counts steps instead of epochs."""
    arguments = {k: v for k, v in spec.items() if k not in ("name", "then")}
    schedulers = torch.optim.lr_scheduler
    if spec["name"] == "constant":
        return schedulers.LambdaLR(steps, lambda epoch: 1.0), False
    if spec["name"] == "step":
        return schedulers.StepLR(steps, **arguments), False
    if spec["name"] == "cosine":
        return schedulers.CosineAnnealingLR(steps, **({"T_max": epochs} | arguments)), False
    if spec["name"] == "one_cycle":
        return schedulers.OneCycleLR(steps, max_lr=lr, epochs=epochs, steps_per_epoch=steps_per_epoch, **arguments), True
    warmup = schedulers.LinearLR(steps, **arguments)
    if "then" not in spec:
        return warmup, False
    length = arguments.get("total_iters", 5)
    then = make_scheduler(spec["then"], steps, lr, epochs - length, steps_per_epoch)[0]
    return schedulers.SequentialLR(steps, [warmup, then], milestones=[length]), False


def schedule_case(spec, lr, epochs, steps_per_epoch, optimizer):
    steps = OPTIMIZERS[optimizer]([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler, by_step = make_scheduler(spec, steps, lr, epochs, steps_per_epoch)
    rates, momenta = [], []
    for _ in range(epochs):
        for _ in range(steps_per_epoch):
            group = steps.param_groups[0]
            rates.append(group["lr"])
            if spec["name"] == "one_cycle" and spec.get("cycle_momentum", True):
                momenta.append(group["betas"][0] if "betas" in group else group["momentum"])
            steps.step()
            if by_step and len(rates) < epochs * steps_per_epoch:  # Beyond the end OneCycleLR may divide by zero.
                scheduler.step()
        if not by_step:
            scheduler.step()
    return {"schedule": spec, "lr": lr, "epochs": epochs, "steps_per_epoch": steps_per_epoch, "optimizer": optimizer,
            "learning_rates": rates, "momenta": momenta}


def make_schedules():
    cycle = {"name": "one_cycle"}
    cases = [({"name": "constant"}, 0.1, 3, 2), ({"name": "step", "step_size": 2}, 0.1, 7, 1),
             ({"name": "step", "step_size": 3, "gamma": 0.5}, 0.25, 10, 2), ({"name": "cosine"}, 0.1, 10, 1),
             ({"name": "cosine"}, 0.1, 1, 3), ({"name": "cosine", "T_max": 4, "eta_min": 0.01}, 0.3, 11, 2),
             (cycle, 0.1, 5, 10), (cycle, 0.01, 1, 7), (cycle, 0.1, 3, 1), (cycle | {"three_phase": True}, 0.1, 4, 10),
             (cycle | {"three_phase": True, "pct_start": 0.45, "anneal_strategy": "linear"}, 0.1, 4, 9),
             (cycle | {"anneal_strategy": "linear", "base_momentum": 0.5, "max_momentum": 0.9}, 0.1, 2, 13),
             (cycle | {"pct_start": 0.0}, 0.1, 2, 5), (cycle | {"pct_start": 1.0}, 0.1, 2, 5),
             (cycle | {"cycle_momentum": False, "div_factor": 10.0, "final_div_factor": 2.0}, 0.1, 3, 5),
             ({"name": "warmup"}, 0.1, 8, 2), ({"name": "warmup", "start_factor": 0.5, "end_factor": 0.75, "total_iters": 3}, 0.2, 6, 1),
             ({"name": "warmup", "total_iters": 3, "then": {"name": "cosine"}}, 0.1, 10, 2),
             ({"name": "warmup", "total_iters": 2, "then": {"name": "cosine", "T_max": 4, "eta_min": 0.02}}, 0.1, 9, 1),
             ({"name": "warmup", "total_iters": 2, "then": {"name": "step", "step_size": 2}}, 0.1, 9, 1)]
    results = [schedule_case(*case, optimizer) for case in cases
               for optimizer in (("sgd", "adam", "rmsprop") if case[0]["name"] == "one_cycle" else ("sgd",))]
    (HERE / "schedules.json").write_text(json.dumps({"torch": torch.__version__, "cases": results}) + "\n")
    trainings = [("cnn", "sgd", 0.1, {"momentum": 0.9}, cycle), ("cnn", "adam", 0.01, {}, cycle), ("mlp", "sgd", 0.1, {}, cycle),
                 ("mlp", "sgd", 0.1, {"momentum": 0.9, "nesterov": True}, cycle | {"three_phase": True}),
                 ("mlp", "rmsprop", 0.001, {}, cycle), ("mlp", "adamw", 0.01, {}, cycle | {"anneal_strategy": "linear"}),
                 ("cnn", "adam", 0.01, {}, {"name": "cosine"}), ("mlp", "sgd", 0.1, {}, {"name": "step", "step_size": 1}),
                 ("mlp", "sgd", 0.1, {"momentum": 0.9}, {"name": "warmup", "total_iters": 1, "then": {"name": "cosine"}})]
    write_runs("training_schedules.json", [train(name, optimizer, lr, 100, 1050, 3, arguments, torch.float64, True, schedule)
                                           for name, optimizer, lr, arguments, schedule in trainings])


def train(name, optimizer, lr, batch_size, limit, epochs, arguments, dtype, batches, schedule=None):
    pixels, labels = read_idx("train-images-idx3-ubyte.gz")[:limit], read_idx("train-labels-idx1-ubyte.gz")[:limit].long()
    test_pixels, test_labels = read_idx("t10k-images-idx3-ubyte.gz"), read_idx("t10k-labels-idx1-ubyte.gz").long()
    network = initial_network(name).to(dtype)
    steps = OPTIMIZERS[optimizer](network.parameters(), lr=lr, **arguments)
    run = {"network": name, "weights": f"{name}.safetensors", "optimizer": optimizer, "arguments": arguments,
           "lr": lr, "batch_size": batch_size, "limit": limit, "dtype": str(dtype).removeprefix("torch."), "epochs": []}
    scheduler, by_step = None, False
    if schedule is not None:
        run["schedule"] = schedule
        scheduler, by_step = make_scheduler(schedule, steps, lr, epochs, -(-limit // batch_size))
    for _ in range(epochs):
        losses, correct = [], []
        for first in range(0, limit, batch_size):
            wanted = labels[first:first + batch_size]
            logits = network(pixels[first:first + batch_size].to(dtype).unsqueeze(1) / 255)
            loss = functional.cross_entropy(logits, wanted)
            steps.zero_grad()
            loss.backward()
            steps.step()
            if by_step:
                scheduler.step()
            losses.append((loss.item(), len(wanted)))
            correct.append((logits.argmax(1) == wanted).sum().item())
        if scheduler is not None and not by_step:
            scheduler.step()
        epoch = {"loss": sum(l * n for l, n in losses) / limit, "number_correct": sum(correct)}
        epoch["test_loss"], epoch["test_number_correct"] = evaluate(network, test_pixels, test_labels, dtype)
        if batches:
            epoch["batch_losses"] = [l for l, _ in losses]
            epoch["batch_number_correct"] = correct
            # Two numbers per parameter after the epoch tell a wrong optimizer step from a wrong loss.
            epoch["parameters"] = {k: {"sum": p.double().sum().item(), "norm": p.double().norm().item()}
                                   for k, p in network.named_parameters()}
        run["epochs"].append(epoch)
        print(name, optimizer, arguments, lr, batch_size, run["dtype"], epoch["loss"], epoch["number_correct"],
              epoch["test_number_correct"], flush=True)
    return run


def write_runs(name, runs):
    lines = ",\n".join(json.dumps(run) for run in runs)
    (HERE / name).write_text(f'{{"torch": "{torch.__version__}", "runs": [\n{lines}\n]}}\n')


def make_short():
    variants = [("sgd", 0.1, {}), ("sgd", 0.05, {"momentum": 0.9}), ("sgd", 0.05, {"momentum": 0.9, "dampening": 0.5}),
                ("sgd", 0.02, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
                ("adam", 0.002, {}), ("adam", 0.002, {"weight_decay": 0.01}),
                ("adamw", 0.002, {}), ("adamw", 0.002, {"weight_decay": 0.5}), ("rmsprop", 0.001, {}),
                ("rmsprop", 0.001, {"alpha": 0.9, "momentum": 0.5, "weight_decay": 0.01, "centered": True})]
    write_runs("training_short.json",
               [train(name, optimizer, lr, 100, 1050, 2, arguments, dtype, True) for name in NETWORKS
                for optimizer, lr, arguments in variants for dtype in (torch.float32, torch.float64)])


def make_long():
    runs = [train("mlp", "sgd", 0.1, 100, 60000, 3, arguments, torch.float32, False)
            for arguments in ({}, {"momentum": 0.9})]
    runs += [train("cnn", "adam", lr, batch_size, 60000, 3, {}, torch.float32, False)
             for batch_size in (1000, 100) for lr in (0.001, 0.01)]
    write_runs("training_curves.json", runs)


# --- weights with buffers -----------------------------------------------------------------------------------

def make_pretrained():
    """pretrained.safetensors: a state_dict after some training, as it is, with what the network makes of a picture."""
    torch.manual_seed(0)
    network = nn.Sequential()
    network.add_module("conv", nn.Conv2d(1, 3, 3, bias=False))
    network.add_module("bn", nn.BatchNorm2d(3))
    body = nn.Sequential(OrderedDict(conv1=nn.Conv2d(3, 4, 3, stride=2, padding=1), bn1=nn.BatchNorm2d(4)))
    network.add_module("block", Residual(body, nn.Sequential(nn.Conv2d(3, 4, 1, stride=2))))
    network.add_module("flatten", nn.Flatten())
    network.add_module("out", nn.Linear(16, 3))
    steps = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(5):
        steps.zero_grad()
        functional.cross_entropy(network(torch.rand(8, 1, 6, 6)), torch.randint(0, 3, (8,))).backward()
        steps.step()
    pixels = torch.randint(0, 256, (2, 1, 6, 6))
    outputs = network.eval()(pixels / 255)
    layers = [{"name": "conv", "type": "conv2d", "out_channels": 3, "kernel_size": 3, "bias": False},
              {"name": "bn", "type": "batch_norm2d"},
              {"name": "block", "type": "residual", "layers": [
                  {"name": "conv1", "type": "conv2d", "out_channels": 4, "kernel_size": 3, "stride": 2, "padding": 1},
                  {"name": "bn1", "type": "batch_norm2d"}],
               "shortcut": [{"type": "conv2d", "out_channels": 4, "kernel_size": 1, "stride": 2}]},
              {"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 3}]
    write_safetensors(HERE / "pretrained.safetensors", network.state_dict(),
                      {"origin": f"tests/data/make_references.py, torch {torch.__version__}",
                       "network": json.dumps({"layers": layers}), "pixels": json.dumps(pixels.flatten().tolist()),
                       "outputs": json.dumps(outputs.flatten().tolist())})


torch.set_num_threads(1)  # float32 sums in one fixed order
torch.use_deterministic_algorithms(True)
wanted = sys.argv[1:] or ["weights", "layers", "short", "long", "schedules", "pretrained"]
for part in wanted:
    {"weights": make_weights, "layers": make_layers, "short": make_short, "long": make_long,
     "schedules": make_schedules, "pretrained": make_pretrained}[part]()
