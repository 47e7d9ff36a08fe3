"""What happens to sweeps on a cluster: tasks, nodes, the controller and the disk are lost while runs are trained."""
import contextlib
import os
import shutil
import signal
import subprocess
import time

from cluster_sweeps import ClusterSweeps
from slurm_cluster import until

MOST_TRIES = 5     # of a disaster that came when the task had just ended
DISK_MEGABYTES = 24


def mount_small(directory):
    """Makes a small file system there, before there are nodes: what is mounted later is not seen on them."""
    folder = directory / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "tmpfs", folder], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"SKIPPED: fill_disk: no file system can be mounted here: {done.stderr.strip()}", flush=True)


def unmount_small(directory):
    if (directory / "small").is_mount():
        subprocess.run(["umount", "-l", directory / "small"], check=False)


class Disasters(ClusterSweeps):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.struck = []  # the sweeps that are to be looked at once more

    # Each is given a task that trains, and returns whether it came in time.
    def kill_task(self, task):
        killed = 0
        for pid in self.processes_of(task):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        return killed > 0

    def cancel_task(self, task):
        self.cluster.run("scancel", f"{task[0]}_{task[1]}", check=False)
        return self.ended_as(task, "CANCELLED")

    def requeue_task(self, task):
        self.cluster.run("scontrol", "requeue", f"{task[0]}_{task[1]}", check=False)
        return self.has_gone_back(task)

    def warn_task(self, task):
        """What Slurm does before a task's time limit."""
        self.cluster.run("scancel", "--batch", "--signal=USR2", f"{task[0]}_{task[1]}", check=False)
        return self.has_gone_back(task)

    def preempt_task(self, task):
        """A job of higher priority wants the node: the task gets the same signal, and is killed soon after."""
        job = self.cluster.run("sbatch", "--parsable", "--partition=urgent", f"--nodelist={task[3]}", "--exclusive",
                               "--output=/dev/null", "--wrap=sleep 0.2").strip()
        try:
            return self.has_gone_back(task)
        finally:
            self.cluster.run("scancel", job, check=False)

    def lose_node(self, task):
        had = bool(self.processes_of(task))
        self.cluster.lose_node(task[3])
        until(lambda: task not in self.cluster.tasks(), 60, "the lost node's task is no longer taken for running")
        self.cluster.revive()
        return had

    def cut_off_node(self, task):
        """The first attempt lives on while the task starts again elsewhere; then the node comes back."""
        self.cluster.cut_off_node(task[3])
        lives_on = self.has_gone_back(task) and bool(self.processes_of(task))
        time.sleep(self.random.uniform(0, 10))
        self.cluster.revive()
        return lives_on

    def kill_controller(self, task):
        had = bool(self.processes_of(task))
        self.cluster.kill_controller()
        status = self.sweep("status", f"{self.logdir}/sweep")
        if status.returncode != 0:
            self.problem(f"status without a controller: {status.stderr}")
        time.sleep(self.random.uniform(0, 3))
        self.cluster.revive()
        return had

    def fill_disk(self, task):
        """The file system of the sweep is full for a while: runs fail, or their tasks end. While it is full `sweep resume` may
        refuse, but must spoil nothing."""
        had = bool(self.processes_of(task))
        ballast = self.directory / "small/ballast"
        with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        time.sleep(self.random.uniform(0, 2))
        if self.random.random() < 0.5:
            done = self.sweep("resume", f"{self.logdir}/sweep", *self.options)
            if done.returncode not in (0, 1, 3):
                self.problem(f"{self.logdir}: resume on a full disk: exit code {done.returncode}:\n{done.stdout}{done.stderr}")
            if done.returncode != 0 and "No space left" not in done.stderr:
                self.problem(f"{self.logdir}: resume on a full disk does not say why it fails:\n{done.stderr}")
        ballast.unlink()
        return had

    DISASTERS = ("kill_task", "cancel_task", "requeue_task", "warn_task", "preempt_task", "lose_node", "cut_off_node",
                 "kill_controller", "fill_disk")

    def ended_as(self, task, state):
        """Whether the task ends so; not if it has come to its end before."""
        def now():
            states = [known[2] for known in self.tasks_of(self.logdir) if known[:2] == task[:2]]
            return states and states[0] not in ("RUNNING", "COMPLETING") and states[0]
        return until(now, 60, f"{self.logdir}: the task ends") == state

    def has_gone_back(self, task):
        return self.ended_as(task, "PENDING")

    def strike(self, name, number):
        """One disaster; returns whether it came in time."""
        self.logdir = f"small/{name}-{number}" if name == "fill_disk" else f"{name}-{number}"
        # A task that starts again where its first attempt has not quite ended has its node drained ("Duplicate jobid").
        drained = self.cluster.revive()
        if drained:
            print(drained, flush=True)
        file = "long.json" if name == "cut_off_node" else "sweep.json"
        self.submit(self.logdir, "--slurm", "report=false", file=file)
        in_time = getattr(self, name)(self.wait_for_training(self.logdir))
        self.finish(self.logdir)
        return in_time

    def disaster(self, name, number):
        if name == "fill_disk" and not (self.directory / "small").is_mount():
            return
        begin, before = time.monotonic(), len(self.found)
        for attempt in range(MOST_TRIES):
            in_time = self.strike(name, f"{number}-{attempt}" if attempt else number)
            if len(self.found) == before:
                self.struck.append(self.logdir)
            if in_time:
                break
        else:
            self.problem(f"{name}-{number}: {MOST_TRIES} times too late: the runs are too short")
        print(f"{self.logdir}: {time.monotonic() - begin:.1f} s, {len(self.found)} problems so far", flush=True)
        # All is looked at once more when the processes on nodes that were cut off have found out.
        if name == "fill_disk" or len(self.struck) >= 10:
            self.forget()

    def forget(self):
        """Looks once more at what the last disasters have left, and removes it."""
        for logdir in self.struck:
            self.expect_bits(logdir)
            shutil.rmtree(self.directory / logdir)
        self.struck = []
