"""Validates the shipped sweeps with the program's own schema, and checks that the program also rejects what the schema rejects.
Usage: schema_check.py PROGRAM SWEEPS-DIRECTORY; exits 77 (skipped) without the jsonschema module."""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("skipped: python3-jsonschema (>= 4) is not installed")
    sys.exit(77)

program, sweeps = sys.argv[1], pathlib.Path(sys.argv[2])
schema = json.loads(subprocess.run([program, "schema"], check=True, capture_output=True).stdout)
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
network = {"layers": [{"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 10}]}
OUT = [{"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 10}]


def nested(*layers):
    return changed(network={"layers": [*layers, *OUT]})


# The one data set that the tests install: the program refuses to plan with data that is not there.
good = {"dataset": "fashion-mnist", "network": network}


def program_accepts(document):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "s.json"
        file.write_text(json.dumps(document))
        return subprocess.run([program, "plan", file], capture_output=True).returncode == 0


def changed(**settings):
    document = copy.deepcopy(good)
    document.update(settings)
    return document


for file in sorted(sweeps.glob("*.json")):
    errors = [error.message for error in validator.iter_errors(json.loads(file.read_text()))]
    assert not errors, (file.name, errors)
    print("accepted", file.name)

accepted = [
    good,
    changed(dataset={"path": "/usr/share/datasets/fashion-mnist"}),
    changed(params={"lr": [0.1], "momentum": {"linspace": [0, 0.9, 3]}, "network.layers.out.bias": [True, False]}),
    changed(optimizer={"name": "adam", "betas": [0.5, 0.9]}, device="cpu", log={"images": 0}),
    changed(optimizer={"momentum": 0.5}, name="a b.c", repeats=2),
    changed(dataset={"name": "fashion-mnist", "validation": 0.5, "normalize": {"mean": [0.1], "std": [2]}}),
    {"network": network, "params": {"dataset": ["fashion-mnist", {"name": "fashion-mnist", "limit": 1000}]}},
    changed(params={"lr": [1, 2], "seed": [1, 2]}, zip=[["lr", "seed"]], exclude=[{"lr": 1}]),
    changed(params={"optimizer": ["sgd", "adam"], "momentum": [0, 0.9]}, when={"momentum": {"optimizer": "sgd"}}),
    changed(grids=[{"lr": [1]}, {"seed": {"range": [1, 3, 1]}}]),
    {"command": ["true", "{flags}"], "params": {"any": [1], "lr": {"linspace": [0, 1, 3]}}, "timeout": {"silence": 3}},
    {"command": "true {x}", "shell": True, "metrics": {"a": "a=(.)"}, "objective": "a", "params": {"x": [1, 2]}},
    {"command": ["true"], "search": {"method": "asha", "trials": 4, "sampler": "tpe", "points": [{"a": 0.5}], "learn_from": [{"params": {"a": 1}, "value": 2}]}, "reports": 3, "params": {"a": {"uniform": [0, 1]}}},
    changed(search={"method": "population", "trials": 4, "interval": 2, "metric": "Loss/train"}, epochs=3, params={"lr": {"uniform": [0.1, 1]}}),
    {"command": ["true"], "search": {"method": "tpe", "trials": 2, "metric": "own"}, "params": {"a": {"uniform": [0, 1]}}},
    {"command": ["true"], "search": {"method": "tpe", "trials": 2, "metric": ["own", "seconds"], "mode": ["max", "min"]}, "params": {"a": [0, 1]}},
    changed(search={"metric": ["Accuracy/train", "Duration/epoch_seconds", "parameters"]}),
    changed(schedule="step", params={"schedule.step_size": [1, 2]}), changed(schedule="one_cycle"), changed(schedule={"name": "one_cycle", "anneal_strategy": "linear", "three_phase": True}),
    changed(params={"schedule": ["constant", "cosine", {"name": "step", "step_size": 2}]}), changed(schedule={}),
    changed(schedule={"name": "warmup", "total_iters": 2, "then": "cosine"}), changed(params={"schedule.eta_min": [0]}, schedule="cosine"),
    changed(schedule={"name": "warmup", "then": {"name": "step", "step_size": 2}}),
    changed(precision="fp32"), changed(deterministic=False), changed(params={"deterministic": [True, False]}),
    changed(loss="mse", clip_norm=1), changed(loss={"label_smoothing": 0.1}), changed(loss={"name": "mse"}),
    changed(params={"loss": ["cross_entropy", "mse"], "clip_norm": [0, 0.5]}), changed(params={"loss.label_smoothing": [0, 0.1]}),
    changed(evaluate_first=True, dataset={"name": "fashion-mnist", "validation": 0.1}, stop={}, checkpoint="best"),
    changed(stop={"metric": "Accuracy/train", "mode": "max", "patience": 1, "min_delta": 0.5, "restore_best": True}),
    changed(params={"stop.patience": [1, 2], "checkpoint": ["last", "best"]}, stop={"metric": "Loss/train"}),
    changed(loss="l1"), changed(loss={"name": "smooth_l1", "beta": 0}), changed(loss={"class_weights": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}),
    changed(dataset={"name": "fashion-mnist", "normalize": "train"}), changed(dataset={"name": "fashion-mnist", "missing": "error"}),
    changed(dataset={"name": "fashion-mnist", "augment": ["horizontal_flip", {"random_crop": {"padding": 4}}, {"cutout": {"size": 8}}, {"horizontal_flip": {}}]}),
    changed(dataset={"name": "fashion-mnist", "decimal": "auto", "encoding": "utf-8", "unknown": "error", "channels": "auto"}),
    changed(dataset={"name": "fashion-mnist", "augment": []}), changed(params={"dataset.augment": [[], ["horizontal_flip"]]}),
    changed(slurm={}), changed(slurm={"partition": "a", "time": "1-12:00:00", "memory": "8G", "gres": "gpu:a100:2", "tasks": 3, "report": False}),
    changed(slurm={"setup": "module load cuda", "options": ["--exclusive"], "cuda": {"partition": "b", "setup": ["a", "b"]}, "runs_per_task": 1}),
    nested({"type": "sequential", "name": "a", "layers": [{"type": "relu", "name": "b"}]}),
    nested({"type": "residual", "layers": [{"type": "sequential", "layers": [{"type": "relu"}]}], "shortcut": [{"type": "tanh"}]}),
]
# Further ones are in the table below.
rejected = [
    {"command": ["true"], "network": network}, {"command": []}, {"command": ["true"], "timeout": {"slience": 1}},
    changed(search={"method": "tpe", "trials": 2, "points": 3}, params={"lr": {"uniform": [0.1, 1]}}),
    changed(search={"method": "asha", "trials": 2, "sampler": "grid"}, params={"lr": {"uniform": [0.1, 1]}}),
    changed(search={"method": "tpe", "trials": 2, "learn_from": [{"value": 1}]}, params={"lr": {"uniform": [0.1, 1]}}),
    changed(metrics={"a": "a=(.)"}), changed(params={"any": [1]}), [], {}, changed(lr=-1), changed(lr=[0.1]),
    changed(batch_size=0), changed(slurm=[]), changed(slurm={"time": "soon"}), changed(slurm={"cuda": {"tasks": 1}}),
    changed(slurm={"options": "--exclusive"}), changed(params={"slurm.tasks": [1, 2]}), changed(device="gpu"),
    changed(device="cuda:"), changed(loss="mes"), changed(loss={"name": "smooth_l1", "beta": -1}),
    changed(loss={"class_weights": []}), changed(loss={"class_weights": [-1, 1]}),
    changed(dataset={"name": "mnist", "augment": [{"horizontal_flip": 1}]}),
    changed(dataset={"name": "mnist", "target": []}), changed(dataset={"name": "mnist", "ignore": [1]}),
    changed(dataset={"name": "mnist", "decimal": ";"}), changed(schedule=1),
    changed(schedule={"name": "one_cycle", "anneal_strategy": "line"}),
    changed(schedule={"name": "step", "step_size": 0}), changed(schedule={"T_max": 3}), changed(checkpoint="first"),
    changed(checkpoint=True), changed(stop=True), changed(stop={"min_delta": -1}), changed(stop={"metric": "loss"}),
    changed(stop={"metric": "Loss/train", "restore": True}), changed(precision="fp16"), changed(deterministic=0),
    changed(params={"precision": ["bf32"]}), changed(loss={"label_smoothing": -1}), changed(clip_norm=None),
    changed(clip_norm="1"), changed(params={"loss": ["mes"]}), changed(params={"clip_norm": [-0.5]}), changed(init=1),
    changed(optimizer="adma"), changed(optimizer={"name": "adam", "momentum": 0.5}),
    changed(optimizer={"betas": [0.5, 0.9]}), changed(optimizer={"name": "adam", "betas": [0.5]}),
    changed(optimizer={"name": "sgd", "momentum": -1}), changed(log={"image": 1}), changed(log=[]),
    changed(params={"lr": [0.1, 0.1]}), changed(params={"learning_rate": [0.1]}), changed(params={"name": ["a"]}),
    changed(params={"lr": {"range": [1, 2]}}), changed(params={"lr": {"rnge": [1, 2, 1]}}), changed(zip=[["lr"]]),
    changed(exclude=[{}]), changed(exclude={}), changed(when=[]), changed(dataset="mnits"),
    changed(dataset={"name": "own"}), changed(dataset={"name": "mnist", "validation": 1.5}),
    changed(dataset={"name": "mnist", "normalize": {"mean": [1]}}),
    changed(dataset={"name": "mnist", "format": "parquet"}), changed(network={}), changed(network=3),
    changed(network={"layers": [{}]}), changed(network={"layers": [{"type": "conv2d", "out_channels": 3}]}),
    nested({"type": "sequential"}), nested({"type": "residual", "layers": []}),
    nested({"type": "relu", "layers": [{"type": "relu"}]}),
    nested({"type": "sequential", "layers": [{"type": "relu"}], "shortcut": []}),
    nested({"type": "residual", "layers": [{"type": "relu"}], "shortcut": [{"type": "relu", "p": 1}]}),
]
for document in accepted:
    assert validator.is_valid(document), ("the schema rejects", document, [e.message for e in validator.iter_errors(document)])
    assert program_accepts(document), ("the program rejects", document)
for document in rejected:
    assert not validator.is_valid(document), ("the schema accepts", document)
    assert not program_accepts(document), ("the program accepts", document)
# What the program says of these is tested with the tables; some depend on several values, which the schema does not compare.
data = pathlib.Path(__file__).parent.parent / "data"
table = json.loads((data / "bad_sweeps.json").read_text())
good = json.loads((data / "good_sweeps.json").read_text())["rows"]
for row in table["rows"] + [{**row, "schema": "accepts"} for row in good]:
    if row.keys() & {"files", "overrides", "slurm", "epochs", "deterministic"}:
        continue
    [frame] = table["frames"].keys() & row.keys()
    document = json.loads(table["frames"][frame].replace("@", row[frame]))
    assert validator.is_valid(document) == (row.get("schema") == "accepts"), ("the schema and", row)
print(f"{len(accepted)} documents accepted and {len(rejected)} rejected by schema and program alike")
