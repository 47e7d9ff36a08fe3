#!/usr/bin/env python3
"""Compares searches with Optuna's: the least value that each finds, and what a suggestion takes.

  search_quality.py --program SEARCH_BENCHMARK [--venv FOLDER] [--trials N] [--seeds N] [--seed FIRST] [--results PATH]
                    [--commit NAME]

PATH.md and PATH.json are written; without --results the table is printed only. Optuna is installed into FOLDER, by default
build/optuna, if it is not there.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

import machine
import search_functions

ROOT = Path(__file__).resolve().parents[2]
AFTER = 1000  # observations, of the second time
TIMED = 20    # suggestions then
SAMPLERS = {
    "Optuna": {},
    "Optuna, independent": {"multivariate": False},
    "Optuna, groups": {"multivariate": True, "group": True},
}


class OptunaAsk:
    def __init__(self, trial):
        self.trial = trial

    def real(self, name, low, high, log=False):
        return self.trial.suggest_float(name, low, high, log=log)

    def integer(self, name, low, high, log=False):
        return self.trial.suggest_int(name, low, high, log=log)

    def choice(self, name, values):
        return self.trial.suggest_categorical(name, values)


class PointAsk:
    """Answers with the values of a point of search_benchmark, in the order of its dimensions, in which a dimension that does
    not exist is none: no function asks for it."""

    def __init__(self, point):
        self.values = [value for value in point if value is not None]
        self.asked = 0

    def real(self, *_, **__):
        self.asked += 1
        return self.values[self.asked - 1]

    def integer(self, *_, **__):
        return int(self.real())

    def choice(self, _, values):
        return values[self.integer()]


def optuna_runs(seed, seeds, trials, options):
    """Runs in Optuna's venv. Like the output of search_benchmark, but for the points."""
    import optuna
    import warnings

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    functions = []
    for name, minimum, evaluate in search_functions.FUNCTIONS:
        runs = []
        for number in range(seed, seed + seeds):
            study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=number, **options))
            milliseconds = 0
            for trial_number in range(trials):
                start = time.process_time()
                trial = study.ask()
                value = evaluate(OptunaAsk(trial))  # which takes microseconds beside its suggestions
                if trial_number >= trials // 2:
                    milliseconds += 1e3 * (time.process_time() - start)
                study.tell(trial, value)
            runs.append({"seed": number, "best": study.best_value, "ms": milliseconds / (trials - trials // 2)})
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
        study.optimize(lambda trial: evaluate(OptunaAsk(trial)), n_trials=AFTER)
        study.sampler = optuna.samplers.TPESampler(seed=seed, **options)
        start = time.process_time()
        for _ in range(TIMED):
            evaluate(OptunaAsk(study.ask()))
        functions.append({"name": name, "minimum": minimum, "runs": runs,
                          "ms_after": 1e3 * (time.process_time() - start) / TIMED})
        print(f"{name} with {options}", file=sys.stderr, flush=True)
    return {"version": optuna.__version__, "functions": functions}


def own_runs(arguments, method):
    done = subprocess.run([arguments.program, "--method", method, "--trials", str(arguments.trials), "--seed",
                           str(arguments.seed), "--seeds", str(arguments.seeds), "--after", str(AFTER)],
                          check=True, capture_output=True, text=True)
    result = json.loads(done.stdout)
    for function, (name, minimum, evaluate) in zip(result["functions"], search_functions.FUNCTIONS, strict=True):
        if function["name"] != name or function["minimum"] != minimum:
            sys.exit(f"{name} is another function in {arguments.program}")
        for run in function["runs"]:
            if not math.isclose(evaluate(PointAsk(run["point"])), run["best"], rel_tol=1e-9, abs_tol=1e-12):
                sys.exit(f"{name} has another value in {arguments.program}: {run}")
    return result


def optuna_python(folder):
    python = folder / "bin/python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "optuna"], check=True)
    return python


def table(columns):
    """Medians of what the least value is above the minimum."""
    yield "| above the minimum | " + " | ".join(columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for number, (name, minimum, _) in enumerate(search_functions.FUNCTIONS):
        medians = [statistics.median(run["best"] - minimum for run in result["functions"][number]["runs"])
                   for result in columns.values()]
        yield f"| {name} | " + " | ".join(f"{value:.3g}" for value in medians) + " |"
    times = {"ms of the processor per suggestion": lambda function: statistics.mean(run["ms"] for run in function["runs"]),
             f"ms, after {AFTER:,} trials": lambda function: function["ms_after"]}
    for title, time_of in times.items():
        yield f"| {title} | " + " | ".join(f"{statistics.mean(map(time_of, result['functions'])):.3g}"
                                           for result in columns.values()) + " |"


def compare(arguments):
    about = machine.describe()
    python = optuna_python(arguments.venv)
    columns = {"sweep, tpe": own_runs(arguments, "tpe"), "sweep, random": own_runs(arguments, "random")}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for name in SAMPLERS:
        done = subprocess.run([python, __file__, "--optuna", name, "--trials", str(arguments.trials), "--seed",
                               str(arguments.seed), "--seeds", str(arguments.seeds)],
                              check=True, stdout=subprocess.PIPE, text=True, env=environment)
        columns[name] = json.loads(done.stdout)
    version = columns["Optuna"]["version"]
    text = "\n".join([
        f"# Searches beside Optuna's, {machine.now():%Y-%m-%d}", "",
        f"{machine.sentence(about)}; sweep {arguments.commit}, Optuna {version} with its TPESampler: as it is by default, with "
        f"`multivariate=False`, and with `group=True`. Medians over seeds {arguments.seed} to "
        f"{arguments.seed + arguments.seeds - 1} of what the best of {arguments.trials} trials is above the minimum; means "
        f"over the functions of the time of a suggestion, in trials {arguments.trials // 2 + 1} to {arguments.trials} and "
        f"after {AFTER:,} trials. The functions are those of search_functions.py.", "", *table(columns), ""])
    print(text)
    if arguments.results:
        machine.write_results(arguments.results, text, {
            "date": machine.now().strftime("%Y-%m-%dT%H:%M:%SZ"), "machine": about,
            "versions": {"sweep": arguments.commit, "optuna": version}, "trials": arguments.trials, "columns": columns})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path)
    parser.add_argument("--venv", type=Path, default=ROOT / "build/optuna")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--optuna", choices=SAMPLERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.optuna:
        print(json.dumps(optuna_runs(arguments.seed, arguments.seeds, arguments.trials, SAMPLERS[arguments.optuna])))
    elif arguments.program is None:
        parser.error("--program is missing")
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
