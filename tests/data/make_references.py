#!/usr/bin/env python3
# Makes the reference values of the training tests with PyTorch. Run by hand when a reference is added:
#
#   python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
#   /tmp/torch/bin/python tests/data/make_references.py [layers] [weights] [short] [long] [schedules] [pretrained]
#
# Without arguments everything is made (a few minutes); the training set is Debian's dataset-fashion-mnist. Writes,
# beside itself:
#   cnn.safetensors, mlp.safetensors   initial weights of the two networks, PyTorch's names, F32
#   training_short.json                per-batch losses of short trainings, in float32 and in double
#   training_curves.json               epoch losses of whole trainings on all 60,000 samples, in float32
#   pretrained.safetensors             a state_dict with buffers and counts, and outputs of the network
#   schedules.json                     learning rates and momenta of every step, by PyTorch's schedulers
#   training_schedules.json            as training_short.json, in double, with schedules
#   layer_gradients.safetensors        outputs and gradients of small odd-sized networks, computed in double
#
# training_*.json: {"torch": version, "runs": [{network, weights, optimizer, arguments, lr, batch_size, limit,
# epochs: [{loss, number_correct, ...}]}]}. loss is the mean over the samples of the losses seen while training, and
# number_correct counts while training, too. Samples come in file order; pixels are byte / 255; the last batch may be
# short. test_loss and test_number_correct are those of the whole test set after the epoch.
#
# schedules.json: {"torch", "cases": [{schedule (as in a sweep file), lr, epochs, steps_per_epoch, optimizer,
# learning_rates, momenta: a number per step}]}; momenta is empty where the schedule leaves them alone. Runs of
# training_schedules.json have the member "schedule".
#
# layer_gradients.safetensors: for every case NAME the metadata has NAME -> {"input": [channels, height, width],
# "layers": [{name, type, arguments}]}, and the file has NAME/input [batch, channels, height, width] (whole numbers
# 0..255; the network sees them / 255), NAME/labels [batch], NAME/logits [batch, 4], NAME/loss [1], and for
# each parameter NAME/PARAMETER and NAME/grad/PARAMETER (of the loss: cross entropy, mean over the batch).
# All are exact in F32 or rounded to it from double. The metadata key "__origin__" is no case. Layers of type sequential
# and residual have "layers" and "shortcut". Where there are running statistics, logits are those in evaluation mode
# before the training step whose loss and gradients are given; NAME/BUFFER and NAME/after/BUFFER are the statistics
# before and after it.
import gzip
import json
import pathlib
import struct
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")


def read_idx(name):
    content = gzip.decompress((DATA / name).read_bytes())
    dimensions = content[3]
    extents = struct.unpack(f">{dimensions}I", content[4:4 + 4 * dimensions])
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(extents).copy())


