"""Trains a random forest on scikit-learn's digits, and reports its accuracy as trees are added."""
import argparse
import json
import os

from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser()
parser.add_argument("--max-depth", type=int)
parser.add_argument("--max-features", default="sqrt")
parser.add_argument("--seed", type=int)
options = parser.parse_args()

train_x, test_x, train_y, test_y = train_test_split(*load_digits(return_X_y=True), random_state=0)
forest = RandomForestClassifier(max_depth=options.max_depth, max_features=options.max_features, random_state=options.seed,
                                warm_start=True)
for trees in (10, 20, 40, 80):
    forest.set_params(n_estimators=trees).fit(train_x, train_y)
    with open(os.environ["SWEEP_METRICS"], "a") as metrics:
        metrics.write(json.dumps({"step": trees, "accuracy": forest.score(train_x, train_y),
                                  "validation_accuracy": forest.score(test_x, test_y)}) + "\n")
