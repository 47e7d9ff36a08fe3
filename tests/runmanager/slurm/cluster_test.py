#!/usr/bin/env python3
"""Sweeps on a cluster of virtual nodes: the same bits as on one machine, whatever happens to tasks, nodes and the controller.

  cluster_test.py --program SWEEP                 each disaster once
  cluster_test.py --program SWEEP --rounds 50     each so often, at random moments; --only NAME for one of them
  cluster_test.py --program SWEEP --short-runs 1000   how long so many runs of a second take on eight slots

Exit codes: 0 good, 1 problems, 77 there is no Slurm.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from cluster_sweeps import LRS
from disasters import Disasters, mount_small, unmount_small
from short_runs import measure_short_runs
import slurm_cluster
import torture_sweep
from slurm_cluster import until


class ClusterTest(Disasters):
    def same_as_local(self):
        done = self.submit("same", "--wait")
        if "accuracy" not in done.stdout:
            self.problem(f"--wait shows no table:\n{done.stdout}")

        def columns(logdir):
            """The table without times."""
            header, *rows = [line.split(",") for line in (self.directory / logdir / "sweep/results.csv").read_text().splitlines()]
            kept = [i for i, name in enumerate(header) if "seconds" not in name and "per_second" not in name and name != "jobs"]
            return [[row[i] for i in kept] for row in [header, *rows]]
        if columns("same") != columns("local"):
            self.problem("results.csv differs from that of the local sweep")
        report = self.directory / "same/sweep/report.html"
        until(report.exists, 60, "the report is written")
        log = until(lambda: list((self.directory / "same/sweep/slurm").glob("report-*.out")), 10, "the report job tells")
        until(lambda: "4 completed" in log[0].read_text(), 60, "the report job counts the runs")
        until(lambda: not self.lives("same", with_reports=True), 60, "the report job ends")
        self.expect_bits("same")

    def cancelled(self):
        self.submit("cancelled")
        self.wait_for_training("cancelled")
        done = self.expect_exit(0, "cancel", "cancelled/sweep")
        if "sweep resume cancelled/sweep" not in done.stdout:
            self.problem(f"cancel does not say how to go on: {done.stdout}")
        until(lambda: not self.lives("cancelled"), 60, "cancelled tasks end")
        self.expect_exit(0, "cancel", "cancelled/sweep")
        self.finish("cancelled")

    def submitted_again(self):
        """The last job submits what a killed task has left; nobody types anything."""
        self.submit("again")
        while not self.kill_task(self.wait_for_training("again")):
            pass
        until(lambda: self.all_done("again"), 120, "the last job submits again what was lost")
        until(lambda: not self.lives("again", with_reports=True), 120, "the second last job ends")
        self.expect_bits("again")
        reports = [job for job in json.loads((self.directory / "again/sweep/slurm/jobs.json").read_text())["jobs"] if not job["shape"]]
        if len(reports) != 2:
            self.problem(f"{len(reports)} last jobs, want 2")

    def not_started(self):
        """Slurm holds tasks that a node could not start, as after a controller that died in that moment: nobody else lets them go."""
        with self.cluster.unable_to_start():
            self.submit("not_started")
            until(lambda: len(self.cluster.held()) == len(LRS), 60, "Slurm holds the tasks")
        status = self.expect_exit(0, "status", "not_started/sweep", "--json")
        if json.loads(status.stdout)["slurm"]["waiting"] != len(LRS):
            self.problem(f"status does not count the tasks that are held: {status.stdout}")
        listed = self.expect_exit(0, "ls", "not_started")
        if "on a cluster: 4 pending" not in listed.stdout:
            self.problem(f"ls does not know that tasks wait:\n{listed.stdout}")
        watch = subprocess.Popen([self.program, "watch", "not_started/sweep"], cwd=self.directory, env=self.environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        done = self.expect_exit(0, "resume", "not_started/sweep")
        if done.stdout or f"{len(LRS)} tasks that a node could not start were let go" not in done.stderr:
            self.problem(f"resume does not let the tasks go:\n{done.stdout}{done.stderr}")
        self.finish("not_started")
        watched = watch.communicate(timeout=120)[0]
        if len(re.findall("accuracy|acc", watched)) < 4 or "ended: 4 completed" not in watched:
            self.problem(f"watch does not show what tasks train:\n{watched[-2000:]}")

    def searches(self):
        """The same trials and bits as on one machine, with one of the tasks killed on the way."""
        for method in self.search_methods:
            sweep = torture_sweep.search_sweep(self.sweep_file, method) | {"name": "sweep"}
            sweep["slurm"] = sweep["slurm"] | {"tasks": 4}
            if method == "tpe":
                sweep["search"] |= {"trials": self.trials, "at_once": 4}
            (self.directory / f"{method}.json").write_text(json.dumps(sweep))
            alone = self.directory / f"alone-{method}/sweep"
            self.expect_exit(0, f"{method}.json", "--logdir", alone.parent.name, "--quiet")
            self.submit(method, file=f"{method}.json")
            searched = self.directory / method / "sweep"
            until(lambda: {"completed", "pruned"} & set(self.statuses(method)), 120, "trials end")
            while not self.kill_task(self.wait_for_training(method)):
                pass
            until(lambda: not self.lives(method), 300, f"the tasks of {method} end")
            until(lambda: not self.lives(method, with_reports=True), 120, "the last job ends")
            for problem in torture_sweep.problems_of_search(self.program, searched, alone):
                self.problem(f"{method}: {problem}")
            self.expect_all_done(method)

    USES = ("same_as_local", "cancelled", "submitted_again", "not_started", "searches")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, required=True)
    parser.add_argument("--task-program", type=os.path.abspath, help="another program for the tasks")
    parser.add_argument("--slow-shim", type=os.path.abspath, help="torture_shim.cpp, for runs that take long on few cores")
    parser.add_argument("--slow-milliseconds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=60, help="without --slow-shim: as many as take some seconds here")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short-runs", type=int, default=0)
    parser.add_argument("--trials", type=int, default=20, help="of the search by tpe")
    parser.add_argument("--search", action="append", dest="searches", choices=torture_sweep.SEARCHES, help="default: tpe, hyperband, population")
    parser.add_argument("--most-of-ideal", type=float, default=1.3, help="what --short-runs may take, in times of the ideal")
    parser.add_argument("--only", action="append", choices=ClusterTest.USES + ClusterTest.DISASTERS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sweep-cluster-test-") as folder:
        directory = Path(folder)
        try:
            if is_wanted(arguments, "fill_disk"):
                mount_small(directory)
            try:
                cluster = slurm_cluster.SlurmCluster(nodes=4)
            except slurm_cluster.NoSlurm as reason:
                print(f"SKIPPED: {reason}")
                sys.exit(77)
            with cluster:
                test = ClusterTest(arguments, cluster, directory)
                play(test, arguments)
        finally:
            unmount_small(directory)
    print(f"{len(test.found)} problems")
    sys.exit(1 if test.found else 0)


def is_wanted(arguments, name):
    return not arguments.only or name in arguments.only


def play(test, arguments):
    if arguments.short_runs:
        measure_short_runs(test, arguments.short_runs, arguments.most_of_ideal)
        return
    for name in ClusterTest.USES:
        if is_wanted(arguments, name):
            getattr(test, name)()
    for number in range(arguments.rounds):
        for name in ClusterTest.DISASTERS:
            if is_wanted(arguments, name):
                test.disaster(name, number)
    test.forget()


if __name__ == "__main__":
    main()
