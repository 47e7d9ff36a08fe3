"""SIGKILL of a sweep that replaces finished runs, or that gives them other names because the sweep file has another axis.

After every kill, each of the finished runs is whole: the old one, in its directory or set aside, or the new one. Then the
same command goes on to the end.
"""

import json
import re
import shutil
import subprocess

from kills import kill, kill_again_and_again
from torture_sweep import bits_of

REPLACED = re.compile(r"\.replaced-\d+$")


def training_of(record):
    """What a run's training left, which no second training would give: its times are in it."""
    run = json.loads(record.read_text())
    return run["status"], json.dumps(run["epochs"]), json.dumps(run["seconds"])


class Changed:
    """Sweeps that begin with all runs of `torture` finished and then have `words` on the command line."""

    def __init__(self, torture):
        self.torture, self.name, self.problem, self.forget = torture, type(self).__name__, torture.problem, torture.forget
        code, _, err = torture.start(self.name, words=self.words)
        if code != 0:
            self.problem(f"{self.name} ended with {code}:\n{err}")
        self.new = bits_of(torture.sweep(self.name))
        self.old = {training_of(record) for record in torture.sweep("undisturbed").glob("*/run.json")}

    def kill(self, logdir):
        if not (self.torture.directory / logdir).exists():
            shutil.copytree(self.torture.directory / "undisturbed", self.torture.directory / logdir)
        return kill(self.torture, logdir, ("parent", "both"), self.words)

    def check_progress(self, logdir, _, what):
        if self.lost(logdir):
            self.problem(f"{what}: neither the old nor the new run is whole: {sorted(self.lost(logdir))}")

    def finish(self, logdir, what):
        code, _, err = self.torture.start(logdir, words=self.words)
        problem = f"ended with {code}:\n{err[-1000:]}" if code != 0 else self.end_problem(logdir)
        if not problem and bits_of(self.torture.sweep(logdir)) != self.new:
            problem = "the end is not that of a sweep that began so"
        if not problem and not is_undamaged(self.torture, self.torture.sweep(logdir)):
            problem = "fsck finds damage"
        if problem:
            self.problem(f"{what}: the same command then: {problem}")


class Replacing(Changed):
    """Every run is trained again with another seed."""
    words = ("seed=4", "--replace")

    def lost(self, logdir):
        """Finished runs with neither the old nor the new one whole."""
        whole = set()
        for record in self.torture.sweep(logdir).glob("*/run.json"):
            name = REPLACED.sub("", record.parent.name)
            bits = run_bits(record.parent)
            is_old, is_new = bits == self.torture.oracle[name], bits == self.new[name]
            if (is_old or (is_new and name == record.parent.name)) and is_undamaged(self.torture, record.parent):
                whole.add(name)
        return set(self.torture.oracle) - whole

    def end_problem(self, logdir):
        aside = [path.name for path in self.torture.sweep(logdir).iterdir() if REPLACED.search(path.name)]
        return f"{aside} were left behind" if aside else None


class Adopting(Changed):
    """Another axis; all finished runs have one of its values."""
    words = ("shuffle=true,false",)

    def lost(self, logdir):
        records = self.torture.sweep(logdir).glob("*/run.json")
        return self.old - {training_of(record) for record in records if is_undamaged(self.torture, record.parent)}

    def end_problem(self, logdir):
        return f"{len(self.lost(logdir))} finished runs were trained again" if self.lost(logdir) else None


def run_bits(run):
    """bits_of() of one run; None if it has none that are whole."""
    try:
        return next(iter(bits_of(run.parent, run.name).values()))
    except (ValueError, KeyError, OSError):
        return None


def is_undamaged(torture, run):
    return subprocess.run([torture.program, "fsck", str(run)], capture_output=True).returncode == 0


def kill_changed_sweeps(torture, wanted):
    """`wanted` kills of sweeps that replace, and as many of sweeps that adopt."""
    for kind in (Replacing, Adopting):
        kill_again_and_again(kind(torture), wanted, kind.kill)
