#!/usr/bin/env python3
"""Searches whose trials are programs.

  command_search_test.py PROGRAM [UNITTEST ARGUMENTS]

PROGRAM is the sweep program.
"""
import os
import random
import subprocess
import sys
import time
import unittest

from program_runs import ProgramRuns


class CommandSearchTest(ProgramRuns):
    def test_searches_choose_and_prune_trials_by_its_metrics(self):
        command = ["python3", "train.py", "{lr}", "4", "0.3"]
        search = {"method": "tpe", "trials": 4, "metric": "score", "mode": "max"}
        self.sweep(self.file("tpe", command=["python3", "train.py", "{lr}", "2", "0"], search=search,
                             params={"lr": {"uniform": [0, 1]}}))
        self.assertEqual(len(self.runs("tpe")), 4)
        search = {"method": "halving", "metric": "loss", "reduction": 2, "min_epochs": 1}
        self.sweep(self.file("halving", command=command, search=search, reports=4, params={"lr": [1, 2, 3, 4]}), "--jobs", "4")
        statuses = {run: record["status"] for run, record in self.runs("halving").items()}
        self.assertEqual(statuses["lr=1"], "completed")
        self.assertEqual([statuses[f"lr={lr}"] for lr in (3, 4)], ["pruned", "pruned"])
        self.assertEqual([e["step"] if "step" in e else e["epoch"] for e in self.runs("halving")["lr=1"]["epochs"]],
                         [1, 2, 3, 4])

    def test_asha_tries_the_same_points_however_many_run_at_once_and_after_a_kill(self):
        command = ["python3", "train.py", "{lr}", "4", "0.05"]
        search = {"method": "asha", "sampler": "tpe", "trials": 9, "metric": "loss", "reduction": 2, "at_once": 3,
                  "points": [{"lr": 0.75}]}
        keys = {"command": command, "search": search, "reports": 4, "params": {"lr": {"uniform": [0, 1]}}}
        self.sweep(self.file("one", **keys))
        self.sweep(self.file("three", **keys), "--jobs", "3")
        # A program may report further steps before it is ended, so only the points are promised.
        self.assertEqual(len(self.runs("one")), 9)
        self.assertEqual(set(self.runs("one")), set(self.runs("three")))
        self.assertIn("lr=0.75", self.runs("one"))
        self.assertIn("completed", {record["status"] for record in self.runs("one").values()})
        file = self.file("killed", **keys)
        for _ in range(3):
            process = subprocess.Popen([self.program, file, "--jobs", "3", "--quiet"], cwd=self.folder, stdout=subprocess.DEVNULL)
            time.sleep(random.uniform(0.2, 1.5))
            process.kill()
            process.wait()
        self.sweep(file, "--jobs", "3")
        self.assertEqual(set(self.runs("killed")), set(self.runs("one")))

    def test_several_goals_are_replayed_from_recorded_results_even_if_they_are_times(self):
        # Each training gives other numbers, and the time of an epoch is measured: only records can give the same trials again.
        script = """v=$(od -An -N2 -tu2 /dev/urandom); sleep 0.0$((v % 5)); echo "{\\"score\\": $v}" >> $SWEEP_METRICS"""
        file = self.file("goals", command=["sh", "-c", script, "{lr}"], params={"lr": {"uniform": [0, 1]}},
                         search={"method": "tpe", "trials": 40, "at_once": 2, "metric": ["score", "epoch_seconds"], "mode": ["max", "min"]})
        ended = {}
        for _ in range(8):
            process = subprocess.Popen([self.program, file, "--jobs", "2", "--quiet"], cwd=self.folder, stdout=subprocess.DEVNULL)
            time.sleep(random.uniform(0.2, 1))
            process.kill()
            process.wait()
            runs = {run: record for run, record in self.runs("goals").items() if record["status"] == "completed"}
            for run, record in ended.items():
                self.assertEqual(runs[run]["epochs"], record["epochs"])
            ended = runs
        self.sweep(file, "--jobs", "2")
        runs = self.runs("goals")
        self.assertEqual(len(runs), 40)
        # A trial that records did not give again would be another one, and so be trained now.
        for more in ((), ("--jobs", "3")):
            self.sweep(file, *more)
            self.assertEqual(self.runs("goals"), runs)


if __name__ == "__main__":
    ProgramRuns.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
