"""Small runs of every layer type, for the tests of exported models."""
import json
import random
import struct
import subprocess

CONV = {"name": "conv1", "type": "conv2d", "out_channels": 6, "kernel_size": 3, "padding": 1}
CLASSES = {"name": "out", "type": "linear", "out_features": 3}
NETWORKS = {
    "cnn": ([CONV, {"type": "relu"}, {"type": "max_pool2d", "kernel_size": 3, "stride": 2, "padding": 1},
             {"type": "conv2d", "out_channels": 4, "kernel_size": [3, 1], "stride": [2, 1], "dilation": [1, 2], "groups": 2,
              "bias": False}, {"type": "leaky_relu", "negative_slope": 0.2},
             {"type": "avg_pool2d", "kernel_size": 2, "padding": 1, "count_include_pad": False},
             {"type": "flatten"}, {"type": "dropout", "p": 0.3}, CLASSES], "cross_entropy"),
    "mlp": ([{"type": "flatten"}, {"type": "linear", "out_features": 20}, {"type": "gelu"},
             {"type": "linear", "out_features": 20}, {"type": "silu"},
             {"type": "linear", "out_features": 16, "bias": False}, {"type": "tanh"},
             {"type": "linear", "out_features": 12}, {"type": "sigmoid"}, CLASSES], "mse"),
    "residual": ([CONV, {"type": "batch_norm2d"}, {"type": "relu"},
                  {"name": "block1", "type": "residual",
                   "layers": [{"name": "conv", "type": "conv2d", "out_channels": 6, "kernel_size": 3, "padding": 1},
                              {"name": "norm", "type": "batch_norm2d", "affine": False}]},
                  {"name": "block2", "type": "residual",
                   "layers": [{"name": "conv", "type": "conv2d", "out_channels": 8, "kernel_size": 3, "padding": 1, "stride": 2},
                              {"name": "norm", "type": "batch_norm2d"}],
                   "shortcut": [{"name": "conv", "type": "conv2d", "out_channels": 8, "kernel_size": 1, "stride": 2}]},
                  {"name": "inner", "type": "sequential", "layers": [{"name": "act", "type": "relu"}]},
                  {"type": "adaptive_avg_pool2d", "output_size": [3, 4]}, {"type": "flatten"}, CLASSES], "mse"),
    "pooled": ([CONV, {"type": "adaptive_avg_pool2d", "output_size": 5}, {"type": "adaptive_avg_pool2d", "output_size": 1},
                {"type": "flatten"}, CLASSES], "cross_entropy"),
}
SIDE, COUNT = 10, 90


def pictures(count, seed):
    """Bytes of `count` gray pictures; the place of a bright row is the class."""
    random.seed(seed)
    samples, labels = [], []
    for i in range(count):
        label = i % 3
        picture = [random.randrange(80) + (120 if row // 3 == label else 0) for row in range(SIDE) for _ in range(SIDE)]
        samples.append(bytes(picture))
        labels.append(label)
    return samples, labels


def write_npy(path, kind, shape, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def train(program, folder, name):
    """Trains NETWORKS[name] for two epochs and returns the directory of its run."""
    data = folder / "data"
    if not data.exists():
        data.mkdir()
        samples, labels = pictures(COUNT, 1)
        write_npy(data / "x.npy", "|u1", (COUNT, SIDE, SIDE), b"".join(samples))
        write_npy(data / "y.npy", "<i8", (COUNT,), struct.pack(f"<{COUNT}q", *labels))
        write_npy(folder / "new.npy", "|u1", (7, SIDE, SIDE), b"".join(pictures(7, 2)[0]))
    layers, loss = NETWORKS[name]
    sweep = {"name": name, "dataset": {"name": "own", "path": "data", "normalize": {"mean": [0.3], "std": [0.25]}},
             "network": {"name": name, "layers": layers}, "loss": loss, "optimizer": "adam", "lr": 0.01, "batch_size": 16,
             "epochs": 2, "seed": 3, "device": "cpu"}
    (folder / f"{name}.json").write_text(json.dumps(sweep))
    run(program, folder, f"{name}.json", "--logdir", "runs", "--quiet")
    return f"runs/{name}"


def run(program, folder, *words):
    return subprocess.run([program, *words], cwd=folder, check=True, capture_output=True, text=True).stdout
