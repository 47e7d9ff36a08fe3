#!/usr/bin/env python3
"""Power cuts in a sweep of many short programs, whose files are synced with their whole file system.

  short_program_cuts.py --program PROGRAM --shim LIBTORTURE_SHIM

The changes to files of a recorded sweep are replayed up to some point, see power_cuts.py. The same command then has
to come to the same end, and what was on the disk when it ended is not run again.
"""

import os
import random
import sys

import power_cuts
import starts
from torture_sweep import records_of

RUNS = 40
CUTS = 9


def words(logdir):
    runs = ",".join(map(str, range(RUNS)))
    # What has run says so outside of the sweep's directory.
    return [f"x={runs}", "--name", "s", "--logdir", logdir, "--jobs", "2", "--quiet", "--", "sh", "-c",
            'echo {x} >> ran; echo "{\\"step\\": 1, \\"loss\\": {x}}" >> $SWEEP_METRICS']


class ShortPrograms(starts.Starts):
    def run(self, logdir, what, **variables):
        """The numbers of the runs that were run."""
        (self.directory / "ran").write_text("")
        self.end(self.launch(words(logdir), environment=os.environ | variables), what, 0)
        return sorted(map(int, (self.directory / "ran").read_text().split()))

    def check(self, logdir, what):
        records = records_of(self.directory / logdir / "s")
        for x in range(RUNS):
            record = records[f"x={x}"]
            self.expect(f"{what}: x={x} is {record['status']} with {record['epochs']}",
                        record["status"] == "completed" and [epoch["loss"] for epoch in record["epochs"]] == [x])

    def cut(self, log, number, end, chance):
        logdir, fates, count = f"cut{number}", power_cuts.FATES[number % len(power_cuts.FATES)], len(log.times)
        # At its end all is safe, whatever becomes of the rest.
        fates = ("none", "none") if end == count else fates
        what = f"cut at {end} of {count}, {fates}"
        log.replay(end, fates, chance, self.directory / "recorded", self.directory / logdir)
        ran = self.run(logdir, what)
        self.expect(f"{what}: {ran} were run then", len(set(ran)) == len(ran) and not (end == count and ran))
        self.check(logdir, what)


def play(arguments, directory):
    programs = ShortPrograms(arguments.program, directory)
    ran = programs.run("recorded", "recorded", LD_PRELOAD=os.path.abspath(arguments.shim), SWEEP_WRITE_LOG=str(directory / "log"),
                       SWEEP_WRITE_LOG_DIR=str(directory))
    programs.expect("the recorded sweep has not run each once", ran == list(range(RUNS)))
    log, chance = power_cuts.WriteLog(directory / "log"), random.Random(arguments.seed)
    count = len(log.times)
    for number, end in enumerate([count, *(chance.randrange(count) for _ in range(CUTS - 1))]):
        programs.cut(log, number, end, chance)
    print(f"{CUTS} power cuts in {count} changes to files")
    return programs.found


if __name__ == "__main__":
    sys.exit(starts.main(__doc__, play, shim=""))
