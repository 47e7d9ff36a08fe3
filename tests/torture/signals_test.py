#!/usr/bin/env python3
"""Signals, time limits and many starts at once, as a shell, a scheduler or a person gives them to the program."""

import json
import re
import signal
import subprocess
import sys
import time

import starts
import torture_sweep
from processes import children_of, send
from starts import STOPS, Starts

SECONDS = 5  # between the first signal and the end, as promised


class SignalTest(Starts):
    def __init__(self, program, directory):
        super().__init__(program, directory)
        sweep = torture_sweep.write_data(directory)
        # Long enough that nothing ends by itself.
        long = sweep | {"name": "long", "epochs": 100000}
        long["stop"] = sweep["stop"] | {"patience": long["epochs"]}
        for file in (sweep, long):
            (directory / f"{file['name']}.json").write_text(json.dumps(file))

    def start(self, logdir, file="long.json", *more):
        return self.launch([file, "--logdir", logdir, "--jobs", "2", *more])

    def start_and_train(self, logdir):
        process = self.start(logdir)
        self.until("an epoch of both runs", lambda: len(list((self.directory / logdir).glob("*/*/checkpoint.safetensors"))) >= 2)
        return process

    def stopping_signals(self):
        for number in STOPS:
            name = number.name
            process = self.start_and_train(name)
            begin = time.monotonic()
            out, err = self.stop(process, number)
            seconds = time.monotonic() - begin
            self.expect(f"{name}: ended after {seconds:.1f} s, want {SECONDS}", seconds < SECONDS)
            self.expect(f"{name}: no table:\n{out}", "interrupted" in out and "accuracy" in out)
            command = re.search(r"Stopped by (\S+)\. To go on: (.*)\n", err)
            self.expect(f"{name}: does not say how to go on:\n{err[-500:]}",
                        command is not None and command[1] == name and "long.json" in command[2])
            for run, record in torture_sweep.records_of(self.directory / name / "long").items():
                self.expect(f"{name}: {run} is {record['status']}", record["status"] in ("interrupted", "pending"))

    def second_signal(self):
        process = self.start_and_train("twice")
        # Its workers cannot answer the first.
        send(signal.SIGSTOP, *children_of(process.pid))
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        self.end(process, "second SIGINT", 130)
        seconds = time.monotonic() - begin
        self.expect(f"second SIGINT: ended after {seconds:.3f} s, want 0.2", seconds < 0.2)
        # The workers and the lock are also gone: the same command goes on.
        self.end(self.start("twice", "long.json", "--max-time", "1"), "after a second SIGINT", 75)
        log = next((self.directory / "twice").glob("*/*/log.txt")).read_text()
        self.expect("after a second SIGINT: does not go on from its checkpoint", "resumed after epoch" in log)

    def many_starts(self):
        begin, count = time.monotonic(), 100
        processes = [self.start("many") for _ in range(count)]
        self.until("one of many starts holds the directory", lambda: sum(process.poll() is None for process in processes) <= 1)
        seconds = time.monotonic() - begin
        (winner,) = [process for process in processes if process.poll() is None]
        refused = [process for process in processes if process is not winner]
        for process in refused:
            _, err = self.end(process, "a refused start", 3)
            self.expect(f"a refused start does not name process {winner.pid}: {err}",
                        f"process {winner.pid} on " in err or "another process" in err)
        print(f"{len(refused)} of {count} starts at once refused, the last {seconds:.2f} s after the first began",
              flush=True)
        # One alone, with the machine busy with one sweep as it would be.
        begin = time.monotonic()
        _, err = self.end(self.start("many"), "one more start", 3)
        seconds = time.monotonic() - begin
        self.expect(f"one more start: refused after {seconds:.2f} s, want 1:\n{err}",
                    seconds < 1 and f"process {winner.pid} on " in err)
        winner.kill()
        self.wait(winner)
        self.end(self.start("many", "long.json", "--max-time", "0.2"), "after the holder was killed", 75)

    def show_of_a_killed_sweep(self):
        process = self.start_and_train("killed")
        shown = [self.program, "show", str(self.directory / "killed" / "long")]
        self.expect("show: a running sweep is not shown as running",
                    "running" in subprocess.run(shown, capture_output=True, text=True).stdout)
        process.kill()
        self.wait(process)
        time.sleep(0.3)
        text = subprocess.run(shown, capture_output=True, text=True).stdout
        self.expect(f"show: a killed sweep is shown as running:\n{text}", "running" not in text and "interrupted" in text)

    def changed_file(self):
        self.end(self.start("changed", "torture.json"), "a file", 0)
        _, err = self.end(self.start("changed", "torture.json", "lr=0.02,0.05"), "a changed file", 0)
        for text in ("2 runs new since the last start: lr=0.05", "2 runs no longer in the file", "lr=0.01,batch_size=2",
                     "2 finished runs kept"):
            self.expect(f"a changed file: {text!r} is missing in:\n{err}", text in err)


CASES = ("stopping_signals", "second_signal", "many_starts", "show_of_a_killed_sweep", "changed_file")


def play(arguments, directory):
    test = SignalTest(arguments.program, directory)
    test.play(CASES)
    return test.found


if __name__ == "__main__":
    sys.exit(starts.main(__doc__, play))
