"""A Slurm cluster of virtual nodes on this machine, for tests.

    with SlurmCluster(nodes=4) as cluster:      # raises NoSlurm, with the reason, if there is none
        subprocess.run(["sbatch", …], env=cluster.environment)
        cluster.lose_node("n1")                 # a power cut: slurmd and the jobs of n1 die
        cluster.cut_off_node("n2")              # slurmd dies, its jobs run on as orphans
        cluster.revive()                        # whatever does not run is started again

Everything listens on 127.0.0.1; no systemd, no cgroups, no accounting; works as root and as an ordinary user. Nodes have process numbers of their own where unshare is permitted. Daemons and all that
they started end with the object, and also when this process dies: they are children of supervisor.py, which ends them when its
standard input is closed.
"""
import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import processes

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
# Each look may start a program of Slurm's.
until = functools.partial(processes.until, pause=0.1)


class NoSlurm(Exception):
    """Slurm is not installed, or does not run here."""


class SlurmCluster:
    def __init__(self, nodes=4, cpus=2, gpus=0, node_silent_seconds=5, requeue_seconds=5):
        """Nodes with `cpus` cores and `gpus` stand-ins for GPUs each. A node that is silent for node_silent_seconds is down; a job
        that is put back starts again after requeue_seconds, 5 at least."""
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        missing = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
        if missing:
            raise NoSlurm(f"{', '.join(missing)} not installed (Debian: slurm-wlm munge)")
        self.directory = Path(tempfile.mkdtemp(prefix="sweep-slurm-"))
        self.environment = {**os.environ, "PATH": path, "SLURM_CONF": str(self.directory / "slurm.conf")}
        for name in list(self.environment):
            if name.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "SCANCEL_")) and name != "SLURM_CONF":
                del self.environment[name]
        settings = {"directory": str(self.directory), "nodes": nodes, "cpus": cpus, "gpus": gpus,
                    "node_silent_seconds": node_silent_seconds, "requeue_seconds": requeue_seconds}
        self.supervisor = subprocess.Popen(
            [sys.executable, "-B", Path(__file__).with_name("supervisor.py"), json.dumps(settings)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment, start_new_session=True)
        try:
            if told := self.ask("wait"):
                print(told, flush=True)
        except NoSlurm:
            self.close()
            raise

    def ask(self, *words):
        """Sends a command to the supervisor and returns its answer."""
        try:
            self.supervisor.stdin.write(" ".join(words) + "\n")
            self.supervisor.stdin.flush()
            answer = self.supervisor.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        if not answer.startswith("ok"):
            raise NoSlurm(answer or "the cluster's supervisor ended")
        return answer[3:]

    def lose_node(self, node):
        self.ask("lose", node)

    def cut_off_node(self, node):
        self.ask("cut", node)

    def kill_controller(self):
        self.ask("kill", "slurmctld")

    def revive(self):
        """Starts what does not run, and lets nodes take jobs again that Slurm has drained; returns which and why."""
        return self.ask("wait")

    def run(self, *words, check=True, timeout=60):
        """Runs one of Slurm's programs; returns its standard output."""
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def tasks(self):
        """(job, index, state, node) of each task that Slurm knows."""
        lines = self.run("squeue", "-h", "-r", "-t", "all", "-o", "%F|%K|%T|%N", check=False).splitlines()
        return [tuple(line.split("|")) for line in lines if line.count("|") == 3]

    def held(self):
        """(job, index) of each task that Slurm holds because a node could not start it."""
        lines = self.run("squeue", "-h", "-r", "-t", "PENDING", "-o", "%F|%K|%r", check=False).replace("_", " ").splitlines()
        return {tuple(line.split("|")[:2]) for line in lines if line.endswith("|launch failed requeued held")}

    @contextlib.contextmanager
    def unable_to_start(self):
        """While it lasts, the nodes take tasks but cannot start them."""
        spools = [folder for folder in (self.directory / "spool").iterdir() if folder.is_dir()]
        for folder in spools:
            folder.rename(folder.with_suffix(".away"))
            folder.touch()
        try:
            yield
        finally:
            for folder in spools:
                folder.unlink()
                folder.with_suffix(".away").rename(folder)

    def close(self):
        if self.supervisor.stdin:
            self.supervisor.stdin.close()
        try:
            self.supervisor.wait(30)
        except subprocess.TimeoutExpired:
            self.supervisor.kill()
            self.supervisor.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
