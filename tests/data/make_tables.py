#!/usr/bin/env python3
# Makes tables/*.csv and digits.csv.gz, real tables of the UCI repository as scikit-learn's package has them (BSD licence), and
# tables/figures.json, what scikit-learn's own networks reach on them. Run by hand:
#
#   python3 -m venv /tmp/tables && /tmp/tables/bin/pip install scikit-learn
#   /tmp/tables/bin/python tests/data/make_tables.py
#
# The column "split" says which quarter of the rows is the test set. A figure is the mean over ten seeds of the accuracy,
# or of R² for diabetes, on that set: columns normalised by the training rows, one hidden layer of 32 with relu, Adam with
# lr 0.005, batches of 16, the epochs given.
import csv
import gzip
import io
import json
import pathlib
import warnings

import numpy as np
import sklearn
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).resolve().parent / "tables"
EPOCHS = {"iris": 40, "wine": 40, "breast_cancer": 20, "digits": 20, "diabetes": 100}


def write(name, data, last, compressed=False):
    is_class = last == "label"
    names = [n.replace(" (cm)", "").replace(" ", "_") for n in data.feature_names]
    train, _ = train_test_split(np.arange(len(data.target)), test_size=0.25, random_state=0, stratify=data.target if is_class else None)
    split = np.full(len(data.target), "test", dtype=object)
    split[train] = "train"
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, last, "split"])
    for x, y, part in zip(data.data, data.target, split):
        writer.writerow([*(f"{v:.6g}" for v in x), str(data.target_names[y]) if is_class else f"{y:.6g}", part])
    if compressed:
        (HERE / f"{name}.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    else:
        (HERE / f"{name}.csv").write_text(text.getvalue())
    scaler = StandardScaler().fit(data.data[train])
    x, is_train = scaler.transform(data.data), split == "train"
    make = MLPClassifier if is_class else MLPRegressor
    scores = [make(hidden_layer_sizes=(32,), alpha=0, batch_size=16, learning_rate_init=0.005, max_iter=EPOCHS[name], n_iter_no_change=1000,
                   random_state=seed).fit(x[is_train], data.target[is_train]).score(x[~is_train], data.target[~is_train])
              for seed in range(10)]
    print(name, len(split), np.round(scores, 3))
    return {"epochs": EPOCHS[name], "accuracy" if is_class else "r2": round(float(np.mean(scores)), 4)}


HERE.mkdir(exist_ok=True)
figures = {"scikit-learn": sklearn.__version__,
           "iris": write("iris", datasets.load_iris(), "label"), "wine": write("wine", datasets.load_wine(), "label"),
           "breast_cancer": write("breast_cancer", datasets.load_breast_cancer(), "label"),
           "digits": write("digits", datasets.load_digits(), "label", compressed=True),
           "diabetes": write("diabetes", datasets.load_diabetes(scaled=False), "target")}
(HERE / "figures.json").write_text(json.dumps(figures, indent=2) + "\n")
