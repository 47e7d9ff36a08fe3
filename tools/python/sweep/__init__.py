"""Hyperparameter sweeps of small networks: the program `sweep`, and its results in Python.

>>> import sweep
>>> results = sweep.run({"name": "mine", "dataset": {"name": "fashion-mnist"}, ...})
>>> sweep.load("runs/mine").runs
"""
import importlib.metadata
import json
import pathlib
import subprocess
import typing

__version__ = importlib.metadata.version("sweep-runner")
__all__ = ["Results", "binary", "load", "run"]


class Results(typing.NamedTuple):
    """A sweep's results: pandas DataFrames, or lists of dicts if pandas is not installed."""

    runs: typing.Any
    """A row per run: run, status, its parameters, its last epoch, run_seconds, setup_seconds, error."""
    epochs: typing.Any
    """A row per epoch of each run: run, its parameters, epoch, metrics, times."""


def binary():
    """Returns the path of the program. Raises FileNotFoundError if it is not where the wheel put it."""
    for file in importlib.metadata.files("sweep-runner") or ():
        if file.name == "sweep" and file.parent.name != "sweep":
            path = pathlib.Path(file.locate()).resolve()
            if path.exists():
                return path
    raise FileNotFoundError("the program sweep is not where its wheel put it: pip install --force-reinstall sweep-runner")


def load(directory):
    """Returns the Results of a sweep, complete or not. Raises ValueError if there are none.

    A parameter with the name of another column, such as "loss", is "param.loss".
    """
    done = subprocess.run([binary(), "show", directory, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    shown = json.loads(done.stdout)
    if "runs" not in shown:
        raise ValueError(f"{directory}: is the directory of a run; want that of its sweep")
    runs, epochs = [], []
    for entry in shown["runs"]:
        measured = [{key: _number(value) for key, value in epoch.items()} for epoch in entry["epochs"]]
        last = {"status": entry["status"], "run_seconds": None, **(measured[-1] if measured else {})}
        more = {key: value for key, value in entry.items() if key not in ("name", "params", "epochs", "status")}
        taken = {"run", *last, *more}
        params = {"run": entry["name"], **{f"param.{key}" if key in taken else key: value for key, value in entry["params"].items()}}
        runs.append({**params, **last, **more})
        epochs += [{**params, **epoch} for epoch in measured]
    return Results(_table(runs), _table(epochs))


def run(config, logdir="runs", options=()):
    """Trains what a sweep file says, here a dict with a "name", or goes on with it, and returns its Results.

    Paths in `config` are relative to the current directory. `options` are the program's, for example ["--jobs", "2"].
    Raises RuntimeError if a run failed or the program ended early; what was trained until then is kept, and load() reads it.
    Raises ValueError for options that would put the results elsewhere.
    """
    for option in options:
        if str(option).split("=")[0] in ("--fresh", "--name", "--logdir"):
            raise ValueError(f"{option}: choose the directory by logdir and by the config's \"name\"")
    command = [binary(), "-", "--logdir", logdir, *options]
    done = subprocess.run(command, input=json.dumps(config), text=True)
    if done.returncode != 0:
        raise RuntimeError(f"sweep ended with exit code {done.returncode}; see its messages above")
    return load(pathlib.Path(logdir) / config["name"])


def _number(value):
    """The value of a metric: JSON has no NaN and infinity, which are texts there."""
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def _table(rows):
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)
