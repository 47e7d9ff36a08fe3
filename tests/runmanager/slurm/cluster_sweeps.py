"""Sweeps that are handed to a cluster of virtual nodes, and what has to hold of each."""
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests/support/python"), str(ROOT / "tests/torture")]
import torture_sweep  # noqa: E402
from slurm_cluster import until  # noqa: E402
from starts import Starts  # noqa: E402

LRS = [0.02, 0.01, 0.005, 0.002]
LONG_RUNS = 4                    # so much slower are those of long.json: they go on while their task starts again elsewhere
PATIENCE = 180                   # seconds until a sweep that was disturbed has come to an end
ENDED = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL")


class ClusterSweeps(Starts):
    def __init__(self, arguments, cluster, directory):
        """arguments: program; task_program, another one for the tasks, or None; seed; slow_shim, torture_shim.cpp, or None: it
        keeps the runs of tasks going for `slow_milliseconds` at each message."""
        super().__init__(arguments.program, directory, arguments.seed)
        self.cluster = cluster
        self.environment = cluster.environment
        self.options = ["--slurm", f"program={arguments.task_program}"] if arguments.task_program else []
        self.trials = arguments.trials
        self.search_methods = arguments.searches or ("tpe", "hyperband", "population")
        sweep = torture_sweep.write_data(directory)
        del sweep["stop"]

        def sweep_file(milliseconds):
            setup = ["export FROM_SETUP=1"]
            if arguments.slow_shim:
                setup += [f"export LD_PRELOAD={arguments.slow_shim} SWEEP_SLOW_MILLISECONDS={milliseconds}"]
            return sweep | {
                "name": "sweep", "epochs": arguments.epochs, "params": {"lr": LRS, "batch_size": [2]}, "device": "cpu",
                "slurm": {"tasks": 3, "cpus": 1, "time": "10", "setup": setup}}
        self.sweep_file = sweep_file(arguments.slow_milliseconds)
        (directory / "sweep.json").write_text(json.dumps(self.sweep_file))
        (directory / "long.json").write_text(json.dumps(sweep_file(LONG_RUNS * arguments.slow_milliseconds)))
        self.expect_exit(0, "sweep.json", "--logdir", "local", "--quiet")
        self.wanted = torture_sweep.bits_of(directory / "local/sweep")

    def sweep(self, *words, timeout=300):
        return subprocess.run([self.program, *words], cwd=self.directory, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=timeout)

    def expect_exit(self, code, *words):
        done = self.sweep(*words)
        if done.returncode != code:
            self.problem(f"{' '.join(words)}: exit code {done.returncode}, want {code}:\n{done.stdout}{done.stderr}")
        return done

    def submit(self, logdir, *more, file="sweep.json"):
        return self.expect_exit(0, file, "--logdir", logdir, "--launcher", "slurm", *self.options, *more)

    def tasks_of(self, logdir, *states, with_reports=False):
        jobs = json.loads((self.directory / logdir / "sweep/slurm/jobs.json").read_text())["jobs"]
        ids = {job["job"] for job in jobs if job["shape"] or with_reports}
        return [task for task in self.cluster.tasks() if task[0] in ids and (not states or task[2] in states)]

    def lives(self, logdir, with_reports=False):
        return [task for task in self.tasks_of(logdir, with_reports=with_reports) if task[2] not in ENDED]

    def statuses(self, logdir):
        records = torture_sweep.records_of(self.directory / logdir / "sweep")
        return [record["status"] for run, record in records.items() if ".replaced-" not in run]

    def all_done(self, logdir):
        statuses = self.statuses(logdir)
        return len(statuses) == len(self.wanted) and set(statuses) == {"completed"}

    def expect_bits(self, logdir):
        """Nothing lost, nothing doubled, every bit that of the local sweep."""
        sweep = self.directory / logdir / "sweep"
        for problem in torture_sweep.problems_of_end(self.program, sweep, self.wanted):
            self.problem(f"{logdir}: {problem}")
        for problem in torture_sweep.problems_of_shared_end(sweep, self.directory / "local/sweep", self.wanted):
            self.problem(f"{logdir}: {problem}")

    def are_held(self, lives):
        """Whether Slurm holds all of these tasks for good."""
        return {task[:2] for task in lives} <= self.cluster.held()

    def finish(self, logdir):
        """Lets the tasks end, and goes on by `sweep resume` until every run is done, as a user would."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            # A controller that was away may take a task that has ended for a running one, for minutes.
            until(lambda: self.all_done(logdir) or self.are_held(self.lives(logdir)), max(deadline - time.monotonic(), 1),
                  f"{logdir}: its tasks end")
            if self.all_done(logdir):
                break
            self.expect_exit(0, "resume", f"{logdir}/sweep", *self.options)
        if not self.all_done(logdir):
            self.problem(f"{logdir}: not done within {PATIENCE} s: {self.statuses(logdir)}")
        # The task that ended the last run may still be writing the table, and the report comes after.
        while (lives := self.lives(logdir, with_reports=True)) and time.monotonic() < deadline:
            if self.are_held(lives):
                self.expect_exit(0, "resume", f"{logdir}/sweep", *self.options)
            time.sleep(0.1)
        self.expect_bits(logdir)
        self.expect_all_done(logdir)

    def expect_all_done(self, logdir):
        again = self.expect_exit(0, "resume", f"{logdir}/sweep", *self.options)
        if again.stdout or "Every run is done" not in again.stderr:
            self.problem(f"{logdir}: submits tasks although all is done: {again.stdout}{again.stderr}")

    def wait_for_training(self, logdir):
        """Until a task runs and a run of it has finished an epoch; returns the task."""
        def epoch():
            return list((self.directory / logdir / "sweep").glob("*/checkpoint*.safetensors")) and self.tasks_of(logdir, "RUNNING")
        deadline = time.monotonic() + PATIENCE
        while not (running := epoch()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{logdir}: no task trains within {PATIENCE} s")
            try:
                until(epoch, 20, "a task trains")
            except AssertionError:
                # What the disaster before has left: a node that Slurm drains later, and tasks that it could not start there.
                self.cluster.revive()
                if (lives := self.lives(logdir)) and self.are_held(lives):
                    self.expect_exit(0, "resume", f"{logdir}/sweep", *self.options)
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
