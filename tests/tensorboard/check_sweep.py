#!/usr/bin/env python3
"""Checks what the real TensorBoard shows of a finished sweep's directory against the sweep's own result files.

  check_sweep.py SWEEP_DIRECTORY [--venv VENV] [--loader fast|slow|both] [--picture HEIGHTxWIDTH]

Exit codes: 0 all is as it should be, 1 it is not (each problem is a line), 77 there is no TensorBoard to ask.
Use as a module: problems(sweep_directory, venv, fast) returns the lines.
"""

import argparse
import csv
import json
import math
import re
import sys
from html import unescape
from pathlib import Path

from aggregate_runs import MORE_TAGS, aggregates
from run_metadata import check_run_metadata, parse_run_metadata
from server import TensorBoard, check_graph, float32, needed_venv, png_size

# Scalar tag: column of results.csv.
SCALARS = {
    "Loss/train": "loss",
    "Accuracy/train": "accuracy",
    "Number Correct/train": "number_correct",
    "Loss/validation": "validation_loss",
    "Accuracy/validation": "validation_accuracy",
    "Loss/test": "test_loss",
    "Accuracy/test": "test_accuracy",
    "Duration/epoch_seconds": "epoch_seconds",
    "Time/images_per_second": "images_per_second",
}
OTHER_SCALARS = ["Time/data_wait_seconds", "Optimizer/lr"]
METRICS = ["Accuracy/train", "Loss/train", "Accuracy/validation", "Loss/validation", "Duration/epoch_seconds"]
# What the page of hyperparameters ticks: the first five metrics by name.
FIRST_METRICS = ["Accuracy/test", "Accuracy/train", "Accuracy/validation", "Duration/epoch_seconds", "Loss/test"]
STATUS = {"completed": "STATUS_SUCCESS", "failed": "STATUS_FAILURE", "interrupted": "STATUS_UNKNOWN"}
COLUMNS = ["run", "status", "epoch", "loss", "accuracy", "number_correct", "validation_loss", "validation_accuracy",
           "test_loss", "test_accuracy", "epoch_seconds", "run_seconds", "images_per_second"]


def same(shown, written):
    """Whether TensorBoard's number is the written one, which it keeps as a float."""
    shown = float(shown)  # "NaN" and "Infinity" are texts in its JSON
    written = float32(written)
    if math.isnan(written) or math.isinf(written):
        return repr(shown) == repr(written)
    return abs(shown - written) <= 1e-6 * max(abs(shown), abs(written))


def table_rows(html):
    """The cells' texts of each row of the tables in TensorBoard's HTML."""
    cell = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.S)
    return [[unescape(re.sub("<[^>]*>", "", text)).strip() for text in cell.findall(row)]
            for row in re.findall(r"<tr>(.*?)</tr>", html, re.S)]


