#!/usr/bin/env python3
"""Compares searches with Optuna's: the least value, or the front of two goals, that each finds, and what a suggestion takes.

  search_quality.py --program SEARCH_BENCHMARK [--venv FOLDER] [--trials N] [--seeds N] [--seed FIRST] [--results PATH]
                    [--commit NAME] [--goals] [--table FILE] [--sampler NAME …]
  search_quality.py --sweep SWEEP [--rungs] [--seeds N] [--seed FIRST] [--results PATH] [--commit NAME]

With --goals the functions are those of two goals, and the measured one of --table, see search_functions.py. --sampler names
those of Optuna or SMAC3. GPSampler needs PyTorch and BlackBoxFacade smac, which have to be in FOLDER; both take minutes.

PATH.md and PATH.json are written; without --results the table is printed only. Optuna is installed into FOLDER, by default
build/optuna, if it is not there. The second form compares populations with random searches that train as many epochs, on
Fashion-MNIST, or with --rungs searches that end most trials early with random searches that end none.
"""
import argparse
import importlib.metadata
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import machine
import search_functions

ROOT = Path(__file__).resolve().parents[2]
AFTER = 1000  # observations, of the second time
TIMED = 20    # suggestions then
SAMPLERS = {
    "Optuna": ("TPESampler", {}),
    "Optuna, independent": ("TPESampler", {"multivariate": False}),
    "Optuna, groups": ("TPESampler", {"multivariate": True, "group": True}),
    "Optuna, GP": ("GPSampler", {}),
    "Optuna, NSGA-II": ("NSGAIISampler", {}),
    "Optuna, NSGA-II of 20": ("NSGAIISampler", {"population_size": 20}),
    "SMAC3, GP": ("BlackBoxFacade", {}),
}
OF_ONE_GOAL, OF_TWO_GOALS = ["Optuna", "Optuna, independent", "Optuna, groups"], ["Optuna", "Optuna, NSGA-II", "Optuna, NSGA-II of 20"]

MEMBERS, EPOCHS, INTERVAL, REDUCTION = 8, 20, 2, 4
SMALL = {"name": "fashion-mnist", "limit": 4000, "validation": 2000}
DENSE = {"name": "mlp", "layers": [
    {"name": "flatten", "type": "flatten"}, {"name": "fc1", "type": "linear", "out_features": 64},
    {"name": "relu1", "type": "relu"}, {"name": "drop", "type": "dropout", "p": 0.5},
    {"name": "out", "type": "linear", "out_features": 10}]}
# Trainings that are better with a schedule than with the best constant.
TASKS = {
    "CNN, sgd: lr, momentum": {
        "dataset": SMALL, "network": str(ROOT / "sweeps/networks/fashion-cnn.json"), "optimizer": "sgd", "batch_size": 20,
        "params": {"lr": {"log_uniform": [0.001, 1]}, "momentum": {"uniform": [0.1, 0.99]}}},
    "MLP, adamw: lr, weight_decay, dropout": {
        "dataset": SMALL, "network": DENSE, "optimizer": "adamw", "batch_size": 20,
        "params": {"lr": {"log_uniform": [0.0001, 0.1]}, "weight_decay": {"log_uniform": [0.001, 1]},
                   "network.layers.drop.p": {"uniform": [0, 0.8]}}},
}
METHODS = {"population": {"interval": INTERVAL, "reduction": REDUCTION}, "random": {}}
RUNGS, RUNG_TRIALS, RUNG_EPOCHS = {
    "random": {}, "tpe": {}, "halving": {"reduction": 3}, "hyperband": {"reduction": 3}, "asha": {"reduction": 3, "at_once": 4},
    "asha, tpe": {"method": "asha", "reduction": 3, "at_once": 4, "sampler": "tpe"}}, 27, 9


class OptunaAsk:
    def __init__(self, trial):
        self.trial = trial

    def real(self, name, low, high, log=False):
        return self.trial.suggest_float(name, low, high, log=log)

    def integer(self, name, low, high, log=False):
        return self.trial.suggest_int(name, low, high, log=log)

    def choice(self, name, values):
        return self.trial.suggest_categorical(name, values)


