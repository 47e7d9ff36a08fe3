#!/usr/bin/env python3
"""Several processes work on one sweep together and are killed, stopped, signalled and started again at random moments.

  join_chaos.py --program FILE [--rounds N] [--seed N]

If permitted, some run in their own pid and mount namespaces: for the others they are as on another machine.
Checked after each round: every run is done once, with the bits of an undisturbed sweep; each tag has one value per step;
results.csv has every run; nothing temporary is left. Exit codes: 0 all is well, 1 it is not.
"""

import signal
import sys
import time

import starts
from processes import APART, may_unshare, send, with_descendants
from torture_sweep import TortureSweep, problems_of_shared_end, write_data

# What is done to a process: a signal, and to which of its processes: all, the sweep itself, or its last worker.
DISTURBANCES = {"kill": (signal.SIGKILL, slice(None)), "kill worker": (signal.SIGKILL, slice(-1, None)),
                "stop": (signal.SIGSTOP, slice(None)), "stop parent": (signal.SIGSTOP, slice(1)),
                "term": (signal.SIGTERM, slice(1)), "usr2": (signal.SIGUSR2, slice(1))}
WEIGHTS = (2, 1, 2, 1, 1, 1)
ENDS = (0, 1, 3, 75, 130, 137, 143, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGUSR2)  # of processes that were disturbed


class Joiners(TortureSweep):
    patience = 120

    def join(self, logdir):
        words = ["--join"] + (["--leave"] if self.random.random() < 0.2 else [])
        apart = self.namespaces and self.random.random() < 0.5
        process = self.popen(logdir, words, before=APART if apart else [], jobs=self.random.choice([1, 2]), start_new_session=True)
        process.is_disturbed = False
        return process

    def disturb(self):
        living = [process for process in self.processes if process.poll() is None]
        if not living:
            return "start"
        process = self.random.choice(living)
        process.is_disturbed = True
        (what,) = self.random.choices(list(DISTURBANCES), WEIGHTS)
        number, which = DISTURBANCES[what]
        pids = with_descendants(process.pid)  # the sweep and its workers, also below unshare
        send(number, *pids[which])
        if number == signal.SIGSTOP:
            time.sleep(self.random.uniform(0.7, 3.5))
            send(signal.SIGCONT, *with_descendants(process.pid))
        return what

    def wait_for_all(self, logdir, happened):
        # A worker that was killed has failed its run, which everybody tells.
        good = (0, 1) if "kill worker" in happened else (0,)
        for process in list(self.processes):
            code, _, err = self.wait(process)
            if code not in (ENDS if process.is_disturbed else good):
                self.problem(f"{logdir}: exit code {code}\n{err[-1500:]}")

    def play_round(self, number):
        logdir, happened, before = f"joined{number}", [], len(self.found)
        for _ in range(self.random.randint(2, 3)):
            self.join(logdir)
        for _ in range(self.random.randint(1, 4)):
            time.sleep(self.random.uniform(0, 0.8 * self.seconds))
            happened.append(self.disturb())
            if self.random.random() < 0.5:
                self.join(logdir)
        # One that nobody disturbs sees the sweep to its end.
        last = self.join(logdir)
        self.wait_for_all(logdir, happened)
        code, _, err = self.start(logdir, words=["--join"])
        self.expect(f"{logdir}: the last start: exit code {code}\n{err[-1500:]}", code == 0)
        self.check_end(logdir, logdir)
        for problem in problems_of_shared_end(self.sweep(logdir), self.sweep("undisturbed"), self.oracle):
            self.problem(f"{logdir}: {problem}")
        print(f"round {number}: {', '.join(happened)}; {last.returncode}", flush=True)
        if len(self.found) == before:
            self.forget(logdir)


def play(arguments, directory):
    print(f"seed {arguments.seed}", flush=True)
    joiners = Joiners(arguments, directory, write_data(directory))
    joiners.namespaces = may_unshare()
    if not joiners.namespaces:
        print("without namespaces: unshare is not permitted here", flush=True)
    for number in range(1, arguments.rounds + 1):
        joiners.play_round(number)
    return joiners.found


if __name__ == "__main__":
    sys.exit(starts.main(__doc__, play, rounds=5))
