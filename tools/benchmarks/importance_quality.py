#!/usr/bin/env python3
"""Compares the importances of `sweep show --effects` with Optuna's PED-ANOVA and with the truth, on functions whose answer is
known: the divergence of the best tenth from all, of 200,000 random points.

  importance_quality.py --program build/bin/sweep [--venv FOLDER] [--seeds N] [--results PATH] [--commit NAME]

PATH.md and PATH.json are written; without --results the table is printed only. Optuna is installed into FOLDER, by default
build/optuna, if it is not there.
"""
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import machine
import search_functions
from search_quality import ROOT, optuna_python

EXACT, CELLS = 200_000, 50
TRIALS = (100, 1000)
# Adds trials to a study, prints its importances. Reads [{"distributions": …, "points": [[params, value], …]}, …].
OPTUNA = """
import json, sys, warnings
import optuna
warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
found = []
for study_of in json.load(sys.stdin):
    study = optuna.create_study()
    distributions = {name: optuna.distributions.CategoricalDistribution(given["values"]) if "values" in given
                     else (optuna.distributions.IntDistribution if given["integer"] else optuna.distributions.FloatDistribution)(
                         given["low"], given["high"], log=given["log"])
                     for name, given in study_of["distributions"].items()}
    study.add_trials([optuna.trial.create_trial(params=params, value=value, distributions={name: distributions[name] for name in params})
                      for params, value in study_of["points"]])
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    found.append(optuna.importance.get_param_importances(study, evaluator=evaluator))
print(json.dumps({"version": optuna.__version__, "importances": found}))
"""


class RandomAsk:
    """Draws values, and keeps them and where each is in its range, from 0 to 1."""

    def __init__(self, generator, distributions):
        self.generator, self.distributions, self.params, self.places = generator, distributions, {}, {}

    def real(self, name, low, high, log=False):
        place = self.places[name] = self.generator.random()
        self.distributions[name] = {"low": low, "high": high, "log": log, "integer": False}
        self.params[name] = low * (high / low) ** place if log else low + (high - low) * place
        return min(high, max(low, self.params[name]))

    def integer(self, name, low, high, log=False):
        self.distributions[name] = {"low": low, "high": high, "log": log, "integer": True}
        ends = [math.log(low - 0.5), math.log(high + 0.5)] if log else [low - 0.5, high + 0.5]
        number = ends[0] + (ends[1] - ends[0]) * self.generator.random()
        self.params[name] = min(high, max(low, round(math.exp(number) if log else number)))
        self.places[name] = ("value", self.params[name])
        return self.params[name]

    def choice(self, name, values):
        self.distributions[name] = {"values": values}
        self.params[name] = self.generator.choice(values)
        self.places[name] = ("value", self.params[name])
        return self.params[name]


def linear(ask):
    """x carries 90 % of the variance."""
    x, y = ask.real("x", 0, 1), ask.real("y", 0, 1)
    ask.real("nothing", 0, 1)
    return 3 * x + y


def logarithmic(ask):
    """A learning rate as it often is; the share of its logarithm."""
    lr = math.log10(ask.real("lr", 1e-5, 1, log=True))
    return (lr + 2.5) ** 2 + 2 * ask.real("dropout", 0, 0.9) + 0.3 * ask.choice("layers", (1, 2, 3, 4))


FUNCTIONS = (("3 x + y", linear), ("logarithmic", logarithmic),
             *((name, evaluate) for name, _, evaluate in search_functions.FUNCTIONS if name in ("Branin", "mixed", "conditional")))


def drawn(evaluate, count, seed):
    generator, distributions, points = random.Random(seed), {}, []
    for _ in range(count):
        ask = RandomAsk(generator, distributions)
        value = evaluate(ask)
        points.append((value, ask.params, ask.places))
    return distributions, points


def divergence(places, best):
    """Of those `best` from all `places`: numbers from 0 to 1, which are counted in cells, or values."""
    def count(of):
        counts = {}
        for place in of:
            cell = place if isinstance(place, tuple) else int(place * CELLS)
            counts[cell] = counts.get(cell, 0) + 1
        return counts
    everywhere = count(places)
    return sum((there / len(best)) ** 2 / (everywhere[cell] / len(places)) for cell, there in count(best).items()) - 1


