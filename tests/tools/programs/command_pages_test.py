#!/usr/bin/env python3
"""The sweeps of the tutorial about programs, to their end.

  command_pages_test.py PROGRAM PAGE [UNITTEST ARGUMENTS]

PAGE: torch, forest or gzip. Its python3 is the first of the path, or the one that SWEEP_TORCH_PYTHON names.
Exit codes: 0 good, 1 problems, 77 what the page needs is not installed.
"""

import os
import random
import shutil
import signal
import sys
import unittest
from pathlib import Path

from program_runs import ProgramRuns
from environments import has_modules, skip
from processes import until

PAGES = Path(__file__).resolve().parents[3] / "sweeps/tutorials/any-program"
PYTHON = os.environ.get("SWEEP_TORCH_PYTHON", "python3")
ENVIRONMENT = {**os.environ, "PATH": f"{Path(PYTHON).parent}:{os.environ['PATH']}" if "/" in PYTHON else os.environ["PATH"]}
NEEDS = {"torch": "torch.utils.tensorboard", "forest": "sklearn", "gzip": "sys"}


class PagesTest(ProgramRuns):
    def page(self, name, *words):
        return self.sweep(PAGES / f"{name}.json", "--jobs", "2", "--quiet", *words, env=self.environment)

    def setUp(self):
        super().setUp()
        self.environment = ENVIRONMENT

    def test_torch(self):
        chance = random.Random(1)
        (self.folder / "train-images-idx3-ubyte").write_bytes(bytes(16) + chance.randbytes(200 * 784))
        (self.folder / "train-labels-idx1-ubyte").write_bytes(bytes(8) + bytes(i % 10 for i in range(200)))
        self.environment = {**ENVIRONMENT, "FASHION_MNIST": str(self.folder)}
        process = self.start(PAGES / "torch.json", "--jobs", "2", env=self.environment)
        # In the middle of the runs: some are done, some are not begun.
        until(lambda: process.poll() is not None or len(list((self.folder / "runs/torch").glob("*/events*.0"))) >= 3, 100, "three runs")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)
        before = {path: path.read_bytes() for path in (self.folder / "runs/torch").glob("*/run.json")
                  if b'"status": "completed"' in path.read_bytes()}
        self.page("torch")
        for path, text in before.items():
            self.assertEqual(path.read_bytes(), text)
        self.assertEqual(len(self.runs("torch")), 8)
        for record in self.runs("torch").values():
            self.assertEqual(record["status"], "completed")
            self.assertEqual([e["epoch"] for e in record["epochs"]], [1, 2, 3])
            self.assertTrue(all(0 <= e["accuracy"] <= 1 for e in record["epochs"]))
        self.assertEqual(len(self.points("Loss/train", "torch")), 8 * 3)
        self.sweep("fsck", "runs/torch")
        self.sweep("report", "runs/torch", "-o", "report.html")

    def test_forest(self):
        self.page("forest")
        self.assertEqual(len(self.runs("forest")), 12)
        for record in self.runs("forest").values():
            self.assertEqual([e["step"] for e in record["epochs"]], [10, 20, 40, 80])
            self.assertGreater(record["epochs"][-1]["validation_accuracy"], 0.85)
        self.assertIn("max_depth", self.sweep("show", "runs/forest", "--effects").stdout)

    def test_gzip(self):
        self.page("gzip")
        sizes = [self.runs("gzip")[f"level={level}"]["epochs"][0]["bytes"] for level in (1, 6, 9)]
        self.assertEqual(sizes, sorted(sizes, reverse=True))


if __name__ == "__main__":
    ProgramRuns.program = os.path.abspath(sys.argv.pop(1))
    PAGE = sys.argv.pop(1)
    if not has_modules(shutil.which(PYTHON), NEEDS[PAGE]):
        skip(f"{PYTHON} has no {NEEDS[PAGE]}; SWEEP_TORCH_PYTHON names another one")
    unittest.main(argv=[*sys.argv, f"PagesTest.test_{PAGE}"])
