"""Sweeps of one run each that several devices may train together: a CNN, an MLP, and a residual network with batch normalization and
dropout."""
import json

import torture_sweep


def conv(name, channels):
    return {"name": name, "type": "conv2d", "out_channels": channels, "kernel_size": 3, "padding": 1}


HEAD = [{"name": "flatten", "type": "flatten"}, {"name": "drop", "type": "dropout", "p": 0.3},
        {"name": "out", "type": "linear", "out_features": 4}]
NETWORKS = {
    "cnn": [conv("conv1", 6), {"name": "relu1", "type": "relu"}, {"name": "pool1", "type": "max_pool2d", "kernel_size": 2},
            conv("conv2", 8), {"name": "relu2", "type": "relu"}, HEAD[0], HEAD[2]],
    "mlp": [HEAD[0], {"name": "fc1", "type": "linear", "out_features": 40}, {"name": "relu1", "type": "relu"}, HEAD[2]],
    "residual": [conv("stem", 6), {"name": "norm", "type": "batch_norm2d"},
                 {"name": "block", "type": "residual",
                  "layers": [conv("conv1", 6), {"name": "norm1", "type": "batch_norm2d"}, {"name": "relu1", "type": "relu"}]},
                 {"name": "pool", "type": "max_pool2d", "kernel_size": 2}, *HEAD]}


def write_sweeps(directory, pictures, side, epochs):
    """NAME.json of each network, on so many pictures for training and validation."""
    torture_sweep.write_pictures(directory / "data", {"train": pictures, "t10k": pictures // 8}, side)
    for name, layers in NETWORKS.items():
        (directory / f"{name}.json").write_text(json.dumps({
            "name": name, "dataset": {"name": "quarters", "path": "data", "validation": pictures // 8},
            "network": {"name": name, "layers": layers}, "optimizer": "adam", "lr": 0.005, "batch_size": 128, "device": "cpu",
            "epochs": epochs, "evaluate_first": True, "seed": 3, "checkpoint": "best"}))


def finished_epochs(run):
    found = torture_sweep.checkpoint_of(run)
    return len(torture_sweep.seconds_of(map(json.loads, found[0]["epochs"].splitlines()))) if found else 0
