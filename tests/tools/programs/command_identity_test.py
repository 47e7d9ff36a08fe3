#!/usr/bin/env python3
"""What makes a program's run another one, what is recorded of it, and what later starts make of that.

  command_identity_test.py PROGRAM [UNITTEST ARGUMENTS]

PROGRAM is the sweep program.
"""

import json

from program_runs import ProgramRuns, main


class IdentityTest(ProgramRuns):
    def test_what_a_run_with_other_settings_has_reported_is_removed_before_its_record(self):
        keys = {"command": ["sh", "-c", "echo '{\"loss\": 1}' >> $SWEEP_METRICS"]}
        self.sweep(self.file(params={"a": [1, 2], "b": [1]}, **keys))
        for run in (self.folder / "runs/s").glob("a=*"):
            (run / "run.json").write_text("damaged")
            (run / "log.txt").unlink()
            (run / "log.txt/cannot be removed").mkdir(parents=True)
        self.sweep(self.file(params={"a": [1, 2], "b": [2]}, **keys), code=3)
        self.assertFalse((self.folder / "runs/s/a=1/metrics.jsonl").exists(), "the next start would take it for the run's")

    def test_no_device_is_said_of_a_program_which_may_use_any(self):
        self.sweep(self.file(command=["true"], params={"x": [1, 2]}))
        self.assertIn("x=1: completed\n", self.sweep("show", "runs/s/x=1").stdout)

    def test_options_that_would_change_nothing_are_refused(self):
        file = self.file(command=["true"], params={"x": [1, 2]})
        self.sweep(file)
        for option in ("--json", "--format=json"):
            self.assertIn("--columns is for tables", self.sweep("show", "runs/s", "--columns", "x", option, code=2).stderr)
        for option in ("--format=csv", "--json", "--effects"):
            self.assertIn("--verbose is for the table of runs as text", self.sweep("show", "runs/s", "--verbose", option, code=2).stderr)
        for words in (["--pilot"], ["--jobs", "2"], ["--threads", "2"]):
            self.assertIn(f"{words[0]} is for networks", self.sweep("plan", file, *words, code=2).stderr)
        self.assertIn("kept       x=1", self.sweep(file, "--dry-run", "--jobs", "2").stdout)
        for words in (["--yes"], ["--wait"], ["--slurm", "time=1:00"], ["--leave"]):
            self.assertIn(f"{words[0]}: is not for --dry-run", self.sweep(file, "--dry-run", *words, code=2).stderr)

    def test_a_run_is_another_one_with_another_command_or_input_but_not_with_another_regex(self):
        (self.folder / "data.txt").write_text("1")
        keys = {"inputs": ["*.txt"], "params": {"x": [1, 2]}}
        command = ["sh", "-c", "echo once >> count; echo a=1", "{x}"]
        self.sweep(self.file(command=command, **keys))
        self.sweep(self.file(command=command, metrics={"a": "a=([0-9])"}, timeout=50, **keys))
        self.assertEqual((self.folder / "count").read_text(), "once\n" * 2)
        (self.folder / "data.txt").write_text("2")
        self.assertIn("data", self.sweep("s.json", code=2).stderr)
        self.sweep("s.json", "--replace")
        self.assertIn("command", self.sweep(self.file(command=[*command, "more"], **keys), code=2).stderr)
        self.assertEqual((self.folder / "count").read_text(), "once\n" * 4)

    def test_files_of_linked_folders_are_inputs_each_once(self):
        for folder in ("inputs", "elsewhere"):
            (self.folder / folder).mkdir()
        (self.folder / "inputs/linked").symlink_to("../elsewhere")
        (self.folder / "elsewhere/back").symlink_to("../inputs")
        (self.folder / "elsewhere/part").write_text("1")
        self.sweep(self.file(command=["true"], inputs=["inputs"]))
        files = self.runs()["run"]["provenance"]["inputs"]
        self.assertEqual([file["path"].rpartition("/inputs/")[2] for file in files], ["linked/part"])
        (self.folder / "elsewhere/part").write_text("2")
        self.assertIn("data", self.sweep("s.json", code=2).stderr)

    def test_kept_runs_of_another_directory_or_with_other_expressions_are_told(self):
        for folder in ("a", "b"):
            (self.folder / folder).mkdir()
        keys = {"command": ["echo", "Loss: {x}"], "params": {"x": [1, 2]}}
        first = self.sweep(self.file(cwd="a", metrics={"loss": "loss: ([0-9])"}, **keys))
        self.assertIn('metrics.loss: no line of the standard output of any run has a number that matches "loss: ([0-9])"', first.stderr)
        self.assertNotIn("it stays", self.sweep("s.json").stderr)
        failed = self.file("u", shell=True, command="[ {x} = 1 ] || { echo a=1; exit 1; }", params={"x": [1, 2]}, metrics={"a": "a=(1)"})
        self.assertNotIn("no line of", self.sweep(failed, code=1).stderr)
        note = "has the metrics that other expressions found; it stays as it is, --fresh runs"
        changed = self.file(cwd="a", metrics={"loss": "Loss: ([0-9])"}, **keys)
        self.assertIn(note, self.sweep("plan", changed).stdout)
        self.assertIn("x=1; x=2: each " + note, self.sweep(changed).stderr)
        self.assertIn(f'was run in "{self.folder}/a"; it', self.sweep(self.file(cwd="b", metrics={"loss": "loss: ([0-9])"}, **keys)).stderr)
        self.assertNotIn("no line of", self.sweep(self.file("t", metrics={"loss": "Loss: ([0-9])"}, **keys)).stderr)

    def test_a_plan_tells_what_the_same_start_would_do(self):
        file = self.file(command=["sh", "-c", "test {x} = 1"], params={"x": [1, 2], "y": [1]})
        self.sweep(file, code=1)
        fates = lambda *words: [run["fate"] for run in json.loads(self.sweep(file, *words, "--dry-run", "--json").stdout)["runs"]]
        self.assertEqual(fates(), ["kept", "continued"])
        self.assertEqual(fates("--no-retry-failed"), ["kept", "kept"])
        self.file(command=["sh", "-c", "test {x} = 1"], params={"x": [1, 2], "y": [1, 2]}, exclude=[{"x": 2}])
        plan = json.loads(self.sweep("plan", file, "--json").stdout)
        self.assertEqual([run.get("note") for run in plan["runs"]], ["now called x=1", None])
        self.assertEqual([run["name"] for run in plan["excluded"]], ["x=2,y=1", "x=2,y=2"])
        self.assertIn("left out: x=2,y=1 (s.json:", self.sweep("plan", file).stdout)
        self.assertIn("\ny=1,kept: now called x=1,", self.sweep("plan", file, "--format", "csv").stdout)

    def test_sweeps_of_a_program_and_of_a_network_are_paired_by_their_parameters(self):
        rows = "".join(f"{i % 7},{i % 5},{i % 2}\n" for i in range(60))
        (self.folder / "table.csv").write_text("a,b,kind\n" + rows)
        layers = [{"type": "flatten"}, {"name": "out", "type": "linear", "out_features": 2}]
        self.sweep(self.file("network", dataset={"name": "table", "path": "table.csv", "label": "kind"},
                             network={"layers": layers}, device="cpu", params={"lr": [0.1, 0.01]}))
        self.sweep(self.file("program", command=["python3", "train.py", "{lr}", "1", "0"], params={"lr": [0.1, 0.01]}))
        pairs = json.loads(self.sweep("compare", "runs/program", "runs/network", "--by", "sweep", "--json").stdout)["values"][0]["pairs"]
        self.assertEqual(len(pairs), 2)
        self.assertIn("a program against a network", json.dumps(pairs))

    def test_the_commit_of_the_working_directory_and_changes_since_it_are_told_and_do_not_count(self):
        for words in (["init", "-q"], ["add", "train.py"], ["commit", "-q", "-m", "one"]):
            self.git(*words)
        provenance = self.run_of("sh", "-c", "echo once >> count", params={"x": [1]})["provenance"]
        self.assertEqual(len(provenance["git"]["commit"]), 40)
        self.git("commit", "-q", "--allow-empty", "-m", "two")
        self.sweep("s.json")
        for setting in (["color.ui", "always"], ["diff.noprefix", "true"], ["diff.external", "echo"]):
            self.git("config", *setting)
        with (self.folder / "train.py").open("a") as file:
            file.write("# changed\n")
        self.sweep("s.json")
        self.assertEqual((self.folder / "count").read_text(), "once\n")
        changing = self.file("changing", command=["sh", "-c", "test -e again"], params={"x": [1]})
        self.sweep(changing, code=1)
        changes = self.folder / "runs/changing/x=1/git.diff"
        self.assertIn("+# changed\n", changes.read_text())
        self.git("apply", "-R", "--check", str(changes))
        self.git("checkout", "-q", "train.py")
        (self.folder / "again").touch()
        self.sweep(changing)
        self.assertFalse(changes.exists())
        # Changed between the runs of one sweep.
        self.sweep("x=1,2", "--name", "edited", "--", "sh", "-c", "sleep 1; echo '# {x}' >> train.py")
        states = {name: record["provenance"]["git"]["changed"] for name, record in self.runs("edited").items()}
        self.assertEqual(states, {"x=1": False, "x=2": True})
        self.assertIn("+# 1\n", (self.folder / "runs/edited/x=2/git.diff").read_text())


if __name__ == "__main__":
    main()
