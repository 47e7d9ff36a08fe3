"""The same calls with PyTorch's writer and with ours: TensorBoard must answer alike. If torch is not installed, its
files are those in peer/kept. Numbers in names of tests are those of conformance.txt."""

import html
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
import wave
from pathlib import Path

from server import TensorBoard
from shown_checks import CONTEXT

HERE = Path(__file__).resolve().parent / "peer"
RUNS = ["run", "run/trial", "run/group_lines_a", "run/group_lines_b"]
PR_CURVE = ["precision", "recall", "thresholds", "true_positives", "false_positives", "true_negatives", "false_negatives"]

DECODE = r"""
import io, sys
from PIL import Image
image = Image.open(io.BytesIO(sys.stdin.buffer.read()))
sys.stdout.buffer.write(repr(image.size).encode() + b"\n" + image.convert("RGB").tobytes())
"""

# TensorBoard has no tab for tensors, so its own reader is asked.
TENSORS = r"""
import json, sys
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.util import tensor_util
events = event_accumulator.EventAccumulator(sys.argv[1]).Reload()
found = {}
for tag in events.Tags()["tensors"]:
    if tag.startswith("tensor_") and tag != "tensor_bfloat16" and (tag, sys.argv[2]) != ("tensor_half", "torch"):
        (event,) = events.Tensors(tag)
        values = tensor_util.make_ndarray(event.tensor_proto)
        found[tag] = [event.step, event.wall_time, event.tensor_proto.dtype, list(values.shape),
                      [float(value) for value in values.flatten()],
                      events.SummaryMetadata(tag).plugin_data.plugin_name]
json.dump(found, sys.stdout)
"""


def write_with_torch(directory):
    """Where the files of PyTorch's writer are, and which writer it is."""
    for python in (os.environ.get("SWEEP_PEERS_PYTHON"), CONTEXT.peers, CONTEXT.venv / "bin/python"):
        if python and shutil.which(python) and subprocess.run(
                [python, "-c", "import torch, tensorboard, PIL"], capture_output=True).returncode == 0:
            subprocess.run([python, HERE / "write_with_torch.py", directory], check=True, capture_output=True)
            return directory, "the torch that is installed"
    return HERE / "kept", "the kept files (torch is not installed)"


