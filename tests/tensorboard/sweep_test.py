#!/usr/bin/env python3
"""Runs small sweeps with the real program, and checks what TensorBoard shows of them, with both loaders.

  sweep_test.py --sweep PROGRAM --file SWEEP.json --venv VENV [--runs N key=value ...]
"""

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import check_sweep
from server import needed_venv

OVERRIDES = ["lr=0.01,0.001", "batch_size=100,1000", "shuffle=true,false", "num_workers=0", "device=cuda,cpu", "epochs=2",
             "dataset.limit=3000", "dataset.validation=500"]
# Two repeats of each combination, so that there is a directory with their means next to the sweep's.
REPEATED = ["lr=0.01,0.001", "batch_size=100", "shuffle=true", "num_workers=0", "device=cpu", "epochs=2", "repeats=2",
            "dataset.limit=1000", "dataset.validation=200"]


def falsify(directory):
    """Changes one loss in results.csv."""
    path = directory / "results.csv"
    rows = list(csv.reader(path.open(newline="")))
    column = rows[0].index("loss")
    row = next(row for row in rows[1:] if row[column])
    row[column] = str(float(row[column]) * 1.01)
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--file", required=True)
    parser.add_argument("--venv")
    parser.add_argument("--runs", type=int, help="directories that the sweep with these overrides leaves")
    parser.add_argument("overrides", nargs="*", help="of the sweep file; default: all kinds of axes, and repeats")
    arguments = parser.parse_args()
    venv = needed_venv(arguments.venv)
    failed = False
    sweeps = ((OVERRIDES, 16), (REPEATED, 4))
    if arguments.overrides:
        sweeps = ((arguments.overrides, arguments.runs),)
    for overrides, runs in sweeps:
        with tempfile.TemporaryDirectory() as directory:
            command = [arguments.sweep, arguments.file, *overrides, "--logdir", directory]
            program = subprocess.run(command, capture_output=True, text=True)
            if program.returncode != 0:
                print(program.stderr[-3000:])
                print(f"the sweep ended with {program.returncode}")
                return 1
            (sweep,) = [path for path in Path(directory).iterdir() if (path / "sweep.json").exists()]
            found = len([path for path in sweep.iterdir() if path.is_dir()])
            if found != runs:
                print(f"the sweep has {found} runs, not {runs}")
                failed = True
            for fast in (True, False):
                for problem in check_sweep.problems(sweep, venv, fast):
                    print(f"{'fast' if fast else 'Python'} loader: {problem}")
                    failed = True
            falsify(sweep)
            if len(check_sweep.problems(sweep, venv, True)) != 1:
                print("a wrong number in results.csv was not found, so the checks above are worth nothing")
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
