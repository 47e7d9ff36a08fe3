#!/usr/bin/env python3
"""Runs programs in sh and Python as the runs of sweeps, and looks at what is left of them.

  command_test.py PROGRAM [UNITTEST ARGUMENTS]

PROGRAM is the sweep program. SWEEP_TORTURE_ROUNDS is how often a sweep is killed at a random moment.
"""

import json
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

from program_runs import ProgramRuns, main
from processes import children_of, has_gone, processes_with, send, until


class CommandTest(ProgramRuns):
    # What it gets.

    def test_each_combination_gets_its_values_on_the_command_line_and_in_the_environment(self):
        self.sweep("lr=0.1,1e-5", "batch_size=8", "seed=3,4", "--name", "s", "--", "sh", "-c",
                   'for a in "$@"; do echo "$a"; done; cat $SWEEP_PARAMS; echo seed $SWEEP_SEED $SWEEP_ATTEMPT',
                   "sh", "{flags}", "{overrides}", "{lr}/{seed}", "{{lr}}", "{run_dir}", "{params}")
        self.assertEqual(sorted(self.runs()), sorted(f"lr={lr},seed={seed}" for lr in ("0.1", "1e-05") for seed in (3, 4)))
        lines = self.log("lr=1e-05,seed=4").decode().splitlines()
        self.assertEqual(lines[1:7], ["--lr=1e-05", "--batch-size=8", "--seed=4", "lr=1e-05", "batch_size=8", "seed=4"])
        folder = str(self.folder / "runs/s/lr=1e-05,seed=4")
        self.assertEqual(lines[7:11], ["1e-05/4", "{lr}", folder, folder + "/params.json"])
        self.assertIn("seed 4 1", lines)
        self.assertEqual(json.loads(Path(folder, "params.json").read_text()), {"lr": 1e-05, "batch_size": 8, "seed": 4})

    def test_values_arrive_whole_whatever_is_in_them(self):
        odd = ["it's", 'a "b"', "two  blanks", "line\nbreak", "$HOME `x` \\", "*", "é{lr}"]
        for shell in (False, True):
            command = ["printf", "%s\n<end>\n", "{text}"] if not shell else "printf '%s\\n<end>\\n' {text}"
            self.sweep(self.file(f"odd{shell}", command=command, shell=shell, params={"text": odd}))
            outputs = {self.log(run, f"odd{shell}").decode().split("\n", 1)[1].split("\n<end>")[0]
                       for run in self.runs(f"odd{shell}")}
            self.assertEqual(outputs, set(odd))

    def test_the_file_of_parameters_has_the_values_of_the_sweep_file(self):
        values = [None, 3, 0.5, True, "3", "{x}", "[", [1, {"a": None}], {}]
        self.sweep(self.file(command=["true"], params={"x": values, "seed": [1]}, repeats=2))
        found = [json.loads((self.folder / "runs/s" / run / "params.json").read_text())
                 for run in json.loads((self.folder / "runs/s/sweep.json").read_text())["runs"]]
        self.assertEqual([json.dumps(params) for params in found],
                         [json.dumps({"x": x, "seed": 1 + repeat, "repeat": repeat}) for x in values for repeat in (0, 1)])

    def test_a_word_of_an_unknown_parameter_is_refused_with_those_there_are(self):
        done = self.sweep("lr=1,2", "--", "true", "{lrr}", code=2)
        self.assertIn("{lrr} is no parameter, want one of: lr, flags, overrides, params, run_dir, seed; ", done.stderr)
        self.assertIn('did you mean "lr"', done.stderr)
        done = self.sweep("seed=1,2", "--", "true", "{sed}", code=2)
        self.assertIn("want one of: seed, flags, overrides, params, run_dir; ", done.stderr)
        self.assertIn("a\\xff is not UTF-8", self.sweep("lr=1,2", "--", "echo", "a\udcff", code=2).stderr)
        self.assertFalse((self.folder / "runs").exists())
        done = self.sweep("lr=1,2", "--", "no-such-program", code=2)
        self.assertIn("no-such-program is no program", done.stderr)
        self.assertIn("./train.py may not be executed", self.sweep("lr=1,2", "--", "./train.py", code=2).stderr)
        self.assertIn("train.py is no program, neither a path nor in PATH; a file here is ./train.py",
                      self.sweep("lr=1,2", "--", "train.py", code=2).stderr)
        self.assertIn("train.py {lr} is no program, neither a path nor in PATH; give its words apart",
                      self.sweep("lr=1,2", "--", "python3 train.py {lr}", code=2).stderr)
        (self.folder / "my tools").mkdir()
        (self.folder / "my tools/a").symlink_to("/bin/true")
        self.sweep("x=a", "--", f"{self.folder}/my tools/{{x}}")

    def test_a_command_that_cannot_know_its_parameters_is_told(self):
        hint = "the command has no parameter, as {flags} or {lr} would be"
        self.assertEqual(self.sweep("lr=1,2", "--name", "a", "--", "true").stderr.count(hint), 1)
        reader = self.python("open(os.environ['SWEEP_PARAMS'])", "reader.py")
        for number, words in enumerate((["lr=1,2", "--", "true", "{lr}"], ["lr=1,2", "--", "sh", "-c", "cat $SWEEP_PARAMS"],
                                        ["lr=1,2", "--", *reader], ["repeats=2", "--", "true"], ["lr=1", "--", "true"])):
            self.assertNotIn("has no parameter", self.sweep(f"name=b{number}", *words).stderr)

    def test_a_metric_that_never_comes_is_told(self):
        keys = {"command": ["sh", "-c", "echo acc=1"], "metrics": {"acc": "acc=([0-9]+)"}, "params": {"x": {"uniform": [0, 1]}}}
        for name, key in {"search": {"search": {"method": "random", "metric": "los", "trials": 2}},
                          "objective": {"objective": "los", "params": {"x": [1, 2]}}}.items():
            done = self.sweep(self.file(name, **{**keys, **key}), "--quiet")
            self.assertRegex(done.stderr, "No run has reported los, by which runs are judged; there are: .*acc")
        self.assertIn("No run has reported a metric. Name what", self.sweep(self.file("silent", command=["true"], params={"x": [1]})).stderr)
        self.assertNotIn("No run has reported", self.sweep(self.file("good", **keys | {"objective": "acc", "params": {"x": [1]}})).stderr)

    def test_threads_and_hidden_gpus(self):
        command = ["sh", "-c", "echo t=$OMP_NUM_THREADS g=${CUDA_VISIBLE_DEVICES-unset}"]
        self.sweep(self.file(command=command, params={"device": ["cpu"], "x": [1]}), "--threads", "3",
                   env={"CUDA_VISIBLE_DEVICES": "5"})
        self.assertIn(b"t=3 g=\n", self.log("device=cpu,x=1"))

    def most_on_one_gpu(self):
        """How many runs were at once on the GPU that had most, and all GPUs that were used."""
        spans = [line.split() for line in (self.folder / "spans").read_text().splitlines()]
        uses = [(gpu, float(begin), float(end)) for gpus, begin, end in spans for gpu in gpus.split(",")]
        most = max(sum(a == gpu and b <= begin < e for a, b, e in uses) for gpu, begin, _ in uses)
        return most, sorted({gpu for gpu, _, _ in uses})

    def test_runs_have_gpus_of_their_own_and_share_them_only_if_asked(self):
        program = self.python("""
begin = time.monotonic()
time.sleep(0.3)
with open("spans", "a") as file:
    file.write("%s %f %f\\n" % (os.environ["CUDA_VISIBLE_DEVICES"], begin, time.monotonic()))""")
        env = {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b,GPU-c"}
        cases = {"one": ({"gpus": 1}, 1, "abc"), "two": ({"gpus": 2}, 1, "ab"), "shared": ({"gpus": 1, "runs_per_gpu": 2}, 2, "abc")}
        for name, (keys, most, used) in cases.items():
            (self.folder / "spans").unlink(missing_ok=True)
            self.sweep(self.file(name, command=program, params={"x": [1, 2, 3, 4, 5, 6]}, **keys), "--jobs", "6",
                       "--retry", "1", env=env)
            self.assertEqual(self.most_on_one_gpu(), (most, [f"GPU-{letter}" for letter in used]), name)
            for record in self.runs(name).values():
                self.assertEqual(len(record["provenance"]["gpus"]), keys["gpus"])

    def test_gpus_of_a_run_that_failed_are_free_again_and_cpu_runs_need_none(self):
        command = ["sh", "-c", "echo g=$CUDA_VISIBLE_DEVICES; test $SWEEP_ATTEMPT = 2 || exit 1"]
        self.sweep(self.file(command=command, gpus=1, params={"device": ["cpu", "cuda"], "x": [1, 2]}), "--retry", "1", "--jobs", "2",
                   env={"CUDA_VISIBLE_DEVICES": "7"})
        self.assertIn(b"g=7\n", self.log("device=cuda,x=2"))
        self.assertIn(b"g=\n", self.log("device=cpu,x=2"))
        self.assertNotIn("gpus", self.runs()["device=cpu,x=1"]["provenance"])
        self.assertIn("run_seconds", self.sweep("compare", "runs/s", "--by", "device", "--json").stdout)

    def test_more_gpus_than_there_are_is_an_error_that_plan_foretells(self):
        file = self.file(command=["true"], gpus=3, params={"x": [1]})
        env = {"CUDA_VISIBLE_DEVICES": "0,1"}
        self.assertIn("a run is to have 3, but programs see only 2 here (0, 1)", self.sweep(file, code=2, env=env).stderr)
        self.assertFalse((self.folder / "runs").exists())
        # Nodes of a cluster may have them.
        self.assertIn("see only 2 here", self.sweep("plan", file, env=env).stdout)
        env = {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5"}
        self.assertIn("up to 2 at once", self.sweep("plan", file, env=env).stdout)
        self.assertEqual(json.loads(self.sweep("plan", file, "--json", env=env).stdout)["gpus"]["per_run"], 3)

    def test_a_device_that_only_the_program_can_use_is_used(self):
        command = ["sh", "-c", "echo {device} sees $CUDA_VISIBLE_DEVICES"]
        self.sweep(self.file(command=command, params={"device": ["cuda:1", "cuda:2"], "x": [1]}), env={"CUDA_VISIBLE_DEVICES": "4,5"})
        self.assertIn(b"cuda:1 sees 4,5\n", self.log("device=cuda%3A1"))
        self.assertIn("there is no cuda:2: programs see 2 GPUs here", self.runs()["device=cuda%3A2"]["error"])
        self.sweep("device=0,xpu", "--name", "t", "--", "echo", "{device}")
        self.assertIn("xpu", self.sweep("compare", "runs/t", "--by", "device", "--json").stdout)

    # How it ends.

    def test_the_time_limit_of_the_command_line_also_asks_the_program_to_end(self):
        file = self.file(command="trap 'echo told; exit 0' TERM; echo loss=1; sleep 100 & wait", shell=True,
                         metrics={"loss": "loss=([0-9.]+)"})
        self.sweep(file, "--timeout", "1", code=1)
        record = self.runs()["run"]
        self.assertIn("timeout: it took longer than 1 s", record["error"])
        self.assertEqual(record["epochs"][0]["loss"], 1)
        self.assertIn("told", (self.folder / "runs/s/run/log.txt").read_text())

    def test_failures_say_what_happened_and_show_the_end_of_the_output(self):
        cases = {"exit 3": "exit code 3", "kill -SEGV $$": "killed by SIGSEGV", "kill -9 $$": "killed by SIGKILL (by hand, or by the kernel for want of memory)"}
        for number, (program, text) in enumerate(cases.items()):
            self.sweep(self.file(f"f{number}", command=["sh", "-c", f"echo some output; {program}"]), code=1)
            (record,) = self.runs(f"f{number}").values()
            self.assertEqual(record["status"], "failed")
            self.assertIn(text, record["error"])
            self.assertIn("some output", record["error"])
        (self.folder / "script").write_text("#!/bin/sh\r\n")  # with line ends of Windows
        (self.folder / "script").chmod(0o755)
        error = self.run_of("./script", code=1)["error"]
        self.assertIn("could not be started: No such file or directory, or not the interpreter in its first line", error)

    def test_failed_runs_are_tried_again_and_others_go_on(self):
        self.sweep("x=1,2", "--retry", "1", "--name", "s", "--", "sh", "-c",
                   "test {x} = 1 || test $SWEEP_ATTEMPT = 2 || exit 1")
        self.assertEqual({record["status"] for record in self.runs().values()}, {"completed"})

    def test_hanging_and_silent_programs_are_ended(self):
        mark = str(uuid.uuid4())
        begin = time.monotonic()
        record = self.run_of("sh", "-c", f"trap '' TERM; while :; do sleep 0.1; echo {mark}; done", code=1,
                             timeout={"run": 1, "grace": 0.5})
        self.assertIn("timeout", record["error"])
        self.sweep(self.file("silent", command=["sleep", "100"], timeout={"silence": 0.5}), code=1)
        self.assertIn("silence", list(self.runs("silent").values())[0]["error"])
        self.assertLess(time.monotonic() - begin, 20)
        self.assertTrue(has_gone(mark))

    def test_everything_ends_with_the_sweep_also_when_that_is_killed(self):
        mark = str(uuid.uuid4())
        program = self.python("""
if os.fork() == 0:
    os.setsid()
time.sleep(100)""", "daemon.py")
        for victim in ("sweep", "worker", "both"):
            process = self.start("x=1", "--name", victim, "--", *program, mark)
            until(lambda: len(processes_with(f"daemon.py\0{mark}")) >= 3, 60, "the daemon and its parent run")  # with the sweep itself
            pids = [process.pid, *children_of(process.pid)]
            send(signal.SIGKILL, *{"sweep": pids[:1], "worker": pids[1:], "both": pids}[victim])
            process.wait()
            self.assertTrue(has_gone(mark), victim)

    def test_exit_75_asks_to_be_run_again(self):
        record = self.run_of("sh", "-c", "test $SWEEP_ATTEMPT = 3 || exit 75")
        self.assertEqual(record["status"], "completed")
        self.sweep(self.file("forever", command=["sh", "-c", "exit 75"]), code=1)
        self.assertIn("asked 50 times", self.runs("forever")["run"]["error"])

    def test_what_the_program_has_written_stays_if_run_json_is_damaged(self):
        words = ["n=1", "--name", "s", "--quiet", "--", "sh", "-c", "test -e $SWEEP_CHECKPOINT_DIR/state && exit 0; "
                 "echo '{\"step\": 1, \"loss\": 1}' >> $SWEEP_METRICS; touch $SWEEP_CHECKPOINT_DIR/state; exit 1"]
        self.sweep(*words, code=1)
        (self.folder / "runs/s/n=1/run.json").write_text("")
        self.sweep(*words)
        record = self.runs()["n=1"]
        self.assertEqual((record["status"], len(record["epochs"])), ("completed", 1))

    def test_a_program_never_begins_with_what_another_has_left(self):
        if os.geteuid() == 0:
            self.skipTest("root may remove everything")
        kept = self.folder / "runs/s/x=1/checkpoint/kept"
        first = self.start("x=1", "--name", "s", "--", "sh", "-c", f"mkdir -p {kept}/part; chmod 500 {kept}; touch ready; sleep 30")
        until((self.folder / "ready").exists, 60, "the program run")
        first.send_signal(signal.SIGINT)
        first.wait(30)
        self.assertIn("cannot prepare the run's directory", self.sweep("x=1", "--name", "s", "--", "true", code=3).stderr)
        kept.chmod(0o700)
        self.sweep("x=1", "--name", "s", "--", "true")
        self.assertFalse(kept.exists())

    def test_a_program_that_spoils_its_own_directory_ends_only_its_run(self):
        for name, spoil, what in (("emptied", "rm -rf {run_dir}/*", "was removed"), ("cleared", "rm {run_dir}/events*", "was removed"),
                                  ("later", "echo a > {run_dir}/events.out.tfevents.mine", "no event file can have a later name")):
            file = self.file(name, command=["sh", "-c", "echo '{\"step\": 1, \"loss\": 1}' >> $SWEEP_METRICS; sleep 0.4; "
                                            f"[ {{x}} != 1 ] || {spoil}; sleep 0.4"], params={"x": [1, 2]})
            for _ in range(2):
                self.sweep(file, code=1)
                records = self.runs(name)
                self.assertEqual([records[run]["status"] for run in ("x=1", "x=2")], ["failed", "completed"])
                self.assertIn(what, records["x=1"]["error"])
                self.assertIn("its directory cannot hold its events", records["x=1"]["error"])

    def test_commands_about_one_run_say_only_what_it_has(self):
        self.run_of("echo", "loss=1", metrics={"loss": "loss=(.+)"})
        self.assertIn("0 of 1 finished run trained again", self.sweep("verify", "runs/s", code=2).stdout)
        self.assertNotIn("accuracy", self.sweep("status", "runs").stdout)
        for words in (["--sort", "loss"], ["--columns", "loss"], ["--top", "1"], ["--effects"], ["--verbose"]):
            self.assertIn(f"{words[0]} needs the directory of a sweep", self.sweep("show", "runs/s/run", *words, code=2).stderr)
        for words in (["--sort", "loss"], ["--columns", "loss"], ["--top", "1"], ["--verbose"]):
            refused = self.sweep("show", "runs/s/run", "--parameters", *words, code=2).stderr
            self.assertIn(f"{words[0]} is for the table of a sweep's runs", refused)
        self.sweep(self.file("acc", command=["echo", "a=1"], metrics={"accuracy": "a=(.+)"}, params={"x": [1]}))
        self.assertEqual(self.sweep("status", "runs", "--format", "csv").stdout.splitlines()[0], "sweep,runs,last end,best run,accuracy")

    def test_a_list_on_the_command_line_is_an_axis_unless_the_file_has_lists(self):
        file = self.file(command=["echo", "{x}"], params={"x": [1]})
        self.sweep(file, "x=[3,4]")
        self.sweep("x=[5,6]", "--name", "own", "--", "echo", "{x}")
        self.assertEqual([set(self.runs()), set(self.runs("own"))], [{"x=3", "x=4"}, {"x=5", "x=6"}])
        self.sweep(self.file("lists", command=["echo", "{x}"], params={"x": [[1, 2]]}), "x=[3,4]")
        self.assertEqual([record["config"]["params"] for record in self.runs("lists").values()], [{"x": [3, 4]}])

    def test_mistakes_of_the_file_are_told_together_with_their_places(self):
        (self.folder / "bad.json").write_text("""{"command": "echo", "metrics": {"a": "x("},
  "timeout": {"slience": 3}, "network": "net.json", "params": {"x": [1]}}""")
        text = self.sweep("bad.json", code=2).stderr
        for part in ("bad.json:1:13: command", "metrics.a", "did you mean \"silence\"", "network"):
            self.assertIn(part, text)

    def test_what_only_networks_have_is_refused(self):
        self.sweep(self.file(command=["true"], params={"x": [1]}))
        for words in (["lr-find", "s.json"], ["data", "s.json"], ["evaluate", "runs/s/x=1"]):
            self.assertRegex(self.sweep(*words, code=2).stderr, "program")

    def test_early_stopping_ends_it(self):
        record = self.run_of("sh", "-c", """for i in $(seq 1 100); do
            echo "{\\"step\\": $i, \\"loss\\": 1}" >> $SWEEP_METRICS; sleep 0.2; done""", stop={"metric": "loss", "patience": 2})
        self.assertEqual(record["status"], "completed")
        self.assertIn("has not improved", record["stopped"]["reason"])
        self.assertLess(len(record["epochs"]), 12)

    def test_two_processes_share_a_sweep(self):
        words = [self.program, "x=1,2,3,4", "--join", "--name", "s", "--quiet", "--", "sh", "-c", "echo {x} >> count; sleep 0.3"]
        for process in [subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]:
            self.assertEqual(process.wait(60), 0, process.stderr.read())
            process.stderr.close()
        self.assertEqual(sorted((self.folder / "count").read_text().split()), ["1", "2", "3", "4"])
        self.assertEqual({record["status"] for record in self.runs().values()}, {"completed"})

    # Interruptions.

    def test_a_program_that_a_signal_ends_before_the_sweep_is_interrupted_and_has_not_failed(self):
        for words in (["python3", "train.py"], ["sh", "-c", 'python3 "$@"; exit $?', "sh", "train.py"]):
            with self.subTest(words[0]):
                mark = str(uuid.uuid4())
                file = self.file(words[0], command=[*words, "{lr}", "4", "0.2", mark], params={"lr": [1]})
                process = self.start(file)
                until((self.folder / "runs" / words[0] / "lr=1/checkpoint/epoch").exists, 60, "an epoch")
                for program in processes_with(mark):
                    if (Path("/proc") / str(program) / "cmdline").read_bytes().startswith(b"python3"):
                        os.kill(program, signal.SIGTERM)
                time.sleep(0.2)
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(30), 143)
                self.assertEqual(self.runs(words[0])["lr=1"]["status"], "interrupted")
                self.sweep(file)
                self.assertEqual([e["epoch"] for e in self.runs(words[0])["lr=1"]["epochs"]], [1, 2, 3, 4])

    def test_no_run_is_lost_or_doubled_by_kills_at_random_moments(self):
        rounds = int(os.environ.get("SWEEP_TORTURE_ROUNDS", "6"))
        mark = str(uuid.uuid4())
        words = ["lr=1,2,3", "--name", "s", "--jobs", "2", "--", "python3", "train.py", "{lr}", "8", "0.02", mark]
        for _ in self.killed(rounds, 0, 0.5, *words, signals=[signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM]):
            self.assertTrue(has_gone(mark))
        self.sweep(*words)
        for lr in (1, 2, 3):
            record = self.runs()[f"lr={lr}"]
            self.assertEqual(record["status"], "completed")
            # A program that is killed between a report and its checkpoint reports the step again.
            self.assertEqual([round(e["loss"] * (e["epoch"])) for e in record["epochs"]], [lr] * 8)
        self.assertEqual(len(self.points("Loss/train")), 24)


if __name__ == "__main__":
    main()
