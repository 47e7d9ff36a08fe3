#!/usr/bin/env python3
"""Power cuts in a sweep of many short programs, whose files are synced with their whole file system.

  short_program_cuts.py --program PROGRAM --shim LIBWRITE_LOG_SHIM

The changes to files of a recorded sweep are replayed up to some point, see power_cuts.py. The same command then has
to come to the same end, and what was on the disk when it ended is not run again.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import power_cuts

RUNS = 40
CUTS = 9


def command(program, logdir):
    runs = ",".join(map(str, range(RUNS)))
    # What has run says so outside of the sweep's directory.
    return [program, f"x={runs}", "--name", "s", "--logdir", logdir, "--jobs", "2", "--quiet", "--", "sh", "-c",
            'echo {x} >> ran; echo "{\\"step\\": 1, \\"loss\\": {x}}" >> $SWEEP_METRICS']


def start(arguments, folder, logdir, environment=None):
    """The numbers of the runs that were run."""
    (folder / "ran").write_text("")
    subprocess.run(command(arguments.program, logdir), cwd=folder, env=os.environ | (environment or {}), stdout=subprocess.DEVNULL,
                   check=True, timeout=120)
    return sorted(map(int, (folder / "ran").read_text().split()))


def problems_of(folder, logdir):
    for x in range(RUNS):
        run = folder / logdir / "s" / f"x={x}"
        record = json.loads((run / "run.json").read_text())
        if record["status"] != "completed" or [epoch["loss"] for epoch in record["epochs"]] != [x]:
            yield f"{run.name} is {record['status']} with {record['epochs']}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=os.path.abspath)
    parser.add_argument("--shim", required=True, type=os.path.abspath)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp()).resolve()
    problems = []
    try:
        environment = {"LD_PRELOAD": arguments.shim, "SWEEP_WRITE_LOG": str(folder / "log"), "SWEEP_WRITE_LOG_DIR": str(folder)}
        if start(arguments, folder, "recorded", environment) != list(range(RUNS)):
            problems.append("the recorded sweep has not run each once")
        log = power_cuts.WriteLog(folder / "log")
        chance = random.Random(1)
        count = len(log.times)
        for number, end in enumerate([count, *(chance.randrange(count) for _ in range(CUTS - 1))]):
            logdir, fates = f"cut{number}", power_cuts.FATES[number % len(power_cuts.FATES)]
            # At its end all is safe, whatever becomes of the rest.
            fates = ("none", "none") if end == count else fates
            log.replay(end, fates, chance, folder / "recorded", folder / logdir)
            ran = start(arguments, folder, logdir)
            if len(set(ran)) != len(ran) or (end == count and ran):
                problems.append(f"cut at {end} of {count}, {fates}: {ran} were run then")
            problems += [f"cut at {end} of {count}, {fates}: {problem}" for problem in problems_of(folder, logdir)]
        print(f"{CUTS} power cuts in {count} changes to files")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
