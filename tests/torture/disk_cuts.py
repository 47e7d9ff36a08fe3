"""Power cuts of real file systems, each on a loop device of its own: the file system is shut down at once, as by
`xfs_io -x -c shutdown`, so that what it has not written is lost; then it is mounted again, and the same command starts.

The monotonic clock of the sweep runs faster, as in power_cuts.py, but less so: syncs of a disk take real time.
"""

import fcntl
import json
import os
import shutil
import struct
import subprocess
import time

from power_cuts import PROMISED, check_nothing_is_lost, faster_clock, scalars_of
from torture_sweep import bits_of, checkpoint_of, problems_of_end, seconds_of

SHUTDOWN, WITHOUT_FLUSHING = 0x8004587D, 2  # _IOR('X', 125, __u32), of ext4 and xfs
FILE_SYSTEMS = {"ext4": ("mkfs.ext4", ["-q", "-F"], "loop"),
                "ext4 in writeback mode": ("mkfs.ext4", ["-q", "-F"], "loop,data=writeback"),
                "xfs": ("mkfs.xfs", ["-q", "-f"], "loop")}
IMAGE_BYTES = 400 << 20  # sparse; xfs has a least size
SCALE = 10  # of the clock
WORDS = ("epochs=150", "stop.patience=150")
SLACK = 20.0  # seconds by the faster clock, for rounds of syncs; more where the machine has much to do


class Disk:
    """A new file system, mounted on `directory`."""

    def __init__(self, directory, kind):
        program, options, self.mount_options = FILE_SYSTEMS[kind]
        self.directory, self.image = directory, directory.with_suffix(".image")
        with self.image.open("wb") as image:
            image.truncate(IMAGE_BYTES)
        subprocess.run([program, *options, str(self.image)], check=True, capture_output=True)
        directory.mkdir()
        self.mount()

    def mount(self):
        subprocess.run(["mount", "-o", self.mount_options, str(self.image), str(self.directory)], check=True,
                       capture_output=True)

    def unmount(self):
        # A killed process may still hold a file for a moment.
        for _ in range(100):
            if subprocess.run(["umount", str(self.directory)], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        raise OSError(f"{self.directory} cannot be unmounted")

    def cut(self):
        descriptor = os.open(self.directory, os.O_RDONLY)
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_FLUSHING))
        os.close(descriptor)

    def remove(self):
        self.unmount()
        self.directory.rmdir()
        self.image.unlink()


def seen(sweep):
    """{run: seconds of each epoch in its checkpoint}, and the runs that are completed."""
    epochs, completed = {}, set()
    for run in sweep.glob("*/"):
        try:
            found = checkpoint_of(run)
            if found:
                epochs[run.name] = seconds_of(json.loads(line) for line in found[0]["epochs"].splitlines())
            if json.loads((run / "run.json").read_text())["status"] == "completed":
                completed.add(run.name)
        except (OSError, ValueError):
            pass  # replaced just now
    return epochs, completed


def cut_once(torture, disk, oracle, wanted, seconds, what):
    logdir = disk.directory.name
    sweep = torture.sweep(logdir)
    checkpoints, completed, finished, slack = {}, set(), {}, SLACK
    process = torture.popen(logdir, words=WORDS, environment=faster_clock(torture, SCALE))
    begin = time.monotonic()
    end = begin + torture.random.uniform(0, 1.05 * seconds)
    while time.monotonic() < end:
        now = SCALE * (time.monotonic() - begin)
        epochs, completed = seen(sweep)
        for run in completed:
            finished.setdefault(run, (now, epochs[run]))
        for run, times in epochs.items():
            checkpoints.setdefault(run, []).append((now, times))
        time.sleep(0.02)
        # The sweep waits for the processor and the disk as this program does.
        slack = max(slack, SLACK + 3 * (SCALE * (time.monotonic() - begin) - now))
    disk.cut()
    cut = SCALE * (time.monotonic() - begin)
    process.kill()
    torture.wait(process)
    disk.unmount()
    disk.mount()
    code, _, err = torture.start(logdir, words=WORDS)
    if code != 0:
        torture.problem(f"{what}: the same command then ended with {code}:\n{err[-1000:]}")
        return
    check_nothing_is_lost(torture, checkpoints, cut, slack, logdir, what)
    for run, (ended, times) in finished.items():
        if ended < cut - PROMISED - slack and seen(sweep)[0][run] != times:
            torture.problem(f"{what}: {run}, finished {cut - ended:.1f} s before, was trained again")
    for problem in problems_of_end(torture.program, sweep, oracle):
        torture.problem(f"{what}: {problem}")
    if scalars_of(torture, logdir) != wanted:
        torture.problem(f"{what}: other points than those of the undisturbed sweep")


def cut_disks(torture, count):
    """`count` cuts of each kind of file system."""
    begin = time.monotonic()
    code, _, err = torture.start("long", words=WORDS, environment=faster_clock(torture, SCALE))
    seconds = time.monotonic() - begin
    if code != 0:
        torture.problem(f"the undisturbed long sweep ended with {code}:\n{err[-1000:]}")
        return
    oracle, wanted = bits_of(torture.sweep("long")), scalars_of(torture, "long")
    for kind, (program, _, _) in FILE_SYSTEMS.items():
        if shutil.which(program) is None:
            print(f"SKIPPED: {kind}; {program} is not installed", flush=True)
            continue
        begin = time.monotonic()
        for number in range(count):
            directory = torture.directory / f"disk{number}"
            try:
                disk = Disk(directory, kind)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"SKIPPED: {kind}; only root can mount loop devices: {error}", flush=True)
                directory.rmdir()
                break
            try:
                cut_once(torture, disk, oracle, wanted, seconds, f"cut {number} of {kind}")
            finally:
                disk.remove()
        else:
            print(f"{count} cuts of {kind} in {time.monotonic() - begin:.0f} s", flush=True)
