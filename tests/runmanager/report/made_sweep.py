"""Sweep directories with records of runs that were never trained, as `sweep` leaves them."""

import json
import math
from pathlib import Path


def epochs(count, best, seconds, spread=0.0, numbers=False, validation=True):
    """Learning curves that end near an accuracy of `best`, or near an RMSE of 1 - `best`."""
    made = []
    for epoch in range(1, count + 1):
        part = 1 - math.exp(-3 * epoch / count)
        loss, quality = 2 * (1 - part * best) + spread, best * part + spread / 10
        record = {"epoch": epoch, "loss": loss, "epoch_seconds": seconds, "run_seconds": seconds * 1.2 * epoch,
                  "images_per_second": 1000 / seconds, "data_wait_seconds": seconds * 0.1}
        if numbers:
            record |= {"accuracy": None, "number_correct": None, "rmse": 1 - quality, "mae": 0.8 * (1 - quality), "r2": quality}
        else:
            record |= {"accuracy": quality, "number_correct": int(1000 * quality)}
        if validation:
            record["validation_loss"] = loss + 0.1
            if numbers:
                record |= {"validation_rmse": 1.1 - quality, "validation_mae": 0.9 - quality / 2, "validation_r2": quality - 0.1}
            else:
                record |= {"validation_accuracy": quality - 0.02, "validation_number_correct": int(980 * quality)}
        made.append(record)
    return made


def run(name, params, made_epochs, **more):
    last = {key: value for key, value in made_epochs[-1].items() if "_seconds" not in key and key != "epoch" and value is not None} if made_epochs else {}
    seconds = made_epochs[-1]["run_seconds"] + 0.5 if made_epochs else None
    return {"name": name, "status": "completed", "params": params, "config": {"epochs": len(made_epochs), **params},
            "metrics": last, "epochs": made_epochs, "seconds": {"run": seconds, "setup": 0.2, "logging": 0.1},
            "started": "2024-01-01T00:00:00Z", "ended": "2024-01-01T00:01:00Z", "error": None,
            "device": params.get("device", "cpu"), "placement": None, "jobs": 1, "events": {},
            "provenance": {"program": "sweep", "version": "0.1.0", "revision": "made", "numerics": 4, "compiler": "none",
                           "command": "sweep made.json", "machine": {"processor": "none", "cores": 2, "system": "Linux"},
                           "dataset": {"name": "made", "files": [{"path": "/data/made.bin", "sha256": "00" * 32}]}}, **more}


def pairs(**more):
    """Two devices, three learning rates, skipped and failed runs."""
    runs = [run(f"{lr}-{device}", {"lr": lr, "device": device}, epochs(6, 0.9 - lr, 3 if device == "cpu" else 0.5), **more)
            for lr in (0.1, 0.01, 0.001) for device in ("cuda:0", "cpu")]
    runs += [run(f"skipped-{i}", {"lr": 1.0, "device": "cuda:1"}, [], status="skipped", error="there is none here")
             for i in range(4)]
    return runs + [run("failed", {"lr": 9.0, "device": "cpu"}, epochs(2, 0.1, 1), status="failed", error="no longer finite")]


def trials(count):
    """Of a search: a rate that matters, a width that does not, a momentum that only every other trial has."""
    runs = []
    for number in range(count):
        rate, width = 10 ** -(1 + 0.37 * number % 3), 16 + 61 * number % 500
        params = {"lr": rate, "width": width, **({"momentum": 0.01 * (17 * number % 97)} if number % 2 else {})}
        best, status = 0.9 - abs(math.log10(rate) + 2) / 5, "completed" if number % 5 else "pruned"
        runs.append(run(f"r{number}", params, epochs(6 if number % 5 else 2, best, 1), status=status))
    return runs


def write(directory, name, runs, **more):
    directory = Path(directory) / name
    for record in runs:
        folder = directory / record["name"]
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps(record))
    (directory / "sweep.json").write_text(json.dumps(
        {"name": name, "params": {}, "runs": [record["name"] for record in runs], **more}))
    return directory