class OwnSampler:
    """The sampler of search_benchmark, `program`, which is running."""

    def __init__(self, program, evaluate, method, seed, earlier=()):
        self.program, self.evaluate = program, evaluate
        self.dimensions = search_functions.dimensions_of(evaluate)
        self.next = {"dimensions": [self.told(dimension) for dimension in self.dimensions.values()], "method": method, "seed": seed,
                     "earlier": earlier}

    def told(self, dimension):
        names = list(self.dimensions)
        when = [[names.index(parent), [self.number(parent, value) for value in needed]]
                for parent, needed in dimension["when"].items()]
        if "values" not in dimension:
            return {**dimension, "when": when}
        values = dimension["values"]
        is_ordered = len(values) > 2 and all(isinstance(value, int) for value in values)
        return {"choices": len(values), "ordered": is_ordered, "when": when}

    def number(self, name, value):
        """Of a value in a point: the index of a choice."""
        return self.dimensions[name]["values"].index(value) if "values" in self.dimensions[name] else value

    def suggest(self):
        """The next point, and the milliseconds that it took; no point if there is none."""
        print(json.dumps(self.next), file=self.program.stdin, flush=True)
        answer = json.loads(self.program.stdout.readline())
        self.next = None
        return answer["point"], answer["ms"]

    def tell(self, point):
        """Returns the values at the point, which the sampler then knows."""
        answers = {}
        for (name, dimension), number in zip(self.dimensions.items(), point):
            if number is not None:
                is_whole = "values" in dimension or dimension["integer"]
                answers[name] = int(number) if is_whole else number
                if "values" in dimension:
                    answers[name] = dimension["values"][int(number)]
        value = self.evaluate(search_functions.Answers(answers))
        self.next = list(value) if isinstance(value, tuple) else [value]
        return self.next


def functions_of(arguments):
    """(name, what is least or largest, evaluate) of each."""
    table = search_functions.Table(arguments.table) if arguments.table else None
    if not arguments.goals:
        measured = ((table.name, min(value for value, _ in table.values), lambda ask: table(ask)[0]),) if table else ()
        return search_functions.FUNCTIONS + measured
    functions = search_functions.TWO_GOALS + (((table.name, table),) if table else ())
    return tuple((name, evaluate.largest, evaluate) for name, evaluate in functions)


def lacking(evaluate, values):
    return evaluate.largest - search_functions.hypervolume([tuple(pair) for pair in values], evaluate.corner)


