"""A small sweep, an undisturbed run of it, and what has to hold for one that was disturbed."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

from starts import Starts

DOCUMENTED = {0, 1, 2, 3, 75, 130, 143}
FILE_FUNCTIONS = ["write", "fsync", "rename", "open", "close", "ftruncate", "link", "unlink", "mkdir"]
CONVOLUTIONAL = [
    {"name": "conv1", "type": "conv2d", "out_channels": 4, "kernel_size": 3}, {"name": "relu1", "type": "relu"},
    {"name": "pool1", "type": "max_pool2d", "kernel_size": 2}, {"name": "flatten", "type": "flatten"},
    {"name": "drop", "type": "dropout", "p": 0.1}, {"name": "out", "type": "linear", "out_features": 4}]
LINEAR = [{"name": "flatten", "type": "flatten"}, {"name": "out", "type": "linear", "out_features": 4}]


def write_pictures(directory, counts, side=8):
    """An IDX file of pictures and one of labels for each part in `counts`; one quarter of a picture is bright, which is the class."""
    directory.mkdir(parents=True)
    half = side // 2
    for part, count in counts.items():
        labels = bytes((i * 7 + i // 4) % 4 for i in range(count))
        pixels = bytes((160 if (y // half) * 2 + x // half == labels[i] else 20) + (i * 31 + y * 17 + x * 13) % 64
                       for i in range(count) for y in range(side) for x in range(side))
        (directory / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, side, side) + pixels)
        (directory / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)


def write_data(directory, small=False):
    """Pictures of 8x8. Returns a sweep over them: a small one has two runs of some milliseconds; the other four, which are long enough
    to be killed at any time."""
    directory.mkdir(parents=True, exist_ok=True)
    train, test, validation = (24, 8, 8) if small else (400, 60, 40)
    write_pictures(directory / "data", {"train": train, "t10k": test})
    return {
        "name": "torture", "dataset": {"name": "quarters", "path": "data", "validation": validation},
        "network": {"name": "net", "layers": LINEAR if small else CONVOLUTIONAL}, "optimizer": "adam",
        "epochs": 3 if small else 12, "evaluate_first": True, "seed": 3, "checkpoint": "best",
        "stop": {"metric": "Accuracy/validation", "patience": 5, "restore_best": True},
        "log": {"batches": 20},
        "params": {"lr": [0.02, 0.01]} | ({"batch_size": [8]} if small else {"batch_size": [2, 4]})}


SEARCHES = {
    "random": {"trials": 12}, "tpe": {"trials": 12, "at_once": 3}, "halving": {"trials": 9}, "hyperband": {},
    "asha": {"trials": 9, "at_once": 3, "sampler": "tpe"}, "population": {"trials": 5, "interval": 2, "reduction": 2},
    "goals": {"method": "tpe", "metric": ["Loss/validation", "Accuracy/train"], "mode": ["min", "max"], "trials": 12, "at_once": 3}}


def search_sweep(sweep, method):
    """`sweep` as a search by `method`, or by tpe for two goals, whose trials wait for the results of others."""
    left_out = ("params", "stop", "checkpoint") if method == "population" else ("params", "stop")
    kept = {key: value for key, value in sweep.items() if key not in left_out}
    return kept | {"name": method, "epochs": 3 if method in ("random", "tpe", "goals") else 9, "batch_size": 4,
                   "params": {"lr": {"log_uniform": [0.001, 0.1]}},
                   "search": {"method": method, "metric": "Loss/validation", "mode": "min", "seed": 5} | SEARCHES[method]}


def records_of(sweep):
    """The records of all runs, by the names of their directories."""
    return {path.parent.name: json.loads(path.read_text()) for path in sorted(sweep.glob("*/run.json"))}


def checkpoint_of(run, name="checkpoint.safetensors"):
    """(metadata, bytes of all tensors) of a run's checkpoint; nothing if it has none."""
    path = run / name
    if not path.exists():
        return None
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8:8 + length])["__metadata__"], content[8 + length:]


def seconds_of(epochs):
    """Of every trained epoch: epoch 0 has none."""
    return [epoch["epoch_seconds"] for epoch in epochs if epoch["epoch"] > 0]


