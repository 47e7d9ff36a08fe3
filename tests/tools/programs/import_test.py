#!/usr/bin/env python3
"""Imports what other programs log, as a sweep, and looks at the answers about it.

  import_test.py PROGRAM [UNITTEST ARGUMENTS]
"""

import json
import shutil

from program_runs import ProgramRuns, event_record, main, scalar_record

FILE = "events.out.tfevents.1700000000.host.1.0"


class ImportTest(ProgramRuns):
    def events(self, path, points, cut=0):
        """`points`: (tag, step, value). The last `cut` bytes are missing."""
        file = self.folder / path / FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        data = event_record(b"\x1a\x0dbrain.Event:2") + b"".join(scalar_record(*point) for point in points)
        file.write_bytes(data[:len(data) - cut])

    def content(self, folder):
        return {path.relative_to(self.folder): (path.read_bytes(), path.stat().st_mtime_ns)
                for path in sorted((self.folder / folder).rglob("*")) if path.is_file()}

    def test_run_names_become_parameters_and_all_answers_work(self):
        for lr in ("0.1", "0.01"):
            for size in ("100", "1000"):
                name = f"Nov24_18-00-00_host-Run(lr={lr}, batch_size={size}, shuffle=True)"
                self.events(f"deep/{name}", [(tag, step, float(lr) * step) for step in (0, 1, 2) for tag in ("Loss", "Accuracy")])
        before = self.content("deep")
        self.assertIn("4 runs in runs/deep", self.sweep("import", "deep").stdout)
        self.assertEqual(before, self.content("deep"))
        runs = self.runs("deep")
        self.assertEqual(sorted(runs), ["lr=0.01,batch_size=100", "lr=0.01,batch_size=1000", "lr=0.1,batch_size=100",
                                        "lr=0.1,batch_size=1000"])
        record = runs["lr=0.1,batch_size=100"]
        self.assertEqual(record["params"], {"lr": 0.1, "batch_size": 100, "shuffle": True})
        self.assertEqual([round(e["loss"], 5) for e in record["epochs"]], [0, 0.1, 0.2])
        self.assertEqual([round(e["accuracy"], 5) for e in record["epochs"]], [0, 0.1, 0.2])
        self.assertRegex(self.sweep("show", "runs/deep").stdout, r"0\.1 +1000")
        for words in (["show", "runs/deep", "--effects"], ["compare", "runs/deep", "--by", "lr", "--metric", "loss"],
                      ["status", "runs/deep"], ["ls", "runs"], ["report", "runs/deep", "-o", "r.html"], ["fsck", "runs/deep"],
                      ["show", "runs/deep/lr=0.1,batch_size=100"]):
            self.sweep(*words)
        exported = json.loads(self.sweep("export", "runs/deep", "--format", "json").stdout)["runs"]
        self.assertEqual([(run["hparams"]["lr"], run["status"]) for run in exported],
                         [(0.01, "success"), (0.01, "success"), (0.1, "success"), (0.1, "success")])
        self.assertEqual(len(exported[0]["scalars"]["Loss"]), 3)
        self.assertIn("was imported from", self.sweep("resume", "runs/deep", code=2).stderr)

    def test_a_metric_that_counts_epochs_among_batches_leaves_the_times_right(self):
        self.events("logs/a", [("loss", step, 1) for step in range(200)] + [("score", 0, 1)])
        self.sweep("import", "logs")
        record, = self.runs("logs").values()
        seconds = [epoch["run_seconds"] for epoch in record["epochs"][1:]]
        self.assertTrue(0 < seconds[0] <= seconds[-1] <= record["seconds"]["run"], (seconds, record["seconds"]))
        self.assertLess(seconds[0], seconds[-1])

    def test_names_may_have_hyphens_commas_and_underscores(self):
        names = {"lr=1e-05-bs=5": (1e-05, 5), "lr=0.5,bs=6": (0.5, 6), "lr=0.25_bs=7": (0.25, 7), "lr=2/bs=8": (2, 8),
                 "2024_lr=0.125_bs=9": (0.125, 9)}
        for name in names:
            self.events(f"x/{name}", [("loss", 1, 1)])
        self.sweep("import", "x")
        self.assertEqual({(r["params"]["lr"], r["params"]["bs"]) for r in self.runs("x").values()}, set(names.values()))

    def test_what_torchs_add_scalars_and_a_test_write_is_part_of_the_run(self):
        for run in ("a", "b"):
            self.events(f"x/{run}", [("Loss/train", 1, 1), ("Loss/train", 2, 1)])
            for key in ("one", "three"):
                self.events(f"x/{run}/my_tag_{key}", [("my/tag", 1, 1), ("my/tag", 2, len(key))])
                self.events(f"x/{run}/my/own/{key}", [("my/own", 2, -len(key))])  # tensorboardX's
                self.events(f"x/{run}/a (b)/{key}", [("a__b_", 2, len(key))])  # likewise, of add_scalars("a (b)", …)
            self.events(f"x/{run}/loss/val", [("loss", 2, 9)])  # likewise
        for part in ("train", "test"):
            self.events(f"x/tf/{part}", [("loss", 1, 1), ("loss", 2, len(part))])
        self.events("x/test", [("loss", 1, 1)])  # a run of that name
        self.events("x", [])
        self.assertEqual(self.sweep("import", "x").stderr, "sweep: x: left out, as it has no scalars\n")
        runs = {name[4:]: record["epochs"][-1] for name, record in self.runs("x").items()}
        self.assertEqual(sorted(runs), ["a", "b", "test", "tf"])
        self.assertEqual((runs["a"]["my/tag_one"], runs["b"]["my/tag_three"], runs["a"]["loss"]), (3, 5, 1))
        self.assertEqual((runs["a"]["my/own_one"], runs["b"]["my/own_three"], runs["b"]["validation_loss"]), (-3, -5, 9))
        self.assertEqual((runs["a"]["a__b__one"], runs["b"]["a__b__three"]), (3, 5))
        self.assertEqual((runs["tf"]["loss"], runs["tf"]["test_loss"], runs["test"]["loss"]), (5, 4, 1))

    def test_settings_of_lightning_are_read_and_what_is_nested_is_told(self):
        for version, lr in enumerate(("0.1", "1e-3")):
            folder = f"lightning_logs/version_{version}"
            self.events(folder, [("train_loss", 9, 2), ("val_acc", 10, 0.5), ("val_loss", 10, 3), ("test_acc", 10, 0.75),
                                 ("own", 5, 7)])
            (self.folder / folder / "hparams.yaml").write_text(f"""# settings
lr: {lr}  # a comment
name: 'it''s # me'
deep: true
layers:
- 3
- 4
optimizer:
  name: adam
text: "a: b"
""")
        done = self.sweep("import", "lightning_logs", "--name", "lit")
        self.assertIn("left out, as only plain values are parameters: layers, optimizer", done.stderr)
        params = [record["params"] for record in self.runs("lit").values()]
        self.assertEqual(sorted(p["lr"] for p in params), [0.001, 0.1])
        self.assertEqual({(p["name"], p["deep"], p["text"]) for p in params}, {("it's # me", True, "a: b")})
        record = self.runs("lit")["lr=0.1"]
        last = record["epochs"][-1]
        self.assertEqual((last["validation_accuracy"], last["validation_loss"], last["test_accuracy"]), (0.5, 3, 0.75))
        # Those that the last step lacks are the run's all the same.
        self.assertEqual((record["metrics"]["loss"], record["metrics"]["own"]), (2, 7))
        self.sweep("fsck", "runs/lit")

    def test_the_parts_of_keras_are_one_run(self):
        for lr in (1, 2):
            for part, value in (("train", 0.5), ("validation", 0.25)):
                self.events(f"keras/lr={lr}/{part}", [("epoch_loss", 0, value), ("epoch_loss", 1, value / 2), ("epoch_auc", 1, value),
                                                      ("evaluation_loss_vs_iterations", 500, 1)])
        self.sweep("import", "keras")
        record = self.runs("keras")["lr=2"]
        self.assertEqual([(e["loss"], e["validation_loss"]) for e in record["epochs"]], [(0.5, 0.25), (0.25, 0.125)])
        self.assertEqual(record["epochs"][1]["validation_epoch_auc"], 0.25)
        self.sweep("fsck", "runs/keras")
        out = self.sweep("export", "runs/keras").stdout
        self.assertEqual(sum("lr=2,Loss/validation" in line for line in out.splitlines()), 2)
        self.assertEqual(sum("lr=2/train,epoch_loss" in line for line in out.splitlines()), 2)

    def test_hyperparameters_of_sessions_count_and_those_of_wandb_files(self):
        self.sweep("lr=0.5,0.25", "--name", "own", "--", "sh", "-c", 'echo "{\\"step\\": 1, \\"loss\\": {lr}}" >> $SWEEP_METRICS')
        for number, run in enumerate(sorted(self.runs("own"))):
            for file in (self.folder / "runs/own" / run).glob("*tfevents*"):
                (self.folder / f"logs/run{number}").mkdir(parents=True)
                shutil.copy(file, self.folder / f"logs/run{number}")
        self.sweep("import", "logs")
        self.assertEqual({run: record["epochs"][0]["loss"] for run, record in self.runs("logs").items()}, {"lr=0.25": 0.25, "lr=0.5": 0.5})
        self.assertEqual(len(list((self.folder / "runs/logs/lr=0.5").glob("*tfevents*"))), 1)
        self.events("wandb/offline-run-1/files", [("loss", 1, 1)])
        (self.folder / "wandb/offline-run-1/files/config.yaml").write_text("""wandb_version: 1
lr:
  desc: null
  value: 0.125
_wandb:
  desc: null
  value: {cli: 1}
""")
        self.sweep("import", "wandb", "--name", "w")
        self.assertEqual(self.runs("w")["lr=0.125"]["params"], {"lr": 0.125})

    def test_runs_whose_parameters_differ_only_in_order_are_told_apart(self):
        for name, text in (("a", "lr: 0.1\nwd: 0.5\n"), ("b", "wd: 0.5\nlr: 0.1\n")):
            self.events(f"order/{name}", [("loss", 1, 1)])
            (self.folder / f"order/{name}/hparams.yaml").write_text(text)
        self.sweep("import", "order")
        self.assertEqual(sorted(record["params"]["run"] for record in self.runs("order").values()), ["a", "b"])

    def test_runs_that_nothing_tells_apart_are_told_apart_by_their_directories(self):
        for name in ("a", "b"):
            self.events(f"plain/{name}", [("loss", 1, 1)])
        self.sweep("import", "plain")
        self.assertEqual(sorted(self.runs("plain")), ["run=a", "run=b"])

    def test_files_that_were_cut_anywhere_give_what_is_whole(self):
        size = len(scalar_record("loss", 3, 3))
        for cut in range(size + 1):
            self.events(f"cut/n={cut}", [("loss", step, step) for step in (1, 2, 3)], cut)
        self.sweep("import", "cut")
        for cut in range(size + 1):
            self.assertEqual(len(self.runs("cut")[f"n={cut}"]["epochs"]), 3 if cut == 0 else 2)
        self.sweep("fsck", "runs/cut")

    def test_what_cannot_be_imported_is_said_and_leaves_nothing(self):
        self.events("logs/lr=1", [("loss", 1, 1)])
        (self.folder / "empty").mkdir()
        self.assertIn("empty", self.sweep("import", "empty", code=2).stderr)
        self.assertIn("missing", self.sweep("import", "missing", code=2).stderr)
        self.assertFalse((self.folder / "runs").exists())
        self.sweep("import", "logs")
        self.assertIn("--name", self.sweep("import", "logs", code=2).stderr)
        self.assertIn("--logdir", self.sweep("import", "logs", "--logdir", "logs/deep", "--name", "x", code=2).stderr)
        self.assertIn("--name", self.sweep("import", "logs", "--name", "../x", code=2).stderr)
        self.assertEqual(sorted(path.name for path in self.folder.glob("*")), ["empty", "logs", "runs", "train.py"])


if __name__ == "__main__":
    main()