class Peer(unittest.TestCase):
    maxDiff = 3000

    @classmethod
    def setUpClass(cls):
        directory = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        torch, which = write_with_torch(directory / "torch")
        print(f"compared with {which}", flush=True)
        ours = directory / "ours"
        subprocess.run([CONTEXT.demo.with_name("peer_logdir"), ours], check=True)
        cls.boards, cls.logdirs = [], [torch, ours]
        for logdir in cls.logdirs:
            board = cls.enterClassContext(TensorBoard(CONTEXT.venv, logdir, cls.fast))
            board.wait_for_runs(RUNS)
            cls.boards.append(board)

    def alike(self, answer, msg=None):
        """Compares what `answer` makes of either server, and returns it."""
        torch, ours = (answer(board) for board in self.boards)
        self.assertEqual(ours, torch, msg)
        return ours

    def pixels(self, board, tag):
        _, png = board.picture("run", tag)
        decoded = subprocess.run([CONTEXT.venv / "bin/python", "-c", DECODE], input=png, capture_output=True, check=True)
        return decoded.stdout

    def test_runs_and_tabs(self):
        self.alike(lambda board: sorted(board.get("/data/runs")))
        self.assertLessEqual({"audio", "pr_curves", "mesh"}, self.alike(lambda board: board.tabs()))

    def test_add_scalar_and_add_scalars(self):
        tags = self.alike(lambda board: {run: sorted(names) for run, names in board.plugin("scalars/tags").items()})
        self.assertEqual(tags["run/group_lines_b"], ["group/lines"])
        for run in tags:
            for tag in tags[run]:
                points = self.alike(lambda board: [point[run == "run/trial":] for point in
                                                   board.plugin("scalars/scalars", run=run, tag=tag)], (run, tag))
                self.assertTrue(points)

    def test_add_histogram_and_add_histogram_raw(self):
        def buckets(tag):
            def answer(board):
                ((time, step, found),) = board.plugin("histograms/histograms", run="run", tag=tag)
                while found and found[0][2] == 0:  # torch keeps an empty bucket at the left end
                    found = found[1:]
                # Others keep every empty bucket; here neighbours are one.
                for at in range(len(found) - 1, 0, -1):
                    if found[at][2] == found[at - 1][2] == 0:
                        found[at - 1:at + 1] = [[found[at - 1][0], found[at][1], 0]]
                # Its fast-loader form has other outer ends for that reason, so the inner limits are compared.
                return [time, step, [count for _, _, count in found], [right for _, right, _ in found[:-1]]]
            return answer
        self.assertGreater(len(self.alike(buckets("histogram"))[2]), 50)
        self.assertEqual(self.alike(buckets("raw"))[2], [3.0, 0.0, 5.0])

    def test_add_image_and_add_images(self):
        for tag in ("image", "float_image", "images"):
            self.alike(lambda board: self.pixels(board, tag) == self.pixels(self.boards[0], tag), tag)
            self.assertGreater(len(self.pixels(self.boards[1], tag)), 1000)

    def test_add_image_with_boxes(self):
        """Letters and lines are drawn by others' hands, so what is compared is where red, black and the picture are."""
        size, pixels = b"(120, 120)\n", []
        for board in self.boards:
            data = self.pixels(board, "boxes")
            self.assertTrue(data.startswith(size))
            rows = data[len(size):]
            pixels.append(lambda x, y, rows=rows: tuple(rows[(y * 120 + x) * 3:(y * 120 + x) * 3 + 3]))
        red, ground = (255, 0, 0), (128, 128, 128)
        for pixel in pixels:
            for left, top, right, bottom in ((10, 20, 80, 90), (40, 10, 100, 60)):
                for x, y in ((left, (top + bottom) // 2), (right, (top + bottom) // 2), ((left + right) // 2, top)):
                    self.assertEqual(pixel(x, y), red)
                self.assertEqual(pixel(left - 4, top + 3), ground)
                label = [pixel(x, y) for y in range(bottom - 8, bottom) for x in range(left + 1, left + 14)]
                self.assertGreater(label.count(red), len(label) // 4, "the label's ground")
                self.assertGreater(sum(max(color) < 128 for color in label), 4, "the label's letters")
            self.assertEqual(pixel(30, 50), ground)

    def test_add_text(self):
        """torch writes a list of one text, which TensorBoard shows as a table of one cell; ours is the text itself."""
        def text(board):
            (tag,) = board.plugin("text/tags")["run"]  # torch adds "/text_summary"
            (found,) = board.plugin("text/text", run="run", tag=tag)
            cell = re.search(r"<td>(.*)</td>", found["text"], re.S)
            return re.sub(r"\s+", "", html.unescape(cell.group(1) if cell else found["text"])), found["step"], found["wall_time"]
        self.assertIn("<strong>b</strong>", self.alike(text)[0])
        self.assertNotIn("<table", self.boards[1].plugin("text/text", run="run", tag="text")[0]["text"])

    def test_27_add_pr_curve_and_add_pr_curve_raw(self):
        def curve(tag):
            return lambda board: [[entry["step"]] + [[round(value, 6) for value in entry[key]] for key in PR_CURVE]
                                  for entry in board.plugin("pr_curves/pr_curves", run="run", tag=tag)["run"]]
        for tag in ("curve", "weighted", "raw_curve"):
            self.assertEqual(len(self.alike(curve(tag), tag)), 1)

    def test_26_add_audio(self):
        def sound(board):
            (entry,) = board.plugin("audio/audio", run="run", tag="sound", sample=0)
            _, _, data = board.fetch("/data/plugin/audio/individualAudio?" + entry["query"])
            with wave.open(io.BytesIO(data)) as file:
                return entry["contentType"], file.getparams(), memoryview(file.readframes(file.getnframes())).cast("h").tolist()
        (_, torch_parameters, torch), (kind, parameters, ours) = map(sound, self.boards)
        self.assertEqual((kind, parameters), ("audio/wav", torch_parameters))
        # It cuts off where we round.
        self.assertLessEqual(max(abs(a - b) for a, b in zip(torch, ours)), 1)

    def test_28_add_mesh(self):
        def mesh(board):
            parts = board.plugin("mesh/meshes", run="run", tag="mesh", sample=0)
            return (sorted((part["content_type"], part["components"], part["data_shape"], part["step"]) for part in parts),
                    [board.fetch("/data/plugin/mesh/data", run="run", tag="mesh", sample=0, step=0, content_type=kind)[2]
                     for kind in ("VERTEX", "FACE", "COLOR")])
        self.assertEqual([len(data) for data in self.alike(mesh)[1]], [48, 36, 12])

    def test_29_add_custom_scalars(self):
        self.assertEqual(len(self.alike(lambda board: board.plugin("custom_scalars/layout"))["category"][0]["chart"]), 2)

    def test_add_embedding(self):
        """The tensor's file lies in another place, and its name says the tag first in ours."""
        def embedding(board):
            (found,) = board.plugin("projector/info", run="run")["embeddings"]
            name = {"run": "run", "name": found["tensorName"]}
            return [found["tensorShape"], board.fetch("/data/plugin/projector/tensor", **name)[2],
                    board.fetch("/data/plugin/projector/metadata", **name)[2].strip()]
        self.assertEqual(len(self.alike(embedding)[1]), 9 * 4 * 4)

    def test_add_hparams(self):
        def session(board):
            (found,) = board.sessions()
            metric = next(value for value in found["metricValues"] if value["name"]["tag"] == "hparam/loss")
            return found["name"], found["hparams"], metric["value"], found["sessions"][0]["status"]
        self.assertEqual(self.alike(session)[1], {"lr": 0.25, "name": "adam", "flag": True})

    def test_add_graph(self):
        """Names are the caller's; the operations of the same network and the shapes on its edges are the same."""
        def operations(board):
            nodes = board.graph("run")
            return {node["op"] for node in nodes if node["op"] in ("aten::linear", "aten::relu") and
                    "_output_shapes" in node["attr"]}
        self.assertEqual(self.alike(operations), {"aten::linear", "aten::relu"})

    def test_add_tensor(self):
        """torch 2.13 writes the bits of a float where those of a half or bfloat16 belong, which no reader takes; and
        TensorBoard's own reader knows no bfloat16 without TensorFlow (tests/tbwriter looks at its bits)."""
        torch, ours = (json.loads(subprocess.run([CONTEXT.venv / "bin/python", "-c", TENSORS, logdir / "run", which],
                                                 capture_output=True, check=True).stdout)
                       for logdir, which in zip(self.logdirs, ("torch", "ours")))
        self.assertEqual({tag: ours[tag] for tag in torch}, torch)
        self.assertEqual([len(torch), len(ours)], [3, 4])
        for tag in ours:
            self.assertEqual(ours[tag][3:5], [[2, 3], [-4, -1, 2, 5, 8, 11]], tag)
