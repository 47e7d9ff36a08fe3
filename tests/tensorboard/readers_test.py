#!/usr/bin/env python3
"""Runs a small sweep and has other programs' readers read its files: all of them have to find the numbers of results.json.

  readers_test.py --sweep PROGRAM --file SWEEP.json --venv VENV --readers VENV

TensorBoard's EventAccumulator is always asked; tbparse, tensorboard-reducer, TensorFlow and Aim (which needs TensorFlow)
where `--readers` has them. If that environment is missing, it is made with tbparse from PyPI; the others are large: pip install them there.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from server import float32, needed_venv
from environments import has_modules, make_venv  # after server, which knows where

# Each reader prints {tag: [[step, value], ...]} of the scalars in the directory given, and nothing else.
READERS = {
    "EventAccumulator": """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
reader = EventAccumulator(directory, {"scalars": 0})
reader.Reload()
found = {tag: [[e.step, e.value] for e in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}
""",
    "tbparse": """
from tbparse import SummaryReader
found = {}
for row in SummaryReader(directory, pivot=False).scalars.itertuples():
    found.setdefault(row.tag, []).append([int(row.step), float(row.value)])
""",
    "tensorboard_reducer": """
import tensorboard_reducer
found = {}
for tag, frame in tensorboard_reducer.load_tb_events([directory], verbose=False, strict_steps=False).items():
    found[tag] = [[int(step), float(values[0])] for step, values in zip(frame.index, frame.to_numpy())]
""",
    "aim": """
import os, shutil, subprocess, tempfile
found = {}
with tempfile.TemporaryDirectory() as top:
    shutil.copytree(directory, top + "/logs/run")
    aim = os.path.dirname(sys.executable) + "/aim"
    for words in (["init", "--repo", top], ["convert", "--repo", top, "tensorboard", "--logdir", top + "/logs"]):
        subprocess.run([aim, *words], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    from aim import Repo, Run
    repo = Repo(top)
    for name in repo.list_all_runs():
        # Opened for writing, because the conversion leaves the run unfinished.
        run = Run(name, repo=repo, system_tracking_interval=None, log_system_params=False, capture_terminal_logs=False)
        for metric in run.metrics():
            steps, [values] = metric.data.view(("step", "val")).items_list()
            found[metric.name] = sorted([int(step), float(value)] for step, value in zip(steps, values))
    # Its threads would wait for ever for files that are gone.
    print(json.dumps(found), flush=True)
    shutil.rmtree(top)
    os._exit(0)
""",
    "tensorflow": """
import glob, tensorflow
from tensorflow.core.util import event_pb2
found = {}
for path in sorted(glob.glob(directory + "/*tfevents*")):
    for record in tensorflow.data.TFRecordDataset(path):
        event = event_pb2.Event.FromString(record.numpy())
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                found.setdefault(value.tag, []).append([event.step, value.simple_value])
""",
}
# Scalar tag: key of an epoch in results.json.
TAGS = {"Loss/train": "loss", "Accuracy/train": "accuracy", "Loss/validation": "validation_loss",
        "Duration/epoch_seconds": "epoch_seconds"}


def ask(python, name, directory):
    """What the reader finds."""
    code = f"import json, sys\ndirectory = sys.argv[1]\n{READERS[name]}\nprint(json.dumps(found))"
    done = subprocess.run([python, "-c", code, directory], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{name}: {done.stderr[-1000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("sweep", "file", "venv", "readers"):
        parser.add_argument("--" + name, required=True)
    arguments = parser.parse_args()
    venv = needed_venv(arguments.venv)
    python = make_venv(arguments.readers, "tbparse")
    readers = {name: python for name in READERS if has_modules(python, name)}
    readers["EventAccumulator"] = venv / "bin/python"
    problems = []
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([arguments.sweep, arguments.file, "lr=0.01", "batch_size=100", "shuffle=true,false", "num_workers=0",
                        "device=cpu", "epochs=3", "dataset.limit=500", "dataset.validation=100", "name=s", "--logdir",
                        directory], check=True, capture_output=True)
        sweep = Path(directory) / "s"
        for run in json.loads((sweep / "results.json").read_text())["runs"]:
            for name, python in readers.items():
                found = ask(python, name, str(sweep / run["name"]))
                for tag, key in TAGS.items():
                    wanted = [[epoch["epoch"], float32(epoch[key])] for epoch in run["epochs"]]
                    if found.get(tag) != wanted:
                        problems.append(f"{name}: {run['name']}: {tag} is {found.get(tag)}, not {wanted}")
    print("asked:", ", ".join(readers))
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
