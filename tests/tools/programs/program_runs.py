"""What tests of programs as runs share: sweeps in a folder of their own, and event files."""
import csv
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "support/python"), str(TESTS / "tensorboard")]
from event_records import masked_crc32c  # noqa: E402

# What programs in Python begin with.
PROLOGUE = f"""
import json, os, sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
attempt, folder = int(os.environ["SWEEP_ATTEMPT"]), os.environ["SWEEP_RUN_DIR"]
def report(**values):
    with open(os.environ["SWEEP_METRICS"], "a") as metrics:
        metrics.write(json.dumps(values) + "\\n")
"""

# Reports an epoch every so often, and goes on after the last one of an earlier attempt.
TRAIN = """
lr, epochs, pause = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
kept = os.path.join(os.environ["SWEEP_CHECKPOINT_DIR"], "epoch")
first = int(open(kept).read()) + 1 if os.path.exists(kept) else 1
for epoch in range(first, epochs + 1):
    time.sleep(pause)
    report(step=epoch, loss=lr / epoch, score=epoch * lr)
    with open(kept + ".new", "w") as file:
        file.write(str(epoch))
    os.replace(kept + ".new", kept)
"""


def scalar_record(tag, step, value):
    """An event with one scalar, as TensorFlow and PyTorch write it."""
    name = tag.encode()
    entry = b"\x0a" + bytes([len(name)]) + name + b"\x15" + struct.pack("<f", value)
    summary = b"\x0a" + bytes([len(entry)]) + entry
    return event_record(b"\x10" + varint(step) + b"\x2a" + bytes([len(summary)]) + summary)


def varint(number):
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def event_record(content):
    """An event of now, with these fields."""
    event = b"\x09" + struct.pack("<d", time.time()) + content
    length = struct.pack("<Q", len(event))
    return length + struct.pack("<I", masked_crc32c(length)) + event + struct.pack("<I", masked_crc32c(event))


class ProgramRuns(unittest.TestCase):
    program = None  # the sweep program

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        self.python(TRAIN, "train.py")

    def sweep(self, *words, code=0, env=None):
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, capture_output=True, text=True, errors="replace",
                              env={**os.environ, **(env or {})}, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def python(self, text, name="own.py"):
        """The words of a program: `text` after PROLOGUE."""
        (self.folder / name).write_text(PROLOGUE + text)
        return ["python3", name]

    def start(self, *words, **options):
        return subprocess.Popen([self.program, *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)

    def killed(self, times, earliest, latest, *words, signals=(signal.SIGKILL,)):
        """Starts `sweep WORDS…` so often and ends it after some time between these seconds; yields each time."""
        for _ in range(times):
            process = self.start(*words)
            time.sleep(random.uniform(earliest, latest))
            process.send_signal(random.choice(signals))
            process.wait(30)
            yield

    def file(self, name="s", **keys):
        (self.folder / f"{name}.json").write_text(json.dumps({"name": name, **keys}))
        return f"{name}.json"

    def runs(self, name="s"):
        records = [json.loads(path.read_text()) for path in (self.folder / "runs" / name).glob("*/run.json")]
        return {record["name"]: record for record in records}

    def run_of(self, *command, code=0, **keys):
        """The record of the only run of a sweep."""
        self.sweep(self.file(command=list(command), **keys), code=code)
        (record,) = self.runs().values()
        return record

    def rows(self, name="s"):
        """Those of results.csv."""
        return list(csv.DictReader((self.folder / "runs" / name / "results.csv").read_text().splitlines()))

    def points(self, tag, name="s"):
        """The steps and values of a chart of a sweep, as its events have them."""
        rows = csv.reader(self.sweep("export", f"runs/{name}").stdout.splitlines())
        return [(int(row[2]), float(row[4])) for row in rows if row[1] == tag]

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *words], cwd=self.folder, check=True)

    def log(self, run, name="s"):
        return (self.folder / "runs" / name / run / "log.txt").read_bytes()


def main():
    """Runs the tests of the calling program, whose first argument is the sweep program."""
    ProgramRuns.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
