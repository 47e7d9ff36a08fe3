"""SIGKILL of a sweep, a worker or both, at random times and before or after random calls."""

import os
import signal
import time
from pathlib import Path

from torture_sweep import FILE_FUNCTIONS

STARTS = 200  # after which a sweep that is killed again and again has to be complete


def workers_of(pid):
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill_at_some_time(torture, logdir):
    target = torture.random.choice(["parent", "worker", "both"])
    after = torture.random.uniform(0, 1.2 * torture.seconds)
    process = torture.popen(logdir)
    time.sleep(after)
    struck = 0
    workers = workers_of(process.pid)
    if target != "worker" and process.poll() is None:
        process.kill()
        struck = 1
    if target != "parent" and workers:
        try:
            os.kill(torture.random.choice(workers), signal.SIGKILL)
            struck = 1
        except ProcessLookupError:
            pass
    return struck, f"{target} killed after {after:.3f} s", torture.wait(process)


def kill_at_some_call(torture, logdir):
    role = torture.random.choice(["parent", "worker"])
    action = torture.random.choice(["kill-before", "kill-after"] + (["kill-both"] if role == "worker" else []))
    call = int(10 ** torture.random.uniform(0, 2.3))
    fault = f"{role}:{action}:{torture.random.choice(FILE_FUNCTIONS)}:{call}"
    result = torture.start(logdir, fault=fault)
    return int(torture.has_struck(logdir)), fault, result


def kill_again_and_again(torture, wanted):
    """Until `wanted` kills have struck. Returns the log directories of the first sweeps, which are kept."""
    struck = sweeps = starts = 0
    kept = []
    while struck < wanted:
        sweeps += 1
        logdir = f"kills{sweeps}"
        for attempt in range(STARTS):
            kill = torture.random.choice([kill_at_some_time, kill_at_some_call])
            hits, what, (code, _, err) = kill(torture, logdir)
            struck += hits
            starts += 1
            what = f"{logdir}, start {attempt + 1} ({what})"
            if code not in (-signal.SIGKILL, 0, 1):
                torture.problem(f"{what}: exit code {code}\n{err[-2000:]}")
            torture.check_progress(logdir, err, what)
            if code == 0 or struck >= wanted:
                break
        torture.finish(logdir, logdir)
        if len(kept) < 3:
            kept.append(logdir)
        else:
            torture.forget(logdir)
    print(f"{struck} kills in {starts} starts of {sweeps} sweeps", flush=True)
    return kept
