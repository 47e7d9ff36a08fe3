"""Power cuts without a machine to switch off: the changes that a sweep makes to its files are recorded by
write_log.cpp and replayed up to some point, with and without what was not synced by then. Data that was not synced
may be missing, torn or zeros; names that were not synced may be missing, but those of one directory appear in order.
Then the same command starts again. This is what CrashMonkey and ALICE do.

The monotonic clock of the recorded sweep runs faster, so that a sweep of seconds has many times ten seconds to sync in.
"""

import csv
import io
import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

from torture_sweep import seconds_of

PROMISED = 10.0  # seconds of work that a power cut may cost, or one epoch
SLACK = 8.0  # for waiting and syncing, whose times grow with the clock's speed; more on a loaded machine
RECORDED_SECONDS = 60.0  # about how long the recorded sweep takes by its own clock
# The fates of names and of data that were not synced.
FATES = (("all", "all"), ("all", "none"), ("none", "none"), ("random", "random"))


class LoggedFile:
    def __init__(self):
        self.changes = []  # (position in the log, offset, data), or None as data for a truncation
        self.syncs = []  # (position in the log, position up to which it has changes)

    def content(self, end, fate, rng):
        """The bytes after a power cut before position `end`."""
        changes = [change for change in self.changes if change[0] < end]
        synced = max((covered for position, covered in self.syncs if position < end), default=-1)
        safe = sum(1 for change in changes if change[0] < synced)
        kept = {"all": len(changes), "none": safe, "random": rng.randint(safe, len(changes))}[fate]
        content = bytearray()
        for number, (_, offset, data) in enumerate(changes[:kept]):
            if data is None:
                content = content[:offset].ljust(offset, b"\0")
                continue
            if number >= safe and number == kept - 1 and fate == "random":
                data = data[:rng.randint(0, len(data))]  # torn
            content[len(content):] = bytes(max(0, offset - len(content)))
            content[offset:offset + len(data)] = data
        if fate == "random" and kept < len(changes) and rng.random() < 0.3:
            # The size reached the disk, the data did not.
            whole = max((offset + len(data) for _, offset, data in changes if data is not None), default=0)
            content = content.ljust(whole, b"\0")
        return bytes(content)


class WriteLog:
    def __init__(self, path):
        self.names = []  # (position, operation, path, path2, file)
        self.directory_syncs = []  # (position, path, position up to which it has changes)
        self.times = []  # of each position, in seconds
        files = {}  # by inode, which may be used again
        with path.open("rb") as log:
            for position, line in enumerate(iter(log.readline, b"")):
                operation, time, inode, offset, length, *paths = line.rstrip(b"\n").decode().split("\t")
                data = log.read(int(length))
                log.read(1)
                self.times.append(int(time) / 1e9)
                if operation == "create":
                    files[inode] = LoggedFile()
                elif inode != "0" and inode not in files and operation != "syncdir":
                    continue  # log.txt: stdio's own calls cannot be logged, and nothing depends on it
                if operation == "write":
                    files[inode].changes.append((position, int(offset), data))
                elif operation == "truncate":
                    files[inode].changes.append((position, int(offset), None))
                elif operation == "sync":
                    files[inode].syncs.append((position, position))
                elif operation == "syncdir":
                    self.directory_syncs.append((position, paths[0], position))
                elif operation == "syncfs":
                    begin = position
                elif operation == "syncedfs":
                    for file in files.values():
                        file.syncs.append((position, begin))
                    for path in {os.path.dirname(name) for _, _, *names, _ in self.names for name in names if name}:
                        self.directory_syncs.append((position, path, begin))
                else:
                    self.names.append((position, operation, paths[0], paths[1], files.get(inode)))

    def slack(self, directory):
        """A run that ends while a round of syncs begins waits for the end of the next. Both rounds take longer by this
        clock the more the machine has to do; how much is seen from the times between the ends of rounds."""
        ends = [self.times[0], *(self.times[position] for position, path, _ in self.directory_syncs if path == directory)]
        longest = max((after - before for before, after in zip(ends, ends[1:])), default=PROMISED)
        return max(SLACK, SLACK + 2 * (longest - PROMISED))

    def tree_at(self, end, fate, rng):
        """{path: file, or None for a directory} after a power cut before position `end`."""
        last = {}
        for position, path, covered in self.directory_syncs:
            if position < end:
                last[path] = max(covered, last.get(path, -1))
        cuts = {}
        tree = {}
        for position, operation, path, path2, file in self.names:
            if position >= end:
                break
            directory = os.path.dirname(path2 or path)
            if directory not in cuts:
                synced = last.get(directory, -1)
                cuts[directory] = {"all": end, "none": synced, "random": rng.randint(synced, end)}[fate]
            if position >= cuts[directory]:
                continue
            if operation == "create":
                tree[path] = file
            elif operation == "mkdir":
                tree[path] = None
            elif operation in ("unlink", "rmdir"):
                tree.pop(path, None)
            elif operation == "link" and path in tree:
                tree[path2] = tree[path]
            elif operation == "rename" and path in tree and tree.get(path2, self) is not tree[path]:
                tree[path2] = tree.pop(path)
        return tree

    def replay(self, end, fates, rng, source, target):
        """Makes at `target` what is left of `source`."""
        tree = self.tree_at(end, fates[0], rng)
        for path in sorted(tree):
            if os.path.dirname(path) not in tree and path != str(source):
                continue  # in a directory that is not there
            copy = target / Path(path).relative_to(source)
            if not copy.parent.exists():
                continue
            if tree[path] is None:
                copy.mkdir()
            else:
                copy.write_bytes(tree[path].content(end, fates[1], rng))

    def checkpoints(self):
        """{run: [(seconds, [seconds of each epoch])]} of all checkpoints, when they got their name."""
        found = {}
        for position, operation, path, path2, _ in self.names:
            if operation != "rename" or not path2.endswith("/checkpoint.safetensors"):
                continue
            file = self.tree_at(position, "all", NoChance())[path]
            content = file.content(position, "all", NoChance())
            length = struct.unpack("<Q", content[:8])[0]
            epochs = json.loads(content[8:8 + length])["__metadata__"]["epochs"].splitlines()
            found.setdefault(Path(path2).parent.name, []).append(
                (self.times[position], seconds_of(json.loads(epoch) for epoch in epochs)))
        return found


