#!/usr/bin/env python3
"""Runs that several devices train together, killed again and again, and resumed with another number of devices.

  parallel_kills.py --program SWEEP [--kills N] [--seed N] [--pictures N] [--side N] [--epochs N]

A CNN, an MLP, and a residual network with batch normalization and dropout; each is killed --kills times, and the devices are
threads or MPI ranks, 1 to 4; one process or the launcher is killed. Weights, optimizer state and metrics have to be those of a run
that one device trained undisturbed, bit for bit. Without mpirun, or a program built with MPI, there are threads alone.
"""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import parallel_sweeps
import torture_sweep
from kills import workers_of

PATIENCE = 300  # seconds for any one start
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"]
# On one machine with fewer cores than ranks, and without opening a port.
MPI_SETTINGS = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
                "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_oob_tcp_if_include": "lo"}


class ParallelKills:
    def __init__(self, arguments, directory):
        self.program, self.directory, self.epochs = arguments.program, directory, arguments.epochs
        self.random = random.Random(arguments.seed)
        self.found = []
        parallel_sweeps.write_sweeps(directory, arguments.pictures, arguments.side, arguments.epochs)

    def problem(self, text):
        self.found.append(text)
        print("PROBLEM:", text, flush=True)

    def start(self, name, logdir, kind, devices):
        launcher = [*MPIRUN, str(devices)] if kind == "ranks" else []
        return subprocess.Popen([*launcher, self.program, f"{name}.json", f"parallel.data={devices}", "--threads", str(devices), "--logdir", logdir],
                                cwd=self.directory, env=os.environ | MPI_SETTINGS, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=open(self.directory / "messages", "w"), start_new_session=True)

    def end(self, process, what):
        """Its exit code, after it has ended by itself or PATIENCE."""
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.problem(f"{what}: does not end")
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait()

    def messages(self):
        return (self.directory / "messages").read_text()[-2000:]

    def mpi_missing_reason(self):
        """Why there are no ranks here; None if there are."""
        if shutil.which("mpirun") is None:
            return "mpirun is not installed"
        code = self.end(self.start("mlp", "try", "ranks", 2), "two ranks")
        if code == 0:
            return None
        if "built without MPI" not in self.messages():
            self.problem(f"two ranks: exit code {code}: {self.messages()}")
        return self.messages()

    def kill(self, process, run, epoch, kind):
        """Ends one rank, or the launcher or the program, after `epoch`; returns which, or None if the run was complete before."""
        deadline = time.monotonic() + PATIENCE
        while parallel_sweeps.finished_epochs(run) < epoch and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(self.random.uniform(0, 0.03))
        below = workers_of(process.pid)
        if process.poll() is not None or not below:
            return None
        if kind == "ranks":
            victim = self.random.choice([process.pid, *below])
        else:
            victim = self.random.choice([process.pid, below[0]])
        os.kill(victim, signal.SIGKILL)
        # What it leaves behind ends by itself, and holds the sweep until then.
        while any(Path(f"/proc/{pid}/exe").exists() for pid in below) and time.monotonic() < deadline:
            time.sleep(0.01)
        return f"{kind}: " + (f"process {below.index(victim)}" if victim in below else "the first")

    def play(self, name, kinds, kills):
        process = self.start(name, "alone", "threads", 1)
        if self.end(process, name) != 0:
            return self.problem(f"{name}: {self.messages()}")
        oracle = torture_sweep.bits_of(self.directory / "alone" / name)
        sweep, struck = self.directory / "killed" / name, 0
        for number in range(kills):
            kind, devices = self.random.choice(kinds), self.random.randint(1, 4)
            kind = "threads" if devices == 1 else kind
            process = self.start(name, "killed", kind, devices)
            what = self.kill(process, sweep / "run", 1 + self.epochs * (number + 1) // (kills + 2), kind)
            code = self.end(process, name)
            print(f"{name}, {devices} {kind}: {what} killed, exit code {code}, epochs {parallel_sweeps.finished_epochs(sweep / 'run')} of {self.epochs}", flush=True)
            struck += what is not None
            if what is None and code != 0:
                self.problem(f"{name} with {devices} {kind}: exit code {code}: {self.messages()}")
        if struck == 0:  # On a busy machine many starts are done before their kill.
            self.problem(f"{name}: none of {kills} kills struck")
        kind, devices = self.random.choice(kinds), self.random.randint(2, 4)
        if self.end(self.start(name, "killed", kind, devices), name) != 0:
            self.problem(f"{name}, the last start with {devices} {kind}: {self.messages()}")
        for problem in torture_sweep.problems_of_end(self.program, sweep, oracle):
            self.problem(f"{name}: {problem}")
        return struck


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, required=True)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pictures", type=int, default=1500)
    parser.add_argument("--side", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=24)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="parallel-kills.") as folder:
        test = ParallelKills(arguments, Path(folder))
        missing = test.mpi_missing_reason()
        if missing:
            print(f"threads alone: {missing}")
        for name in parallel_sweeps.NETWORKS:
            test.play(name, ["threads"] if missing else ["threads", "ranks"], arguments.kills)
    print(f"{len(test.found)} problems")
    return 1 if test.found else 0


if __name__ == "__main__":
    sys.exit(main())