def bits_of(sweep, run="*"):
    """{name of a run: what must not depend on the clock: weights, optimizer state, metrics of every epoch}. A run that was
    replaced is not one of the sweep's."""
    bits = {}
    for record in sorted(sweep.glob(f"{run}/run.json")):
        if run == "*" and ".replaced-" in record.parent.name:
            continue
        content = json.loads(record.read_text())
        found, best = checkpoint_of(record.parent), checkpoint_of(record.parent, "best.safetensors")
        epochs = [{key: value for key, value in epoch.items() if "seconds" not in key and "per_second" not in key}
                  for epoch in content["epochs"]]
        bits[content["name"]] = (content["status"], json.dumps(epochs), json.dumps(content["metrics"]),
                             json.dumps(content.get("stopped")), content.get("best_epoch"),
                             *(hashlib.sha256(file[1]).hexdigest() if file else None for file in (found, best)))
    return bits


TAGS = [b"Loss/train", b"Loss/validation", b"Duration/epoch_seconds", b"weights/out.weight", b"gradients/out.weight"]


def tags_of(run):
    """How often each tag is in the events files: once per value, and in the names of the charts."""
    content = b"".join(path.read_bytes() for path in run.glob("*tfevents*"))
    return {tag.decode(): content.count(tag) for tag in TAGS}


def problems_of_end(program, sweep, oracle):
    """What is wrong with a sweep that is complete and should have the bits `oracle`: none lost, damaged, doubled or left behind."""
    found = bits_of(sweep)
    different = [name for name in oracle | found if found.get(name) != oracle.get(name)]
    if different:
        yield f"weights or metrics of {different} differ from those of the undisturbed sweep"
    exported = subprocess.run([program, "export", str(sweep), "--format", "csv"], capture_output=True, text=True)
    if exported.returncode != 0:
        yield f"its events are damaged: {exported.stderr}"
        return
    fsck = subprocess.run([program, "fsck", str(sweep)], capture_output=True, text=True)
    if fsck.returncode != 0:
        yield f"fsck: {fsck.stdout}{fsck.stderr}"
    seen = set()
    for row in csv.DictReader(io.StringIO(exported.stdout)):
        key = (row["run"], row["tag"], row["step"])
        if key in seen:
            yield f"{key} has two values"
        seen.add(key)
    leftovers = [str(path) for path in sweep.rglob("*.tmp")]
    if leftovers:
        yield f"left behind {leftovers}"


def trials_of(search):
    return [run["name"] for run in json.loads((search / "results.json").read_text())["runs"]]


def problems_of_search(program, search, alone):
    """What is wrong with a search that should have the trials and bits of one that was left alone."""
    yield from problems_of_end(program, search, bits_of(alone))
    if trials_of(search) != trials_of(alone):
        yield f"trials {trials_of(search)}, want {trials_of(alone)}"


