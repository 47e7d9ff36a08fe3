"""The runs that show mean and deviation of a sweep's repeats, worked out again from its result files."""

import math
import statistics

# Scalar tag: key of an epoch in results.json.
TAGS = {"Loss/train": "loss", "Accuracy/train": "accuracy", "Loss/validation": "validation_loss",
        "Accuracy/validation": "validation_accuracy", "Number Correct/train": "number_correct",
        "Duration/epoch_seconds": "epoch_seconds", "Time/images_per_second": "images_per_second"}
# Tags of numbers that results.json does not have.
MORE_TAGS = {"Number Correct/validation", "Time/data_wait_seconds", "Loss/test", "Accuracy/test"}


def aggregates(runs):
    """Each combination with an aggregate run: (its parameters, {tag: [(epoch, value)]}). `runs` is results.json's list
    by name. Only combinations with every repeat over and two or more completed have any."""
    combinations = {}
    for run in runs.values():
        if "repeat" in run["params"]:
            rest = {key: value for key, value in run["params"].items() if key != "repeat"}
            combinations.setdefault(repr(rest), (rest, []))[1].append(run)
    found = []
    for params, repeats in combinations.values():
        if any(run["status"] not in ("completed", "failed", "skipped") for run in repeats):
            continue
        completed = [run["epochs"] for run in repeats if run["status"] == "completed"]
        if len(completed) < 2:
            continue
        lines = {}
        for tag, key in TAGS.items():
            for epochs in zip(*completed):
                values = [epoch.get(key) for epoch in epochs]
                if None in values:
                    continue
                values = [float(value) for value in values]
                finite = all(map(math.isfinite, values))
                lines.setdefault(tag, []).append((epochs[0]["epoch"], statistics.fmean(values) if finite else math.nan))
                lines.setdefault("Std/" + tag, []).append(
                    (epochs[0]["epoch"], statistics.stdev(values) if finite else math.nan))
        found.append((params, lines))
    return found