def exact_shares(evaluate):
    """PED-ANOVA by its definition; see runmanager/answers/importances.cpp for settings that not all points have."""
    distributions, points = drawn(evaluate, EXACT, 0)
    points.sort(key=lambda point: point[0])
    best, shares = points[:EXACT // 10], {}
    for name in distributions:
        places = [place[name] for *_, place in points if name in place]
        of_best = [place[name] for *_, place in best if name in place]
        weight = (len(of_best) / len(best)) ** 2 / (len(places) / len(points))
        shares[name] = max(0, divergence(places, of_best)) * weight if of_best else 0
    return {name: share / sum(shares.values()) for name, share in shares.items()}


def own_shares(program, points):
    with tempfile.TemporaryDirectory() as directory:
        names = [f"r{number}" for number in range(len(points))]
        Path(directory, "sweep.json").write_text(json.dumps(
            {"name": "s", "runs": names, "search": {"method": "random", "metric": "Loss/train"}}))
        for name, (value, params, _) in zip(names, points):
            Path(directory, name).mkdir()
            Path(directory, name, "run.json").write_text(json.dumps({
                "name": name, "status": "completed", "params": params, "metrics": {}, "epochs": [
                    {"epoch": 1, "loss": value, "accuracy": None, "number_correct": None, "epoch_seconds": 1, "run_seconds": 1,
                     "images_per_second": 1, "data_wait_seconds": 0}],
                "seconds": {"run": None, "setup": None, "logging": 0}, "error": None, "device": "cpu", "jobs": 1, "config": None, "provenance": None, "placement": None, "started": None, "ended": None}))
        done = subprocess.run([program, "show", directory, "--effects", "--json"], check=True, capture_output=True, text=True)
    return {setting["key"]: setting["share"] for setting in json.loads(done.stdout)["importances"]}


def mean_shares(found, names):
    return {name: statistics.mean(shares.get(name, 0) for shares in found) for name in names}


def compare(arguments):
    about, columns, errors = machine.describe(), {}, {}
    python = optuna_python(arguments.venv)
    exact = {title: exact_shares(evaluate) for title, evaluate in FUNCTIONS}
    for trials in TRIALS:
        for title, evaluate in FUNCTIONS:
            studies = [drawn(evaluate, trials, seed) for seed in range(1, arguments.seeds + 1)]
            given = [{"distributions": distributions, "points": [[params, value] for value, params, _ in points]}
                     for distributions, points in studies]
            done = subprocess.run([python, "-c", OPTUNA], input=json.dumps(given), check=True, stdout=subprocess.PIPE, text=True)
            optuna = json.loads(done.stdout)
            for name, found in (("sweep", [own_shares(arguments.program, points) for _, points in studies]),
                                ("Optuna", optuna["importances"])):
                columns[name, trials, title] = mean_shares(found, exact[title])
                errors[name, trials, title] = statistics.mean(sum(abs(shares.get(key, 0) - share) for key, share in exact[title].items())
                                                              for shares in found) / 2
            print(title, trials, file=sys.stderr, flush=True)
    kinds = [(name, trials) for trials in TRIALS for name in ("sweep", "Optuna")]
    head = "".join(f" {name}, {trials} trials |" for name, trials in kinds)
    rows = [f"| function | setting | exact |{head}", "|---|---|---|" + "---|" * len(kinds)]
    for title, shares in exact.items():
        for name, share in sorted(shares.items(), key=lambda item: -item[1]):
            rows.append(f"| {title} | {name} | {share:.1%} |" + "".join(f" {columns[*kind, title][name]:.1%} |" for kind in kinds))
        rows.append(f"| | *share in the wrong place* | |" + "".join(f" {errors[*kind, title]:.1%} |" for kind in kinds))
    machine.tell(
        arguments, about, "Importances and Optuna's",
        f"sweep {arguments.commit}, Optuna {optuna['version']} with its PedAnovaImportanceEvaluator. Means over "
        f"seeds 1 to {arguments.seeds} of the shares found in the same random trials. *Exact* is the definition, the divergence of the "
        f"best tenth of {EXACT:,} points. The share in the wrong place is half the sum of all differences from it, of a single seed.",
        rows, {"optuna": optuna["version"]}, exact=exact,
        shares=[{"program": name, "trials": trials, "function": title, "mean": shares, "misplaced": errors[name, trials, title]}
                for (name, trials, title), shares in columns.items()])


def main():
    parser = machine.parser_of(__doc__)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--venv", type=Path, default=ROOT / "build/optuna")
    parser.add_argument("--seeds", type=int, default=10)
    compare(parser.parse_args())


if __name__ == "__main__":
    main()
