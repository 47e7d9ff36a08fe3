"""Checks of what is left by a process that was killed, of what both loaders say, and of many runs."""

import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from event_records import Torn, records
from everything import differences, everything
from server import TensorBoard, float32
from shown_checks import CONTEXT, RUNS
from processes import until

READ = r"""
import sys
from tensorboard.backend.event_processing import event_file_loader
loader = event_file_loader.LegacyEventFileLoader(sys.argv[1])
steps = [event.step for event in loader.Load() if event.summary.value and event.summary.value[0].tag == "s"]
print(len(steps), steps == list(range(len(steps))))
"""


class Killed(unittest.TestCase):
    def write_and_kill(self, directory):
        """Returns how many steps the process had said to be in the file when it was killed."""
        process = subprocess.Popen([CONTEXT.demo, directory, "endless"], stdout=subprocess.PIPE)
        try:
            for line in process.stdout:
                flushed = int(line)
                if flushed >= 100:
                    break
        finally:
            process.kill()  # SIGKILL
            flushed = max([flushed, *map(int, process.stdout.read().split())])
            process.stdout.close()
            self.assertEqual(process.wait(20), -9)
        return flushed

    def test_42_killed_in_mid_write(self):
        """Everything that was flushed is readable, and the run goes on in a new file."""
        torn = 0
        for attempt in range(5):
            with tempfile.TemporaryDirectory() as directory:
                flushed = self.write_and_kill(directory)
                (file,) = (Path(directory) / "killed").glob("*tfevents*")
                data, count = file.read_bytes(), 0
                try:
                    for _ in records(data):
                        count += 1
                except Torn:
                    torn += 1
                self.assertGreaterEqual(count, 2 + 2 * flushed, msg=attempt)
                read = subprocess.run([CONTEXT.venv / "bin/python", "-c", READ, file], capture_output=True, text=True,
                                      check=True).stdout.split()
                self.assertGreaterEqual(int(read[0]), flushed, msg=attempt)
                self.assertEqual(read[1], "True", msg=attempt)
                if attempt == 4:
                    self.check_server(directory, flushed, file, data)
        print(f"{torn} of 5 files ended within a record", flush=True)

    def check_server(self, directory, flushed, file, data):
        with TensorBoard(CONTEXT.venv, directory, self.fast) as board:
            board.wait_for_runs(["killed"])
            points = board.points("killed", "s")
            self.assertGreaterEqual(points[-1][0], flushed - 1)
            self.assertTrue(all(step == value for step, value in points), points)
        subprocess.run([CONTEXT.demo, directory, "continued"], check=True)
        self.assertEqual(file.read_bytes(), data, msg="the old file is as it was")
        self.assertEqual(len(list((Path(directory) / "killed").glob("*tfevents*"))), 2)
        with TensorBoard(CONTEXT.venv, directory, self.fast) as board:
            board.wait_for_runs(["killed"])
            points = board.points("killed", "s")
        # The loaders keep 1000 points of the longer old session, and forget those from step 20 on.
        self.assertEqual([point for point in points if point[0] >= 20], [(step, step + 0.5) for step in range(20, 30)])
        self.assertTrue(all(step == value for step, value in points if step < 20), msg=points)


class BothLoaders(unittest.TestCase):
    """All checks are of both loaders; where their answers are not looked at in full, they must at least be the same."""
    maxDiff = None

    def test_loaders_agree(self):
        with TensorBoard(CONTEXT.venv, CONTEXT.logdir, True) as fast, \
                TensorBoard(CONTEXT.venv, CONTEXT.logdir, False) as slow:
            fast.wait_for_runs(RUNS)
            slow.wait_for_runs(RUNS)
            self.assertEqual(differences(everything(fast), everything(slow)), [])


class ManyRuns(unittest.TestCase):
    def test_a_thousand_runs_are_listed_in_seconds(self):
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([CONTEXT.demo, directory, "many"], check=True)
            names = {f"run{1000 + run}" for run in range(1000)}
            start = time.monotonic()
            with TensorBoard(CONTEXT.venv, directory, self.fast) as board:
                started = time.monotonic()
                until(lambda: set(board.get("/data/runs")) == names and len(board.plugin("scalars/tags")) == 1000, 60,
                      "a thousand runs are listed", 0.2)
                listed = time.monotonic()
                for run in (0, 999):
                    self.assertEqual(board.points(f"run{1000 + run}", "Loss/train"),
                                     [(step, float32(run + 0.05 * step)) for step in range(20)])
            print(f"started in {started - start:.1f} s, 1000 runs listed {listed - started:.1f} s later", flush=True)
