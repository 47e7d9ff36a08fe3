"""Checks that need servers with other arguments, other directories, or no server at all: see shown_checks.py."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path

from event_records import crc32c, masked_crc32c, records
from everything import differences, everything
from server import TensorBoard, float32
from shown_checks import CONTEXT, RUNS, Server
from processes import until


class Full(Server):
    """Servers with other arguments, for the checks that need them."""
    arguments = ["--samples_per_plugin", "images=1000"]

    def test_19_all_images_when_asked_for(self):
        steps = [entry["step"] for entry in self.get("images/images", run="pictures", tag="series", sample=0)]
        self.assertEqual(steps, list(range(25)))

    def test_41_points_appear_while_they_are_written(self):
        process = subprocess.Popen([CONTEXT.demo, CONTEXT.logdir, "live"], stdin=subprocess.PIPE)
        try:
            for count in (1, 2, 3):
                until(lambda: "tail" in self.get("scalars/tags").get("live", {}) and
                      len(self.board.points("live", "tail")) == count, 20, f"point {count} has come", 0.1)
                process.stdin.write(b"\n")
                process.stdin.flush()
        finally:
            process.stdin.close()
            process.wait(20)


class Strict(Full):
    """With checksums, which only the fast loader may leave out."""
    arguments = [*Full.arguments, "--extra_data_server_flags=--checksum"]

    def test_03_checking_checksums_changes_nothing(self):
        """The fast loader checks none unless it is asked to."""
        with TensorBoard(CONTEXT.venv, CONTEXT.logdir, True, self.arguments[:2]) as lax:
            lax.wait_for_runs(RUNS)
            self.assertEqual(differences(everything(self.board), everything(lax)), [])

    def test_03_checksums_are_what_is_checked(self):
        with tempfile.TemporaryDirectory() as directory:
            file, *_ = sorted((CONTEXT.logdir / "in_parts").glob("*.000000"))
            data = file.read_bytes()
            *_, (begin, payload) = records(data)
            damaged = bytearray(data)
            damaged[begin + 12 + len(payload)] ^= 1  # of the last payload's checksum
            (Path(directory) / file.name).write_bytes(damaged)
            with TensorBoard(CONTEXT.venv, directory, True, self.arguments) as board:
                board.wait_for_runs(["."])
                points = board.points(".", "s")
            self.assertEqual(len(points), len(list(records(data))) - 3, "all but version, session start and the damaged one")


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


class Experiment(unittest.TestCase):
    """The table as an experiment in the top run describes it, over several starts of the server."""

    def test_35_one_experiment_in_the_top_run(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([CONTEXT.demo, directory, "experiment"], check=True)
            for start in range(5):
                with TensorBoard(CONTEXT.venv, directory, self.fast) as board:
                    board.wait_for_runs([".", "a", "b"])
                    found = board.plugin("hparams/experiment", body={})
                    self.assertEqual([(info["name"], info["displayName"]) for info in found["hparamInfos"]],
                                     [("lr", "rate")], msg=start)
                    self.assertEqual([info["name"]["tag"] for info in found["metricInfos"]], ["loss"], msg=start)
                    self.assertEqual(found["name"], "named")


class Sessions(Server):
    """Sessions with sub-runs and of a caller who makes mistakes."""

    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        subprocess.run([CONTEXT.demo, directory, "sessions"], check=True)
        cls.serve(directory, ["misuse", "nested/s", "nested/s/train", "nested/s/val"])

    def test_34_metrics_of_sub_runs(self):
        infos = self.post("hparams/experiment", {})["metricInfos"]
        groups = {info["name"].get("group", "") for info in infos if info["name"]["tag"] == "accuracy"}
        self.assertEqual(groups, {"train", "val"})
        (group,) = [group for group in self.board.sessions() if group["name"] == "nested/s"]
        values = {value["name"].get("group", ""): value["value"] for value in group["metricValues"]
                  if value["name"]["tag"] == "accuracy"}
        self.assertEqual(values, {"train": float32(0.7), "val": float32(0.6)})

    def test_46_misuse_is_refused_and_hurts_nothing(self):
        self.assertEqual(self.board.points("misuse", "refused"), [(0, 3.0)])
        self.assertEqual(self.board.points("misuse", "s"), [(0, 1.0)])
        self.assertIn("misuse", [group["name"] for group in self.board.sessions()])


class Files(unittest.TestCase):
    """TensorBoard's own Python reader, without a server; it checks every checksum."""

    @classmethod
    def setUpClass(cls):
        program = subprocess.run([CONTEXT.venv / "bin/python", "-c", READ_FILES, CONTEXT.logdir], capture_output=True, text=True)
        if program.returncode != 0:
            raise AssertionError(program.stderr)
        cls.read = json.loads(program.stdout)

    def test_01_framing_and_checksums(self):
        """By a reader that is independent of the writer; records() compares every checksum."""
        vectors = {b"": (0, 0xA282EAD8), b"123456789": (0xE3069283, 0xC78AB0E5), bytes(32): (0x8A9136AA, 0x0FD7FFFA)}
        for data, (crc, masked) in vectors.items():
            self.assertEqual((crc32c(data), masked_crc32c(data)), (crc, masked))
        for name in self.read["files"]:
            data = Path(name).read_bytes()
            begin, payload = list(records(data))[-1]
            self.assertEqual(begin + 12 + len(payload) + 4, len(data), msg=f"{name} has bytes after its last record")

    def test_02_the_python_loader_reads_all_records(self):
        self.assertGreater(len(self.read["files"]), 15)
        for name, (count, version) in self.read["files"].items():
            self.assertEqual((count, version), (len(list(records(Path(name).read_bytes()))), "brain.Event:2"), msg=name)
        # What was written, and before it the version and where the session begins.
        written = {"threads": 2 * 500, "layout": 1 + 5}
        for run, count in written.items():
            (name,) = (CONTEXT.logdir / run).glob("*tfevents*")
            self.assertEqual(self.read["files"][str(name)][0], 2 + count, msg=run)

    def test_48_event_accumulator(self):
        self.assertLessEqual({"plain", "described", "special", "long"}, set(self.read["tags"]["scalars"]))
        self.assertLessEqual({"normal", "none", "one"}, set(self.read["tags"]["histograms"]))
        self.assertLessEqual({"single", "series", "grid", "video"}, set(self.read["images"]))
        self.assertEqual(self.read["plain"], [[step, float32(1 / (step + 1))] for step in range(20)])

    def test_17_frames_of_videos(self):
        """Pillow decodes exactly what was encoded."""
        for tag, channels in (("video", 1), ("color_video", 3)):
            frames = self.read["frames"][tag]
            self.assertEqual(len(frames), 8)
            for k, frame in enumerate(frames):
                wanted = [(x * (c + 1) + y * k) * 5 % 256 for y in range(64) for x in range(64) for c in range(channels)]
                self.assertEqual(frame, wanted, msg=f"{tag}, frame {k}")
