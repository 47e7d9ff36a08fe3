#!/usr/bin/env python3
"""Runs programs in sh and Python as the runs of sweeps, and looks at the metrics and the output that are left of them.

  command_metrics_test.py PROGRAM [UNITTEST ARGUMENTS]

PROGRAM is the sweep program.
"""

import csv

from program_runs import ProgramRuns, main, scalar_record


class CommandMetricsTest(ProgramRuns):
    def test_metrics_of_json_lines_of_output_and_of_events_are_recorded(self):
        record = self.run_of("sh", "-c", """echo '{"step": 1, "loss": 0.5}' >> $SWEEP_METRICS
            echo '{"step": 2, "loss": NaN, "score": -Infinity}' >> $SWEEP_METRICS
            echo 'epoch 1: acc=0.25'; echo 'epoch 2: acc=7.5e-1'; printf 'no newline, epoch 3: acc=1'""",
                             metrics={"acc": "epoch (?<step>[0-9]+): acc=([0-9.e+-]+)"})
        self.assertEqual([(e["loss"], e["acc"]) for e in record["epochs"]], [(0.5, 0.25), ("NaN", 0.75), (None, 1)])
        self.assertEqual(record["epochs"][1]["score"], "-Infinity")
        self.assertEqual([self.rows()[0][key] for key in ("status", "epoch", "loss")], ["completed", "1", "0.5"])

    def test_each_start_over_leaves_every_point_once(self):
        # Without a checkpoint the second attempt begins again; the third goes on.
        program = self.python("""
for step in range(*{1: (1, 4), 2: (1, 6), 3: (6, 10)}[attempt]):
    print(f"step {step} loss={attempt * int(sys.argv[1]) + step / 100}")
sys.exit(int(sys.argv[2]) if attempt < 3 else 0)""")
        for weight in (1, 0):  # Each attempt has values of its own, or repeats those of the one before.
            for code, ends in ((1, (1, 1, 0)), (75, (0,))):
                name = f"over{weight}{code}"
                file = self.file(name, command=[*program, str(weight), str(code)], metrics={"loss": "step (?<step>\\d+) loss=([0-9.]+)"})
                for end in ends:
                    done = self.sweep(file, code=end)
                    self.assertNotIn("TensorBoard may hide points", done.stdout + done.stderr)
                expected = [(s, round((2 if s < 6 else 3) * weight + s / 100, 2)) for s in range(1, 10)]
                self.assertEqual([(step, round(value, 2)) for step, value in self.points("Loss/train", name)], expected)
                (record,) = self.runs(name).values()
                self.assertEqual([(e["epoch"], e["loss"]) for e in record["epochs"]], expected)

    def test_a_start_without_reports_loses_nothing_that_an_earlier_one_has_printed(self):
        (self.folder / "events").write_bytes(b"".join(scalar_record("loss", step, step) for step in (1, 2)))
        name = self.file(metrics={"score": "score (?<step>[0-9])=([0-9])"}, command=["sh", "-c", """
            case $SWEEP_ATTEMPT in
              1) cp events $SWEEP_RUN_DIR/events.out.tfevents.1.host.1.0; echo score 1=1; echo score 2=2; exit 1;;
              2) exit 1;;
              3) echo score 3=3;;
            esac"""])
        for code in (1, 1, 0):
            self.sweep(name, code=code)
        (record,) = self.runs().values()
        self.assertEqual([(e.get("loss"), e["score"]) for e in record["epochs"]], [(1, 1), (2, 2), (None, 3)])

    def test_files_of_events_are_read_in_the_order_of_time(self):
        folders = ["b", "1700000000.5", "a", "."]
        writers = {}
        for folder in folders:
            (self.folder / folder).mkdir(exist_ok=True)
            writers[folder] = open(self.folder / folder / "events.out.tfevents.1.host.1.0", "wb")
        for step in (1, 2, 3):
            writers["."].write(scalar_record("Loss/train", step, step))
            writers["ab"[step % 2]].write(scalar_record("Loss/validation", step, step))
        writers["1700000000.5"].write(scalar_record("hparam/acc", 0, 7))  # add_hparams()
        for writer in writers.values():
            writer.close()
        record = self.run_of("sh", "-c", "cp -r a b 17* events* $SWEEP_RUN_DIR")
        self.assertEqual([(e["loss"], e["validation_loss"], e.get("hparam/acc")) for e in record["epochs"]],
                         [(1, 1, None), (2, 2, None), (3, 3, 7)])
        rows = [line.split(",") for line in self.sweep("export", "runs/s", "--tag", "Loss/validation").stdout.splitlines()]
        self.assertEqual([row[2] for row in rows if row[1] == "Loss/validation" and row[0][-2:] not in ("/a", "/b")], ["1", "2", "3"])

    def test_a_metric_with_the_name_of_a_parameter_has_a_column_of_its_own(self):
        line = '{"step": %d, "loss": 1, "lr": 0.125, "batch_size": 7}'
        file = self.file(params={"lr": [0.5, 0.25], "batch_size": [8], "found": [3]}, metrics={"found": "found ([0-9]+)"},
                         command=["sh", "-c", f"echo '{line % 1}' >> $SWEEP_METRICS; echo '{line % 2}' >> $SWEEP_METRICS; echo found 4"])
        self.assertNotIn("no line of", self.sweep(file).stdout)
        (events,) = self.folder.glob("runs/s/lr=0.5*/events*")
        self.assertIn(b"| params.lr | 0.5 |", events.read_bytes())
        self.sweep("fsck", "runs/s")
        for text in ((self.folder / "runs/s/results.csv").read_text(), self.sweep("show", "runs/s", "--format", "csv").stdout):
            (first, *_) = rows = list(csv.DictReader(text.splitlines()))
            self.assertEqual(len(text.splitlines()[0].split(",")), len(first))
            self.assertEqual({row["lr"] for row in rows}, {"0.5", "0.25"})
            self.assertEqual((first["reported_lr"], first["reported_batch_size"]), ("0.125", "7"))

    def test_steps_that_tensorboard_cannot_have_are_named(self):
        record = self.run_of("sh", "-c", "for step in 5 3000000000; do echo \"{\\\"step\\\": $step, \\\"loss\\\": 1}\" >> $SWEEP_METRICS; done")
        self.assertEqual([e["step"] for e in record["epochs"]], [5, 3000000000])
        self.assertEqual(self.log("run").count(b"step 3000000000 is in the results, but not in the events"), 1)

    def test_what_is_not_reported_at_each_step_still_decides(self):
        program = self.python("""
for step in range(1, 25):
    report(step=step, epoch=step / 10, loss=1 / step, **({} if step % 10 else {"val_acc": step / 100 * float(sys.argv[1])}))""")
        file = self.file(command=[*program, "{x}"], params={"x": [0.5, 1, 0.25]}, objective="val_acc")
        out = self.sweep(file, "--jobs", "2").stdout
        self.assertIn("★ highest val_acc: 0.2000, x=1", out)
        self.assertNotIn("No run has reported", out)

    def test_what_is_reported_long_after_its_step_began_counts_everywhere(self):
        program = self.python("""
for step in (10, 20):
    report(step=step, loss=1 / step)
    time.sleep(1.6)
    report(step=step, validation_loss=2 / step)""")
        self.run_of(*program, stop={"metric": "validation_loss", "patience": 1})
        for tag in ("Loss/validation", "Loss/train"):
            self.assertEqual([step for step, _ in self.points(tag)], [10, 20])
        self.assertEqual([(row["validation_loss"], row["step"]) for row in self.rows()], [("0.2", "10"), ("0.1", "20")])
        self.sweep("fsck", "runs/s")

    def test_the_beginning_of_a_curve_stays_when_an_attempt_goes_on_a_few_steps_back(self):
        program = self.python("""
import program_runs as p
with open(f"{folder}/events.out.tfevents.170000000{attempt}.theirs", "wb") as file:
    file.write(p.event_record(b"\\x1a\\x0dbrain.Event:2"))
    for step in ([1, 2, 3] if attempt == 1 else [3, 4]):
        file.write(p.scalar_record("Loss/train", step, attempt + step / 8))
sys.exit(75 if attempt == 1 else 0)""")
        expected = [(1, 1.125), (2, 1.25), (3, 2.375), (4, 2.5)]
        for words in ((), ("--replace",)):
            self.sweep("x=1", "--name", "s", *words, "--", *program)
            self.assertEqual(sorted(self.points("Loss/train")), expected)
            self.assertEqual([(int(row["epoch"]), float(row["loss"])) for row in self.rows()], expected)

    def test_no_step_of_three_attempts_is_lost_whatever_reports_it(self):
        program = self.python("""
import program_runs as p
folder += "/" + sys.argv[1]
os.makedirs(folder, exist_ok=True)
for step in {1: (1, 2, 3), 2: (3, 4, 5), 3: (5, 6)}[attempt]:
    with open(f"{folder}/events.out.tfevents.170000000{attempt}.theirs", "ab") as file:
        file.write(p.scalar_record("score", step, 10 * attempt + step))
    time.sleep(0.5 if step % 2 else 0)
    report(step=step, loss=10 * attempt + step)
sys.exit(attempt < 3)""")
        self.sweep("folder=.,logs", "--jobs", "2", "--name", "s", "--retry", "2", "--", *program, "{folder}")
        for name, record in self.runs().items():
            self.assertEqual([(e["epoch"], e["loss"], e["score"]) for e in record["epochs"]],
                             [(step, value, value) for step, value in enumerate((11, 12, 23, 24, 35, 36), 1)], name)

    def test_no_step_and_no_attempt_is_lost_if_each_overwrites_the_file_of_metrics(self):
        program = self.python("""
with open(os.environ["SWEEP_METRICS"], "w") as file:
    for step in {1: (1, 2, 3), 2: (3, 4, 5), 3: (5, 6)}[attempt]:
        print(json.dumps({"step": step, "loss": 10 * attempt + step}), file=file, flush=True)
        time.sleep(0.3)
sys.exit(75 if attempt == 1 else 3 - attempt)""")
        self.sweep("x=1", "--name", "s", "--retry", "1", "--", *program)
        self.assertEqual([float(row["loss"]) for row in self.rows()], [11, 12, 23, 24, 35, 36])
        program = self.python("""
lines = ""  # the same in each attempt
for step in range(1, 13 if attempt == 3 else 9):
    lines += json.dumps({"step": step, "loss": 1 / step, "a_name_as_long_as_the_head_that_is_compared": 1}) + "\\n"
    with open(os.environ["SWEEP_METRICS"], "w") as file: file.write(lines)
    time.sleep(0.05)
sys.exit(attempt < 3)""")
        self.sweep("x=1", "--name", "same", "--retry", "2", "--", *program)
        self.assertEqual([int(row["epoch"]) for row in self.rows("same")], list(range(1, 13)))
        self.sweep("x=1", "--name", "empty", "--retry", "2", "--", "sh", "-c",
                   ": > $SWEEP_METRICS; echo $SWEEP_ATTEMPT >> $SWEEP_RUN_DIR/attempts; exit $((SWEEP_ATTEMPT < 3))")
        self.assertEqual(next(self.folder.glob("runs/empty/*/attempts")).read_text().split(), ["1", "2", "3"])

    def test_steps_are_numbered_also_if_the_worker_is_lost_after_some_were_left_out(self):
        program = self.python("""
for step in range(1500): print(f"loss={step}")
record = folder + "/run.json"
while not os.path.exists(record) or all(e["loss"] != 1499 for e in json.load(open(record))["epochs"]): time.sleep(0.1)
keeper = open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()
os.kill(int(keeper[1]), 9)
time.sleep(30)""")
        record = self.run_of(*program, metrics={"loss": "loss=([0-9]+)"}, code=1)
        self.assertIn("its worker was lost", record["error"])
        self.assertEqual([(e["epoch"], e["loss"]) for e in record["epochs"]][-1], (750, 1498))
        self.assertEqual([e["loss"] for e in record["epochs"]], list(range(0, 1500, 2)))
        self.sweep("fsck", "runs/s")

    def test_thousands_of_metrics_and_steps(self):
        program = self.python("""
report(step=1, **{f"m{i}": i for i in range(3000)})
for step in range(20000): print(f"loss={step}")""")
        record = self.run_of(*program, metrics={"loss": "loss=([0-9]+)"})
        self.assertEqual(record["epochs"][0]["m2999"], 2999)
        self.assertLess(len(record["epochs"]), 2100)
        self.assertEqual(record["epochs"][-1]["loss"], 19999)
        self.assertEqual([e["epoch"] for e in record["epochs"]], list(range(1, len(record["epochs"]) + 1)))
        self.sweep("fsck", "runs/s")
        self.sweep(self.file("failed", command=["sh", "-c", "seq 5000 | sed s/^/loss=/; exit 3"], metrics={"loss": "loss=([0-9]+)"}), code=1)
        self.assertIn("after report 5000\n", self.runs("failed")["run"]["error"])

    def test_times_of_steps_are_those_of_the_file_or_the_events_not_of_the_looks_at_them(self):
        program = self.python("""
import program_runs as p
events = open(folder + "/events.out.tfevents.1.theirs", "wb") if sys.argv[2] == "events" else None
for step in range(1, 9):
    time.sleep(float(sys.argv[1]))
    if events:
        events.write(p.scalar_record("loss", step, step))
    else:
        report(step=step, loss=step)""")
        self.sweep("pause=0.24,0.3", "by=events,file", "--name", "s", "--jobs", "4", "--", *program, "{pause}", "{by}")
        for name, record in self.runs().items():
            seconds = sorted(e["epoch_seconds"] for e in record["epochs"][1:])
            self.assertAlmostEqual(seconds[3], record["params"]["pause"], delta=0.025, msg=name)

    def test_steps_that_are_seen_together_share_the_time_since_the_last_look(self):
        record = self.run_of("sh", "-c", """for step in 1 2 3 4 5 6 7 8 9 10; do
            echo "{\\"step\\": $step, \\"loss\\": 1}" >> $SWEEP_METRICS; sleep 0.05; done""")
        seconds = sorted(e["epoch_seconds"] for e in record["epochs"])
        self.assertGreater(seconds[5], 0.02)
        self.assertNotIn("asked for", self.sweep("s.json").stdout)

    def test_tables_and_reports_work_on_it_and_the_objective_counts(self):
        self.sweep(self.file(command=["python3", "train.py", "{lr}", "3", "0"], params={"lr": [1, 3, 2]}, objective="score",
                             mode="max"))
        self.assertRegex(self.sweep("show", "runs/s").stdout, r"[★*] +3 ")
        self.assertRegex(self.sweep("show", "runs/s", "--sort", "score").stdout, r"(?s)[★*] +3 .* 2 .* 1 ")
        self.assertRegex(self.sweep("show", "runs/s", "--effects").stdout, r"(?s)score \(larger is better\).*\n *lr +3 ")
        for words in (["show", "runs/s", "--effects"], ["compare", "runs/s", "--by", "lr"], ["status", "runs/s"],
                      ["report", "runs/s", "-o", "r.html"], ["fsck", "runs/s"], ["plan", "s.json"]):
            self.sweep(*words)
        self.assertIn("lr: 3 is best with 9.0000 on average, 1 worst", (self.folder / "r.html").read_text())
        for run in self.runs():
            self.assertIn('"status": "completed"', self.sweep("show", f"runs/s/{run}", "--json").stdout)


if __name__ == "__main__":
    main()
