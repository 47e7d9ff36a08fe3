#!/usr/bin/env python3
"""Exports networks of every layer type as ONNX and compares ONNX Runtime's outputs with `sweep predict`.

  onnxruntime_test.py --sweep PROGRAM --venv VENV

VENV is made with onnxruntime, onnx and scikit-learn from PyPI if it is missing; without them the test is skipped. Also
compares what `sweep evaluate` says with scikit-learn.
"""

import argparse
import csv
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "support/python"))
from environments import has_modules, make_venv, skip  # noqa: E402


def model_outputs(path, samples):
    import numpy
    import onnx
    import onnxruntime
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    names = {entry.key: entry.value for entry in model.metadata_props}
    assert json.loads(names["classes"]) == ["0", "1", "2"], names
    assert model.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    outputs = session.run(None, {"input": samples.astype(numpy.float32)})[0]
    for i in range(len(samples)):  # any batch size
        one = session.run(None, {"input": samples[i:i + 1].astype(numpy.float32)})[0]
        assert numpy.abs(one - outputs[i:i + 1]).max() < 1e-4
    return outputs


def check_network(program, folder, name):
    import networks
    import numpy
    run = networks.train(program, folder, name)
    networks.run(program, folder, "export-model", run, "-o", f"{name}.onnx")
    predictions = json.loads(networks.run(program, folder, "predict", run, "new.npy", "--json"))["predictions"]
    samples = numpy.load(folder / "new.npy").reshape(-1, 1, networks.SIDE, networks.SIDE)
    theirs = model_outputs(folder / f"{name}.onnx", samples).astype(numpy.float64)
    if networks.NETWORKS[name][1] == "cross_entropy":
        powers = numpy.exp(theirs - theirs.max(axis=1, keepdims=True))
        theirs = powers / powers.sum(axis=1, keepdims=True)
    kind = "probabilities" if "probabilities" in predictions[0] else "scores"
    ours = numpy.array([list(prediction[kind].values()) for prediction in predictions])
    assert ours.shape == theirs.shape == (7, 3), (ours.shape, theirs.shape)
    assert numpy.ptp(ours, axis=0).max() > 1e-3, "the outputs depend on the input"
    difference = float(numpy.abs(ours - theirs).max())
    print(f"{name}: outputs differ by {difference:.2g} at most")
    assert difference < 1e-4, f"{name}: {ours} {theirs}"


def check_missing_values(program, folder):
    """The model fills in a table's missing values as `predict` does."""
    import networks
    import numpy
    values = [(float("nan") if i % 9 == 0 else i % 7, i * i % 11 / 3) for i in range(60)]
    lines = [f"{'' if a != a else a},{b}" for a, b in values]
    (folder / "gaps.csv").write_text("a,b,kind\n" + "".join(f"{line},{i % 3}\n" for i, line in enumerate(lines)))
    (folder / "new.csv").write_text("a,b\n" + "".join(f"{line}\n" for line in lines[:7]))
    sweep = {"name": "gaps", "dataset": {"path": "gaps.csv", "label": "kind", "missing": "mean"}, "lr": 0.1, "epochs": 2,
             "network": {"name": "n", "layers": [{"type": "linear", "out_features": 3}]}, "device": "cpu"}
    (folder / "gaps.json").write_text(json.dumps(sweep))
    networks.run(program, folder, "gaps.json", "--logdir", "runs", "--quiet")
    networks.run(program, folder, "export-model", "runs/gaps", "-o", "gaps.onnx")
    predictions = json.loads(networks.run(program, folder, "predict", "runs/gaps", "new.csv", "--json"))["predictions"]
    theirs = model_outputs(folder / "gaps.onnx", numpy.array(values[:7]))
    powers = numpy.exp(theirs - theirs.max(axis=1, keepdims=True))
    ours = numpy.array([list(prediction["probabilities"].values()) for prediction in predictions])
    assert numpy.abs(ours - powers / powers.sum(axis=1, keepdims=True)).max() < 1e-4, (ours, theirs)
    print("missing values are filled in")


def check_scores(program, folder):
    """Precision, recall and F1 as scikit-learn has them."""
    import networks
    from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support
    run = networks.train(program, folder, "cnn")
    rows = list(csv.DictReader(io.StringIO(networks.run(program, folder, "predict", run, "--dataset", "--csv"))))
    labels, classes = [row["label"] for row in rows], [row["class"] for row in rows]
    ours = json.loads(networks.run(program, folder, "evaluate", run, "--json"))
    assert ours["confusion"] == confusion_matrix(labels, classes, labels=["0", "1", "2"]).tolist()
    assert abs(ours["accuracy"] - accuracy_score(labels, classes)) < 1e-9
    for average, wanted in ((None, ours["classes"]), ("macro", [ours["mean"]])):
        precision, recall, f1, _ = precision_recall_fscore_support(labels, classes, average=average, zero_division=0)
        theirs = zip(precision, recall, f1) if average is None else [(precision, recall, f1)]
        for our, their in zip(wanted, theirs, strict=True):
            assert max(abs(a - b) for a, b in zip((our["precision"], our["recall"], our["f1"]), their)) < 1e-9, (our, their)
    print("scores are those of scikit-learn")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweep", required=True)
    parser.add_argument("--venv")
    arguments = parser.parse_args()
    if arguments.venv:
        python = make_venv(arguments.venv, "onnxruntime", "onnx", "scikit-learn")
        if not has_modules(python, "onnxruntime", "onnx", "sklearn"):
            skip("no onnxruntime, which is installed from PyPI")
        return subprocess.run([python, "-B", __file__, "--sweep", arguments.sweep], check=False).returncode
    sys.path.insert(0, str(Path(__file__).parent))
    import networks
    program = str(Path(arguments.sweep).resolve())
    with tempfile.TemporaryDirectory() as directory:
        for name in networks.NETWORKS:
            check_network(program, Path(directory), name)
        check_missing_values(program, Path(directory))
        check_scores(program, Path(directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
