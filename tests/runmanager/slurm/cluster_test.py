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
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/support/slurm_cluster"), str(ROOT / "tests/torture")]
import slurm_cluster  # noqa: E402
import torture_sweep  # noqa: E402
from slurm_cluster import until  # noqa: E402

# Long enough for every disaster: a run is some seconds of training.
EPOCHS, LRS = 60, [0.02, 0.01, 0.005, 0.002]
LEASE_SECONDS = 6  # after which the runs of a silent process are taken over
PATIENCE = 180     # seconds until a sweep that was disturbed has come to an end


class ClusterTest:
    def __init__(self, program, cluster, directory, seed, task_program):
        self.program, self.cluster, self.directory = program, cluster, directory
        self.random = random.Random(seed)
        self.environment = cluster.environment | {"SWEEP_LEASE_SECONDS": str(LEASE_SECONDS)}
        self.options = ["--slurm", f"program={task_program}"] if task_program else []
        self.found = []
        torture_sweep.write_data(directory, small=False)
        sweep = json.loads((directory / "torture.json").read_text())
        del sweep["stop"]
        sweep |= {"name": "sweep", "epochs": EPOCHS, "params": {"lr": LRS, "batch_size": [2]}, "device": "cpu",
                  "slurm": {"tasks": 3, "cpus": 1, "time": "10", "setup": ["export FROM_SETUP=1"]}}
        (directory / "sweep.json").write_text(json.dumps(sweep))
        self.expect_exit(0, "sweep.json", "--logdir", "local", "--quiet")
        self.wanted = torture_sweep.bits_of(directory / "local/sweep")

    def problem(self, what):
        self.found.append(what)
        print("PROBLEM:", what, flush=True)

    def sweep(self, *words, timeout=300):
        return subprocess.run([self.program, *words], cwd=self.directory, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout)

    def expect_exit(self, code, *words):
        done = self.sweep(*words)
        if done.returncode != code:
            self.problem(f"{' '.join(words)}: exit code {done.returncode}, want {code}:\n{done.stdout}{done.stderr}")
        return done

    def submit(self, logdir, *more):
        return self.expect_exit(0, "sweep.json", "--logdir", logdir, "--launcher", "slurm", *self.options, *more)

    def jobs_of(self, logdir):
        jobs = json.loads((self.directory / logdir / "sweep/slurm/jobs.json").read_text())["jobs"]
        return {job["job"] for job in jobs if job["shape"]}

    def tasks_of(self, logdir, *states):
        jobs = self.jobs_of(logdir)
        return [task for task in self.cluster.tasks() if task[0] in jobs and (not states or task[2] in states)]

    def lives(self, logdir):
        ended = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL")
        return [task for task in self.tasks_of(logdir) if task[2] not in ended]

    def statuses(self, logdir):
        return [json.loads(record.read_text())["status"]
                for record in (self.directory / logdir / "sweep").glob("*/run.json") if ".replaced-" not in record.parent.name]

    def all_done(self, logdir):
        statuses = self.statuses(logdir)
        return len(statuses) == len(self.wanted) and set(statuses) == {"completed"}

    def expect_bits(self, logdir):
        found = torture_sweep.bits_of(self.directory / logdir / "sweep")
        if found != self.wanted:
            different = [name for name in self.wanted if found.get(name) != self.wanted[name]]
            self.problem(f"{logdir}: other bits than the local sweep: {different}")
        done = self.sweep("fsck", f"{logdir}/sweep")
        if done.returncode != 0:
            self.problem(f"{logdir}: fsck finds damage:\n{done.stdout}{done.stderr}")

    def finish(self, logdir):
        """Lets the tasks end, and goes on by `sweep resume` until every run is done, as a user would."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            # A controller that was away may take a task that has ended for a running one, for minutes.
            until(lambda: self.all_done(logdir) or not self.lives(logdir), max(deadline - time.monotonic(), 1), f"{logdir}: its tasks end")
            if self.all_done(logdir):
                break
            self.expect_exit(0, "resume", f"{logdir}/sweep", *self.options)
        if not self.all_done(logdir):
            self.problem(f"{logdir}: not done within {PATIENCE} s: {self.statuses(logdir)}")
        self.expect_bits(logdir)
        again = self.expect_exit(0, "resume", f"{logdir}/sweep", *self.options)
        if again.stdout or "Every run is done" not in again.stderr:
            self.problem(f"{logdir}: submits tasks although all is done: {again.stdout}{again.stderr}")

    def same_as_local(self):
        done = self.submit("same", "--wait")
        if "accuracy" not in done.stdout:
            self.problem(f"--wait shows no table:\n{done.stdout}")
        self.expect_bits("same")

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

    def cancelled(self):
        self.submit("cancelled")
        self.wait_for_training("cancelled")
        done = self.expect_exit(0, "cancel", "cancelled/sweep")
        if "sweep resume cancelled/sweep" not in done.stdout:
            self.problem(f"cancel does not say how to go on: {done.stdout}")
        until(lambda: not self.lives("cancelled"), 60, "cancelled tasks end")
        self.expect_exit(0, "cancel", "cancelled/sweep")
        self.finish("cancelled")

    def wait_for_training(self, logdir):
        """Until a task runs and a run of it has finished an epoch; returns the task."""
        def epoch():
            return list((self.directory / logdir / "sweep").glob("*/checkpoint*.safetensors")) and self.tasks_of(logdir, "RUNNING")
        running = until(epoch, 60, f"{logdir}: a task trains")
        time.sleep(self.random.uniform(0, 0.5))
        return self.random.choice(running)

    def processes_of(self, task):
        """The ids of the programs that the task runs."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                variables = path.read_bytes().split(b"\0")
                command = (path.parent / "cmdline").read_bytes()
            except OSError:
                continue
            wanted = {f"SLURM_ARRAY_JOB_ID={task[0]}".encode(), f"SLURM_ARRAY_TASK_ID={task[1]}".encode(),
                      f"SLURM_CONF={self.cluster.environment['SLURM_CONF']}".encode()}
            if wanted <= set(variables) and b"resume" in command:
                found.append(int(path.parent.name))
        return found

    # Disasters: each is given a task that trains.
    def kill_task(self, task):
        for pid in self.processes_of(task):
            os.kill(pid, signal.SIGKILL)

    def cancel_task(self, task):
        self.cluster.run("scancel", f"{task[0]}_{task[1]}", check=False)

    def requeue_task(self, task):
        self.cluster.run("scontrol", "requeue", f"{task[0]}_{task[1]}", check=False)

    def warn_task(self, task):
        self.cluster.run("scancel", "--batch", "--signal=USR2", f"{task[0]}_{task[1]}", check=False)

    def lose_node(self, task):
        self.cluster.lose_node(task[3])
        until(lambda: task not in self.cluster.tasks(), 60, "the lost node's task is no longer taken for running")
        self.cluster.revive()

    def cut_off_node(self, task):
        """The first attempt lives on while the task starts again elsewhere; then the node comes back."""
        self.cluster.cut_off_node(task[3])
        until(lambda: task not in self.cluster.tasks(), 60, "the cut-off node's task is no longer taken for running")
        time.sleep(self.random.uniform(0, 10))
        self.cluster.revive()

    def kill_controller(self, _):
        self.cluster.kill_controller()
        status = self.sweep("status", f"{self.logdir}/sweep")
        if status.returncode != 0:
            self.problem(f"status without a controller: {status.stderr}")
        self.cluster.revive()

    DISASTERS = ("kill_task", "cancel_task", "requeue_task", "warn_task", "lose_node", "cut_off_node", "kill_controller")

    def disaster(self, name, number):
        self.logdir = f"{name}-{number}"
        begin = time.monotonic()
        self.submit(self.logdir)
        getattr(self, name)(self.wait_for_training(self.logdir))
        self.finish(self.logdir)
        print(f"{self.logdir}: {time.monotonic() - begin:.1f} s, {len(self.found)} problems so far", flush=True)

    def short_runs(self, count, slots=8):
        """Many runs of about a second on `slots` tasks beside as many local ones as there are cores, and how often squeue is called."""
        counter = self.directory / "counted"
        counter.mkdir()
        (counter / "squeue").write_text(f"#!/bin/sh\ndate +%s >>{counter}/calls\nPATH=${{PATH#*:}}\nexec squeue \"$@\"\n")
        (counter / "squeue").chmod(0o755)
        sweep = json.loads((self.directory / "sweep.json").read_text())
        sweep |= {"epochs": 40, "slurm": {"tasks": slots, "cpus": 1, "report": False}, "evaluate_first": False,
                  "log": {"histograms": False, "predictions": False, "images": False}}
        seconds = {}
        for name, runs, words in (("few", min(count, 40), ["--jobs", str(os.cpu_count()), "--threads", "1", "--quiet"]),
                                  ("short", count, ["--launcher", "slurm", "--wait", *self.options])):
            (self.directory / f"{name}.json").write_text(json.dumps(sweep | {"name": name, "params": {"seed": list(range(runs))}}))
            begin = time.monotonic()
            done = subprocess.run([self.program, f"{name}.json", "--logdir", name, *words], cwd=self.directory, capture_output=True,
                                  text=True, env=self.environment | {"PATH": f"{counter}:{self.environment['PATH']}"})
            seconds[name] = (time.monotonic() - begin) / runs
            if done.returncode != 0:
                self.problem(f"{name}: exit code {done.returncode}:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
        called = counter / "calls"
        calls, took = len(called.read_text().split()) if called.exists() else 0, seconds["short"] * count
        print(f"{count} runs of {seconds['few'] * os.cpu_count():.2f} s: {took:.1f} s on {slots} slots of {os.cpu_count()} cores, "
              f"{seconds['short'] / seconds['few']:.2f} times as long as here; {calls} calls of squeue")
        if calls > took / 60 + 3:  # Submitting takes two.
            self.problem("squeue is called more than once a minute")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, required=True)
    parser.add_argument("--task-program", type=os.path.abspath, help="another program for the tasks")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short-runs", type=int, default=0)
    parser.add_argument("--only", action="append")
    arguments = parser.parse_args()
    try:
        with slurm_cluster.SlurmCluster(nodes=4) as cluster, tempfile.TemporaryDirectory(prefix="sweep-cluster-test-") as folder:
            test = ClusterTest(arguments.program, cluster, Path(folder), arguments.seed, arguments.task_program)
            if arguments.short_runs:
                test.short_runs(arguments.short_runs)
            else:
                for name in ("same_as_local", "cancelled"):
                    if not arguments.only or name in arguments.only:
                        getattr(test, name)()
                for number in range(arguments.rounds):
                    for name in ClusterTest.DISASTERS:
                        if not arguments.only or name in arguments.only:
                            test.disaster(name, number)
            print(f"{len(test.found)} problems")
            sys.exit(1 if test.found else 0)
    except slurm_cluster.NoSlurm as reason:
        print(f"SKIPPED: {reason}")
        sys.exit(77)


if __name__ == "__main__":
    main()
