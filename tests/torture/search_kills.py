#!/usr/bin/env python3
"""Kills a search with all of its workers at random times, again and again: it ends with the trials and bits of one that was left
alone.

  search_kills.py --program SWEEP [--kills N] [--seed N] [METHOD…]
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torture_sweep


def killed_searches(program, folder, method, wanted, draw):
    """Yields what is wrong with searches that were killed so often in all."""
    sweep = json.loads((folder / "torture.json").read_text())
    (folder / f"{method}.json").write_text(json.dumps(torture_sweep.search_sweep(sweep, method)))

    def start(logdir):
        return subprocess.Popen([program, f"{method}.json", "--logdir", logdir, "--quiet", "--jobs", "2"], cwd=folder,
                                stdout=subprocess.DEVNULL)

    begin = time.monotonic()
    if start("whole").wait() != 0:
        yield "failed where nothing disturbs it"
        return
    seconds, oracle = time.monotonic() - begin, torture_sweep.bits_of(folder / "whole" / method)
    kills = 0
    for number in range(wanted):
        if kills >= wanted:
            break
        # It needs longer than between two kills, but not for ever.
        for limit in (draw.uniform(0.1, 0.4) * seconds * (1 + attempt / 20) for attempt in range(200)):
            process = start(f"killed{number}")
            try:
                code = process.wait(timeout=limit)
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                kills += 1
        if code != 0:
            yield f"exit code {code} in search {number}"
        for problem in torture_sweep.problems_of_end(program, folder / f"killed{number}" / method, oracle):
            yield f"search {number}: {problem}"
    print(f"{method}: {len(oracle)} trials, {kills} kills in {number + 1} searches", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="default: all")
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    found = []
    for method in arguments.methods or torture_sweep.SEARCHES:
        with tempfile.TemporaryDirectory() as folder:
            torture_sweep.write_data(Path(folder), small=False)
            found += [f"{method}: {problem}" for problem in killed_searches(
                arguments.program.resolve(), Path(folder), method, arguments.kills, random.Random(arguments.seed))]
    print(*(f"PROBLEM: {problem}" for problem in found), sep="\n", end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