def write_safetensors(path, tensors, metadata):
    """Batch norm's counts stay integers, as PyTorch has them; everything else becomes F32."""
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name, tensor in tensors.items():
        integers = name.endswith(".num_batches_tracked")
        values = tensor.detach().numpy() if integers else tensor.detach().to(torch.float32).numpy()
        blob = values.astype("<i8" if integers else "<f4").tobytes()
        header[name] = {"dtype": "I64" if integers else "F32", "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def layer(name, kind, **arguments):
    return {"name": name, "type": kind, "arguments": arguments}


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


class Residual(nn.Module):
    """layers(x) + shortcut(x). Modules of `layers` are named as if they were its own, as torchvision's blocks have it."""

    def __init__(self, layers, shortcut):
        super().__init__()
        for name, module in layers.named_children():
            self.add_module(name, module)
        self.body = [module for module in layers]
        if shortcut is not None:
            self.shortcut = shortcut

    def forward(self, x):
        y = x
        for module in self.body:
            y = module(y)
        return y + (self.shortcut(x) if hasattr(self, "shortcut") else x)


def build(layers, shape):
    """A torch Sequential of our layers; sizes are inferred by passing one sample through."""
    modules, x = nn.Sequential(), torch.zeros(1, *shape)
    modules.eval()
    for item in layers:
        arguments = {k: tuple(v) if isinstance(v, list) else v for k, v in item["arguments"].items()}
        module = {"conv2d": lambda: nn.Conv2d(x.shape[1], **arguments),
                  "linear": lambda: nn.Linear(x.shape[-1], **arguments),
                  "max_pool2d": lambda: nn.MaxPool2d(**arguments),
                  "avg_pool2d": lambda: nn.AvgPool2d(**arguments),
                  "adaptive_avg_pool2d": lambda: nn.AdaptiveAvgPool2d(**arguments),
                  "leaky_relu": lambda: nn.LeakyReLU(**arguments),
                  "relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "gelu": nn.GELU,
                  "batch_norm2d": lambda: nn.BatchNorm2d(x.shape[1], **arguments),
                  "sequential": lambda: build(item["layers"], x.shape[1:]),
                  "residual": lambda: Residual(build(item["layers"], x.shape[1:]),
                                               build(item["shortcut"], x.shape[1:]) if "shortcut" in item else None),
                  "flatten": nn.Flatten}[item["type"]]()
        modules.add_module(item["name"], module)
        x = module.eval()(x)
    return modules.train()


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


# --- layers -------------------------------------------------------------------------------------------------

def conv(name, channels, kernel, **more):
    return layer(name, "conv2d", out_channels=channels, kernel_size=kernel, **more)


def pool(kernel, **more):
    return layer("pool", "max_pool2d", kernel_size=kernel, **more)


def linear(name, features, **more):
    return layer(name, "linear", out_features=features, **more)


END = [layer("flatten", "flatten"), linear("classes", 4)]


def layer_cases():
    """name, input shape, batch, layers. A layer's input gradient is seen through the parameters of one before it."""
    for kernel in (1, 2, 3, 5, [2, 3], [5, 1]):
        for stride in (1, 2, 3):
            for padding in (0, 1, 2):
                smallest = min(kernel) if isinstance(kernel, list) else kernel
                if 2 * padding > smallest + 1:
                    continue
                text = "x".join(map(str, kernel)) if isinstance(kernel, list) else str(kernel)
                # Two convolutions: the second one's input gradient reaches the first one's weights.
                yield (f"conv_k{text}_s{stride}_p{padding}", (2, 8, 7), 5,
                       [conv("first", 3, 2), conv("conv", 5, kernel, stride=stride, padding=padding), *END])
    yield "conv_stride_2x1_padding_0x2", (2, 9, 6), 3, [conv("first", 3, 1), conv("conv", 2, 3, stride=[2, 1], padding=[0, 2]), *END]
    yield "conv_no_bias", (1, 6, 9), 4, [conv("first", 2, 3, bias=False), conv("conv", 3, 3, bias=False), *END]
    yield "conv_to_1x1", (3, 5, 5), 7, [conv("first", 7, 3), conv("conv", 13, 3), *END]
    yield "conv_one_pixel", (1, 1, 1), 2, [conv("conv", 3, 1), *END]
    yield "conv_one_row", (1, 1, 19), 3, [conv("first", 2, [1, 4]), conv("conv", 3, [1, 3], stride=2), *END]
    for inputs in (1, 2, 3, 5, 7, 13):
        for outputs in (1, 2, 3, 5, 7, 13):
            if inputs in (1, 7) or outputs in (1, 13) or inputs == outputs:
                yield (f"conv_channels_{inputs}_to_{outputs}", (1, 6, 5), 3,
                       [conv("first", inputs, 2), conv("conv", outputs, 3), *END])
    for batch in (1, 2, 15, 16, 17, 31, 33):
        yield f"conv_batch_{batch}", (1, 7, 6), batch, [conv("first", 3, 3), layer("relu", "relu"), conv("conv", 2, 2), *END]
        yield f"linear_batch_{batch}", (1, 3, 3), batch, [layer("flatten", "flatten"), linear("first", 7),
                                                          layer("relu", "relu"), linear("second", 5), linear("classes", 4)]
        yield f"pool_batch_{batch}", (1, 7, 6), batch, [conv("first", 3, 2), pool(2), *END]
    for kernel, more in ((2, {}), (3, {}), (2, {"stride": 1}), (3, {"stride": 2}), (2, {"stride": 3}),
                         (3, {"stride": 1, "padding": 1}), (3, {"stride": 2, "padding": 1}), (2, {"padding": 1}),
                         ([2, 3], {}), ([3, 2], {"stride": [1, 2], "padding": [1, 0]}), ([1, 4], {"stride": 1})):
        name = "_".join(["pool", str(kernel)] + [f"{k}_{v}" for k, v in more.items()])
        name = name.replace("[", "").replace("]", "").replace(", ", "x")
        yield name, (2, 9, 8), 3, [conv("first", 3, 2), pool(kernel, **more), *END]
        yield name + "_after_relu", (2, 9, 8), 3, [conv("first", 2, 2), layer("relu", "relu"), pool(kernel, **more), *END]
    yield "pool_before_relu", (1, 9, 8), 3, [conv("first", 3, 2), pool(2), layer("relu", "relu"), *END]
    yield "pool_of_pixels", (1, 9, 8), 3, [pool(2), conv("conv", 3, 2), *END]
    for inputs, outputs in ((1, 1), (1, 5), (3, 7), (17, 1), (13, 33), (33, 17), (65, 3), (100, 31)):
        yield (f"linear_{inputs}_to_{outputs}", (1, 2, 4), 6,
               [layer("flatten", "flatten"), linear("first", inputs), linear("linear", outputs), linear("classes", 4)])
    yield "linear_only", (3, 4, 5), 9, [*END]
    yield "linear_no_bias", (1, 3, 5), 9, [layer("flatten", "flatten"), linear("first", 5, bias=False),
                                           linear("classes", 4, bias=False)]
    yield "relu_of_pixels", (1, 3, 3), 5, [layer("relu", "relu"), *END]
    yield "relu_twice", (1, 3, 3), 5, [layer("flatten", "flatten"), linear("first", 9), layer("relu1", "relu"),
                                       layer("relu2", "relu"), linear("classes", 4)]
    yield "deeplizard_small", (1, 16, 16), 17, [
        conv("conv1", 3, 5), layer("relu1", "relu"), pool(2) | {"name": "pool1"}, conv("conv2", 5, 3),
        layer("relu2", "relu"), pool(2) | {"name": "pool2"}, layer("flatten", "flatten"), linear("fc1", 11),
        layer("relu3", "relu"), linear("classes", 4)]
    yield "three_convolutions_colour", (3, 11, 9), 16, [
        conv("conv1", 5, 3, padding=1), layer("relu1", "relu"), conv("conv2", 7, 3, stride=2, padding=1),
        layer("relu2", "relu"), conv("conv3", 2, [2, 3]), layer("relu3", "relu"), *END]
    for kind, more in (("leaky_relu", {}), ("leaky_relu", {"negative_slope": 0.3}), ("tanh", {}), ("sigmoid", {}), ("gelu", {})):
        name = "_".join([kind] + [str(v) for v in more.values()]).replace(".", "")
        yield name, (2, 6, 5), 17, [conv("first", 3, 2), layer("activation", kind, **more), *END]
        yield name + "_after_linear", (1, 3, 4), 5, [layer("flatten", "flatten"), linear("first", 33), layer("activation", kind, **more),
                                                     linear("classes", 4)]
    for kernel, more in ((2, {}), (3, {"stride": 2, "padding": 1}), ([2, 3], {"stride": [1, 2]}),
                         (3, {"stride": 2, "padding": 1, "count_include_pad": False}), (2, {"stride": 3})):
        name = "_".join(["avg_pool", str(kernel)] + [f"{k}_{v}" for k, v in more.items()])
        name = name.replace("[", "").replace("]", "").replace(", ", "x")
        yield name, (2, 9, 8), 3, [conv("first", 3, 2), layer("pool", "avg_pool2d", kernel_size=kernel, **more), *END]
    for size in (1, 3, [5, 2], 9):
        name = "adaptive_avg_pool_" + str(size).replace("[", "").replace("]", "").replace(", ", "x")
        yield name, (2, 9, 8), 3, [conv("first", 3, 2), layer("pool", "adaptive_avg_pool2d", output_size=size), *END]
    for stride, padding in ((1, 2), (2, 0), (2, 2), (3, 1)):
        yield (f"conv_pool_s{stride}_p{padding}", (2, 15, 13), 17,
               [conv("first", 3, 3), layer("relu1", "relu"), pool(2) | {"name": "pool1"},
                conv("conv", 5, [3, 2], stride=stride, padding=[padding, 1]), layer("relu", "relu"), pool(2), *END])
    for channels in (16, 17, 33):
        yield (f"conv_pool_channels_{channels}", (1, 12, 10), 18,
               [conv("first", channels, 3), layer("relu1", "relu"), conv("conv", 5, 3), layer("relu", "relu"), pool(2), *END])


    def norm(name, **more):
        return layer(name, "batch_norm2d", **more)

    def block(name, layers, shortcut=None):
        return layer(name, "residual") | {"layers": layers} | ({"shortcut": shortcut} if shortcut else {})

    relu = layer("relu", "relu")
    for batch in (2, 15, 16, 17, 33):
        yield (f"batch_norm_batch_{batch}", (2, 6, 5), batch,
               [conv("first", 3, 2), norm("norm"), relu, conv("second", 5, 3), norm("norm2"), *END])
    yield "batch_norm_of_pixels", (2, 6, 5), 17, [norm("norm"), conv("first", 3, 2), *END]
    yield "batch_norm_of_one_pixel", (2, 3, 2), 17, [conv("first", 3, [3, 2]), norm("norm"), *END]
    yield "batch_norm_plain", (2, 6, 5), 17, [norm("norm", affine=False), conv("first", 3, 2), norm("norm2", affine=False), relu, *END]
    yield "batch_norm_eps_momentum", (2, 6, 5), 18, [conv("first", 17, 2), norm("norm", eps=0.1, momentum=0.3), layer("tanh", "tanh"), *END]
    yield "batch_norm_pool", (1, 9, 8), 19, [conv("first", 3, 2), norm("norm"), relu, pool(2), conv("second", 4, 2), relu | {"name": "relu2"},
                                             pool(2) | {"name": "pool2"}, *END]
    yield "residual_identity", (2, 6, 5), 17, [conv("first", 3, 3, padding=1), block("block", [conv("conv", 3, 3, padding=1)]), relu, *END]
    yield "residual_of_pixels", (2, 6, 5), 17, [block("block", [conv("conv", 2, 3, padding=1)]), relu, *END]
    yield "residual_shortcut", (2, 6, 5), 5, [conv("first", 3, 3, padding=1), relu | {"name": "relu0"},
                                              block("block", [conv("conv", 5, 3, stride=2, padding=1), relu, conv("conv2", 5, 3, padding=1)],
                                                    [conv("conv", 5, 1, stride=2)]), *END]
    yield "residual_activations", (1, 4, 3), 6, [layer("flatten", "flatten"), linear("first", 9),
                                                 block("block", [layer("tanh", "tanh")], [layer("sigmoid", "sigmoid")]), linear("classes", 4)]
    yield "residual_twice_itself", (1, 4, 3), 6, [layer("flatten", "flatten"), linear("first", 9),
                                                  block("block", [layer("flat", "flatten")]), relu, linear("classes", 4)]
    yield "residual_nested", (2, 5, 5), 18, [
        conv("first", 4, 3, padding=1),
        block("outer", [block("inner", [conv("conv", 4, 3, padding=1), relu]), conv("conv", 4, 1)]), relu, *END]
    yield "residual_network", (3, 8, 8), 33, [
        conv("stem", 4, 3, padding=1, bias=False), norm("norm"), relu,
        layer("stage1", "sequential") | {"layers": [
            block("block", [conv("conv1", 4, 3, padding=1, bias=False), norm("norm1"), relu, conv("conv2", 4, 3, padding=1, bias=False),
                            norm("norm2")]), relu]},
        layer("stage2", "sequential") | {"layers": [
            block("block", [conv("conv1", 7, 3, stride=2, padding=1, bias=False), norm("norm1"), relu,
                            conv("conv2", 7, 3, padding=1, bias=False), norm("norm2")],
                  [conv("conv", 7, 1, stride=2, bias=False), norm("norm")]), relu]},
        layer("average", "adaptive_avg_pool2d", output_size=1), *END]
    for name, more in (("dilation_2", {"dilation": 2}), ("dilation_2x3_padding", {"dilation": [2, 3], "padding": [1, 3]}),
                       ("dilation_2_stride_2", {"dilation": 2, "stride": 2, "padding": 2}), ("dilation_3_stride_2x3", {"dilation": 3, "stride": [2, 3], "padding": 3}),
                       ("groups_2", {"groups": 2}), ("groups_2_dilation_2", {"groups": 2, "dilation": 2, "padding": 1}),
                       ("groups_2_stride_2_no_bias", {"groups": 2, "stride": 2, "padding": 1, "bias": False})):
        yield f"conv_{name}", (2, 11, 10), 5, [conv("first", 4, 2), conv("conv", 6, 3, **more), *END]
        yield f"conv_pool_{name}", (2, 17, 15), 17, [conv("first", 4, 2), conv("conv", 6, 3, **more), relu, pool(2), *END]
    yield "conv_depthwise", (3, 9, 8), 17, [conv("first", 7, 2), conv("conv", 14, 3, groups=7, padding=1), relu, conv("point", 5, 1), *END]
    yield "conv_dilation_of_pixels", (1, 12, 12), 17, [conv("conv", 5, 3, dilation=2), relu, pool(2), *END]


def smallest_margin(network, x):
    """How near a relu is to its kink, or a max pool to another maximum: float arithmetic must decide as double does."""
    margin = 1.0

    def look(module, inputs):
        nonlocal margin
        x = inputs[0]
        if isinstance(module, (nn.ReLU, nn.LeakyReLU)):
            # Exact zeros (pixels, or a relu's output) are safe: every precision computes them exactly.
            nonzero = x[x != 0].abs()
            margin = min(margin, nonzero.min().item()) if len(nonzero) else margin
        if isinstance(module, nn.MaxPool2d) and not (x == (x * 255).round() / 255).all():
            k, s, p = (v if isinstance(v, tuple) else (v, v) for v in (module.kernel_size, module.stride, module.padding))
            padded = functional.pad(x, (p[1], p[1], p[0], p[0]), value=-1e9)
            windows = padded.unfold(2, k[0], s[0]).unfold(3, k[1], s[1]).flatten(-2)
            top = windows.topk(2, -1).values
            gap = (top[..., 0] - top[..., 1])[top[..., 0] != 0]  # equal zeros after a relu pass no gradient
            margin = min(margin, gap.min().item()) if len(gap) else margin

    hooks = [module.register_forward_pre_hook(look) for module in network.modules()]
    network(x)
    for hook in hooks:
        hook.remove()
    return margin


def make_layers():
    tensors, metadata = {}, {}
    for index, (name, shape, batch, layers) in enumerate(layer_cases()):
        for attempt in range(1000):
            torch.manual_seed(1000 * index + attempt)
            network = build(layers, shape).double()
            # float32's nearest values, so that both precisions start from the same weights.
            network.load_state_dict({k: torch.randn_like(v).mul(1 / np.sqrt(max(1, v[0].numel()))).float().double()
                                     for k, v in network.state_dict().items() if "running" not in k and "tracked" not in k},
                                    strict=False)
            state = {k: v.clone() for k, v in network.state_dict().items()}
            for k, v in state.items():
                if "running" in k:
                    state[k] = (torch.rand_like(v) + 0.5).float().double()
            pixels = torch.randint(0, 256, (batch, *shape)).double()
            labels = torch.randint(0, 4, (batch,))
            if smallest_margin(network, pixels / 255) > 2e-6:
                break
        else:
            sys.exit(f"{name}: no seed keeps clear of kinks")
        network.load_state_dict(state)
        with torch.no_grad():
            logits = network.eval()(pixels / 255)
        loss = functional.cross_entropy(network.train()(pixels / 255), labels)
        loss.backward()
        if name in metadata:
            sys.exit(f"{name} is there twice")
        metadata[name] = json.dumps({"input": list(shape), "layers": layers})
        tensors |= {f"{name}/input": pixels, f"{name}/labels": labels, f"{name}/logits": logits,
                    f"{name}/loss": loss.reshape(1)}
        for key, buffer in network.named_buffers():
            if "running" in key:
                tensors |= {f"{name}/{key}": state[key], f"{name}/after/{key}": buffer}
        for key, parameter in network.named_parameters():
            tensors[f"{name}/{key}"] = parameter
            tensors[f"{name}/grad/{key}"] = parameter.grad
    metadata["__origin__"] = f"tests/data/make_references.py, torch {torch.__version__}, in double"
    write_safetensors(HERE / "layer_gradients.safetensors", tensors, metadata)
    print(len(metadata) - 1, "cases,", (HERE / "layer_gradients.safetensors").stat().st_size, "bytes")


# --- weights with buffers -----------------------------------------------------------------------------------

class Residual(nn.Module):
    """The names that a state_dict gives the layers of a sweep file's residual."""

    def __init__(self, layers, shortcut):
        super().__init__()
        self.order = list(layers)
        for name, module in layers.items():
            self.add_module(name, module)
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x):
        end = x
        for name in self.order:
            end = getattr(self, name)(end)
        return end + self.shortcut(x)


def make_pretrained():
    """pretrained.safetensors: a state_dict after some training, as it is, with what the network makes of a picture."""
    torch.manual_seed(0)
    network = nn.Sequential()
    network.add_module("conv", nn.Conv2d(1, 3, 3, bias=False))
    network.add_module("bn", nn.BatchNorm2d(3))
    network.add_module("block", Residual({"conv1": nn.Conv2d(3, 4, 3, stride=2, padding=1), "bn1": nn.BatchNorm2d(4)},
                                         [nn.Conv2d(3, 4, 1, stride=2)]))
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
