#!/usr/bin/env python3
"""Several processes on one sweep: who is refused and told why, who takes over from whom, and who ends when."""

import json
import os
import shutil
import signal
import subprocess
import sys

import starts
import torture_sweep
from processes import APART, may_unshare, send, with_descendants
from starts import Starts

SEARCHES = ("tpe", "hyperband", "asha", "population")


class JoinTest(Starts):
    def __init__(self, program, directory):
        super().__init__(program, directory)
        sweep = torture_sweep.write_data(directory)
        long = sweep | {"name": "long", "epochs": 100000, "params": {"lr": [0.02, 0.01]}, "batch_size": 4}
        long["stop"] = {"metric": "Accuracy/validation", "patience": long["epochs"]}
        # The first run of some fails at once: its loss becomes NaN.
        files = [sweep, long, long | {"name": "fails", "params": {"lr": [1e30, 0.02]}},
                 long | {"name": "short", "epochs": 2, "params": {"lr": [1e30, 0.02, 0.01]}},
                 *(torture_sweep.search_sweep(sweep, method) for method in SEARCHES)]
        for file in files:
            (directory / f"{file['name']}.json").write_text(json.dumps(file))
        for copy in ("copy", "other"):
            shutil.copytree(directory / "data", directory / copy)
            (directory / f"{copy}.json").write_text(json.dumps(long | {"dataset": long["dataset"] | {"path": copy}}))
        with open(directory / "other/train-images-idx3-ubyte", "r+b") as file:
            file.seek(100)
            file.write(b"?")

    def start(self, *words, before=(), **variables):
        return self.launch(words, before, os.environ | variables)

    def refused(self, logdir, code, words, *says):
        """What a start tells that has to end with `code` and to say all of these."""
        _, err = self.end(self.start(*words, "--logdir", logdir), f"{words} in {logdir}", code)
        for text in says:
            self.expect(f"{words} in {logdir} does not say {text!r}: {err[-1500:]}", text in err)
        return err

    def state(self, directory):
        return json.loads(self.end(self.start("status", str(directory), "--json"), "status", 0)[0])["state"]

    def checkpoints(self, logdir, name="long"):
        return list((self.directory / logdir / name).glob("*/checkpoint*.safetensors"))

    def a_joined_directory_is_refused_to_others(self):
        joined = self.start("long.json", "--join", "--logdir", "refused")
        self.until("a checkpoint", lambda: self.checkpoints("refused"))
        self.refused("refused", 3, ["long.json"], "--join", str(joined.pid))
        self.refused("refused", 2, ["long.json", "lr=0.3,0.02", "--join"], "lr=0.3")
        self.refused("refused", 2, ["long.json", "seed=77", "--join"], "seed: 3 -> 77")
        self.expect("a sweep in training is not said to run", self.state("refused/long") == "running")
        self.stop(joined)
        self.expect("it is said to run after its end", self.state("refused/long") != "running")

    def a_held_directory_cannot_be_joined(self):
        plain = self.start("long.json", "--logdir", "held")
        self.until("a checkpoint", lambda: self.checkpoints("held"))
        self.refused("held", 3, ["long.json", "--join"], f"process {plain.pid}")
        self.stop(plain, signal.SIGINT)
        # It goes on with what the plain one has left, and a plain one with what it leaves.
        joined = self.start("long.json", "--join", "--logdir", "held")
        log = self.directory / "held/long/lr=0.02/log.txt"
        self.until("resumed", lambda: log.read_text().count("resumed after epoch") == 1)
        self.stop(joined, signal.SIGUSR2)
        plain = self.start("resume", "held/long")
        self.until("resumed again", lambda: log.read_text().count("resumed after epoch") == 2)
        self.expect("usual names", [path.name for path in self.checkpoints("held") if path.parent.name == "lr=0.02" and
                                    "-" in path.name] == [])
        self.stop(plain, signal.SIGINT)

    def what_cannot_be_joined_is_refused(self):
        for words, reason in ((["torture.json", "--join", "--fresh"], "--fresh"),
                              (["torture.json", "--join", "--replace"], "--replace"),
                              (["torture.json", "--leave"], "--join"),
                              (["tpe.json", "search.seconds=9", "--join"], "one process")):
            self.refused("never", 2, words, reason)
        self.expect("nothing is made", not (self.directory / "never").exists())

    def what_cannot_be_written_is_said(self):
        (self.directory / "unwritable/long").mkdir(parents=True)
        (self.directory / "unwritable/long/lr=0.02").write_text("a file where a run's directory should be")
        self.refused("unwritable", 3, ["long.json", "--join"], "unwritable/long/lr=0.02")

    def what_is_a_link_is_not_followed(self):
        elsewhere = self.directory / "elsewhere"
        elsewhere.mkdir()
        (self.directory / "linked/long").mkdir(parents=True)
        (self.directory / "linked/long/lr=0.02").symlink_to(elsewhere)
        self.refused("linked", 3, ["long.json", "--join"], "linked/long/lr=0.02")
        self.expect("nothing is written through it", not list(elsewhere.iterdir()))

    def what_a_killed_process_had_is_taken_over_also_by_who_leaves(self):
        # In its own namespace, if permitted: its process number tells the others nothing.
        first = self.start("long.json", "--join", "--logdir", "dead", before=APART if may_unshare() else [])
        self.until("a checkpoint", lambda: self.checkpoints("dead"))
        first.kill()
        first.wait()
        directory = self.directory / "dead/long"
        second = self.start("resume", str(directory), "--join", "--leave", "--jobs", "2")
        log = directory / "lr=0.02/log.txt"
        self.until("taken over", lambda: "resumed after epoch" in log.read_text())
        second.kill()
        second.wait()
        self.expect("a sweep whose process is dead is said to run", self.state(directory) != "running")

    def what_cannot_be_trained_here_is_left_to_others(self):
        """As on a node with a broken GPU; other nodes are fine."""
        self.end(self.start("long.json", "device=cuda", "--join", "--leave", "--logdir", "cuda"), "no device", 0)
        self.expect("nothing is skipped for all", not list((self.directory / "cuda/long").glob("*/run.json")))

    def a_signal_frees_the_run_at_once(self):
        first = self.start("long.json", "--join", "--logdir", "freed")
        self.until("a checkpoint", lambda: self.checkpoints("freed"))
        second = self.start("resume", "freed/long", "--join", "--leave")
        self.until("two runs", lambda: len({path.parent for path in self.checkpoints("freed")}) == 2)
        beside = json.loads((self.directory / "freed/long/lr=0.01/run.json").read_text())
        self.expect(f"jobs {beside['jobs']}: its times are marked as those of a run that shared the machine", beside["jobs"] == 2)
        third = self.start("resume", "freed/long", "--join", "--leave")
        self.end(third, "--leave with nothing to claim", 0)
        waits = self.start("resume", "freed/long", "--join")
        log = self.directory / "freed/long/lr=0.02/log.txt"
        self.stop(first, signal.SIGUSR2)
        self.until("taken over", lambda: "resumed after epoch" in log.read_text())
        for process in (second, waits):
            self.stop(process)

    def a_process_that_was_cut_off_finds_its_run_taken(self):
        cut_off = self.start("long.json", "--join", "--logdir", "cut-off", "--jobs", "2")
        self.until("checkpoints", lambda: len({path.parent for path in self.checkpoints("cut-off")}) == 2)
        pids = with_descendants(cut_off.pid)
        send(signal.SIGSTOP, *pids)
        logs = [self.directory / "cut-off/long" / run / "log.txt" for run in ("lr=0.02", "lr=0.01")]
        # As a server gives away the locks of a machine that it has not heard of.
        for log in logs:
            (log.parent / ".lock").unlink()
        other = self.start("resume", "cut-off/long", "--join", "--jobs", "2")
        self.until("taken over", lambda: all("resumed after epoch" in log.read_text() for log in logs))
        send(signal.SIGCONT, *pids)

        def text_of(log):
            try:
                return log.read_text()
            except FileNotFoundError:
                return ""

        def begins_anew(log):
            """A best epoch that it was writing when it was cut off may have come after the other's: then it also makes a new
            log."""
            return "not resumed but trained from the start: best.safetensors" in text_of(log)

        def sees_it(log):
            return "another process has taken over" in text_of(log) or begins_anew(log)

        def goes_on(log):
            return text_of(log).count("resumed after epoch") == 2 or begins_anew(log)
        self.until("the first sees it", lambda: all(map(sees_it, logs)))
        self.stop(other)
        self.until("the first goes on", lambda: all(map(goes_on, logs)))
        self.stop(cut_off)
        events = subprocess.run([self.program, "export", "cut-off", "--format", "csv"], cwd=self.directory, text=True,
                                capture_output=True)
        rows = [tuple(line.split(",")[:3]) for line in events.stdout.splitlines() if "Loss/train" in line]
        self.expect("one value per step", rows and len(rows) == len(set(rows)))

    def a_search_has_the_same_trials_with_others(self):
        """Three processes decide by what they read of each other, and one of them is killed on the way."""
        for method in SEARCHES:
            self.end(self.start(f"{method}.json", "--logdir", "alone"), method, 0)
            others = [self.start(f"{method}.json", "--join", "--logdir", "searched")]
            self.until("a checkpoint", lambda: self.checkpoints("searched", method))
            others += [self.start("resume", f"searched/{method}", "--join", "--leave", *more) for more in ([], ["--jobs", "2"])]
            searched = self.directory / "searched" / method
            self.until("trials end", lambda: {"completed", "pruned"} & {
                record["status"] for record in torture_sweep.records_of(searched).values()})
            others[0].kill()
            others[0].wait()
            for process in others[1:]:
                self.end(process, f"{method} with others", 0)
            for left in searched.glob("sweep.json.*.tmp"):  # of the killed one; the next start that is alone removes it
                left.unlink()
            for problem in torture_sweep.problems_of_search(self.program, searched, self.directory / "alone" / method):
                self.problem(f"{method}: {problem}")
            self.end(self.start("resume", f"searched/{method}"), f"{method} is done", 0)

    def what_is_trained_with_other_data_is_refused(self):
        first = self.start("long.json", "--join", "--logdir", "data")
        self.until("a checkpoint", lambda: self.checkpoints("data"))
        err = self.refused("data", 2, ["other.json", "--join"], "other/train-images-idx3-ubyte", "use the same data")
        self.expect(f"no other file: {err[-1500:]}", "train-labels" not in err)
        second = self.start("copy.json", "--join", "--logdir", "data")
        self.until("the same data elsewhere is as good", lambda: len({path.parent for path in self.checkpoints("data")}) == 2)
        for process in (first, second):
            self.stop(process)

    def failed(self, logdir, name="fails"):
        """What the last attempt at the run that fails has told, once it has failed; it may be of an earlier start."""
        run = self.directory / logdir / name / "lr=1e+30"
        try:
            told, record = (run / "log.txt").read_text(), json.loads((run / "run.json").read_text())
        except FileNotFoundError:  # Another attempt begins, or none has.
            return ""
        return told if record["status"] == "failed" and "failed: diverged" in told else ""

    def a_failed_run_is_tried_again_by_the_next_start(self):
        """As without --join: by a start, but not by those who join one."""
        begun = {}
        log = self.directory / "failed/fails/lr=0.02/log.txt"
        for number, (start, more) in enumerate((("first", []), ("next", []), ("told not to", ["--no-retry-failed"]))):
            process = self.start("fails.json", "--join", "--logdir", "failed", *more)
            # The run that fails comes first, so that nothing more happens to it.
            self.until("the other run is trained", lambda: self.checkpoints("failed", "fails") and
                            log.read_text().count("resumed after epoch") == number)
            begun[start] = self.failed("failed")
            self.end(self.start("fails.json", "--join", "--leave", "--logdir", "failed"), f"joins the {start}", 1)
            self.expect(f"{start}: a failed run is tried again by who joins", self.failed("failed") == begun[start])
            self.stop(process)
        self.expect("the next start does not try again", begun["first"] and begun["next"] not in ("", begun["first"]))
        self.expect("--no-retry-failed", begun["told not to"] == begun["next"])

    def a_failed_run_is_tried_once_by_a_job(self):
        """Of the tasks of an array none may live when the next one starts: it does not try again what the last one failed at."""
        def task(job, index):
            return self.end(self.start("short.json", "--join", "--leave", "--logdir", "job", SLURM_JOB_ID=f"{job}{index}",
                                       SLURM_ARRAY_JOB_ID=str(job), SLURM_ARRAY_TASK_ID=str(index)), f"task {job}_{index}", 1)
        task(5, 0)
        first = self.failed("job", "short")
        task(5, 1)
        self.expect("the next task tries again", self.failed("job", "short") == first)
        task(6, 0)
        second = self.failed("job", "short")
        self.expect("the next job does not try again", second and second != first)
        for index in (1, 2, 3):
            task(6, index)
        self.expect("the next task of it tries again", self.failed("job", "short") == second)


def play(arguments, directory):
    test = JoinTest(arguments.program, directory)
    test.play(name for name in dir(test) if name.startswith(("a_", "what_")) and arguments.only in name)
    return test.found


if __name__ == "__main__":
    sys.exit(starts.main(__doc__, play, only=""))