class NoChance:
    """Replaces a random generator: nothing is left to chance."""

    @staticmethod
    def randint(first, _):
        return first


def faster_clock(torture, scale):
    return os.environ | {"LD_PRELOAD": torture.shim, "SWEEP_TIME_SCALE": str(scale)}


def record(torture):
    log = torture.directory / "write-log"
    environment = faster_clock(torture, max(1, round(RECORDED_SECONDS / torture.seconds))) | {
        "SWEEP_WRITE_LOG": str(log), "SWEEP_WRITE_LOG_DIR": str(torture.directory)}
    code, _, err = torture.start("recorded", environment=environment)
    if code != 0:
        torture.problem(f"power cuts: the recorded sweep ended with {code}:\n{err[-2000:]}")
        return None
    torture.check_end("recorded", "power cuts: the recorded sweep")
    return WriteLog(log)


def check_nothing_is_lost(torture, checkpoints, cut, slack, logdir, what):
    """No epoch was trained again that had a checkpoint long enough before the cut, which was at `cut` seconds."""
    for run, written in checkpoints.items():
        before = cut - PROMISED - slack - max(written[-1][1], default=0)
        safe = [epochs for seconds, epochs in written if seconds <= before]
        if not safe:
            continue
        final = json.loads((torture.sweep(logdir) / run / "run.json").read_text())["epochs"]
        seconds = seconds_of(final)
        if seconds[:len(safe[-1])] != safe[-1]:
            torture.problem(f"{what}: {run}: {len(safe[-1])} epochs were finished {cut - before:.1f} s "
                            "before the cut or earlier, and were trained again")


def scalars_of(torture, logdir):
    """Every point that an epoch has, without times, which differ, and the setup's."""
    exported = subprocess.run([torture.program, "export", logdir, "--format", "csv"], cwd=torture.directory,
                              capture_output=True, text=True)
    return sorted((row["run"].split("/")[-1], row["tag"], row["step"])
                  for row in csv.DictReader(io.StringIO(exported.stdout)) if "/" in row["tag"])


def cut_power(torture, count):
    log = record(torture)
    if log is None:
        return
    checkpoints = log.checkpoints()
    wanted = scalars_of(torture, "recorded")
    source = torture.directory / "recorded"
    kept = 0
    for number in range(count):
        # Spread over the log, with every fate of what is not synced.
        end = min(len(log.times), 1 + int(len(log.times) * (number + torture.random.random()) / count))
        fates = FATES[number % len(FATES)]
        logdir = f"cut{number}"
        what = f"power cut {number} at entry {end} of {len(log.times)}, names {fates[0]}, data {fates[1]}"
        log.replay(end, fates, torture.random, source, torture.directory / logdir)
        code, _, err = torture.start(logdir)
        if code != 0:
            torture.problem(f"{what}: the same command then ended with {code}:\n{err[-2000:]}")
            continue
        before = len(torture.found)
        torture.check_end(logdir, what)
        check_nothing_is_lost(torture, checkpoints, log.times[end - 1], log.slack(str(torture.directory)), logdir, what)
        if scalars_of(torture, logdir) != wanted:
            missing = set(wanted) ^ set(scalars_of(torture, logdir))
            torture.problem(f"{what}: other points than those of the recorded sweep: {sorted(missing)[:5]}")
        if list(torture.sweep(logdir).rglob("checkpoint.previous*")):
            torture.problem(f"{what}: the previous checkpoint was left behind")
        if len(torture.found) == before:
            shutil.rmtree(torture.directory / logdir)
        kept += 1
    print(f"{kept} power cuts in {len(log.times)} changes to files", flush=True)
