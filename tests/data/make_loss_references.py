#!/usr/bin/env python3
# Makes loss_references.json with PyTorch: short trainings with every loss, in double, on floats with classes and
# with numbers as targets. Run by hand when a loss is added:
#
#   python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
#   /tmp/torch/bin/python tests/data/make_loss_references.py
#
# {"torch": version, "cases": [{name, network (layers), input (shape), loss {name, arguments}, samples, targets
# (classes or numbers), lr, batch_size, weights (name: values), epochs, batch_losses, gradients (name: values, of the
# first batch), and after the training, over all samples: loss (mean of the batches', weighted by their sizes),
# correct or absolute_error and squared_error (sums), top5 (of more than 10 classes)}]}.
# Samples come in order; the last batch is short. Optimizer: SGD without momentum.
import json
import pathlib

import torch
from torch.nn import functional

from torch_networks import build, layer

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES, BATCH, EPOCHS = 37, 16, 3
torch.set_default_dtype(torch.float64)


def numbers(*shape, low=-2.0, high=2.0):
    """Values that float32 holds exactly, so that both precisions start from the same."""
    return (torch.rand(*shape) * (high - low) + low).mul(256).round().div(256)


def mlp(outputs):
    return (7,), [layer("fc1", "linear", out_features=6), layer("tanh", "tanh"), layer("out", "linear", out_features=outputs)]


def pooled(outputs):  # its end is no linear layer
    return (2, 5, 4), [layer("conv1", "conv2d", out_channels=4, kernel_size=3), layer("tanh", "tanh"),
                       layer("conv2", "conv2d", out_channels=outputs, kernel_size=1),
                       layer("pool", "adaptive_avg_pool2d", output_size=1), layer("flatten", "flatten")]


def one_hot(labels, outputs):
    if outputs == 1:  # of two classes
        return labels[:, None].double()
    return functional.one_hot(labels, outputs).double()


def loss_function(loss, outputs):
    arguments = {k: v for k, v in loss.items() if k != "name"}
    if loss["name"] == "cross_entropy":
        weights = arguments.pop("class_weights", None)
        weight = None if weights is None else torch.tensor(weights)
        return lambda x, t: functional.cross_entropy(x, t, weight=weight, **arguments)
    pointwise = {"mse": functional.mse_loss, "l1": functional.l1_loss, "smooth_l1": functional.smooth_l1_loss,
                 "bce_with_logits": functional.binary_cross_entropy_with_logits}[loss["name"]]
    return lambda x, t: pointwise(x, t if t.is_floating_point() else one_hot(t, outputs), **arguments)


CASES = [  # loss, outputs, classes (0: numbers)
    ({"name": "mse"}, 1, 0), ({"name": "mse"}, 3, 0), ({"name": "mse"}, 4, 4),
    ({"name": "l1"}, 2, 0), ({"name": "l1"}, 4, 4),
    ({"name": "smooth_l1"}, 2, 0), ({"name": "smooth_l1", "beta": 0.25}, 2, 0), ({"name": "smooth_l1", "beta": 0}, 1, 0),
    ({"name": "smooth_l1"}, 3, 3),
    ({"name": "bce_with_logits"}, 3, 0), ({"name": "bce_with_logits"}, 4, 4), ({"name": "bce_with_logits"}, 1, 2),
    ({"name": "cross_entropy"}, 13, 13), ({"name": "cross_entropy", "label_smoothing": 0.25}, 4, 4),
    ({"name": "cross_entropy", "class_weights": [0.5, 2, 1, 0.25]}, 4, 4),
    ({"name": "cross_entropy", "class_weights": [0.5, 2, 1, 0.25], "label_smoothing": 0.125}, 4, 4),
]


def run(index, make, loss, outputs, classes):
    torch.manual_seed(index)
    shape, layers = make(outputs)
    network = build(layers, shape).double()
    network.load_state_dict({k: numbers(*v.shape, low=-1, high=1) for k, v in network.state_dict().items()})
    weights = {k: v.flatten().tolist() for k, v in network.state_dict().items()}
    samples = numbers(SAMPLES, *shape)
    is_bce = loss["name"] == "bce_with_logits"
    targets = torch.randint(0, classes, (SAMPLES,)) if classes else numbers(SAMPLES, outputs, low=0 if is_bce else -3, high=1 if is_bce else 3)
    function, lr = loss_function(loss, outputs), 0.125
    optimizer = torch.optim.SGD(network.parameters(), lr=lr)
    losses, gradients = [], None
    batches = [slice(i, i + BATCH) for i in range(0, SAMPLES, BATCH)]
    for _ in range(EPOCHS):
        for batch in batches:
            optimizer.zero_grad()
            value = function(network(samples[batch]), targets[batch])
            value.backward()
            gradients = gradients or {k: p.grad.flatten().tolist() for k, p in network.named_parameters()}
            losses.append(value.item())
            optimizer.step()
    case = {"name": f"{make.__name__} {' '.join(str(v) for v in loss.values())} {outputs} of {classes}", "network": layers,
            "input": shape, "loss": loss, "outputs": outputs, "samples": samples.flatten().tolist(),
            "classes": classes, "targets": targets.flatten().tolist(), "lr": lr, "batch_size": BATCH, "epochs": EPOCHS,
            "weights": weights, "gradients": gradients, "batch_losses": losses}
    with torch.no_grad():
        result = network(samples)
        sizes = [len(samples[batch]) for batch in batches]
        case["loss_after"] = sum(function(result[b], targets[b]).item() * n for b, n in zip(batches, sizes)) / SAMPLES
        if classes:
            predicted = (result[:, 0] > 0).long() if outputs == 1 else result.argmax(1)
            case["correct"] = int((predicted == targets).sum())
            if outputs > 10:
                case["top5"] = int((result.topk(5, 1).indices == targets[:, None]).any(1).sum())
        else:
            errors = (torch.sigmoid(result) if is_bce else result) - targets
            case |= {"absolute_error": errors.abs().sum().item(), "squared_error": errors.square().sum().item(),
                     "deviation": (targets - targets.mean(0)).square().sum().item()}
    return case


cases = [run(2 * i + j, make, *case) for i, case in enumerate(CASES) for j, make in enumerate((mlp, pooled))]
lines = ",\n".join(json.dumps(case) for case in cases)
(HERE / "loss_references.json").write_text(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n]}}\n')
print(len(cases), "cases,", (HERE / "loss_references.json").stat().st_size, "bytes")
