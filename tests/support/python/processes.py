"""Processes that tests start, and waiting for what they do."""
import os
import subprocess
import time
from pathlib import Path


# If namespaces are permitted, others take the program for one of another machine.
APART = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child"]


def may_unshare():
    try:
        return subprocess.run([*APART, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def run(*command, **options):
    """What a command prints; fails if its exit code is not 0."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def until(condition, seconds, what, pause=0.01):
    """Waits until condition() is true; returns its value. Fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause)


def children_of(pid):
    """Nothing if the process is gone."""
    try:
        return [int(child) for thread in Path(f"/proc/{pid}/task").iterdir() for child in (thread / "children").read_text().split()]
    except OSError:
        return []


def with_descendants(pid):
    """The process first."""
    return [pid] + [descendant for child in children_of(pid) for descendant in with_descendants(child)]


def send(number, *pids):
    """Sends a signal; returns whether any of the processes was there."""
    sent = False
    for pid in pids:
        try:
            os.kill(pid, number)
            sent = True
        except ProcessLookupError:
            pass
    return sent


def processes_with(text):
    """Those with this text in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def has_gone(text, seconds=10):
    """Whether all processes with this text in their command line end in time."""
    try:
        return until(lambda: not processes_with(text), seconds, text)
    except AssertionError:
        return False
