"""SIGKILL of a sweep that replaces finished runs, or that gives them other names because the sweep file has another axis.

After every kill, each of the finished runs is whole: the old one, in its directory or set aside, or the new one. Then the
same command goes on to the end.
"""

import json
import re
import shutil
import signal
import subprocess
import time

from kills import kill
from torture_sweep import bits_of

MOST_KILLS = 4  # of one sweep, before it may go on to its end
REPLACED = re.compile(r"\.replaced-\d+$")


def training_of(record):
    """What a run's training left, which no second training would give: its times are in it."""
    run = json.loads(record.read_text())
    return run["status"], json.dumps(run["epochs"]), json.dumps(run["seconds"])


class Replacing:
    """Every run is trained again with another seed."""
    words = ("seed=4", "--replace")

    def __init__(self, torture):
        self.torture = torture
        code, _, err = torture.start("replaced", words=self.words)
        if code != 0:
            torture.problem(f"a sweep with another seed ended with {code}:\n{err}")
        self.new = bits_of(torture.sweep("replaced"))

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
        if bits_of(self.torture.sweep(logdir)) != self.new:
            return "the end is not that of the new runs"
        aside = [path.name for path in self.torture.sweep(logdir).iterdir() if REPLACED.search(path.name)]
        return f"{aside} were left behind" if aside else None


class Adopting:
    """Another axis; all finished runs have one of its values."""
    words = ("shuffle=true,false",)

    def __init__(self, torture):
        self.torture = torture
        code, _, err = torture.start("adopted", words=self.words)
        if code != 0:
            torture.problem(f"a sweep with another axis ended with {code}:\n{err}")
        self.new = bits_of(torture.sweep("adopted"))
        self.old = {training_of(record) for record in torture.sweep("undisturbed").glob("*/run.json")}

    def lost(self, logdir):
        records = self.torture.sweep(logdir).glob("*/run.json")
        return self.old - {training_of(record) for record in records if is_undamaged(self.torture, record.parent)}

    def end_problem(self, logdir):
        if bits_of(self.torture.sweep(logdir)) != self.new:
            return "the end is not that of a sweep with that axis"
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
        begin = time.monotonic()
        changed = kind(torture)
        struck = sweeps = 0
        while struck < wanted:
            sweeps += 1
            logdir = f"{kind.__name__.lower()}{sweeps}"
            shutil.copytree(torture.directory / "undisturbed", torture.directory / logdir)
            for attempt in range(torture.random.randint(1, MOST_KILLS)):
                hit, how, (code, _, err) = kill(torture, logdir, ("parent", "both"), changed.words)
                struck += hit
                what = f"{logdir}, start {attempt + 1} ({how})"
                if code not in (-signal.SIGKILL, 0, 1):
                    torture.problem(f"{what}: exit code {code}\n{err[-1000:]}")
                if changed.lost(logdir):
                    torture.problem(f"{what}: neither the old nor the new run is whole: {sorted(changed.lost(logdir))}")
                if code == 0:
                    break
            code, _, err = torture.start(logdir, words=changed.words)
            problem = f"ended with {code}:\n{err[-1000:]}" if code != 0 else changed.end_problem(logdir)
            if not problem and not is_undamaged(torture, torture.sweep(logdir)):
                problem = "fsck finds damage"
            if problem:
                torture.problem(f"{logdir}: the same command then: {problem}")
            else:
                torture.forget(logdir)
        print(f"{kind.__name__}: {struck} kills of {sweeps} sweeps in {time.monotonic() - begin:.0f} s", flush=True)
