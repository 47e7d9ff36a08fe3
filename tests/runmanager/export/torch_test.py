#!/usr/bin/env python3
"""Exports networks of every layer type as safetensors, loads them into PyTorch's modules, and compares the outputs.

  torch_test.py --sweep PROGRAM --peers PYTHON

PyTorch is that of $SWEEP_TORCH_PYTHON, an interpreter, or of PYTHON, which tools/bench installs; without it the test is
skipped.
"""

import argparse
import json
import struct
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "support/python"))
import environments  # noqa: E402


def load_safetensors(path):
    """As safetensors.torch.load_file(), which need not be installed."""
    import torch
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    assert header.pop("__metadata__")["format"] == "pt"
    state = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32", entry
        values = torch.frombuffer(bytearray(content[8 + length + begin:8 + length + end]), dtype=torch.float32)
        state[name] = values.reshape(entry["shape"])
    return state


def as_torch(layers):
    """Layers in the form of torch_networks.py; one without a name is called by its place, as in torch.nn.Sequential."""
    described = []
    for place, layer in enumerate(layers):
        layer = dict(layer)
        item = {"name": layer.pop("name", str(place)), "type": layer.pop("type")}
        for inner in ("layers", "shortcut"):
            if inner in layer:
                item[inner] = as_torch(layer.pop(inner))
        item["arguments"] = layer
        described.append(item)
    return described


def parameter_names(program, folder, run):
    import networks
    return [entry["name"] for entry in json.loads(networks.run(program, folder, "show", run, "--parameters", "--json"))["parameters"]]


def check_network(program, folder, name):
    import networks
    import torch
    import torch_networks
    run = networks.train(program, folder, name)
    networks.run(program, folder, "export-model", run, "-o", f"{name}.safetensors")
    state = load_safetensors(folder / f"{name}.safetensors")
    layers = as_torch(networks.NETWORKS[name][0])
    network = torch_networks.build(layers, (1, networks.SIDE, networks.SIDE)).eval()
    network.load_state_dict(state)
    assert [key for key, _ in network.named_parameters()] == parameter_names(program, folder, run)
    samples = torch.tensor([list(sample) for sample in networks.pictures(7, 2)[0]], dtype=torch.float32)
    with torch.no_grad():
        theirs = network((samples.reshape(-1, 1, networks.SIDE, networks.SIDE) / 255 - 0.3) / 0.25)
    if networks.NETWORKS[name][1] == "cross_entropy":
        theirs = theirs.softmax(1)
    predictions = json.loads(networks.run(program, folder, "predict", run, "new.npy", "--json"))["predictions"]
    kind = "probabilities" if "probabilities" in predictions[0] else "scores"
    ours = torch.tensor([list(prediction[kind].values()) for prediction in predictions])
    difference = (ours - theirs).abs().max().item()
    print(f"{name}: outputs differ by {difference:.2g} at most")
    assert difference < 1e-4, f"{name}: {ours} {theirs}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--peers")
    arguments = parser.parse_args()
    if arguments.peers:
        return environments.run_with_torch(arguments.peers, "--sweep", arguments.sweep)
    sys.path[:0] = [str(HERE), str(HERE.parents[1] / "data")]
    import networks
    program = str(Path(arguments.sweep).resolve())
    with tempfile.TemporaryDirectory() as directory:
        for name in networks.NETWORKS:
            check_network(program, Path(directory), name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
