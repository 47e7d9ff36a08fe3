#!/usr/bin/env python3
"""Several processes on one sweep: who is refused and told why, who takes over from whom, and who ends when."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torture_sweep

PATIENCE = 60
LEASE = 1.5


class JoinTest:
    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.found, self.processes = [], []
        torture_sweep.write_data(directory, small=False)
        sweep = json.loads((directory / "torture.json").read_text())
        long = sweep | {"name": "long", "epochs": 100000, "params": {"lr": [0.02, 0.01]}, "batch_size": 4}
        long["stop"] = {"metric": "Accuracy/validation", "patience": long["epochs"]}
        (directory / "long.json").write_text(json.dumps(long))
        (directory / "tpe.json").write_text(json.dumps(
            {key: value for key, value in sweep.items() if key not in ("params", "stop")} |
            {"name": "tpe", "params": {"lr": {"log_uniform": [0.001, 0.1]}},
             "search": {"method": "tpe", "trials": 3}}))

    def expect(self, what, good):
        if not good:
            self.found.append(what)
            print("PROBLEM:", what, flush=True)

    def start(self, *words):
        environment = dict(os.environ, SWEEP_LEASE_SECONDS=str(LEASE))
        # Files, as a pipe that nobody reads would stop the sweep.
        out, err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        process = subprocess.Popen([self.program, *words], cwd=self.directory, env=environment,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        process.files = out, err
        self.processes.append(process)
        return process

    def end(self, process, what, code):
        try:
            process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.expect(f"{what}: did not end within {PATIENCE} s", False)
        out, err = (file.seek(0) or file.read() for file in process.files)
        self.expect(f"{what}: exit code {process.returncode}, want {code}\n{err[-1500:]}", process.returncode == code)
        return out, err

    def wait_until(self, what, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                self.expect(f"not within {PATIENCE} s: {what}", False)
                return
            time.sleep(0.01)

    def checkpoints(self, logdir, name="long"):
        return list((self.directory / logdir / name).glob("*/checkpoint*.safetensors"))

    def children(self, process):
        return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]

    def a_joined_directory_is_refused_to_others(self):
        joined = self.start("long.json", "--join", "--logdir", "refused")
        self.wait_until("a checkpoint", lambda: self.checkpoints("refused"))
        _, err = self.end(self.start("long.json", "--logdir", "refused"), "plain start", 3)
        self.expect(f"who has it: {err}", "--join" in err and str(joined.pid) in err)
        _, err = self.end(self.start("long.json", "lr=0.3,0.02", "--join", "--logdir", "refused"), "other runs", 2)
        self.expect(f"what differs: {err}", "lr=0.3" in err)
        _, err = self.end(self.start("long.json", "seed=77", "--join", "--logdir", "refused"), "other seed", 2)
        self.expect(f"what differs: {err}", "seed: 3 -> 77" in err)
        status = json.loads(self.end(self.start("status", "refused/long", "--json"), "status", 0)[0])
        self.expect(f"state {status['state']}", status["state"] == "running")
        joined.send_signal(signal.SIGTERM)
        self.end(joined, "SIGTERM", 143)
        self.expect("what joiners leave", not list((self.directory / "refused/long/.claims/members").iterdir()))

    def a_held_directory_cannot_be_joined(self):
        plain = self.start("long.json", "--logdir", "held")
        self.wait_until("a checkpoint", lambda: self.checkpoints("held"))
        _, err = self.end(self.start("long.json", "--join", "--logdir", "held"), "joining", 3)
        self.expect(f"who has it: {err}", f"process {plain.pid}" in err)
        plain.send_signal(signal.SIGINT)
        self.end(plain, "SIGINT", 130)
        # It goes on with what the plain one has left, and a plain one with what it leaves.
        joined = self.start("long.json", "--join", "--logdir", "held")
        log = self.directory / "held/long/lr=0.02/log.txt"
        self.wait_until("resumed", lambda: log.read_text().count("resumed after epoch") == 1)
        joined.send_signal(signal.SIGUSR2)
        self.end(joined, "SIGUSR2", 75)
        plain = self.start("resume", "held/long")
        self.wait_until("resumed again", lambda: log.read_text().count("resumed after epoch") == 2)
        self.expect("usual names", [path.name for path in self.checkpoints("held") if path.parent.name == "lr=0.02" and
                                    "-" in path.name] == [])
        plain.send_signal(signal.SIGINT)
        self.end(plain, "SIGINT", 130)

    def what_cannot_be_joined_is_refused(self):
        for words, reason in ((["torture.json", "--join", "--fresh"], "--fresh"),
                              (["torture.json", "--join", "--replace"], "--replace"),
                              (["torture.json", "--leave"], "--join"), (["tpe.json", "--join"], "one process")):
            _, err = self.end(self.start(*words, "--logdir", "never"), " ".join(words), 2)
            self.expect(f"{words}: {err}", reason in err)
        self.expect("nothing is made", not (self.directory / "never").exists())

    def a_signal_frees_the_run_at_once(self):
        first = self.start("long.json", "--join", "--logdir", "freed")
        self.wait_until("a checkpoint", lambda: self.checkpoints("freed"))
        second = self.start("resume", "freed/long", "--join", "--leave")
        self.wait_until("two runs", lambda: len({path.parent for path in self.checkpoints("freed")}) == 2)
        third = self.start("resume", "freed/long", "--join", "--leave")
        self.end(third, "--leave with nothing to claim", 0)
        waits = self.start("resume", "freed/long", "--join")
        log = self.directory / "freed/long/lr=0.02/log.txt"
        first.send_signal(signal.SIGUSR2)
        self.end(first, "SIGUSR2", 75)
        self.wait_until("taken over", lambda: "resumed after epoch" in log.read_text())
        for process in (second, waits):
            process.send_signal(signal.SIGTERM)
            self.end(process, "SIGTERM", 143)

    def a_stopped_process_finds_its_run_taken(self):
        stopped = self.start("long.json", "--join", "--logdir", "stopped", "--jobs", "2")
        self.wait_until("checkpoints", lambda: len({path.parent for path in self.checkpoints("stopped")}) == 2)
        pids = [stopped.pid, *self.children(stopped)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        other = self.start("resume", "stopped/long", "--join", "--jobs", "2")
        logs = [self.directory / "stopped/long" / run / "log.txt" for run in ("lr=0.02", "lr=0.01")]
        self.wait_until("taken over", lambda: all("resumed after epoch" in log.read_text() for log in logs))
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        self.wait_until("the first sees it", lambda: all("another process has taken over" in log.read_text() for log in logs))
        other.send_signal(signal.SIGTERM)
        self.end(other, "SIGTERM of the second", 143)
        self.wait_until("the first goes on", lambda: all(log.read_text().count("resumed after epoch") == 2 for log in logs))
        stopped.send_signal(signal.SIGTERM)
        self.end(stopped, "SIGTERM of the first", 143)
        events = subprocess.run([self.program, "export", "stopped", "--format", "csv"], cwd=self.directory, text=True,
                                capture_output=True)
        rows = [tuple(line.split(",")[:3]) for line in events.stdout.splitlines() if "Loss/train" in line]
        self.expect("one value per step", rows and len(rows) == len(set(rows)))

    def run(self):
        for name in [name for name in dir(self) if name.startswith(("a_", "what_"))]:
            begin, before = time.monotonic(), len(self.found)
            getattr(self, name)()
            print(f"{name}: {'ok' if len(self.found) == before else 'NOT ok'}, {time.monotonic() - begin:.1f} s", flush=True)
            for process in self.processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        return 1 if self.found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="join-test.") as directory:
        return JoinTest(str(Path(arguments.program).resolve()), Path(directory).resolve()).run()


if __name__ == "__main__":
    sys.exit(main())
