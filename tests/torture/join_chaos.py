#!/usr/bin/env python3
"""Several processes work on one sweep together and are killed, stopped, signalled and started again at random moments.

  join_chaos.py --program FILE [--rounds N] [--seed N]

Some run in pid and mount namespaces of their own, where that is permitted: for the others they are as on another machine.
Checked after each round: every run is done once, with the bits of an undisturbed sweep; each tag has one value per step;
results.csv has every run; nothing temporary is left. Exit codes: 0 all is well, 1 it is not.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from torture_sweep import TortureSweep, problems_of_shared_end

DEADLINE = 120


def may_unshare():
    try:
        return subprocess.run(["unshare", "--pid", "--mount", "--fork", "--mount-proc", "true"],
                              capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


class Joiners:
    def __init__(self, torture, logdir, namespaces):
        self.torture, self.logdir, self.namespaces = torture, logdir, namespaces
        self.processes, self.happened = [], []
        self.environment = dict(os.environ)

    def start(self):
        random = self.torture.random
        words = ["--join"] + (["--leave"] if random.random() < 0.2 else [])
        apart = self.namespaces and random.random() < 0.5
        before = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"] if apart else []
        command = [*before, self.torture.program, "torture.json", *words, "--logdir", self.logdir,
                   "--jobs", str(random.choice([1, 2]))]
        err = tempfile.TemporaryFile("w+")
        process = subprocess.Popen(command, cwd=self.torture.directory, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=err, start_new_session=True)
        process.err, process.excused = err, False
        self.processes.append(process)
        return process

    def living(self):
        return [process for process in self.processes if process.poll() is None]

    def pids_of(self, process):
        """The sweep and its workers, also behind unshare."""
        found, rest = [], [process.pid]
        while rest:
            pid = rest.pop()
            found.append(pid)
            try:
                rest += [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
            except OSError:
                pass
        return found

    def signal(self, process, number, which):
        pids = self.pids_of(process)
        for pid in {"all": pids, "parent": pids[:1], "last": pids[-1:]}[which]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def disturb(self):
        living = self.living()
        if not living:
            return "start"
        random = self.torture.random
        process = random.choice(living)
        what = random.choice(["kill", "kill", "kill worker", "stop", "stop", "stop parent", "term", "usr2"])
        if what == "kill":
            process.excused = True
            self.signal(process, signal.SIGKILL, "all")
        elif what == "kill worker":
            process.excused = True
            self.signal(process, signal.SIGKILL, "last")
        elif what.startswith("stop"):
            process.excused = True
            self.signal(process, signal.SIGSTOP, "all" if what == "stop" else "parent")
            time.sleep(random.uniform(0.7, 3.5))
            self.signal(process, signal.SIGCONT, "all")
        else:
            process.excused = True
            self.signal(process, signal.SIGTERM if what == "term" else signal.SIGUSR2, "last" if
                        len(self.pids_of(process)) == 1 else "parent")
        return what

    def wait(self):
        deadline = time.monotonic() + DEADLINE
        for process in self.processes:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.signal(process, signal.SIGKILL, "all")
                process.wait()
                self.torture.problem(f"{self.logdir}: did not end within {DEADLINE} s")
            process.err.seek(0)
            err = process.err.read()
            process.err.close()
            # A worker that was killed has failed its run, which everybody tells.
            good = (0, 1) if "kill worker" in self.happened else (0,)
            if process.returncode not in good and not process.excused:
                self.torture.problem(f"{self.logdir}: exit code {process.returncode}\n{err[-1500:]}")
            elif process.returncode not in (0, 1, 75, 130, 143, -9, 137, -15, -12, 3):
                self.torture.problem(f"{self.logdir}: exit code {process.returncode}\n{err[-1500:]}")


def play(torture, number, namespaces):
    logdir = f"joined{number}"
    joiners = Joiners(torture, logdir, namespaces)
    for _ in range(torture.random.randint(2, 3)):
        joiners.start()
    for _ in range(torture.random.randint(1, 4)):
        time.sleep(torture.random.uniform(0, 0.8 * torture.seconds))
        joiners.happened.append(joiners.disturb())
        if torture.random.random() < 0.5:
            joiners.start()
    # One that nobody disturbs sees the sweep to its end.
    last = joiners.start()
    joiners.wait()
    again = subprocess.run([torture.program, "torture.json", "--join", "--logdir", logdir], cwd=torture.directory,
                           env=joiners.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=DEADLINE)
    if again.returncode != 0:
        torture.problem(f"{logdir}: the last start: exit code {again.returncode}\n{again.stderr[-1500:]}")
    before = len(torture.found)
    torture.check_end(logdir, logdir)
    for problem in problems_of_shared_end(torture.sweep(logdir), torture.sweep("undisturbed"), torture.oracle):
        torture.problem(f"{logdir}: {problem}")
    print(f"round {number}: {', '.join(joiners.happened)}; {last.returncode}", flush=True)
    if len(torture.found) == before:
        torture.forget(logdir)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="where problems were found, leave the files")
    arguments = parser.parse_args()
    arguments.shim = arguments.program
    print(f"seed {arguments.seed}", flush=True)
    namespaces = may_unshare()
    if not namespaces:
        print("without namespaces: unshare is not permitted here", flush=True)
    directory = tempfile.mkdtemp(prefix="join-chaos.")
    torture = TortureSweep(arguments, Path(directory).resolve())
    for number in range(1, arguments.rounds + 1):
        play(torture, number, namespaces)
    print(f"{len(torture.found)} problems", flush=True)
    if arguments.keep and torture.found:
        print(directory)
    else:
        subprocess.run(["rm", "-rf", directory], check=False)
    return 1 if torture.found else 0


if __name__ == "__main__":
    sys.exit(main())
