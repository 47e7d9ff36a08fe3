#!/usr/bin/env python3
"""Trains a small sweep with repeats and compares `sweep show --effects` with statsmodels on the same results.

  effects_test.py --sweep PROGRAM --file SWEEP.json --venv VENV

VENV is made with statsmodels from PyPI if it is missing; without it the test is skipped.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support/python"))
from environments import has_modules, make_venv, skip  # noqa: E402

# Reads {"rows": [...], "formula": ...}, prints the table of the analysis of variance by term.
ANALYSE = """
import json, sys
import pandas
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm
given = json.load(sys.stdin)
table = anova_lm(ols(given["formula"], pandas.DataFrame(given["rows"])).fit(), typ=2)
print(json.dumps({term: list(row) for term, row in zip(table.index, table[["sum_sq", "df", "F", "PR(>F)"]].to_numpy())}))
"""


def differences(ours, theirs):
    for effect in ours["effects"]:
        term = ":".join(f"C({key})" for key in effect["keys"])
        for name, wanted in zip(("sum_squares", "degrees", "f", "p"), theirs[term]):
            if abs(effect[name] - wanted) > 1e-6 * max(abs(wanted), 1e-6):
                yield f"{term}: {name} is {effect[name]}, not {wanted}"
    if abs(ours["error"]["sum_squares"] - theirs["Residual"][0]) > 1e-9 or ours["error"]["degrees"] != theirs["Residual"][1]:
        yield f"the error is {ours['error']}, not {theirs['Residual']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("sweep", "file", "venv"):
        parser.add_argument("--" + name, required=True)
    arguments = parser.parse_args()
    python = make_venv(arguments.venv, "statsmodels")
    if not has_modules(python, "statsmodels"):
        skip("no statsmodels, which is installed from PyPI")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([arguments.sweep, arguments.file, "lr=0.01,0.003,0.001", "batch_size=50,100", "shuffle=true,false",
                        "num_workers=0", "device=cpu", "epochs=2", "repeats=2", "dataset.limit=500",
                        "dataset.validation=200", "name=s", "--logdir", directory], check=True, capture_output=True)
        sweep = Path(directory) / "s"
        runs = json.loads((sweep / "results.json").read_text())["runs"]
        rows = [{**{key: str(value) for key, value in run["params"].items()},
                 "value": run["epochs"][-1]["validation_loss"]} for run in runs]
        shown = subprocess.run([arguments.sweep, "show", sweep, "--effects", "--metric", "validation_loss", "--json"],
                               check=True, capture_output=True, text=True).stdout
    given = {"rows": rows, "formula": "value ~ C(lr) * C(batch_size) * C(shuffle)"}
    theirs = json.loads(subprocess.run([python, "-c", ANALYSE], input=json.dumps(given), check=True,
                                       capture_output=True, text=True).stdout)
    problems = list(differences(json.loads(shown), theirs))
    print("\n".join(problems) if problems else f"{len(theirs)} terms agree")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
