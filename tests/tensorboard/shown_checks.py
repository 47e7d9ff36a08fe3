"""Checks of what a server shows of the directory that demo_logdir writes. Numbers in names of tests are those of
conformance.txt."""

import csv
import io
import json
import math
import struct
import subprocess
import time
import unittest
from types import SimpleNamespace

from server import TensorBoard, check_graph, float32, png_size
from processes import until  # after server, which knows where

CONTEXT = SimpleNamespace(venv=None, demo=None, logdir=None, peers=None)  # set by conformance_test.py
SWEEP_RUNS = [f"sweep/lr={lr},shuffle={shuffle}" for lr in ("0.010000", "0.001000") for shuffle in ("true", "false")]
RUNS = ["graph", "in_parts", "layout", "lines", "pictures", "projector", "resumed", "text", "threads", "values", "lines/group_both_a", "lines/group_both_b"] + SWEEP_RUNS


class Server(unittest.TestCase):
    """One server for all checks of a class."""
    arguments = []
    fast = None  # the loader; set by conformance_test.py
    longMessage = True
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.serve(CONTEXT.logdir, RUNS)

    @classmethod
    def serve(cls, logdir, runs):
        cls.board = cls.enterClassContext(TensorBoard(CONTEXT.venv, logdir, cls.fast, cls.arguments))
        cls.board.wait_for_runs(runs)

    def get(self, path, **query):
        return self.board.plugin(path, **query)

    def post(self, path, body):
        return self.board.plugin(path, body=body)


