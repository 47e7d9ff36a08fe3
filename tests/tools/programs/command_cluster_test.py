#!/usr/bin/env python3
"""Programs as runs on a cluster of virtual nodes.

  command_cluster_test.py PROGRAM [UNITTEST ARGUMENTS]

Exit codes: 0 good, 1 problems, 77 there is no Slurm.
"""

import os
import sys
import unittest
import uuid

from program_runs import ProgramRuns
import slurm_cluster
from processes import has_gone, until


class CommandClusterTest(ProgramRuns):
    cluster = None

    def slurm_sweep(self, command, *words, **keys):
        file = self.file(command=command, slurm={"tasks": 2, "cpus": 1, "time": "10"}, **keys)
        return self.sweep(file, "--launcher", "slurm", *words, env=self.cluster.environment)

    def test_each_run_is_done_once_with_the_gpus_of_its_task(self):
        done = self.slurm_sweep(["sh", "-c", 'echo {x} $CUDA_VISIBLE_DEVICES >> ran; echo "{\\"step\\": 1, \\"loss\\": {x}}" >> $SWEEP_METRICS'],
                                "--wait", params={"x": [1, 2, 3, 4, 5, 6]}, gpus=2)
        self.assertIn("completed", done.stdout)
        self.assertEqual(sorted((self.folder / "ran").read_text().splitlines()), [f"{x} 0,1" for x in range(1, 7)])
        self.assertEqual([self.runs()[f"x={x}"]["epochs"][0]["loss"] for x in range(1, 7)], list(range(1, 7)))
        self.sweep("fsck", "runs/s")

    def test_cancelled_programs_end_and_a_resumed_sweep_goes_on_where_they_were(self):
        mark = str(uuid.uuid4())
        self.slurm_sweep(["python3", "train.py", "{lr}", "40", "0.1", mark], params={"lr": [1, 2, 3, 4]}, timeout={"grace": 1})
        until(lambda: len(list((self.folder / "runs/s").glob("*/checkpoint/epoch"))) >= 2, 90, "two runs train")
        self.sweep("cancel", "runs/s", env=self.cluster.environment)
        self.assertTrue(has_gone(mark, 60))
        self.sweep("resume", "runs/s", env=self.cluster.environment)
        until(lambda: [record["status"] for record in self.runs().values()] == ["completed"] * 4, 90, "all runs end")
        for record in self.runs().values():
            self.assertEqual([e["epoch"] for e in record["epochs"]], list(range(1, 41)))
        self.assertTrue(has_gone(mark))


def main():
    ProgramRuns.program = os.path.abspath(sys.argv.pop(1))
    try:
        cluster = slurm_cluster.SlurmCluster(nodes=2, gpus=2)
    except slurm_cluster.NoSlurm as reason:
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    with cluster:
        CommandClusterTest.cluster = cluster
        unittest.main()


if __name__ == "__main__":
    main()
