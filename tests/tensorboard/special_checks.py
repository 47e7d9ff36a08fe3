"""Checks that need servers with other arguments, other directories, or no server at all: see shown_checks.py."""

import json
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from server import TensorBoard
from shown_checks import CONTEXT, Server, float32


class StrictAndFull:
    """Servers with other arguments, for the checks that need them."""

    def test_03_checksums_are_right(self):
        if self.fast:
            points = self.points("values", "plain")
            self.assertEqual(len(points), 20)

    def test_19_all_images_when_asked_for(self):
        steps = [entry["step"] for entry in self.get("images/images", run="pictures", tag="series", sample=0)]
        self.assertEqual(steps, list(range(25)))

    def test_41_points_appear_while_they_are_written(self):
        process = subprocess.Popen([CONTEXT.demo, CONTEXT.logdir, "live"], stdin=subprocess.PIPE)
        try:
            for count in (1, 2, 3):
                deadline = time.monotonic() + 20
                while True:
                    tags = self.get("scalars/tags").get("live", {})
                    if "tail" in tags and len(self.points("live", "tail")) == count:
                        break
                    self.assertLess(time.monotonic(), deadline, f"point {count} has not come")
                    time.sleep(0.1)
                process.stdin.write(b"\n")
                process.stdin.flush()
        finally:
            process.stdin.close()
            process.wait(20)


class FastLoaderStrict(StrictAndFull, Server):
    fast = True
    arguments = ["--samples_per_plugin", "images=1000", "--extra_data_server_flags=--checksum"]


class PythonLoaderFull(StrictAndFull, Server):
    fast = False
    arguments = ["--samples_per_plugin", "images=1000"]


READ_FILES = r"""
import glob, json, sys
from tensorboard.backend.event_processing import event_accumulator, event_file_loader
logdir = sys.argv[1]
files = {}
for name in glob.glob(logdir + "/**/*tfevents*", recursive=True):
    events = list(event_file_loader.LegacyEventFileLoader(name).Load())
    files[name] = [len(events), events[0].file_version]
accumulator = event_accumulator.EventAccumulator(logdir + "/values").Reload()
pictures = event_accumulator.EventAccumulator(logdir + "/pictures").Reload()
import io
from PIL import Image
frames = {}
for tag in ("video", "color_video"):
    image = Image.open(io.BytesIO(pictures.Images(tag)[0].encoded_image_string))
    frames[tag] = []
    for k in range(image.n_frames):
        image.seek(k)
        frames[tag].append(list(image.convert("L" if tag == "video" else "RGB").tobytes()))
json.dump({"files": files, "tags": {k: v for k, v in accumulator.Tags().items() if isinstance(v, list)},
           "images": pictures.Tags()["images"], "frames": frames,
           "plain": [[e.step, e.value] for e in accumulator.Scalars("plain")]}, sys.stdout)
"""


def count_records(path):
    """Records of a file, by their lengths; the whole file must be records."""
    data, position, count = path.read_bytes(), 0, 0
    while position < len(data):
        (length,) = struct.unpack("<Q", data[position:position + 8])
        position += 12 + length + 4
        count += 1
    assert position == len(data), path
    return count


