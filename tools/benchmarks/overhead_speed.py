#!/usr/bin/env python3
"""Measures what sweeps cost besides training, and writes a table of medians over rounds.

  overhead_speed.py --sweep PROGRAM [--rounds N] [--runs N] [--epochs N] [--trials N] [--results PATH] [--commit NAME]

tools/bench --overhead does all that. Five things are measured: many runs of one step each (what a run costs), sweeps/fashion.json (what its logs and checkpoints
cost), one run of many epochs of one batch (whether an epoch costs more when there were many before it), the plan of as many
runs as a sweep may have, and a search of many trials: next to a grid of as many runs, and the commands that show it.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
from machine import ROOT

END_FRACTION = 0.1  # the first and the last tenth of the epochs are compared

# name: (title, unit, at most)
FIGURES = {
    "run": ("whole program, per run of one step, without its training and test", "ms", 5),
    "run_told": ("the same as the program prints it, which leaves out its own start and end", "ms", 5),
    "logging": ("logs and checkpoints in sweeps/fashion.json, part of its runs' time", "%", 1),
    "logging_told": ("the same as the program prints it, of completed runs", "%", 1),
    "early": ("logs and checkpoints per epoch of one batch, the first tenth of the epochs", "ms", None),
    "late": ("... and the last tenth", "ms", None),
    "plan": ("sweep plan of 100,000 runs", "s", 10),
    "plan_memory": ("... and its memory", "MB", 1000),
    "search": ("time of a search by tpe of one step per trial, next to a grid of as many runs", "times", 3),
    "report": ("sweep report of a search over six ranges", "s", 2),
    "show": ("sweep show of it", "s", 2),
    "effects": ("sweep show --effects of it", "s", 2),
    "compare": ("sweep compare of it by shuffle", "s", 2),
    "status": ("sweep status of it", "s", 2),
    "ls": ("sweep ls", "s", 2),
}
SHOWN = 3000  # trials that the commands show
SEARCH = {"seed": 1, "metric": "Loss/train"}
LINEAR = {"layers": [{"type": "flatten"}, {"type": "linear", "out_features": 10}]}
RANGES = {"lr": {"log_uniform": [0.0001, 1]}, "momentum": {"uniform": [0, 0.99]}, "weight_decay": {"log_uniform": [1e-6, 0.1]},
          "dampening": {"uniform": [0, 0.5]}, "seed": {"int_uniform": [1, 100]}, "shuffle": [True, False]}
UNITS = {"µs": 1e-3, "ms": 1, "s": 1000}


def run_sweep(arguments, work, sweep, *more):
    """Runs the program; returns its seconds, its stderr, and the records of its completed runs."""
    # The files stay until all is measured. When ext4 creates a file, it steps over the inodes of recently removed ones, so
    # removing a sweep's files would slow the next sweep down.
    logdir = tempfile.mkdtemp(dir=work)
    start = time.perf_counter()
    done = subprocess.run([arguments.sweep, sweep, "--logdir", logdir, *more], capture_output=True, text=True, cwd=work)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"sweep ended with {done.returncode}:\n{done.stderr[-2000:]}")
    directory, = Path(logdir).iterdir()
    return seconds, done.stderr, [record for record in machine.run_records(directory) if record["status"] == "completed"]


def write_sweep_file(directory, name, **keys):
    path = Path(directory) / f"{name}.json"
    path.write_text(json.dumps({"name": name, "dataset": {"name": "fashion-mnist", "limit": 100}, "batch_size": 100,
                                "device": "cpu", **keys}))
    return path


def reported_overhead(err):
    """Returns what the program reports: ms besides training per run, and the share of logs and checkpoints in %."""
    found = re.search(r"besides training ([\d.]+) (µs|ms|s) per run .*logs and checkpoints are ([\d.]+)%", err)
    if found is None:
        sys.exit(f"the program does not say what its runs cost:\n{err[-500:]}")
    return float(found[1]) * UNITS[found[2]], float(found[3])


def many_runs(arguments, work):
    sweep = write_sweep_file(work, "runs", network=str(ROOT / "sweeps/networks/fashion-cnn.json"), epochs=1,
                             params={"seed": {"range": [1, arguments.runs, 1]}})
    seconds, err, records = run_sweep(arguments, work, sweep)
    if len(records) != arguments.runs:
        sys.exit(f"{len(records)} of {arguments.runs} runs were completed")
    training = sum(record["seconds"]["run"] - record["seconds"]["logging"] for record in records)
    return {"run": 1e3 * (seconds - training) / len(records), "run_told": reported_overhead(err)[0]}


def fashion(arguments, work):
    _, err, records = run_sweep(arguments, work, ROOT / "sweeps/fashion.json")
    logging, run = (sum(record["seconds"][part] for record in records) for part in ("logging", "run"))
    return {"logging": 100 * logging / run, "logging_told": reported_overhead(err)[1]}


def many_epochs(arguments, work):
    sweep = write_sweep_file(work, "epochs", epochs=arguments.epochs, optimizer="sgd", network=LINEAR)
    epochs = run_sweep(arguments, work, sweep)[2][0]["epochs"]
    count = max(2, int(END_FRACTION * len(epochs)))

    def overhead_per_epoch(part):
        seconds = part[-1]["run_seconds"] - part[0]["run_seconds"] - sum(epoch["epoch_seconds"] for epoch in part[1:])
        return 1e3 * seconds / (len(part) - 1)

    return {"early": overhead_per_epoch(epochs[:count]), "late": overhead_per_epoch(epochs[-count:])}


def plan(arguments, work):
    sweep = write_sweep_file(work, "plan", network=str(ROOT / "sweeps/networks/fashion-cnn.json"),
                             params={"optimizer": ["sgd", "adam"], "lr": {"linspace": [0.001, 0.1, 500]},
                                     "seed": {"range": [1, 100, 1]}})
    start = time.perf_counter()
    process = subprocess.Popen([arguments.sweep, "plan", sweep, "--json"], stdout=subprocess.DEVNULL, cwd=work)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"sweep plan ended with {os.waitstatus_to_exitcode(status)}")
    return {"plan": time.perf_counter() - start, "plan_memory": usage.ru_maxrss * 1024 / 1e6}


def searches(arguments, work):
    def seconds_of(name, **keys):
        sweep = write_sweep_file(work, name, epochs=1, optimizer="sgd", network=LINEAR, **keys)
        return run_sweep(arguments, work, sweep)[0]

    grid = seconds_of("grid", params={"lr": {"linspace": [0.0001, 1, arguments.trials]}})
    search = seconds_of("tpe", params=RANGES, search={"method": "tpe", "trials": arguments.trials, **SEARCH})
    return {"search": search / grid}


def shown_search(arguments, work):
    sweep = write_sweep_file(work, "shown", epochs=1, optimizer="sgd", network=LINEAR, params=RANGES,
                             search={"method": "random", "trials": SHOWN, **SEARCH})
    run_sweep(arguments, work, sweep)
    directory = next(path for path in Path(work).glob("*/shown"))
    seconds = {}
    for name, command in {"report": ["report", directory], "show": ["show", directory],
                          "effects": ["show", "--effects", directory], "compare": ["compare", directory, "--by", "shuffle"],
                          "status": ["status", directory], "ls": ["ls", directory.parent]}.items():
        start = time.perf_counter()
        done = subprocess.run([arguments.sweep, *command], check=False, stdout=subprocess.DEVNULL, cwd=work)
        seconds[name] = time.perf_counter() - start
        if done.returncode not in ((0, 2) if name == "compare" else (0,)):  # 2: no two trials differ in nothing else
            sys.exit(f"sweep {name} ended with {done.returncode}")
    return seconds


def measure(arguments):
    figures = {name: [] for name in FIGURES}
    with tempfile.TemporaryDirectory() as work:
        for _ in machine.rounds(arguments.rounds):
            for found in (many_runs(arguments, work), fashion(arguments, work), many_epochs(arguments, work),
                          plan(arguments, work), searches(arguments, work), shown_search(arguments, work)):
                for name, value in found.items():
                    figures[name].append(value)
    return figures


def table(figures):
    return machine.table(["", "median (least to most)", "wanted"],
                         [[title, machine.spread(figures[name]).replace(" (", f" {unit} ("), "" if most is None else f"less than {most} {unit}"]
                          for name, (title, unit, most) in FIGURES.items()])


def main():
    parser = machine.parser_of(__doc__)
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=5000)
    parser.add_argument("--trials", type=int, default=10000)
    arguments = parser.parse_args()
    arguments.sweep = str(Path(arguments.sweep).resolve())
    about = machine.describe()
    figures = measure(arguments)
    machine.tell(arguments, about, "What sweeps take besides training",
                 f"sweep {arguments.commit}, one run at a time, everything logged that is "
                 f"logged by default. Medians of {arguments.rounds} rounds: {arguments.runs} runs of one step of 100 "
                 f"samples (fashion-cnn), sweeps/fashion.json, and one run of {arguments.epochs} epochs of one batch of "
                 f"100 (a linear layer, also in the searches; {arguments.trials} trials next to a grid, {SHOWN} that the "
                 "commands show).", table(figures), {},
                 rounds=arguments.rounds, runs=arguments.runs, epochs=arguments.epochs, trials=arguments.trials,
                 figures={name: {"title": FIGURES[name][0], "unit": FIGURES[name][1], "values": values}
                          for name, values in figures.items()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
