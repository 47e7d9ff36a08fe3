#!/usr/bin/env python3
"""Searches whose trials are programs.

  command_search_test.py PROGRAM [UNITTEST ARGUMENTS]

PROGRAM is the sweep program.
"""
import json
import subprocess
import time

from program_runs import ProgramRuns, main
from processes import until
from server import float32

# Walks to the minimum of x² in steps that are noisy in proportion to their length, and ends where it is told to.
WALK = """
import random
rate, own, start = float(sys.argv[1]), os.environ["SWEEP_CHECKPOINT_DIR"], os.environ.get("SWEEP_RESUME_FROM")
state = {"step": 0, "x": 1.0, "rates": []}
for folder in (start, own):
    if folder and os.path.exists(f"{folder}/state"):
        state = json.load(open(f"{folder}/state"))
while state["step"] < int(os.environ["SWEEP_UNTIL"]):
    time.sleep(0.02)
    state["step"] += 1
    state["x"] -= rate * (state["x"] + random.Random(state["step"]).gauss(0, 1))
    state["rates"].append(rate)
    report(step=state["step"], loss=state["x"] ** 2)
    with open(f"{own}/state.new", "w") as file:
        json.dump(state, file)
    os.replace(f"{own}/state.new", f"{own}/state")
"""


class CommandSearchTest(ProgramRuns):
    def test_a_search_and_early_stopping_go_by_the_objective_of_the_file(self):
        for name, metric in {"own": {}, "named": {"metric": "gain"}}.items():
            file = self.file(name, search={"method": "halving", "reduction": 2, **metric}, stop={"patience": 1, **metric},
                             command=["sh", "-c", "for i in 1 2 3 4; do echo gain=$(({x} + i)); sleep 0.3; done"], reports=4,
                             metrics={"gain": "gain=(.*)"}, objective="gain", mode="max", params={"x": [1, 2, 3, 4]})
            self.assertIn("★ highest gain: 8", self.sweep(file, "--jobs", "4").stdout)
            self.assertEqual({run for run, record in self.runs(name).items() if record["status"] == "completed"}, {"x=4"})
            self.assertIn("★ highest gain: 8", self.sweep("show", f"runs/{name}").stdout)

    def test_trials_that_results_choose_are_on_the_devices_of_others(self):
        """The first ten points are random; what follows is added as results come."""
        keys = {"command": ["sh", "-c", "echo loss={x}"], "metrics": {"loss": "loss=(.*)"}}
        for name, device, more in ("words", ["mps", "cpu"], {}), ("gpus", None, {"gpus": 1}):
            for trials in 14, 16:
                file = self.file(name, search={"method": "tpe", "trials": trials, "metric": "loss"}, **keys, **more,
                                 params={"x": {"uniform": [0, 1]}, **({"device": device} if device else {})})
                self.sweep(file, "--quiet", env={"CUDA_VISIBLE_DEVICES": "0"})
            runs = self.runs(name).values()
            self.assertEqual((len(runs), {run["status"] for run in runs}, {run["device"] for run in runs}), (16, {"completed"}, {"cpu"}))

    def test_who_joins_a_search_has_to_decide_alike(self):
        keys = {"command": ["python3", "train.py", "{lr}", "4", "0.3"], "reports": 4, "params": {"lr": [1, 2, 3, 4, 5, 6]}}
        search = {"method": "halving", "metric": "loss", "reduction": 2}
        self.file("s", search=search, **keys)
        self.file("other", search={**search, "mode": "max", "reduction": 3}, **keys)
        process = self.start("s.json", "--join")
        until((self.folder / "runs/s/lr=1/run.json").exists, 60, "a run")
        refused = self.sweep("other.json", "name=s", "--join", code=2).stderr
        self.assertIn('search.goals: ["min of loss"] -> ["max of loss"]\n  search.reduction: 2 -> 3\n', refused)
        self.sweep("s.json", "--join")
        self.assertEqual(process.wait(30), 0)

    def test_who_joins_a_search_has_to_choose_from_the_same_points(self):
        keys = {"command": ["python3", "train.py", "{lr}", "1", "0.3"], "params": {"lr": {"uniform": [1, 2]}, "kind": ["a", "b", "c"]}}
        points = [{"lr": lr, "kind": "a"} for lr in (1.25, 1.5, 1.75)]
        search = {"method": "tpe", "trials": 9, "at_once": 2, "points": points}
        self.file("s", search=search, **keys)
        process = self.start("s.json", "--join")
        until((self.folder / "runs/s/lr=1.25,kind=a/run.json").exists, 60, "a run")
        for other, says in (({"params": {**keys["params"], "kind": ["a", "b", "d"]}}, '"c"]} -> {'),
                            ({"search": {**search, "points": [*points[:2], {"lr": 1.125}]}}, "\n  search.points: is another\n"),
                            ({"exclude": [{"kind": "c"}]}, 'exclude: null -> [{"kind":"c"}]\n')):
            self.file("other", **{"search": search, **keys, **other})
            self.assertIn(says, self.sweep("other.json", "name=s", "--join", code=2).stderr)
        self.sweep("s.json", "--join")
        self.assertEqual(process.wait(30), 0)

    def test_what_a_search_learns_from_does_not_grow_after_its_start(self):
        keys = {"command": ["sh", "-c", "echo loss={x}"], "metrics": {"loss": "loss=(.*)"}, "params": {"x": {"uniform": [0, 1]}}}
        source = self.file("source", search={"method": "random", "trials": 12}, **keys)
        file = self.file("learns", search={"method": "tpe", "trials": 6, "learn_from": ["runs/source"]}, **keys)
        self.sweep(source)
        self.sweep(file)
        first = self.runs("learns")
        self.sweep(source, "search.trials=20")
        self.sweep(file)
        self.assertEqual(self.runs("learns"), first)
        self.sweep("resume", "runs/learns")
        self.sweep(file, "--join")
        self.sweep(file, "search.trials=8")
        self.assertEqual(len(self.runs("learns")), 8)
        self.assertIn("learns-2", self.sweep(file, "--fresh").stderr)
        self.assertNotEqual(set(self.runs("learns-2")), set(first))
        other = self.sweep("resume", "runs/learns", "search.metric=gain", code=2).stderr
        self.assertIn('search.learn_from: has values of "loss", want that "metric", or the sweep file again', other)

    def test_searches_choose_and_prune_trials_by_its_metrics(self):
        command = ["python3", "train.py", "{lr}", "4", "0.3"]
        search = {"method": "tpe", "trials": 4, "metric": "score", "mode": "max"}
        self.sweep(self.file("tpe", command=["python3", "train.py", "{lr}", "2", "0"], search=search,
                             params={"lr": {"uniform": [0, 1]}}))
        self.assertEqual(len(self.runs("tpe")), 4)
        told = self.sweep(self.file("random", command=["true"], search={"method": "random", "trials": 3}, repeats=2,
                                    params={"lr": {"uniform": [0, 1]}})).stderr
        self.assertIn("\n3 trials\n", told)
        search = {"method": "halving", "metric": "loss", "reduction": 2, "min_epochs": 1}
        self.sweep(self.file("halving", command=command, search=search, reports=4, params={"lr": [1, 2, 3, 4]}), "--jobs", "4")
        statuses = {run: record["status"] for run, record in self.runs("halving").items()}
        self.assertEqual(statuses["lr=1"], "completed")
        self.assertEqual([statuses[f"lr={lr}"] for lr in (3, 4)], ["pruned", "pruned"])
        self.assertIn("pruned     lr=4\n", self.sweep("plan", "halving.json").stdout)
        self.assertEqual([e["step"] if "step" in e else e["epoch"] for e in self.runs("halving")["lr=1"]["epochs"]],
                         [1, 2, 3, 4])

    def test_asha_tries_the_same_points_however_many_run_at_once_and_after_a_kill(self):
        command = ["python3", "train.py", "{lr}", "4", "0.05"]
        search = {"method": "asha", "sampler": "tpe", "trials": 9, "metric": "loss", "reduction": 2, "at_once": 3,
                  "points": [{"lr": 0.75}]}
        keys = {"command": command, "search": search, "reports": 4, "params": {"lr": {"uniform": [0, 1]}}}
        self.sweep(self.file("one", **keys))
        self.sweep(self.file("three", **keys), "--jobs", "3")
        # A program may report further steps before it is ended, so only the points are promised.
        self.assertEqual(len(self.runs("one")), 9)
        self.assertEqual(set(self.runs("one")), set(self.runs("three")))
        self.assertIn("lr=0.75", self.runs("one"))
        self.assertIn("completed", {record["status"] for record in self.runs("one").values()})
        file = self.file("killed", **keys)
        for _ in self.killed(3, 0.2, 1.5, file, "--jobs", "3"):
            pass
        self.sweep(file, "--jobs", "3")
        self.assertEqual(set(self.runs("killed")), set(self.runs("one")))

    def test_trials_that_wait_for_others_are_pending_in_its_status(self):
        process = self.start(self.file("waits", command=["python3", "train.py", "{lr}", "4", "0.2"], reports=4, params={"lr": [1, 2, 3, 4]},
                                       search={"method": "halving", "metric": "loss", "reduction": 2, "min_epochs": 1}), "--jobs", "1")
        seen = set()
        while process.poll() is None:
            status = subprocess.run([self.program, "status", "runs/waits", "--json"], cwd=self.folder, capture_output=True, text=True, check=False)
            if status.returncode == 0 and (found := json.loads(status.stdout))["state"] == "running":
                seen.update(found["statuses"])
            time.sleep(0.05)
        self.assertIn("pending", seen)
        self.assertNotIn("interrupted", seen)

    def test_a_failed_trial_is_tried_again_by_the_next_start_and_not_pruned(self):
        file = self.file("fails", command=["sh", "-c", "echo {lr} >> starts; echo step 1 loss={lr}; test {lr} -lt 4 || exit 3; "
                                                       "echo step 2 loss={lr}; echo step 3 loss={lr}; echo step 4 loss={lr}"],
                         metrics={"loss": "step (?<step>[0-9]+) loss=(.+)"}, reports=4, params={"lr": [1, 2, 3, 4]},
                         search={"method": "halving", "metric": "loss", "reduction": 2, "min_epochs": 1})
        for starts in (1, 2):
            self.sweep(file, code=1)
            self.assertIn("ended with exit code 3", self.runs("fails")["lr=4"]["error"])
            self.assertEqual(self.runs("fails")["lr=4"]["status"], "failed")
            self.assertEqual((self.folder / "starts").read_text().count("4\n"), starts)

    def test_a_failed_run_that_is_left_alone_is_named(self):
        words = ["x=1,2", "--name", "s", "--", "sh", "-c", "exit $(({x} - 1))"]
        self.sweep(*words, code=1)
        left = self.sweep(*words[:3], "--no-retry-failed", *words[3:], code=1).stderr
        self.assertIn("2 finished runs kept\n1 of them has failed, and is left alone\n", left)

    def test_following_a_sweep_shows_the_end_of_each_run(self):
        process = self.start(self.file("ends", command=["python3", "train.py", "{lr}", "2", "0.4"], params={"lr": [1, 2, 3]}), "--jobs", "1")
        until((self.folder / "runs/ends/.progress.json").exists, 60, "its progress")
        lines = self.sweep("status", "runs/ends", "--follow").stdout.splitlines()
        process.wait()
        for lr in (1, 2, 3):
            self.assertEqual(sum(f"lr={lr}" in line and " epoch " not in line for line in lines), 1, lines)

    def population(self, name, **keys):
        self.python(WALK, "walk.py")
        search = {"method": "population", "trials": 4, "interval": 3, "reduction": 4, "metric": "loss", "seed": 2}
        return self.file(name, **{"command": ["python3", "walk.py", "{rate}"], "search": search, "reports": 9,
                                  "params": {"rate": {"log_uniform": [0.01, 1]}}, **keys})

    def test_a_population_of_programs_that_do_not_follow_sweep_until_comes_to_its_end(self):
        program = self.python("""
kept, parent = (os.path.join(os.environ.get(name, "/none"), "state") for name in ("SWEEP_CHECKPOINT_DIR", "SWEEP_RESUME_FROM"))
source = kept if os.path.exists(kept) else parent
step = int(open(source).read()) if os.path.exists(source) else 0
while step < 6:
    step += 1
    report(step=step, loss=float(sys.argv[1]) / step)
    with open(kept + ".new", "w") as file: file.write(str(step))
    os.replace(kept + ".new", kept)
    time.sleep(0.3)""")
        self.sweep(self.population("late", command=[*program, "{rate}"], reports=6, search={
            "method": "population", "trials": 4, "interval": 2, "reduction": 4, "metric": "loss", "seed": 2}))
        records = self.runs("late").values()
        self.assertEqual(len(records), 6)  # Two members were replaced.
        for record in records:
            if record["status"] == "completed":
                self.assertEqual([epoch["epoch"] for epoch in record["epochs"]], [1, 2, 3, 4, 5, 6])

    def test_says_what_a_population_wants_of_programs_that_are_too_fast_to_be_stopped(self):
        script = "for step in 1 2 3 4 5 6 7 8 9; do echo loss=$1; done"
        said = self.sweep(self.population("fast", command=["sh", "-c", script, "-", "{rate}"], metrics={"loss": "loss=(.*)"}),
                          code=2).stderr
        self.assertIn("to epoch 9. Want a program that ends after the step $SWEEP_UNTIL. --fresh", said)

    def members(self, name):
        """What must be the same of each run: its end, its losses, and the state of the program."""
        return {run: (record["status"], [epoch["loss"] for epoch in record["epochs"]], record["config"]["lineage"],
                      json.loads((self.folder / "runs" / name / run / "checkpoint/state").read_text()))
                for run, record in self.runs(name).items()}

    def test_a_copy_in_a_population_continues_from_the_checkpoint_of_its_parent(self):
        self.sweep(self.population("one"))
        members = self.members("one")
        self.assertEqual(sorted(status for status, *_ in members.values()), ["completed"] * 4 + ["pruned"] * 2)
        copies = 0
        for run, (_, losses, lineage, state) in members.items():
            if not lineage:
                continue
            copies += 1
            begin, parent = lineage[-1]["epoch"], members[lineage[-1]["run"]]
            self.assertEqual(losses[:begin], parent[1][:begin])
            self.assertEqual(len(losses), state["step"])
            rates = [float(run.split("=")[1])] * len(losses)
            for ancestor in reversed(lineage):
                rates[:ancestor["epoch"]] = [ancestor["params"]["rate"]] * ancestor["epoch"]
            self.assertEqual(state["rates"], rates)
        self.assertEqual(copies, 2)
        scalars = self.sweep("export", "runs/one", "--format", "csv").stdout
        for run, (_, losses, _, state) in members.items():
            points = [line.split(",") for line in scalars.splitlines() if line.startswith(f"{run},Parameters/rate,")]
            self.assertEqual([float(point[4]) for point in points], [float32(rate)
                                                                     for rate in state["rates"]], (run, points))

    def test_a_population_has_the_same_members_however_many_run_at_once_and_after_kills(self):
        self.sweep(self.population("one"))
        self.sweep(self.population("three"), "--jobs", "3")
        self.assertEqual(self.members("three"), self.members("one"))
        file = self.population("killed")
        for _ in self.killed(6, 0.1, 0.9, file, "--jobs", "3"):
            pass
        self.sweep(file, "--jobs", "3")
        self.assertEqual(self.members("killed"), self.members("one"))

    def test_several_goals_are_replayed_from_recorded_results_even_if_they_are_times(self):
        # Each training gives other numbers, and the time of an epoch is measured: only records can give the same trials again.
        script = """v=$(od -An -N2 -tu2 /dev/urandom); sleep 0.0$((v % 5)); echo "{\\"score\\": $v}" >> $SWEEP_METRICS"""
        file = self.file("goals", command=["sh", "-c", script, "{lr}"], params={"lr": {"uniform": [0, 1]}},
                         search={"method": "tpe", "trials": 40, "at_once": 2, "metric": ["score", "epoch_seconds"], "mode": ["max", "min"]})
        ended = {}
        for _ in self.killed(8, 0.2, 1, file, "--jobs", "2"):
            runs = {run: record for run, record in self.runs("goals").items() if record["status"] == "completed"}
            for run, record in ended.items():
                self.assertEqual(runs[run]["epochs"], record["epochs"])
            ended = runs
        self.sweep(file, "--jobs", "2")
        runs = self.runs("goals")
        self.assertEqual(len(runs), 40)
        # A trial that records did not give again would be another one, and so be trained now.
        for more in ((), ("--jobs", "3")):
            self.sweep(file, *more)
            self.assertEqual(self.runs("goals"), runs)
        lines = self.sweep("show", "runs/goals", "--effects", "--format", "csv").stdout.splitlines()
        self.assertEqual([line.split(",")[0] for line in lines], ["goal", "score", "epoch_seconds"], "whose importances they are")


if __name__ == "__main__":
    main()