class Shown(Server):
    """The checks that both loaders must pass."""

    def test_04_runs_have_relative_names(self):
        self.assertEqual(sorted(self.board.get("/data/runs")), sorted(RUNS))

    def test_05_environment(self):
        environment = self.board.get("/data/environment")
        self.assertTrue(environment["version"])
        self.assertEqual(environment["data_location"], str(CONTEXT.logdir))

    def test_06_tabs_of_what_was_logged_are_active(self):
        self.get("projector/runs")  # which makes the projector look for its files
        wanted = {"scalars", "images", "histograms", "distributions", "text", "custom_scalars", "graphs", "hparams", "projector",
                  "timeseries"}
        until(lambda: wanted <= self.board.tabs(), 20, "all tabs are active", 0.5)
        self.assertEqual(self.board.tabs(), wanted)

    def test_07_scalar_tags(self):
        tags = self.get("scalars/tags")
        self.assertEqual(set(tags["values"]), {"plain", "described", "special", "long", "größe/λ", "new_style"})
        self.assertEqual(set(tags["values"]["plain"]), {"displayName", "description"})
        self.assertEqual(set(tags[SWEEP_RUNS[0]]), {"Loss/train", "Loss/validation", "Accuracy/train"})

    def test_08_scalar_values_are_the_floats_written(self):
        self.assertEqual(self.board.points("values", "plain"), [(step, float32(1 / (step + 1))) for step in range(20)])

    def test_08_scalars_of_the_new_style(self):
        self.assertEqual(self.board.points("values", "new_style"), [(step, float32(0.1 * step)) for step in range(3)])

    def test_09_names_and_descriptions_of_v1_scalars(self):
        described = self.get("scalars/tags")["values"]["described"]
        self.assertEqual(described["displayName"], "A name")
        self.assertIn("<strong>bold</strong>", described["description"])
        self.assertIn("moving", self.get("histograms/tags")["values"]["normal"]["description"])
        self.assertIn("<em>image</em>", self.get("images/tags")["pictures"]["single"]["description"])

    def test_10_scalars_that_are_no_floats_and_negative_steps(self):
        self.assertEqual(self.board.points("values", "special"),
                         [(-2, 1.0), (-1, "NaN"), (0, "Infinity"), (1, "-Infinity"), (2, "Infinity"), (3, "-Infinity"),
                          (4, 2.0)])

    def test_11_one_chart_of_several_runs(self):
        answer = self.board.plugin("scalars/scalars_multirun", form={"tag": "Loss/train", "runs": SWEEP_RUNS})
        self.assertEqual(set(answer), set(SWEEP_RUNS))
        self.assertTrue(all(len(points) == 5 for points in answer.values()))

    def test_12_csv(self):
        _, _, data = self.board.fetch("/data/plugin/scalars/scalars", run="values", tag="plain", format="csv")
        rows = list(csv.reader(io.StringIO(data.decode())))
        self.assertEqual(rows[0], ["Wall time", "Step", "Value"])
        self.assertEqual(len(rows), 21)

    def test_13_time_series_index(self):
        index = self.get("timeseries/tags")
        self.assertIn("plain", index["scalars"]["runTagInfo"]["values"])
        self.assertIn("normal", index["histograms"]["runTagInfo"]["values"])
        self.assertIn("batch", index["images"]["tagRunSampledInfo"])

    def test_14_time_series_data(self):
        requests = json.dumps([{"plugin": "scalars", "tag": "plain", "run": "values"}])
        (answer,) = self.board.plugin("timeseries/timeSeries", form={"requests": requests})
        points = answer["runToSeries"]["values"]
        self.assertEqual((points[3]["step"], points[3]["value"]), (3, 0.25))
        self.assertEqual([point["wallTime"] for point in points], sorted(point["wallTime"] for point in points))
        self.assertLess(abs(points[3]["wallTime"] - time.time()), 3600)

    def test_15_long_series_are_sampled_and_keep_the_last_point(self):
        points = self.board.points("values", "long")
        self.assertEqual(len(points), 1000)
        self.assertEqual(points[-1], (2999, 2999.0))

    def test_16_single_image(self):
        self.assertEqual(self.get("images/tags")["pictures"]["single"]["samples"], 1)
        (entry,) = self.get("images/images", run="pictures", tag="single", sample=0)
        self.assertEqual((entry["step"], set(entry)), (0, {"step", "wall_time", "query"}))

    def test_17_image_bytes(self):
        kind, data = self.board.picture("pictures", "single")
        self.assertEqual(kind, "image/png")
        self.assertEqual(png_size(data), (24, 24, 3))
        (file,) = (CONTEXT.logdir / "pictures").glob("*tfevents*")
        self.assertIn(data, file.read_bytes())
        self.assertEqual(png_size(self.board.picture("pictures", "grid")[1]), (242, 242, 1))
        self.assertEqual(png_size(self.board.picture("pictures", "boxes")[1]), (32, 32, 3))

    def test_17_video(self):
        for tag in ("video", "color_video"):
            kind, data = self.board.picture("pictures", tag)
            self.assertEqual((kind, png_size(data)), ("image/png", (64, 64, 3 if tag == "color_video" else 1)))
            self.assertEqual(data[37:49], b"acTL" + struct.pack(">II", 8, 0))

    def test_18_batch_of_three(self):
        self.assertEqual(self.get("images/tags")["pictures"]["batch"]["samples"], 3)
        pictures = [self.board.picture("pictures", "batch", sample=sample)[1] for sample in range(3)]
        self.assertEqual(len(set(pictures)), 3)
        self.assertEqual([png_size(data) for data in pictures], [(20, 20, 1)] * 3)

    def test_19_series_of_images_keeps_ten_and_the_last(self):
        steps = [entry["step"] for entry in self.get("images/images", run="pictures", tag="series", sample=0)]
        self.assertEqual(len(steps), 10)
        self.assertEqual(steps[-1], 24)

    def check_buckets(self, tag, count, points):
        for _, _, buckets in points:
            self.assertAlmostEqual(sum(c for _, _, c in buckets), count, msg=tag)
            for left, right, _ in buckets:
                self.assertLessEqual(left, right, msg=tag)
            for before, after in zip(buckets, buckets[1:]):
                self.assertEqual(before[1], after[0], msg=tag)

    def test_20_histogram(self):
        points = self.get("histograms/histograms", run="values", tag="normal")
        self.assertEqual([step for _, step, _ in points], list(range(20)))
        self.check_buckets("normal", 1000, points)

    def test_20_histogram_of_given_counts(self):
        (point,) = self.get("histograms/histograms", run="values", tag="counted")
        self.assertEqual(point[2], [[-0.5, 0.0, 3.0], [0.0, 1.0, 0.0], [1.0, 1.5, 5.0]])

    def test_20_histogram_with_the_buckets_of_numpy(self):
        (point,) = self.get("histograms/histograms", run="values", tag="bins")
        # numpy.histogram([1, 2, 2, 3, 9.], "auto") has the counts 3, 1, 0, 0, 1 and the width 1.6.
        self.assertEqual([count for _, _, count in point[2]], [3.0, 1.0, 0.0, 1.0])
        for (_, right, _), wanted in zip(point[2], [2.6, 4.2, 7.4, 9.0]):
            self.assertAlmostEqual(right, wanted, places=5)

    def test_21_empty_single_and_diverged_histograms(self):
        (none,) = self.get("histograms/histograms", run="values", tag="none")
        self.assertEqual(none[2], [])
        (one,) = self.get("histograms/histograms", run="values", tag="one")
        ((left, right, count),) = one[2]
        self.assertTrue(left <= 2.5 <= right and count == 1, msg=one)
        (diverged,) = self.get("histograms/histograms", run="values", tag="diverged")
        self.check_buckets("diverged", 2, [diverged])

    def test_22_distribution(self):
        points = self.get("distributions/distributions", run="values", tag="normal")
        for _, _, pairs in points:
            self.assertEqual(len(pairs), 9)
            values = [value for _, value in pairs]
            self.assertEqual(values, sorted(values))

    def test_22_distribution_is_that_of_all_empty_buckets(self):
        """Neighbouring empty buckets are stored as one. Cutting each into three gives the same quantiles, to the bit."""
        rows = [buckets for _, _, buckets in self.get("histograms/histograms", run="values", tag="sparse")]
        cut = []
        for buckets in rows:
            self.assertTrue(any(count == 0 for _, _, count in buckets))
            self.assertFalse(any(a[2] == b[2] == 0 for a, b in zip(buckets, buckets[1:])))
            cut.append([])
            for left, right, count in buckets:
                parts = 3 if count == 0 else 1
                ends = [left + (right - left) * part / parts for part in range(parts)] + [right]
                cut[-1] += [[a, b, count] for a, b in zip(ends, ends[1:])]
        code = ("import json, sys; import numpy as np; from tensorboard.plugins.distribution import compressor; "
                "print(json.dumps([[list(map(float, pair)) for pair in compressor.compress_histogram(np.array(b))] "
                "for b in json.load(sys.stdin)]))")
        done = subprocess.run([CONTEXT.venv / "bin/python", "-c", code], input=json.dumps(cut), capture_output=True,
                              text=True, check=True)
        shown = [pairs for _, _, pairs in self.get("distributions/distributions", run="values", tag="sparse")]
        self.assertEqual(json.loads(done.stdout), [[list(map(float, pair)) for pair in pairs] for pairs in shown])

    def test_22_numbers_beyond_float_have_a_distribution(self):
        ((_, _, pairs),) = self.get("distributions/distributions", run="values", tag="huge")
        self.assertTrue(all(math.isfinite(float(value)) for _, value in pairs), pairs)

    def test_23_text(self):
        self.assertEqual(set(self.get("text/tags")["text"]), {"markdown", "table", "broken", "script"})
        (markdown,) = self.get("text/text", run="text", tag="markdown")
        self.assertIn("<h1>Title</h1>", markdown["text"])
        self.assertNotIn("<td>", markdown["text"])
        (table,) = self.get("text/text", run="text", tag="table")
        self.assertIn("<table>", table["text"])

    def test_24_text_that_is_not_utf8(self):
        (broken,) = self.get("text/text", run="text", tag="broken")
        self.assertIn("caf\ufffd \ufffd", broken["text"])

    def test_25_scripts_are_escaped(self):
        (script,) = self.get("text/text", run="text", tag="script")
        self.assertNotIn("<script", script["text"])

    def test_30_losses_of_all_runs(self):
        for run in SWEEP_RUNS:
            answer = self.get("custom_scalars/scalars", run=run, tag="Loss/.*")
            self.assertTrue(answer["regex_valid"])
            self.assertEqual(set(answer["tag_to_events"]), {"Loss/train", "Loss/validation"})

    def test_31_hparams_columns_are_derived(self):
        experiment = self.post("hparams/experiment", {})
        infos = {info["name"]: info for info in experiment["hparamInfos"]}
        self.assertEqual(infos["lr"]["type"], "DATA_TYPE_FLOAT64")
        self.assertEqual((infos["lr"]["domainInterval"]["minValue"], infos["lr"]["domainInterval"]["maxValue"]),
                         (0.001, 0.01))
        self.assertEqual(infos["shuffle"]["type"], "DATA_TYPE_BOOL")
        self.assertEqual(sorted(infos["shuffle"]["domainDiscrete"]), [False, True])
        self.assertEqual((infos["device"]["type"], infos["device"]["domainDiscrete"]), ("DATA_TYPE_STRING", ["cpu"]))
        self.assertEqual([infos[name]["differs"] for name in ("lr", "shuffle", "batch_size", "device")],
                         [True, True, False, False])
        metrics = {(info["name"].get("group", ""), info["name"]["tag"]) for info in experiment["metricInfos"]}
        self.assertLessEqual({("", "Loss/train"), ("", "Loss/validation"), ("", "Accuracy/train")}, metrics)

    def test_32_sessions_are_the_runs(self):
        groups = {group["name"]: group for group in self.board.sessions()}
        self.assertEqual(set(groups), set(SWEEP_RUNS))
        group = groups[SWEEP_RUNS[0]]
        self.assertEqual(group["hparams"], {"lr": 0.01, "shuffle": True, "batch_size": 100.0, "device": "cpu"})
        self.assertIs(group["hparams"]["shuffle"], True)
        metrics = {value["name"]["tag"]: value for value in group["metricValues"]}
        self.assertEqual((metrics["Loss/train"]["value"], metrics["Loss/train"]["trainingStep"]), (float32(0.2), 4))
        (session,) = group["sessions"]
        self.assertEqual((session["startTimeSecs"], session["endTimeSecs"]), (1.7e9, 1.7e9 + 60))

    def test_33_sort_and_filter(self):
        column = {"hparam": "lr", "order": "ORDER_DESC"}
        rates = [group["hparams"].get("lr") for group in self.board.sessions(colParams=[column])]
        self.assertEqual([rate for rate in rates if rate is not None], [0.01, 0.01, 0.001, 0.001])
        kept = self.board.sessions(colParams=[{"hparam": "lr", "filterInterval": {"minValue": 0.005, "maxValue": 1},
                                         "excludeMissingValues": True}])
        self.assertEqual({group["name"] for group in kept}, set(SWEEP_RUNS[:2]))
        kept = self.board.sessions(colParams=[{"hparam": "shuffle", "filterDiscrete": [True], "excludeMissingValues": True}])
        self.assertEqual({group["name"] for group in kept}, {SWEEP_RUNS[0], SWEEP_RUNS[2]})

    def test_36_status_of_success_failure_and_a_killed_process(self):
        status = {group["name"]: group["sessions"][0].get("status", "STATUS_UNKNOWN") for group in self.board.sessions()}
        self.assertEqual([status[run] for run in SWEEP_RUNS],
                         ["STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_SUCCESS", "STATUS_UNKNOWN"])
        self.assertEqual(len(self.board.points(SWEEP_RUNS[3], "Loss/train")), 5, "points of a process that never closed its file")

    def test_37_series_of_a_metric(self):
        triples = self.post("hparams/metric_evals", {"sessionName": SWEEP_RUNS[0],
                                                     "metricName": {"group": "", "tag": "Loss/train"}})
        self.assertEqual([tuple(triple[1:]) for triple in triples], self.board.points(SWEEP_RUNS[0], "Loss/train"))

    def test_38_graph_info(self):
        info = self.get("graphs/info")["graph"]
        self.assertTrue(info["run_graph"])
        self.assertTrue(info["tags"]["step 10"]["profile"])

    def test_39_graph(self):
        nodes = self.board.graph("graph")
        self.assertEqual(check_graph(nodes), [])
        self.assertEqual(len(nodes), 7)
        for node in nodes:
            self.assertIn("_output_shapes", node["attr"])
        conv = next(node for node in nodes if node["name"] == "conv1/conv2d")
        self.assertLessEqual({"kernel_size", "parameters", "output_shapes"}, set(conv["attr"]))

    def test_40_profile(self):
        status, _, data = self.board.fetch("/data/plugin/graphs/run_metadata", run="graph", tag="step 10")
        self.assertEqual(status, 200)
        text = data.decode()
        names = {node["name"] for node in self.board.graph("graph")}
        for name in names:
            self.assertIn(f'node_name: "{name}"', text)
        self.assertIn('device: "/device:GPU:0"', text)

    def test_43_resumed_run(self):
        steps = [step for step, _ in self.board.points("resumed", "again")]
        self.assertEqual(steps, list(range(10)))
        self.assertEqual(self.board.points("resumed", "again")[5], (5, 105.0))
        if not self.fast:
            self.assertEqual([step for step, _ in self.board.points("resumed", "not_again")], list(range(5)))

    def test_44_several_files_lose_nothing(self):
        self.assertEqual(len(list((CONTEXT.logdir / "in_parts").glob("*tfevents*"))), 3)
        self.assertEqual(self.board.points("in_parts", "s"), [(step, float(step)) for step in range(90)])
        self.assertIn("kept", self.get("scalars/tags")["in_parts"]["s"]["description"])

    def test_45_two_threads(self):
        for tag in ("one", "two"):
            self.assertEqual([step for step, _ in self.board.points("threads", tag)], list(range(500)))

    def test_47_projector(self):
        self.assertIn("projector", self.get("projector/runs"))
        info = self.get("projector/info", run="projector")
        names = [embedding["tensorName"] for embedding in info["embeddings"]]
        self.assertEqual(names, ["points:00003", "plain:00000"])
        _, _, tensor = self.board.fetch("/data/plugin/projector/tensor", run="projector", name="points:00003")
        self.assertEqual(len(tensor), 50 * 5 * 4)
        self.assertAlmostEqual(struct.unpack("<f", tensor[20:24])[0], math.sin(0.1), places=6)
        _, _, metadata = self.board.fetch("/data/plugin/projector/metadata", run="projector", name="points:00003")
        lines = metadata.decode().splitlines()
        self.assertEqual((lines[0], lines[1], len(lines)), ("name\tclass", "point 0\t0", 51))
        _, _, sprite = self.board.fetch("/data/plugin/projector/sprite_image", run="projector", name="points:00003")
        self.assertEqual(png_size(sprite), (128, 112, 1))

    def test_lines_of_one_chart_are_runs(self):
        self.assertEqual(self.board.points("lines/group_both_b", "group/both"), [(0, 2.0)])
