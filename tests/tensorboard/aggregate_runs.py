"""The runs that show mean, least and greatest of a sweep's repeats, worked out again from its result files."""

import math

# Scalar tag: key of an epoch in results.json.
TAGS = {"Loss/train": "loss", "Accuracy/train": "accuracy", "Loss/validation": "validation_loss",
        "Accuracy/validation": "validation_accuracy"}
STATISTICS = {"mean": lambda values: sum(values) / len(values), "min": min, "max": max}


def aggregates(runs):
    """Name of each aggregate run: {tag: [(epoch, value)]}. `runs` is results.json's list by name. Only combinations
    of which every repeat is over and two or more are completed have any."""
    combinations = {}
    for name, run in runs.items():
        if "repeat" in run["params"]:
            rest = tuple((key, repr(value)) for key, value in run["params"].items() if key != "repeat")
            combinations.setdefault(rest, []).append((name, run))
    found = {}
    for repeats in combinations.values():
        if any(run["status"] not in ("completed", "failed", "skipped") for _, run in repeats):
            continue
        completed = [run["epochs"] for _, run in repeats if run["status"] == "completed"]
        if len(completed) < 2:
            continue
        name, run = repeats[0]
        head, separator, tail = name.rpartition(f"repeat={run['params']['repeat']}")
        for statistic, of in STATISTICS.items():
            found[f"{head}aggregate={statistic}{tail}"] = lines = {}
            for tag, key in TAGS.items():
                points = []
                for epochs in zip(*completed):
                    values = [epoch.get(key) for epoch in epochs]
                    if None not in values:
                        nan = any(math.isnan(float(value)) for value in values)
                        points.append((epochs[0]["epoch"], math.nan if nan else of([float(v) for v in values])))
                if points:
                    lines[tag] = points
    return found