class SweepCheck:
    def __init__(self, board, directory, picture):
        self.board, self.directory, self.picture = board, Path(directory), picture
        self.found = []
        results = json.loads((self.directory / "results.json").read_text())
        self.runs = {run["name"]: run for run in results["runs"] if run["status"] != "pending"}
        with open(self.directory / "results.csv", newline="") as file:
            self.columns, *rows = csv.reader(file)
        # A swept key may be called as a column before it is.
        self.rows = [dict(zip(reversed(self.columns), reversed(row))) for row in rows]
        self.keys = list(dict.fromkeys(key for run in self.runs.values() for key in run["params"]))
        self.log = json.loads((self.directory / "sweep.json").read_text()).get("log", {})

    def problem(self, text):
        self.found.append(text)

    def expect(self, what, got, wanted):
        if got != wanted:
            self.problem(f"{what}: got {got!r}, want {wanted!r}")

    def wanted(self, kind):
        return self.log.get(kind, True) not in (False, 0)

    def all(self):
        self.board.wait_for_runs(self.shown())
        for step in (self.result_files, self.run_names, self.scalars, self.images, self.graphs,
                     self.profiles, self.histograms_and_text, self.hparams_columns, self.hparams_rows):
            try:
                step()
            except Exception as error:  # One broken answer must not hide the other findings.
                self.problem(f"{step.__name__}: {type(error).__name__}: {error}")
        return self.found

    def shown(self):
        """Runs with events: not those that were skipped."""
        return [name for name, run in self.runs.items() if run["status"] != "skipped"]

    def trained(self):
        return [name for name, run in self.runs.items() if run["epochs"]]

    def result_files(self):
        self.expect("columns of results.csv", self.columns[:len(COLUMNS)], COLUMNS)
        # "jobs" says that runs shared the machine.
        shared = {"jobs"} if any("jobs" in run for run in self.runs.values()) else set()
        self.expect("swept keys in results.csv", set(self.columns[len(COLUMNS):]), set(self.keys) | shared)
        for name, run in self.runs.items():
            rows = [row for row in self.rows if row["run"] == name]
            self.expect(f"{name}: rows of results.csv with an epoch", len([row for row in rows if row["epoch"]]),
                        len(run["epochs"]))

    def run_names(self):
        self.expect("runs", sorted(self.board.get("/data/runs")), sorted(self.shown()))

    def scalars(self):
        tags = self.board.plugin("scalars/tags")
        for name in self.trained():
            rows = [row for row in self.rows if row["run"] == name and row["epoch"]]
            for tag, column in SCALARS.items():
                written = [(int(row["epoch"]), row[column]) for row in rows if row[column] != ""]
                if not written:
                    if tag in tags.get(name, {}):
                        self.problem(f"{name}: {tag} is shown but not in results.csv")
                    continue
                if tag not in tags.get(name, {}):
                    self.problem(f"{name}: {tag} is not shown")
                    continue
                shown = self.board.points(name, tag)
                self.expect(f"{name}: steps of {tag}", [step for step, _ in shown], [epoch for epoch, _ in written])
                for (step, value), (_, number) in zip(shown, written):
                    if not same(value, number):
                        self.problem(f"{name}: {tag} at step {step} is shown as {value}, but results.csv has {number}")
            metrics = json.loads((self.directory / name / "run.json").read_text()).get("metrics", {})
            for tag, metric in (("Loss/test", "test_loss"), ("Accuracy/test", "test_accuracy")):
                if metric not in metrics:
                    continue
                shown = self.board.points(name, tag)
                if [step for step, _ in shown] != [int(rows[-1]["epoch"])] or not same(shown[0][1], metrics[metric]):
                    self.problem(f"{name}: {tag} is shown as {shown}, but run.json has {metrics[metric]}")
            for tag in OTHER_SCALARS:
                if tag not in tags.get(name, {}):
                    self.problem(f"{name}: {tag} is not shown")
            if "Time/setup_seconds" in tags.get(name, {}):
                self.problem(f"{name}: a chart of one point, Time/setup_seconds")

    def batch_size(self, run):
        if "batch_size" in run["params"]:
            return run["params"]["batch_size"]
        config = json.loads((self.directory / run["name"] / "run.json").read_text()).get("config", {})
        return config.get("batch_size", config.get("params", {}).get("batch_size", 64))

    def images(self):
        most = self.log.get("images", 64)
        if not most:
            return
        tags = self.board.plugin("images/tags")
        for name in self.trained():
            if "images" not in tags.get(name, {}):
                self.problem(f"{name}: no images")
                continue
            self.expect(f"{name}: samples of images", tags[name]["images"]["samples"], 1)
            kind, data = self.board.picture(name, "images")
            self.expect(f"{name}: type of the picture", kind, "image/png")
            width, height, _ = png_size(data)
            count = min(most, self.batch_size(self.runs[name]))
            columns = min(8, count)
            rows = -(-count // columns)
            self.expect(f"{name}: height and width of the grid", (height, width),
                        (rows * (self.picture[0] + 2) + 2, columns * (self.picture[1] + 2) + 2))

    def graphs(self):
        if not self.wanted("graph"):
            return
        info = self.board.plugin("graphs/info")
        for name in self.trained():
            if not info.get(name, {}).get("run_graph"):
                self.problem(f"{name}: no graph")
                continue
            nodes = self.board.graph(name)
            for problem in check_graph(nodes):
                self.problem(f"{name}: {problem}")
            roots = {node["name"].split("/")[0] for node in nodes}
            if len(roots) < 5:
                self.problem(f"{name}: the graph opens with {sorted(roots)} only")
            for node in nodes:
                if {"shape", "output_shape"} & set(node["attr"]):
                    self.problem(f"{name}: {node['name']} has its shape twice")
            if not any("/" in node["name"] for node in nodes):
                self.problem(f"{name}: no module of the graph can be expanded")
            if not any("_output_shapes" in node["attr"] for node in nodes):
                self.problem(f"{name}: no edge of the graph has a shape")

    def profiles(self):
        if not self.wanted("graph"):
            return
        info = self.board.plugin("graphs/info")
        for name in self.trained():
            tags = [tag for tag, entry in info.get(name, {}).get("tags", {}).items() if entry["profile"]]
            if len(tags) != 1:
                self.problem(f"{name}: profiles of {len(tags)} steps, not of one")
                continue
            status, _, data = self.board.fetch("/data/plugin/graphs/run_metadata", run=name, tag=tags[0])
            self.expect(f"{name}: the profile's status", status, 200)
            samples = int(tags[0].split()[2])  # "step of 100 samples"
            for problem in check_run_metadata(parse_run_metadata(data.decode()), self.board.graph(name), samples):
                self.problem(f"{name}: {problem}")

    def histograms_and_text(self):
        histograms = self.board.plugin("histograms/tags")
        text = self.board.plugin("text/tags")
        for name in self.trained():
            if self.wanted("histograms"):
                tags = set(histograms.get(name, {}))
                weights = {tag.removeprefix("weights/") for tag in tags if tag.startswith("weights/")}
                if not weights or {"gradients/" + tag for tag in weights} | {"weights/" + tag for tag in weights} != tags:
                    self.problem(f"{name}: histograms of parameters and their gradients are {sorted(tags)}")
            if self.wanted("text"):
                self.texts_of(name, text.get(name, []))

    def texts_of(self, name, tags):
        missing = set(self.hparams_of(name)) - set(self.runs[name]["params"])
        self.expect(f"{name}: text of keys that do not count", "not swept" in tags, bool(missing))
        for key in missing:
            if key not in self.board.plugin("text/text", run=name, tag="not swept")[0]["text"]:
                self.problem(f"{name}: the text does not say that {key} does not count")
        for tag in ("configuration", "network", "metrics"):
            if tag not in tags:
                self.problem(f"{name}: no text {tag}")
                return
        rows = {tag: table_rows(self.board.plugin("text/text", run=name, tag=tag)[0]["text"])
                for tag in ("configuration", "network", "metrics")}
        for cells in rows["configuration"]:
            if any("{" in cell for cell in cells):
                self.problem(f"{name}: the configuration has JSON: {cells}")
        record = json.loads((self.directory / name / "run.json").read_text())
        self.expect(f"{name}: header of the layers", rows["network"][0],
                    ["layer", "type", "arguments", "output", "parameters", "FLOPs"])
        layers = {node["name"] for node in record["config"]["network"]["layers"]}
        if not layers & {cells[0].split(".")[0] for cells in rows["network"]}:
            self.problem(f"{name}: layers are {rows['network']}, not {layers}")
        parameters = [int("".join(filter(str.isdigit, cells[4])) or 0) for cells in rows["network"][1:]]
        self.expect(f"{name}: the layers' parameters", sum(parameters[:-1]), parameters[-1])
        setup = dict(rows["metrics"]).get("setup_seconds", "nan")
        if not math.isclose(float(setup), self.runs[name]["setup_seconds"], rel_tol=1e-5):
            self.problem(f"{name}: setup_seconds is {setup}, but run.json has {record['setup_seconds']}")

    def hparams_of(self, name):
        """The run's parameters, and what holds in it of keys that only other runs have."""
        return {**self.runs[name]["params"], **json.loads((self.directory / name / "run.json").read_text()).get("not_swept", {})}

    def hparams_columns(self):
        if not self.wanted("hparams"):
            return
        experiment = self.board.plugin("hparams/experiment", body={})
        infos = {info["name"]: info for info in experiment["hparamInfos"]}
        self.expect("hyperparameters", sorted(infos), sorted(self.keys))
        for key in self.keys:
            of_runs = [self.hparams_of(name) for name in self.shown()]
            values = [hparams[key] for hparams in of_runs if key in hparams]
            self.expect(f"runs that parallel coordinates show by {key}", len(values), len(of_runs))
            info = infos.get(key, {})
            types = {bool: "DATA_TYPE_BOOL", str: "DATA_TYPE_STRING"}
            self.expect(f"type of {key}", info.get("type"), types.get(type(values[0]), "DATA_TYPE_FLOAT64"))
            self.expect(f"{key}: differs", bool(info.get("differs")), len(set(values)) > 1)
            if isinstance(values[0], (bool, str)):
                self.expect(f"domain of {key}", sorted(map(str, info.get("domainDiscrete", []))),
                            sorted(map(str, set(values))))
            else:
                interval = info.get("domainInterval", {})
                self.expect(f"domain of {key}", (interval.get("minValue"), interval.get("maxValue")),
                            (min(values), max(values)))
        tags = {info["name"]["tag"] for info in experiment["metricInfos"] if info["name"].get("group", "") == ""}
        if self.trained() and self.validated():
            of_epochs = [tag for tag in tags if not tag.endswith("/batch")]  # log.batches puts its own before them
            self.expect("first metrics", sorted(of_epochs)[:5], FIRST_METRICS)
        for tag in METRICS:
            if self.trained() and tag not in tags and not ("validation" in tag and not self.validated()):
                self.problem(f"the metric {tag} is not offered")

    def validated(self):
        return any(row["validation_loss"] for row in self.rows)

    def hparams_rows(self):
        if not self.wanted("hparams"):
            return
        sessions = self.board.sessions()
        groups = {group["name"]: group for group in sessions}
        self.expect("rows", sorted(groups), sorted(self.shown()))
        self.expect("number of rows", len(sessions), len(self.shown()))
        for name, run in self.runs.items():
            if name not in groups:
                continue
            group = groups[name]
            (session,) = group["sessions"]
            self.expect(f"{name}: session", session["name"], name)
            self.expect(f"{name}: hyperparameters", {key: (type(value) is bool, value) for key, value in group["hparams"].items()},
                        {key: (type(value) is bool, value) for key, value in self.hparams_of(name).items()})
            self.expect(f"{name}: status", session.get("status", "STATUS_UNKNOWN"), STATUS[run["status"]])
            shown = {value["name"]["tag"]: value for value in group.get("metricValues", [])}
            rows = [row for row in self.rows if row["run"] == name and row["epoch"]]
            for tag in METRICS:
                written = [row for row in rows if row[SCALARS[tag]] != ""]
                if not written:
                    continue
                if tag not in shown:
                    self.problem(f"{name}: no metric {tag}")
                elif not same(shown[tag]["value"], written[-1][SCALARS[tag]]):
                    self.problem(f"{name}: metric {tag} is {shown[tag]['value']}, but results.csv has "
                                 f"{written[-1][SCALARS[tag]]}")
                elif shown[tag].get("trainingStep", 0) != int(written[-1]["epoch"]):
                    self.problem(f"{name}: metric {tag} is of step {shown[tag].get('trainingStep')}")


def mean_problems(directory, venv, fast):
    """The same for the means of the sweep's repeats, in the log directory next to it."""
    runs = {run["name"]: run for run in json.loads((directory / "results.json").read_text())["runs"]}
    wanted = aggregates(runs)
    means = directory.with_name(directory.name + ".mean")
    if not wanted:
        return [f"{means} is there without repeats"] if means.exists() else []
    found = []
    with TensorBoard(venv, means, fast) as board:
        names = [path.name for path in means.iterdir()]
        board.wait_for_runs(names)
        if sorted(board.get("/data/runs")) != sorted(names) or len(names) != len(wanted):
            found.append(f"{means}: runs {sorted(board.get('/data/runs'))}, not {len(wanted)}")
        tags = board.plugin("scalars/tags")
        rows = board.sessions()
        for params, lines in wanted:
            of_params = [row for row in rows if row["hparams"] == params]
            if len(of_params) != 1:
                found.append(f"{means}: {len(of_params)} rows of hyperparameters for {params}")
                continue
            name = of_params[0]["name"]
            shown_tags = {tag for tag in tags.get(name, {}) if tag.removeprefix("Std/") not in MORE_TAGS}
            if shown_tags != set(lines):
                found.append(f"{name}: tags {sorted(shown_tags)}, not {sorted(lines)}")
            for tag in set(lines) & shown_tags:
                shown = board.points(name, tag)
                for (step, value), (epoch, number) in zip(shown, lines[tag], strict=True):
                    scale = next(abs(v) for e, v in lines[tag.removeprefix("Std/")] if e == epoch)
                    close = math.isclose(float(value), number, rel_tol=1e-5, abs_tol=1e-6 * scale)
                    if step != epoch or not (close or math.isnan(float(value)) and math.isnan(number)):
                        found.append(f"{name}: {tag} at step {step} is shown as {value}, but the repeats give {number}")
    return found


def problems(directory, venv, fast, picture=(28, 28)):
    """Everything that TensorBoard shows of the sweep in another way than its result files, one sentence each."""
    directory = Path(directory)
    with TensorBoard(venv, directory, fast) as board:
        found = SweepCheck(board, directory, picture).all()
    return found + mean_problems(directory, venv, fast)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("--venv")
    parser.add_argument("--loader", choices=["fast", "slow", "both"], default="both")
    parser.add_argument("--picture", default="28x28", help="height and width of one sample")
    arguments = parser.parse_args()
    venv = needed_venv(arguments.venv)
    picture = tuple(int(extent) for extent in arguments.picture.split("x"))
    failed = False
    for fast in {"fast": [True], "slow": [False], "both": [True, False]}[arguments.loader]:
        found = problems(arguments.directory, venv, fast, picture)
        loader = "fast loader" if fast else "Python loader"
        for line in found:
            print(f"{loader}: {line}")
        print(f"{loader}: {len(found)} problems")
        failed |= bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
