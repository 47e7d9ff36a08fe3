#!/usr/bin/env python3
"""Makes with PyTorch's writer the calls that peer_logdir.cpp makes with ours.

  write_with_torch.py DIRECTORY     run with a Python that has torch, tensorboard and Pillow

kept/ has what PyTorch 2.13.0 writes, made by `write_with_torch.py tests/tensorboard/peer/kept`.
"""

import sys
from pathlib import Path

import numpy
import torch
from torch.utils.tensorboard import SummaryWriter

TIME = 1.7e9


def picture(side, k=3, channels=3):
    y, x, c = numpy.meshgrid(range(side), range(side), range(channels), indexing="ij")
    return ((x * (c + 1) + y * k) * 5 % 256).astype(numpy.uint8)


def write(directory):
    writer = SummaryWriter(directory / "run")
    i = numpy.arange(-500, 500)
    values = (i * i * i).astype(numpy.float32) * numpy.float32(1e-6)
    for step in range(5):
        writer.add_scalar("scalar", 0.1 * step, step, TIME)
        writer.add_scalar("new_style", 0.1 * step, step, TIME, new_style=True)
    writer.add_scalars("group/lines", {"a": 1.5, "b": 2.5}, 0, TIME)
    writer.add_histogram("histogram", values, 0, walltime=TIME)
    writer.add_histogram_raw("raw", min=-0.5, max=1.5, num=8, sum=4, sum_squares=9, bucket_limits=[0, 1, 2],
                             bucket_counts=[3, 0, 5], global_step=0, walltime=TIME)
    writer.add_image("image", picture(24), 0, TIME, dataformats="HWC")
    writer.add_image("float_image", picture(24).astype(numpy.float32) / 255, 0, TIME, dataformats="HWC")
    batch = numpy.stack([picture(12, k).transpose(2, 0, 1) for k in range(10)])
    writer.add_images("images", batch, 0, TIME)
    boxes = torch.tensor([[10, 20, 80, 90], [40, 10, 100, 60]])
    gray = numpy.full((3, 120, 120), 128, numpy.uint8)
    writer.add_image_with_boxes("boxes", gray, boxes, 0, TIME, labels=["cat", "a dog"])
    writer.add_text("text", "# Title\n\na **b**\n\n- c", 0, TIME)
    labels = numpy.array([0, 1, 1, 0, 1, 1])
    scores = numpy.array([.1, .9, .4, .35, .8, .7], numpy.float32)
    writer.add_pr_curve("curve", labels, scores, 0, walltime=TIME)
    writer.add_pr_curve("weighted", labels, scores, 0, num_thresholds=11,
                        weights=numpy.array([1, 2, 1, 3, 1, 2], numpy.float32), walltime=TIME)
    tp, fp, tn, fn = ([3, 2, 1], [2, 1, 0], [0, 1, 2], [0, 1, 2])
    writer.add_pr_curve_raw("raw_curve", *map(numpy.array, (tp, fp, tn, fn, [.6, .67, 1], [1, .67, .33])), global_step=0,
                            num_thresholds=3, walltime=TIME)
    writer.add_audio("sound", torch.sin(torch.arange(2000) * 0.05)[None] * 0.5, 0, 8000, TIME)
    writer.add_mesh("mesh", torch.tensor([[[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]], dtype=torch.float),
                    colors=torch.tensor([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0]]], dtype=torch.uint8),
                    faces=torch.tensor([[[0, 1, 2], [0, 1, 3], [0, 2, 3]]], dtype=torch.int32), global_step=0, walltime=TIME)
    writer.add_custom_scalars({"losses": {"loss": ["Multiline", ["loss/.*", "scalar"]],
                                          "band": ["Margin", ["m/mean", "m/min", "m/max"]]}})
    points = torch.tensor([[float(k * (d + 1)) / 4 for d in range(4)] for k in range(9)])
    writer.add_embedding(points, metadata=[f"point {k}" for k in range(9)], global_step=3, tag="points")
    tensors = {"float": torch.float32, "double": torch.float64, "int64": torch.int64, "half": torch.float16,
               "bfloat16": torch.bfloat16}
    for name, dtype in tensors.items():
        writer.add_tensor("tensor_" + name, torch.arange(6).reshape(2, 3).to(dtype) * 3 - 4, 0, TIME)
    writer.add_graph(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()), torch.zeros(2, 4))
    writer.add_hparams({"lr": 0.25, "name": "adam", "flag": True}, {"hparam/loss": 0.5}, run_name="trial")
    writer.close()
    # Names without the machine's and the moment's: kept files must not change with those.
    for number, file in enumerate(sorted(directory.rglob("*tfevents*"))):
        file.rename(file.with_name(f"events.out.tfevents.0000000000.torch.{number}.0"))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
