"""PyTorch's modules for the networks of a sweep file, and safetensors as state_dict() has them."""
import json
import struct

import torch
from torch import nn


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
                  "dropout": lambda: nn.Dropout(**arguments),
                  "relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "gelu": nn.GELU, "silu": nn.SiLU,
                  "batch_norm2d": lambda: nn.BatchNorm2d(x.shape[1], **arguments),
                  "sequential": lambda: build(item["layers"], x.shape[1:]),
                  "residual": lambda: Residual(build(item["layers"], x.shape[1:]),
                                               build(item["shortcut"], x.shape[1:]) if "shortcut" in item else None),
                  "flatten": nn.Flatten}[item["type"]]()
        modules.add_module(item["name"], module)
        x = module.eval()(x)
    return modules.train()
