#!/usr/bin/env python3
"""Runs programs in sh and Python as the runs of sweeps, and looks at the metrics and the output that are left of them.

  command_metrics_test.py PROGRAM [UNITTEST ARGUMENTS]

PROGRAM is the sweep program.
"""

import csv
from pathlib import Path

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

    def test_every_point_is_in_our_events_once_whether_it_goes_on_or_starts_over(self):
        for keeps in (True, False):
            name = f"events{keeps}"
            self.sweep(self.file(name, command=["sh", "-c", f"""
                for step in 1 2 3; do
                  if [ $SWEEP_ATTEMPT = 2 ] && {str(keeps).lower()} && [ $step -lt 3 ]; then continue; fi
                  echo "{{\\"step\\": $step, \\"loss\\": $SWEEP_ATTEMPT}}" >> $SWEEP_METRICS
                  if [ $SWEEP_ATTEMPT = 1 ] && [ $step = 2 ]; then exit 75; fi
                done; sleep 0.5"""]))
            (record,) = self.runs(name).values()
            values = [1, 1, 2] if keeps else [2, 2, 2]
            self.assertEqual([e["loss"] for e in record["epochs"]], values)
            self.assertEqual(self.points("Loss/train", name), list(zip((1, 2, 3), values)))

    def test_each_start_over_leaves_every_point_once(self):
        # Without a checkpoint the second start begins again; the third goes on.
        (self.folder / "over.py").write_text(
            "import os, sys\n"
            "attempt = int(os.environ['SWEEP_ATTEMPT'])\n"
            "for step in range(*{1: (1, 4), 2: (1, 6), 3: (6, 10)}[attempt]):\n"
            "    print(f'step {step} loss={attempt * int(sys.argv[1]) + step / 100}')\n"
            "sys.exit(0 if attempt == 3 else 1)\n")
        for weight in (1, 0):  # Each start has values of its own, or repeats those of the one before.
            file = self.file(f"over{weight}", command=["python3", "over.py", str(weight)], metrics={"loss": "step (?<step>\\d+) loss=([0-9.]+)"})
            for code in (1, 1, 0):
                done = self.sweep(file, code=code)
                self.assertNotIn("TensorBoard may hide points", done.stdout + done.stderr)
            self.assertEqual([(step, round(value, 2)) for step, value in self.points("Loss/train", f"over{weight}")],
                             [(s, round((2 if s < 6 else 3) * weight + s / 100, 2)) for s in range(1, 10)])

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
        (self.folder / "sparse.py").write_text(
            "import json, os, sys\n"
            "with open(os.environ['SWEEP_METRICS'], 'a') as file:\n"
            "    for step in range(1, 25):\n"
            "        values = {'step': step, 'epoch': step / 10, 'loss': 1 / step}\n"
            "        if step % 10 == 0: values['val_acc'] = step / 100 * float(sys.argv[1])\n"
            "        file.write(json.dumps(values) + '\\n')\n")
        file = self.file(command=["python3", "sparse.py", "{x}"], params={"x": [0.5, 1, 0.25]}, objective="val_acc")
        out = self.sweep(file, "--jobs", "2").stdout
        self.assertIn("★ highest val_acc: 0.2000, x=1", out)
        self.assertNotIn("No run has reported", out)

    def test_what_is_reported_long_after_its_step_began_counts_everywhere(self):
        (self.folder / "late.py").write_text(
            "import json, os, time\n"
            "def report(**values):\n"
            "    with open(os.environ['SWEEP_METRICS'], 'a') as file: file.write(json.dumps(values) + '\\n')\n"
            "for step in (10, 20):\n"
            "    report(step=step, loss=1 / step)\n"
            "    time.sleep(1.6)\n"
            "    report(step=step, validation_loss=2 / step)\n")
        self.run_of("python3", "late.py", stop={"metric": "validation_loss", "patience": 1})
        for tag in ("Loss/validation", "Loss/train"):
            self.assertEqual([step for step, _ in self.points(tag)], [10, 20])
        self.assertEqual([(row["validation_loss"], row["step"]) for row in self.rows()], [("0.2", "10"), ("0.1", "20")])
        self.sweep("fsck", "runs/s")

    def test_the_beginning_of_a_curve_stays_when_an_attempt_goes_on_a_few_steps_back(self):
        (self.folder / "back.py").write_text(
            "import os, sys\n"
            f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "import program_runs as p\n"
            "attempt = int(os.environ['SWEEP_ATTEMPT'])\n"
            "file = open(f\"{os.environ['SWEEP_RUN_DIR']}/events.out.tfevents.170000000{attempt}.theirs\", 'wb')\n"
            "file.write(p.event_record(b'\\x1a\\x0dbrain.Event:2'))\n"
            "for step in ([1, 2, 3] if attempt == 1 else [3, 4]):\n"
            "    file.write(p.scalar_record('Loss/train', step, attempt + step / 8))\n"
            "file.close()\n"
            "sys.exit(75 if attempt == 1 else 0)\n")
        expected = [(1, 1.125), (2, 1.25), (3, 2.375), (4, 2.5)]
        for words in ((), ("--replace",)):
            self.sweep("x=1", "--name", "s", *words, "--", "python3", "back.py")
            self.assertEqual(sorted(self.points("Loss/train")), expected)
            self.assertEqual([(int(row["epoch"]), float(row["loss"])) for row in self.rows()], expected)

    def test_no_step_of_three_attempts_is_lost_whatever_reports_it(self):
        (self.folder / "thrice.py").write_text(
            "import os, sys, time\n"
            f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "import program_runs as p\n"
            "attempt, folder = int(os.environ['SWEEP_ATTEMPT']), os.environ['SWEEP_RUN_DIR'] + '/' + sys.argv[1]\n"
            "os.makedirs(folder, exist_ok=True)\n"
            "for step in {1: (1, 2, 3), 2: (3, 4, 5), 3: (5, 6)}[attempt]:\n"
            "    with open(f'{folder}/events.out.tfevents.170000000{attempt}.theirs', 'ab') as file:\n"
            "        file.write(p.scalar_record('score', step, 10 * attempt + step))\n"
            "    time.sleep(0.5 if step % 2 else 0)\n"
            "    with open(os.environ['SWEEP_METRICS'], 'a') as file: file.write(f'{{\"step\": {step}, \"loss\": {10 * attempt + step}}}\\n')\n"
            "sys.exit(attempt < 3)\n")
        self.sweep("folder=.,logs", "--jobs", "2", "--name", "s", "--retry", "2", "--", "python3", "thrice.py", "{folder}")
        for name, record in self.runs().items():
            self.assertEqual([(e["epoch"], e["loss"], e["score"]) for e in record["epochs"]],
                             [(step, value, value) for step, value in enumerate((11, 12, 23, 24, 35, 36), 1)], name)

    def test_no_step_is_lost_if_each_attempt_overwrites_the_file_of_metrics(self):
        (self.folder / "over.py").write_text(
            "import os, sys, time\n"
            "attempt = int(os.environ['SWEEP_ATTEMPT'])\n"
            "with open(os.environ['SWEEP_METRICS'], 'w') as file:\n"
            "    for step in {1: (1, 2, 3), 2: (3, 4, 5), 3: (5, 6)}[attempt]:\n"
            "        print(f'{{\"step\": {step}, \"loss\": {10 * attempt + step}}}', file=file, flush=True)\n"
            "        time.sleep(0.3)\n"
            "sys.exit(75 if attempt == 1 else 3 - attempt)\n")
        self.sweep("x=1", "--name", "s", "--retry", "1", "--", "python3", "over.py")
        self.assertEqual([float(row["loss"]) for row in self.rows()], [11, 12, 23, 24, 35, 36])

    def test_no_step_is_lost_if_each_attempt_writes_the_same_file_of_metrics(self):
        (self.folder / "whole.py").write_text(
            "import os, sys, time\n"
            "attempt, lines = int(os.environ['SWEEP_ATTEMPT']), ''\n"
            "for step in range(1, 13 if attempt == 3 else 9):\n"
            "    lines += f'{{\"step\": {step}, \"loss\": {1 / step}, \"a_name_as_long_as_the_head_that_is_compared\": 1}}\\n'\n"
            "    with open(os.environ['SWEEP_METRICS'], 'w') as file: file.write(lines)\n"
            "    time.sleep(0.05)\n"
            "sys.exit(attempt < 3)\n")
        self.sweep("x=1", "--name", "s", "--retry", "2", "--", "python3", "whole.py")
        self.assertEqual([int(row["epoch"]) for row in self.rows()], list(range(1, 13)))

    def test_attempts_are_counted_although_each_empties_the_file_of_metrics(self):
        self.sweep("x=1", "--name", "s", "--retry", "2", "--", "sh", "-c",
                   ": > $SWEEP_METRICS; echo $SWEEP_ATTEMPT >> $SWEEP_RUN_DIR/attempts; exit $((SWEEP_ATTEMPT < 3))")
        self.assertEqual(next(self.folder.glob("runs/s/*/attempts")).read_text().split(), ["1", "2", "3"])

    def test_steps_are_numbered_also_if_the_worker_is_lost_after_some_were_left_out(self):
        (self.folder / "lost.py").write_text(
            "import os, signal, time\n"
            "for step in range(1500): print(f'loss={step}')\n"
            "while '1499' not in open(os.environ['SWEEP_RUN_DIR'] + '/run.json').read(): time.sleep(0.1)\n"
            "keeper = open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()\n"
            "os.kill(int(keeper[1]), signal.SIGKILL)\n"
            "time.sleep(30)\n")
        record = self.run_of("python3", "lost.py", metrics={"loss": "loss=([0-9]+)"}, code=1)
        self.assertIn("its worker was lost", record["error"])
        self.assertEqual([(e["epoch"], e["loss"]) for e in record["epochs"]][-1], (750, 1498))
        self.assertEqual([e["loss"] for e in record["epochs"]], list(range(0, 1500, 2)))
        self.sweep("fsck", "runs/s")

    def test_thousands_of_metrics_and_steps(self):
        program = """import os, json
with open(os.environ["SWEEP_METRICS"], "a") as f:
    f.write(json.dumps({"step": 1, **{f"m{i}": i for i in range(3000)}}) + "\\n")
for step in range(20000): print("loss=%d" % step)
"""
        (self.folder / "many.py").write_text(program)
        record = self.run_of("python3", "many.py", metrics={"loss": "loss=([0-9]+)"})
        self.assertEqual(record["epochs"][0]["m2999"], 2999)
        self.assertLess(len(record["epochs"]), 2100)
        self.assertEqual(record["epochs"][-1]["loss"], 19999)
        self.assertEqual([e["epoch"] for e in record["epochs"]], list(range(1, len(record["epochs"]) + 1)))
        self.sweep("fsck", "runs/s")

    def test_times_of_steps_are_those_of_the_file_or_the_events_not_of_the_looks_at_them(self):
        (self.folder / "step.py").write_text(
            "import json, os, sys, time\n"
            f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "import program_runs as p\n"
            "events = open(os.environ['SWEEP_RUN_DIR'] + '/events.out.tfevents.1.theirs', 'wb') if sys.argv[2] == 'events' else None\n"
            "for step in range(1, 9):\n"
            "    time.sleep(float(sys.argv[1]))\n"
            "    if events:\n"
            "        events.write(p.scalar_record('loss', step, step))\n"
            "    else:\n"
            "        with open(os.environ['SWEEP_METRICS'], 'a') as file: file.write(json.dumps({'step': step, 'loss': step}) + '\\n')\n")
        self.sweep("pause=0.24,0.3", "by=events,file", "--name", "s", "--jobs", "4", "--", "python3", "step.py", "{pause}", "{by}")
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
