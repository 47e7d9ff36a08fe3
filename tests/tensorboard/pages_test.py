#!/usr/bin/env python3
"""Runs small sweeps and looks at the pages of the real TensorBoard in headless Chromium, as they open.

  pages_test.py --sweep PROGRAM --file SWEEP.json --venv VENV
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
from pathlib import Path
from types import SimpleNamespace

from browser import Browser
from server import TensorBoard, needed_venv, skip

CONTEXT = SimpleNamespace(sweep=None, file=None, venv=None)
QUICK = ["num_workers=0", "device=cpu", "epochs=1", "dataset.limit=300", "dataset.validation=100"]


def run_sweep(logdir, *overrides, file=None):
    """Runs the sweep, or that of another file, and returns what it prints besides its results."""
    given = [file] if file else [CONTEXT.file, *QUICK]
    done = subprocess.run([CONTEXT.sweep, *given, *overrides, "--logdir", logdir], capture_output=True, text=True,
                          check=True)
    return done.stderr


class Page(unittest.TestCase):
    """A browser and, after serve(), a server."""

    def setUp(self):
        self.logdir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.browser = self.enterContext(Browser())

    def serve(self, directory):
        board = self.enterContext(TensorBoard(CONTEXT.venv, directory))
        board.wait_for_runs([path.name for path in directory.iterdir() if any(path.glob("*tfevents*"))])
        return board

    def open(self, board, tab, hash_query=""):
        self.browser.go(f"{board.url}/?darkMode=false#{tab}{hash_query}")


class RepeatedSweep(Page):
    """TensorBoard shows none of more than 40 runs."""

    def ticked(self, board, tab, query=""):
        """The numbers of runs that are listed, and of those that are ticked."""
        self.open(board, tab, query)
        boxes = "const boxes = deep('paper-checkbox').filter(box => box.id.startsWith('checkbox-')); "
        self.assertTrue(self.browser.wait(boxes + "return boxes.length > 0", 30), tab)
        time.sleep(1)
        return self.browser.evaluate(boxes + "return [boxes.length, boxes.filter(box => box.checked).length];")

    def test_no_page_opens_empty(self):
        rates = ",".join(f"0.0{i}" for i in range(11, 25))
        hint = run_sweep(self.logdir, f"lr={rates}", "batch_size=100", "shuffle=true", "repeats=3", "name=s",
                         "log.histograms=false", "log.graph=false", "log.predictions=false")
        directories = [Path(word) for word in re.findall(r"tensorboard --logdir (\S+)", hint)]
        self.assertEqual(directories, [self.logdir / "s.mean", self.logdir / "s"])
        with self.subTest("the means come first and are all shown"):
            board = self.serve(directories[0])
            for tab in ("scalars", "custom_scalars"):
                self.assertEqual(self.ticked(board, tab), [14, 14], tab)
        with self.subTest("the filter shows runs"):
            board = self.serve(directories[1])
            self.assertEqual(self.ticked(board, "scalars"), [42, 0], "what the filter is for")
            (wanted,) = re.findall(r"type (\S+) for", hint)
            for tab in ("scalars", "images", "custom_scalars"):
                listed, ticked = self.ticked(board, tab, f"&regexInput={urllib.parse.quote(wanted, safe=str())}")
                self.assertEqual(listed, ticked, tab)
                self.assertGreater(ticked, 0, tab)


class Hyperparameters(Page):
    """The page of hyperparameters ticks five metrics, and draws them."""

    def test_opens_with_accuracies_duration_and_a_loss(self):
        run_sweep(self.logdir, "lr=0.01,0.001", "batch_size=100", "shuffle=true", "repeats=2", "name=s",
                  "log.histograms=false", "log.graph=false", "log.predictions=false")
        for directory in (self.logdir / "s", self.logdir / "s.mean"):
            self.open(self.serve(directory), "hparams")
            shown = ("return deep('.metric-checkbox, paper-checkbox, mat-checkbox, tb-hparams-checkbox')"
                     ".filter(box => box.checked).map(box => box.textContent.trim())"
                     ".filter(text => text.includes('/'));")
            self.assertTrue(self.browser.wait(shown.replace(";", "") + ".length > 0;", 30))
            self.assertEqual(self.browser.evaluate(shown), ["Accuracy/test", "Accuracy/train", "Accuracy/validation",
                                                            "Duration/epoch_seconds", "Loss/test"], directory)

    def test_fills_parallel_coordinates_and_the_scatter_matrix(self):
        product = Path(CONTEXT.file).with_name("lr-batch-shuffle.json")
        run_sweep(self.logdir, *QUICK, "batch_size=10,20,50", file=product)
        self.open(self.serve(self.logdir / "lr-batch-shuffle"), "hparams")
        # Three hyperparameters and the five metrics, of 12 runs; a row of cells per metric.
        for view, shape, drawn in (("parallel coordinates", "g.foreground path", 12), ("parallel coordinates", "g.axis", 8),
                                   ("scatter plot matrix", "circle.data-marker", 12 * 8 * 5)):
            tab = "paper-tab, .mat-tab-label, [role=tab]"
            self.browser.wait(f"return deep('{tab}').some(e => visible(e) && /parallel/i.test(e.textContent));", 30)
            self.assertTrue(self.browser.click_text(tab, view))
            self.browser.wait(f"return deep('{shape}').filter(visible).length >= {drawn};", 30)
            self.assertEqual(self.browser.evaluate(f"return deep('{shape}').filter(visible).length;"), drawn, view)


class Pictures(Page):
    """The page of images."""

    def grid(self, name, *overrides):
        """Width and height in pixels of the first batch, as the page shows it."""
        run_sweep(self.logdir, "lr=0.01", "batch_size=100", "shuffle=true", f"name={name}", "log.histograms=false",
                  "log.graph=false", "log.predictions=false", *overrides)
        board = self.serve(self.logdir / name)
        self.open(board, "images")
        sizes = "deep('img').filter(img => img.complete && img.naturalWidth > 100).map(img => [img.naturalWidth, img.naturalHeight])"
        self.assertTrue(self.browser.wait(f"return {sizes}.length > 0;", 30), name)
        (size,) = self.browser.evaluate(f"return {sizes};")
        return size

    def test_first_batch_has_labels_where_asked_for(self):
        width, height = self.grid("plain")
        self.assertEqual((width, height), (8 * (28 + 2) + 2,) * 2, "64 pictures with 2 pixels between them")
        labelled_width, labelled_height = self.grid("labelled", "log.image_labels=true")
        self.assertGreater(labelled_width, width, "pictures are as wide as their captions")
        self.assertGreater(labelled_height / labelled_width, 1, "captions take room below the pictures")


class Numbers(Page):
    """A sweep whose targets are numbers."""

    CHARTS = ["Loss", "Mean absolute error", "Root mean square error", "R²: 1 is perfect, 0 no better than the mean", "Speed"]

    def test_custom_scalars_have_the_charts_of_a_regression(self):
        rows = ["a,b,y", *(f"{i % 7},{i % 5},{i % 7 + 2 * (i % 5)}" for i in range(60))]
        (self.logdir / "table.csv").write_text("\n".join(rows) + "\n")
        (self.logdir / "s.json").write_text(json.dumps({
            "dataset": {"name": "table", "path": "table.csv", "target": "y", "validation": 20},
            "network": {"layers": [{"type": "linear", "out_features": 1}]}, "loss": "mse", "batch_size": 10, "epochs": 3,
            "params": {"lr": [0.1, 0.01]}}))
        run_sweep(self.logdir, file=self.logdir / "s.json")
        board = self.serve(self.logdir / "s")
        layout = board.plugin("custom_scalars/layout")
        self.assertEqual([category["title"] for category in layout["category"]], self.CHARTS)
        for category in layout["category"]:
            for chart in category["chart"]:
                (tag,) = chart["multiline"]["tag"]
                shown = board.plugin("custom_scalars/scalars", tag=tag, run="lr=0.1")
                points = [points for points in shown["tag_to_events"].values()]
                self.assertEqual([len(points) for points in points], [3], f"{category['title']}, {chart['title']}")
        run_sweep(self.logdir, "dataset.validation=0", "name=whole", file=self.logdir / "s.json")
        charts = [chart["title"] for category in self.serve(self.logdir / "whole").plugin("custom_scalars/layout")["category"]
                  for chart in category["chart"]]
        self.assertNotIn("Validation", charts, "there would be an empty chart")
        self.open(board, "custom_scalars")
        self.assertTrue(self.browser.wait("return deep('tf-custom-scalar-card-style, tf-custom-scalar-multi-line-chart-card')"
                                          ".length >= 4;", 30))
        text = self.browser.evaluate("return deep('button.heading, .heading').map(h => h.textContent.trim()).join('|');")
        for title in self.CHARTS:
            self.assertIn(title, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--file", required=True)
    parser.add_argument("--venv")
    arguments, rest = parser.parse_known_args()
    CONTEXT.sweep, CONTEXT.file, CONTEXT.venv = arguments.sweep, arguments.file, needed_venv(arguments.venv)
    if shutil.which("chromium") is None:
        skip("there is no chromium to look at the pages with; apt-get install chromium")
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