def problems_of_shared_end(sweep, undisturbed, oracle):
    """The same for what several processes have written together: events and the table of results."""
    for run in oracle:
        found, want = tags_of(sweep / run), tags_of(undisturbed / run)
        if found != want:
            yield f"{run}: its events files have {found}, those of an undisturbed run {want}"
    with open(sweep / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    finished = {row["run"] for row in rows if row["status"] == "completed"}
    if finished != set(oracle):
        yield f"results.csv has {sorted(finished)}"
    steps = [(row["run"], row["epoch"]) for row in rows]
    if len(steps) != len(set(steps)):
        yield "results.csv has an epoch twice"
    strange = [path.name for path in sweep.glob("*/*") if ".safetensors" in path.name and
               path.name not in ("checkpoint.safetensors", "best.safetensors")]
    if strange:
        yield f"left {strange}"


class TortureSweep(Starts):
    def __init__(self, arguments, directory, sweep, jobs=2):
        """`sweep`: what its file says. arguments: program; seed; shim, torture_shim.cpp, if calls are to fail."""
        super().__init__(arguments.program, directory, arguments.seed)
        self.shim = str(Path(arguments.shim).resolve()) if "shim" in arguments else None
        self.name, self.jobs = sweep["name"], jobs
        self.finished = {}  # (sweep, run, epoch) -> its seconds, which a second training would change
        (directory / f"{self.name}.json").write_text(json.dumps(sweep))
        begin = time.monotonic()
        code, _, err = self.start("undisturbed")
        self.seconds = time.monotonic() - begin
        if code != 0:
            sys.exit(f"the undisturbed sweep ended with {code}:\n{err}")
        self.oracle = bits_of(self.sweep("undisturbed"))

    def sweep(self, logdir):
        return self.directory / logdir / self.name

    def popen(self, logdir, words=(), fault=None, error=None, fault_directory=None, environment=os.environ, jobs=None, **options):
        """`fault` as fault_plan.h has it, with the number `error`; has_struck() then tells whether it came to that.
        Without `fault_directory`, calls on files of other sweeps and on data do not count."""
        environment = dict(environment)
        if fault:
            self.mark_of(logdir).unlink(missing_ok=True)
            environment |= {"LD_PRELOAD": self.shim, "SWEEP_FAULT": fault,
                            "SWEEP_FAULT_DIR": str(fault_directory or self.directory / logdir),
                            "SWEEP_FAULT_MARK": str(self.mark_of(logdir))}
        if error:
            environment["SWEEP_FAULT_ERRNO"] = str(error)
        return self.launch([f"{self.name}.json", *words, "--logdir", logdir, "--jobs", str(jobs or self.jobs)], environment=environment,
                           **options)

    def mark_of(self, logdir):
        return self.directory / f"{logdir}.struck"

    def has_struck(self, logdir):
        return self.mark_of(logdir).exists()

    def forget(self, logdir):
        """Removes what a sweep left behind."""
        shutil.rmtree(self.directory / logdir, ignore_errors=True)
        self.mark_of(logdir).unlink(missing_ok=True)
        for key in [key for key in self.finished if key[0] == logdir]:
            del self.finished[key]

    def half_done(self):
        """The log directory of a sweep that was killed in the middle of its runs."""
        half = self.directory / "half"
        if not half.exists():
            self.start("half", fault=f"worker:kill-both:rename:{8 if self.jobs == 1 else 12}")
            if not self.has_struck("half") or not list(self.sweep("half").glob("*/checkpoint.safetensors")):
                self.problem("no sweep was killed half-way")
        return half

    def start(self, logdir, **options):
        """Exit code, output, messages."""
        return self.wait(self.popen(logdir, **options))

    def check_progress(self, logdir, err, what):
        """Every epoch that was reported, or seen in a checkpoint before, is there with the same times."""
        promised = {}
        for name, epoch in re.findall(r"^\[\d+/\d+\] (\S+)  epoch (\d+)/", err, re.MULTILINE):
            promised[name] = max(promised.get(name, 0), int(epoch))
        sweep = self.sweep(logdir)
        for run in [path for path in sweep.glob("*") if path.is_dir()]:
            try:
                found = checkpoint_of(run)
            except (ValueError, KeyError, struct.error) as error:
                self.problem(f"{what}: {run.name}: its checkpoint is damaged: {error}")
                continue
            epochs = [json.loads(line) for line in found[0]["epochs"].splitlines()] if found else []
            last = epochs[-1]["epoch"] if epochs else 0
            if last < promised.get(run.name, 0):
                self.problem(f"{what}: {run.name}: epoch {promised[run.name]} was reported as finished, but "
                             f"its checkpoint has {last}")
            for epoch in epochs:
                key = (logdir, run.name, epoch["epoch"])
                if self.finished.setdefault(key, epoch["epoch_seconds"]) != epoch["epoch_seconds"]:
                    self.problem(f"{what}: {run.name}: finished epoch {epoch['epoch']} was trained again")

    def check_end(self, logdir, what):
        for problem in problems_of_end(self.program, self.sweep(logdir), self.oracle):
            self.problem(f"{what}: {problem}")

    def check_code(self, code, err, what):
        if code < 0 or code not in DOCUMENTED:
            self.problem(f"{what}: exit code {code}\n{err[-2000:]}")
        elif code not in (0, 1) and "sweep: " not in err:
            self.problem(f"{what}: exit code {code} without a message:\n{err[-2000:]}")

    def finish(self, logdir, what):
        code, _, err = self.start(logdir)
        self.check_progress(logdir, err, what)
        if code != 0:
            self.problem(f"{what}: the same command then ended with {code}:\n{err[-2000:]}")
        self.check_end(logdir, what)
