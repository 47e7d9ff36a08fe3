"""Hyperparameter sweeps of small networks: the program `sweep`, and its results in Python.

>>> import sweep
>>> results = sweep.run({"name": "mine", "dataset": {"name": "fashion-mnist"}, ...})
>>> sweep.load("runs/mine").runs
"""
import contextlib
import importlib.metadata
import json
import os
import pathlib
import signal
import subprocess
import threading
import typing

try:
    __version__ = importlib.metadata.version("sweep-runner")
except importlib.metadata.PackageNotFoundError:  # copied without what pip wrote
    __version__ = "unknown"
__all__ = ["Results", "binary", "load", "run"]
_Path = typing.Union[str, "os.PathLike[str]"]


class Results(typing.NamedTuple):
    """A sweep's results: pandas DataFrames, or lists of dicts if pandas is not installed."""

    runs: typing.Any
    """A row per run: run, status, its parameters, its last epoch, run_seconds, setup_seconds, error."""
    epochs: typing.Any
    """A row per epoch of each run: run, its parameters, epoch, metrics, times."""


def binary() -> pathlib.Path:
    """Returns the path of the program. Raises FileNotFoundError if it is not where the wheel put it."""
    if (pathlib.Path(__file__).resolve().parents[1] / "bin/sweep").exists():
        raise FileNotFoundError("pip install --target leaves out the libraries of the program sweep: install its wheel into an environment, "
                                "which python -m venv makes")
    for file in _installed_files():
        if file.name == "sweep" and file.parent.name == "bin":  # and not the completion for bash
            path = pathlib.Path(file.locate()).resolve()
            if path.exists():
                return path
    raise FileNotFoundError("the program sweep is not where its wheel put it: pip install --force-reinstall sweep-runner")


def load(directory: _Path) -> Results:
    """Returns the Results of a sweep, complete or not. Raises ValueError if there are none.

    A parameter with the name of another column, such as "loss", is "param.loss".
    """
    done = subprocess.run([binary(), "show", "--json", "--", directory], capture_output=True, encoding="utf-8", errors="replace")
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


def run(config: dict, logdir: _Path = "runs", options: typing.Sequence = ()) -> Results:
    """Trains what a sweep file says, here a dict with a "name", or goes on with it, and returns its Results.

    Paths in `config` are relative to the current directory. `options` are the program's, for example ["--jobs", "2"].
    Raises RuntimeError, with the exit code as `returncode`, if a run failed or the program ended early; what was trained until then is kept,
    and load() reads it. Ctrl-C and SIGTERM end the sweep in order; a second one at once.
    Raises ValueError for options that would put the results elsewhere, or leave none.
    """
    if not isinstance(config, dict):
        raise TypeError(f"config: got {type(config).__name__}, want a dict, such as json.load() makes of a sweep file")
    words = _checked_words(options)
    text = json.dumps(config, default=_plain)
    returncode = _ended_in_order([binary(), "-", f"--logdir={os.fspath(logdir)}", *words], text)
    if returncode != 0:
        error = RuntimeError(f"sweep ended with exit code {returncode}; see its messages above")
        error.returncode = returncode
        raise error
    return load(pathlib.Path(logdir) / config["name"])


def _installed_files():
    try:
        return importlib.metadata.files("sweep-runner") or ()
    except importlib.metadata.PackageNotFoundError:
        return ()


def _checked_words(options):
    """The options as words of a command line."""
    if isinstance(options, str):
        raise TypeError(f"options: got the text {options!r}, want a list of words")
    words = [str(option) for option in options]
    for word in words:
        if word.split("=")[0] in ("--fresh", "--name", "--logdir", "name"):
            raise ValueError(f"{word}: choose the directory by logdir and by the config's \"name\"")
    if "--dry-run" in words:
        raise ValueError("--dry-run: leaves no results")
    if "slurm" in words + [word[len("--launcher="):] for word in words if word.startswith("--launcher=")] and "--wait" not in words:
        raise ValueError("--launcher slurm: there are results with --wait only")
    return words


def _plain(value):
    """The numbers of numpy and pandas, and paths, as JSON has them."""
    return value.tolist() if hasattr(value, "tolist") else os.fspath(value)


def _ended_in_order(command, text):
    """Runs a sweep with `text` as its standard input. Returns its exit code."""
    with _sigterm_raised():
        process = subprocess.Popen(command, stdin=subprocess.PIPE, encoding="utf-8")
        try:
            process.communicate(text)
        except (KeyboardInterrupt, _Terminated):
            # Stops it unless it has got the signal itself, and then changes nothing.
            process.send_signal(signal.SIGUSR1)
            process.wait()
            raise
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        return process.returncode


class _Terminated(BaseException):
    """SIGTERM came."""


@contextlib.contextmanager
def _sigterm_raised():
    """Lets SIGTERM end Python only after what is done here has heard of it, unless the caller has another way to handle it."""
    def end(*_):
        raise _Terminated
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _number(value):
    """The value of a metric: JSON has no NaN and infinity, which are texts there."""
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def _table(rows):
    try:
        import pandas
    except ImportError:
        return rows
    return pandas.DataFrame(rows)
