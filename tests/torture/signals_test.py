#!/usr/bin/env python3
"""Signals, time limits and many starts at once, as a shell, a scheduler or a person gives them to the program."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torture_sweep

PATIENCE = 5  # seconds between the first signal and the end, as promised


class SignalTest:
    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        self.found = []
        torture_sweep.write_data(directory, small=False)
        # Long enough that nothing ends by itself.
        sweep = json.loads((directory / "torture.json").read_text()) | {"name": "long", "epochs": 100000}
        sweep["stop"]["patience"] = sweep["epochs"]
        (directory / "long.json").write_text(json.dumps(sweep))

    def expect(self, what, good):
        if not good:
            self.found.append(what)
            print("PROBLEM:", what, flush=True)

    def start(self, logdir, file="long.json", *more):
        return subprocess.Popen([self.program, file, "--logdir", logdir, "--jobs", "2", *more], cwd=self.directory,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for_epochs(self, logdir, wanted=2):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if len(list((self.directory / logdir).glob("*/*/checkpoint.safetensors"))) >= wanted:
                return
            time.sleep(0.01)
        self.expect(f"{logdir}: no epoch was finished within 30 s", False)

    def stopping_signals(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 75), (signal.SIGUSR2, 75), (signal.SIGHUP, 129)):
            name = number.name
            process = self.start(name)
            self.wait_for_epochs(name)
            begin = time.monotonic()
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            seconds = time.monotonic() - begin
            self.expect(f"{name}: ended after {seconds:.1f} s, want {PATIENCE}", seconds < PATIENCE)
            self.expect(f"{name}: exit code {process.returncode}, want {code}", process.returncode == code)
            self.expect(f"{name}: no table:\n{out}", "interrupted" in out and "accuracy" in out)
            command = re.search(r"Stopped by (\S+)\. To go on: (.*)\n", err)
            self.expect(f"{name}: does not say how to go on:\n{err[-500:]}",
                        command is not None and command[1] == name and "long.json" in command[2])
            for record in (self.directory / name).glob("*/*/run.json"):
                status = json.loads(record.read_text())["status"]
                self.expect(f"{name}: {record} is {status}", status in ("interrupted", "pending"))

    def second_signal(self):
        process = self.start("twice")
        self.wait_for_epochs("twice")
        # Its workers cannot answer the first.
        for worker in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(worker), signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        seconds = time.monotonic() - begin
        process.communicate()
        self.expect(f"second SIGINT: ended after {seconds:.3f} s, want 0.2", seconds < 0.2)
        self.expect(f"second SIGINT: exit code {process.returncode}", process.returncode == 130)
        # The workers are gone, too, and so is the lock: the same command goes on.
        process = self.start("twice", "long.json", "--max-time", "1")
        _, err = process.communicate(timeout=60)
        self.expect(f"after a second SIGINT: exit code {process.returncode}\n{err}", process.returncode == 75)
        log = next((self.directory / "twice").glob("*/*/log.txt")).read_text()
        self.expect("after a second SIGINT: does not go on from its checkpoint", "resumed after epoch" in log)

    def many_starts(self, count):
        begin = time.monotonic()
        processes = [(time.monotonic(), self.start("many")) for _ in range(count)]
        refused, running = [], list(processes)
        while len(running) > 1 and time.monotonic() - begin < 120:
            for entry in list(running):
                if entry[1].poll() is not None:
                    running.remove(entry)
                    refused.append(entry[1])
            time.sleep(0.002)
        seconds = time.monotonic() - begin
        self.expect(f"{len(running)} of {count} starts hold the directory, want 1", len(running) == 1)
        winner = running[0][1]
        for process in refused:
            _, err = process.communicate()
            self.expect(f"a refused start: exit code {process.returncode}\n{err}", process.returncode == 3)
            self.expect(f"a refused start does not name process {winner.pid}: {err}",
                        f"process {winner.pid} on " in err or "another process" in err)
        print(f"{len(refused)} of {count} starts at once refused, the last {seconds:.2f} s after the first began",
              flush=True)
        # One alone, with the machine busy with one sweep as it would be.
        begin = time.monotonic()
        late = self.start("many")
        _, err = late.communicate(timeout=60)
        seconds = time.monotonic() - begin
        self.expect(f"one more start: refused after {seconds:.2f} s, want 1:\n{err}",
                    late.returncode == 3 and seconds < 1 and f"process {winner.pid} on " in err)
        winner.kill()
        winner.communicate()
        begin = time.monotonic()
        process = self.start("many", "long.json", "--max-time", "0.2")
        _, err = process.communicate(timeout=60)
        self.expect(f"after the holder was killed: exit code {process.returncode}\n{err}", process.returncode == 75)

    def show_of_a_killed_sweep(self):
        process = self.start("killed")
        self.wait_for_epochs("killed")
        shown = [self.program, "show", str(self.directory / "killed" / "long")]
        self.expect("show: a running sweep is not shown as running",
                    "running" in subprocess.run(shown, capture_output=True, text=True).stdout)
        process.kill()
        process.communicate()
        time.sleep(0.3)
        text = subprocess.run(shown, capture_output=True, text=True).stdout
        self.expect(f"show: a killed sweep is shown as running:\n{text}", "running" not in text and "interrupted" in text)

    def changed_file(self):
        process = self.start("changed", "torture.json")
        process.communicate(timeout=60)
        process = self.start("changed", "torture.json", "lr=0.02,0.05")
        _, err = process.communicate(timeout=60)
        for text in ("2 runs new since the last start: lr=0.05", "2 runs no longer in the file", "lr=0.01,batch_size=2",
                     "2 finished runs kept"):
            self.expect(f"a changed file: {text!r} is missing in:\n{err}", text in err)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="signals.") as directory:
        test = SignalTest(str(Path(arguments.program).resolve()), Path(directory).resolve())
        test.stopping_signals()
        test.second_signal()
        test.many_starts(100)
        test.show_of_a_killed_sweep()
        test.changed_file()
    print(f"{len(test.found)} problems")
    return 1 if test.found else 0


if __name__ == "__main__":
    sys.exit(main())
