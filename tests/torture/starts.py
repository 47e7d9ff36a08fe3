"""Starts of the built program that are disturbed: what all such tests share."""

import argparse
import fcntl
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support/python"))
from processes import send, until, with_descendants  # noqa: E402

PATIENCE = 60  # seconds that one start, or what is waited for, may take
# The exit codes of sweeps that signals stop.
STOPS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGUSR1: 75, signal.SIGUSR2: 75, signal.SIGHUP: 129}


class Starts:
    """Starts the program in a directory and collects what is wrong."""
    patience = PATIENCE

    def __init__(self, program, directory, seed=1):
        self.program, self.directory = str(Path(program).resolve()), directory
        self.random = random.Random(seed)
        self.found, self.processes = [], []

    def problem(self, text):
        self.found.append(text)
        print("PROBLEM:", text, flush=True)

    def expect(self, what, good):
        if not good:
            self.problem(what)

    def launch(self, words, before=(), environment=os.environ, **options):
        """A process, whose output goes to files: a pipe that nobody reads would stop it. They are locked as long as one of those that
        it has started holds them."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            fcntl.flock(err, fcntl.LOCK_EX)
            process = subprocess.Popen([*before, self.program, *words], cwd=self.directory, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, **options)
            process.files = [open(f"/proc/self/fd/{file.fileno()}", errors="replace") for file in (out, err)]
        self.processes.append(process)
        return process

    def wait(self, process):
        """Exit code, output, messages, when all that it has started has ended."""
        def has_ended():
            try:
                fcntl.flock(process.files[1], fcntl.LOCK_SH | fcntl.LOCK_NB)
                return process.poll() is not None
            except BlockingIOError:
                return False
        try:
            until(has_ended, self.patience, "the end", pause=0.002)
        except AssertionError:
            self.problem(f"{' '.join(map(str, process.args))}: did not end within {self.patience} s")
            send(signal.SIGKILL, *with_descendants(process.pid))
            process.wait()
        self.processes.remove(process)
        texts = []
        for file in process.files:
            texts.append(file.read())
            file.close()
        return process.returncode, *texts

    def end(self, process, what, code):
        """Output and messages of a process that has to end with `code`."""
        ended, out, err = self.wait(process)
        self.expect(f"{what}: exit code {ended}, want {code}\n{err[-1500:]}", ended == code)
        return out, err

    def stop(self, process, number=signal.SIGTERM):
        """The same of one that has to end by this signal."""
        process.send_signal(number)
        return self.end(process, number.name, STOPS[number])

    def until(self, what, condition):
        return until(condition, PATIENCE, what)

    def play(self, cases):
        """Calls the methods with these names."""
        for name in cases:
            begin, before = time.monotonic(), len(self.found)
            try:
                getattr(self, name)()
            except AssertionError as error:
                self.problem(f"{name}: {error}")
            print(f"{name}: {'ok' if len(self.found) == before else 'NOT ok'}, {time.monotonic() - begin:.1f} s", flush=True)
            for process in list(self.processes):
                process.kill()
                self.wait(process)


def main(document, play, **options):
    """Calls play(arguments, a new directory), which returns problems, with the program's `--program`, `--seed` and `options`, whose values
    are defaults. Returns the exit code."""
    parser = argparse.ArgumentParser(description=document, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, required=True)
    parser.add_argument("--seed", type=int, default=1)
    for name, default in options.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    with tempfile.TemporaryDirectory(prefix="torture.") as directory:
        found = play(parser.parse_args(), Path(directory).resolve())
    print(f"{len(found)} problems")
    return 1 if found else 0