class Experiment:
    """The table as an experiment in the top run describes it, over several starts of the server."""

    def test_35_one_experiment_in_the_top_run(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([CONTEXT.demo, directory, "experiment"], check=True)
            for start in range(3):
                with TensorBoard(CONTEXT.venv, directory, self.fast) as board:
                    board.wait_for_runs([".", "a", "b"])
                    found = board.plugin("hparams/experiment", body={})
                    self.assertEqual([(info["name"], info["displayName"]) for info in found["hparamInfos"]],
                                     [("lr", "rate")], msg=start)
                    self.assertEqual([info["name"]["tag"] for info in found["metricInfos"]], ["loss"], msg=start)
                    self.assertEqual(found["name"], "named")


class FastLoaderExperiment(Experiment, unittest.TestCase):
    fast = True


class PythonLoaderExperiment(Experiment, unittest.TestCase):
    fast = False


WRITE_WITH_TORCH = r"""
import sys
import numpy
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter(sys.argv[1])
i = numpy.arange(-500, 500)
values = (i * i * i).astype(numpy.float32) * numpy.float32(1e-6)
for step in range(5):
    writer.add_scalar("scalar", 0.1 * step, step)
writer.add_histogram("histogram", values, 0)
y, x, c = numpy.meshgrid(range(24), range(24), range(3), indexing="ij")
writer.add_image("image", ((x * (c + 1) + y * 3) * 5 % 256).astype(numpy.uint8), 0, dataformats="HWC")
writer.add_text("text", "a **b**", 0)
writer.add_pr_curve("curve", numpy.array([0, 1, 1, 0, 1, 1]), numpy.array([.1, .9, .4, .35, .8, .7], numpy.float32), 0)
writer.close()
"""

DECODE = r"""
import io, sys
from PIL import Image
sys.stdout.buffer.write(Image.open(io.BytesIO(sys.stdin.buffer.read())).convert("RGB").tobytes())
"""


class Peer:
    """The same calls with PyTorch's writer and with ours must be shown alike."""

    def test_like_torch(self):
        with tempfile.TemporaryDirectory() as directory:
            torch = subprocess.run([CONTEXT.venv / "bin/python", "-c", WRITE_WITH_TORCH, directory + "/torch"],
                                   capture_output=True, text=True)
            if "No module named 'torch'" in torch.stderr:
                self.skipTest("torch is not installed beside TensorBoard")
            self.assertEqual(torch.returncode, 0, msg=torch.stderr)
            subprocess.run([CONTEXT.demo, directory + "/ours", "peer"], check=True)
            with TensorBoard(CONTEXT.venv, directory, self.fast) as board:
                board.wait_for_runs(["torch", "ours"])
                torch, ours = (self.answers(board, run) for run in ("torch", "ours"))
                for what in torch:
                    self.assertEqual(ours[what], torch[what], msg=what)

    def answers(self, board, run):
        def without_time(points):
            return [point[1:] for point in points]
        (histogram,) = board.plugin("histograms/histograms", run=run, tag="histogram")
        buckets = histogram[2]
        while buckets and buckets[0][2] == 0:  # torch keeps an empty bucket at the left end
            buckets = buckets[1:]
        # Its fast-loader form has other outer ends for that reason, so the inner limits are compared.
        (image,) = board.plugin("images/images", run=run, tag="image", sample=0)
        _, _, png = board.fetch("/data/plugin/images/individualImage?" + image["query"])
        pixels = subprocess.run([CONTEXT.venv / "bin/python", "-c", DECODE], input=png, capture_output=True, check=True)
        (curve,) = board.plugin("pr_curves/pr_curves", run=run, tag="curve")[run]
        return {"scalar": without_time(board.plugin("scalars/scalars", run=run, tag="scalar")),
                "histogram counts": [count for _, _, count in buckets],
                "histogram limits": [right for _, right, _ in buckets[:-1]],
                "pixels": pixels.stdout,
                "curve": [curve[key] for key in ("precision", "recall", "thresholds", "true_positives",
                                                 "false_positives", "true_negatives", "false_negatives")]}


class FastLoaderPeer(Peer, unittest.TestCase):
    fast = True


class PythonLoaderPeer(Peer, unittest.TestCase):
    fast = False


class Files(unittest.TestCase):
    """TensorBoard's own Python reader, without a server; it checks every checksum."""

    @classmethod
    def setUpClass(cls):
        program = subprocess.run([CONTEXT.venv / "bin/python", "-c", READ_FILES, CONTEXT.logdir], capture_output=True, text=True)
        if program.returncode != 0:
            raise AssertionError(program.stderr)
        cls.read = json.loads(program.stdout)

    def test_01_02_every_record_is_read(self):
        self.assertGreater(len(self.read["files"]), 20)
        for name, (count, version) in self.read["files"].items():
            self.assertEqual((count, version), (count_records(Path(name)), "brain.Event:2"), msg=name)

    def test_48_event_accumulator(self):
        self.assertLessEqual({"plain", "described", "special", "long"}, set(self.read["tags"]["scalars"]))
        self.assertLessEqual({"normal", "none", "one"}, set(self.read["tags"]["histograms"]))
        self.assertLessEqual({"single", "series", "grid", "video"}, set(self.read["images"]))
        self.assertEqual(self.read["plain"], [[step, float32(1 / (step + 1))] for step in range(20)])

    def test_17_frames_of_videos(self):
        """Pillow decodes what was encoded: gray exactly, colours to the nearest of the palette."""
        for tag, channels in (("video", 1), ("color_video", 3)):
            frames = self.read["frames"][tag]
            self.assertEqual(len(frames), 8)
            for k, frame in enumerate(frames):
                wanted = [(x * (c + 1) + y * k) * 5 % 256 for y in range(64) for x in range(64) for c in range(channels)]
                worst = max(abs(a - b) for a, b in zip(frame, wanted))
                self.assertLessEqual(worst, 0 if channels == 1 else 26, msg=f"{tag}, frame {k}")