def optuna_runs(arguments):
    """Runs in Optuna's venv. Like the output of search_benchmark, except for the points."""
    import optuna
    import warnings

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    functions = []
    seed, trials = arguments.seed, arguments.trials
    kind, options = SAMPLERS[arguments.optuna]
    directions = ["minimize"] * (2 if arguments.goals else 1)
    for name, minimum, evaluate in functions_of(arguments):
        runs = []
        for number in range(seed, seed + arguments.seeds):
            study = optuna.create_study(directions=directions, sampler=getattr(optuna.samplers, kind)(seed=number, **options))
            milliseconds = 0
            for trial_number in range(trials):
                start = time.process_time()
                trial = study.ask()
                value = evaluate(OptunaAsk(trial))  # which takes microseconds, far less than its suggestions
                if trial_number >= trials // 2:
                    milliseconds += 1e3 * (time.process_time() - start)
                study.tell(trial, value)
            best = lacking(evaluate, [trial.values for trial in study.trials]) if arguments.goals else study.best_value
            runs.append({"seed": number, "best": best, "ms": milliseconds / (trials - trials // 2)})
        print(f"{name} with {arguments.optuna}", file=sys.stderr, flush=True)
        functions.append({"name": name, "minimum": minimum, "runs": runs})
        if kind == "GPSampler":  # takes minutes
            continue
        study = optuna.create_study(directions=directions, sampler=optuna.samplers.RandomSampler(seed=seed))
        study.optimize(lambda trial: evaluate(OptunaAsk(trial)), n_trials=AFTER)
        study.sampler = getattr(optuna.samplers, kind)(seed=seed, **options)
        start = time.process_time()
        for _ in range(TIMED):
            evaluate(OptunaAsk(study.ask()))
        functions[-1]["ms_after"] = 1e3 * (time.process_time() - start) / TIMED
    return {"version": optuna.__version__, "functions": functions}


def smac_runs(arguments):
    """Also runs in Optuna's venv."""
    import search_smac
    version = importlib.metadata.version("smac")

    functions = []
    for name, minimum, evaluate in functions_of(arguments):
        runs = []
        for number in range(arguments.seed, arguments.seed + arguments.seeds):
            start = time.process_time()
            best = search_smac.best_of(evaluate, arguments.trials, number)
            runs.append({"seed": number, "best": best, "ms": 1e3 * (time.process_time() - start) / arguments.trials})
            print(f"{name} with SMAC3 {version}: {runs[-1]}", file=sys.stderr, flush=True)
        functions.append({"name": name, "minimum": minimum, "runs": runs})
    return {"version": version, "functions": functions}


def own_time_after(program, evaluate, method, seed):
    """Milliseconds per suggestion after AFTER trials of random points; nothing if there are not as many points."""
    random, earlier, milliseconds = OwnSampler(program, evaluate, "random", seed), [], []
    while len(earlier) < AFTER:
        point, _ = random.suggest()
        if point is None:
            return {}
        earlier.append((point, random.tell(point)))
    sampler = OwnSampler(program, evaluate, method, seed, earlier)
    for _ in range(TIMED):
        point, spent = sampler.suggest()
        if point is None:
            return {}
        milliseconds.append(spent)
    return {"ms_after": statistics.mean(milliseconds)}


def own_runs(arguments, method):
    functions = []
    with subprocess.Popen([arguments.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        for name, minimum, evaluate in functions_of(arguments):
            runs = []
            for seed in range(arguments.seed, arguments.seed + arguments.seeds):
                sampler, values, milliseconds = OwnSampler(program, evaluate, method, seed), [], []
                for _ in range(arguments.trials):
                    point, spent = sampler.suggest()
                    if point is None:
                        sys.exit(f"{name} has fewer than {arguments.trials} points")
                    values.append(sampler.tell(point))
                    milliseconds.append(spent)
                best = lacking(evaluate, values) if arguments.goals else min(values)[0]
                runs.append({"seed": seed, "best": best, "ms": statistics.mean(milliseconds[arguments.trials // 2:])})
            functions.append({"name": name, "minimum": minimum, "runs": runs,
                              **own_time_after(program, evaluate, method, arguments.seed)})
    return {"method": method, "trials": arguments.trials, "functions": functions}


def optuna_python(folder):
    python = folder / "bin/python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "optuna"], check=True)
    return python


def table(arguments, columns):
    """Medians of what the least value is above the minimum, or the hypervolume below the largest."""
    yield f"| {'hypervolume below the largest' if arguments.goals else 'above the minimum'} | " + " | ".join(columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for number, (name, minimum, _) in enumerate(functions_of(arguments)):
        least = 0 if arguments.goals else minimum
        medians = [statistics.median(run["best"] - least for run in result["functions"][number]["runs"])
                   for result in columns.values()]
        yield f"| {name} | " + " | ".join(f"{value:.3g}" for value in medians) + " |"
    times = {"ms of the processor per suggestion": lambda function: statistics.mean(run["ms"] for run in function["runs"]),
             f"ms, after {AFTER:,} trials": lambda function: function.get("ms_after", math.nan)}
    for title, time_of in times.items():
        means = [statistics.mean(map(time_of, result["functions"])) for result in columns.values()]
        yield f"| {title} | " + " | ".join("–" if math.isnan(mean) else f"{mean:.3g}" for mean in means) + " |"


def trained_runs(program, task, search, epochs, seed):
    """The records of a search on the task."""
    with tempfile.TemporaryDirectory() as folder:
        sweep = {**TASKS[task], "name": "s", "epochs": epochs, "seed": seed, "device": "cpu", "search": {**search, "seed": seed},
                 "log": {"histograms": False, "images": False, "graph": False, "predictions": False}}
        (Path(folder) / "s.json").write_text(json.dumps(sweep))
        subprocess.run([program, "s.json", "--quiet"], cwd=folder, stdout=subprocess.DEVNULL, check=False)
        return machine.run_records(Path(folder) / "runs/s")


def final_results(program, task, method, seed):
    """The best validation loss after the last epoch, and the test accuracy of that run."""
    runs = [run for run in trained_runs(program, task, {"method": method, "trials": MEMBERS, **METHODS[method]}, EPOCHS, seed)
            if run["status"] == "completed"]
    best = min(runs, key=lambda run: run["epochs"][-1]["validation_loss"])
    return {"seed": seed, "loss": best["epochs"][-1]["validation_loss"], "accuracy": best["metrics"]["test_accuracy"],
            "lineage": best["config"].get("lineage", []), "params": best["params"]}


def rung_results(program, task, method, seed):
    """The best validation loss of a trial that came to its end, and the epochs that all trials were trained."""
    search = {"method": method, **({} if method == "hyperband" else {"trials": RUNG_TRIALS}), **RUNGS[method]}
    runs = trained_runs(program, task, search, RUNG_EPOCHS, seed)
    losses = [run["epochs"][-1]["validation_loss"] for run in runs if run["status"] == "completed"]
    return {"seed": seed, "loss": min(losses), "epochs": sum(len(run["epochs"]) for run in runs), "trials": len(runs)}


def results_of_tasks(arguments, methods, result_of):
    """{task: {method: [result of each seed]}}"""
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    return {task: {method: [result_of(arguments.sweep, task, method, seed) for seed in seeds] for method in methods} for task in TASKS}


def tell_tasks(arguments, about, title, sentence, rows, results):
    machine.tell(arguments, about, title,
                 f"sweep {arguments.commit}. {sentence} Medians over seeds {arguments.seed} to "
                 f"{arguments.seed + arguments.seeds - 1}.", rows, {}, tasks=results)


def compare_rungs(arguments):
    about = machine.describe()
    results = results_of_tasks(arguments, RUNGS, rung_results)
    rows = ["| | | best validation loss | epochs | trials |", "|---|---|---|---|---|"]
    for task, methods in results.items():
        for method, found in methods.items():
            loss, epochs, trials = (statistics.median(run[key] for run in found) for key in ("loss", "epochs", "trials"))
            rows.append(f"| {task} | {method} | {loss:.4f} | {epochs:g} | {trials:g} |")
    tell_tasks(arguments, about, "Searches that end trials early",
               f"{RUNG_TRIALS} trials (hyperband: its own number) of up to {RUNG_EPOCHS} epochs on {SMALL['limit']:,} samples of "
               f"Fashion-MNIST, validated with {SMALL['validation']:,} others; one in 3 goes on to the next rung. The best trial that came "
               "to its end, and the epochs of all trials.", rows, results)


def compare_populations(arguments):
    about = machine.describe()
    results = results_of_tasks(arguments, METHODS, final_results)
    rows = ["| | best validation loss: population | random | better in | test accuracy: population | random |",
            "|---|---|---|---|---|---|"]
    for task, methods in results.items():
        loss, accuracy = ([statistics.median(run[key] for run in methods[method]) for method in METHODS]
                          for key in ("loss", "accuracy"))
        better = sum(ours["loss"] < theirs["loss"] for ours, theirs in zip(*methods.values(), strict=True))
        rows.append(f"| {task} | {loss[0]:.4f} | {loss[1]:.4f} | {better} of {arguments.seeds} | {accuracy[0]:.2%} | {accuracy[1]:.2%} |")
    tell_tasks(arguments, about, "Populations and random searches",
               f"{MEMBERS} runs of {EPOCHS} epochs on {SMALL['limit']:,} samples of Fashion-MNIST, validated with {SMALL['validation']:,} "
               f"others; the population replaces one in {REDUCTION} after every {INTERVAL} epochs, and begins with the points of the random "
               "search.", rows, results)


def compare(arguments):
    about = machine.describe()
    python = optuna_python(arguments.venv)
    columns = {"sweep, tpe": own_runs(arguments, "tpe"), "sweep, random": own_runs(arguments, "random")}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for name in arguments.sampler or (OF_TWO_GOALS if arguments.goals else OF_ONE_GOAL):
        done = subprocess.run([python, __file__, "--optuna", name, "--trials", str(arguments.trials), "--seed",
                               str(arguments.seed), "--seeds", str(arguments.seeds),
                               *(["--goals"] if arguments.goals else []),
                               *(["--table", arguments.table] if arguments.table else [])],
                              check=True, stdout=subprocess.PIPE, text=True, env=environment)
        columns[name] = json.loads(done.stdout)
    version = next(column["version"] for column in columns.values() if "version" in column)
    samplers = "; ".join(f"{name}: `{kind}({', '.join(f'{key}={value}' for key, value in options.items())})`"
                         for name, (kind, options) in SAMPLERS.items() if name in columns)
    judged = (f"of what the hypervolume of {arguments.trials} trials is below that of the best front" if arguments.goals else
              f"of what the best of {arguments.trials} trials is above the minimum")
    machine.tell(
        arguments, about, "Searches compared with Optuna's",
        f"sweep {arguments.commit}, Optuna {version}: {samplers}. Medians over seeds "
        f"{arguments.seed} to {arguments.seed + arguments.seeds - 1} {judged}; means over the functions of the time of a "
        f"suggestion, in trials {arguments.trials // 2 + 1} to {arguments.trials} and after {AFTER:,} trials. The functions are "
        "those of search_functions.py.", table(arguments, columns), {"optuna": version}, trials=arguments.trials, columns=columns)


def main():
    parser = machine.parser_of(__doc__)
    parser.add_argument("--program", type=Path)
    parser.add_argument("--sweep", type=Path)
    parser.add_argument("--venv", type=Path, default=ROOT / "build/optuna")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--goals", action="store_true", help="functions of two goals")
    parser.add_argument("--table", type=Path, help="also a measured function of two goals, or without --goals its first goal")
    parser.add_argument("--sampler", choices=SAMPLERS, action="append", help="of Optuna or SMAC3, in place of those that fit")
    parser.add_argument("--rungs", action="store_true", help="with --sweep: searches that end trials early")
    parser.add_argument("--optuna", choices=SAMPLERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.optuna:
        print(json.dumps((smac_runs if arguments.optuna.startswith("SMAC3") else optuna_runs)(arguments)))
    elif arguments.sweep is not None:
        (compare_rungs if arguments.rungs else compare_populations)(arguments)
    elif arguments.program is None:
        parser.error("--program is missing")
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
