"""SIGKILL of a sweep, a worker or both, at random times and before or after random calls; of sweeps, searches and runs that several
devices train."""

import signal
import time

from processes import children_of, send
from torture_sweep import FILE_FUNCTIONS, TortureSweep, search_sweep, write_data

STARTS = 200  # after which a sweep that is killed again and again has to be complete
TARGETS = ("parent", "worker", "both")


def kill_at_some_time(torture, logdir, target, words):
    after = torture.random.uniform(0, 1.2 * torture.seconds)
    process = torture.popen(logdir, words)
    time.sleep(after)
    workers = children_of(process.pid)
    victims = [process.pid] if target != "worker" and process.poll() is None else []
    if target != "parent" and workers:
        victims.append(torture.random.choice(workers))
    return send(signal.SIGKILL, *victims), f"{target} killed after {after:.3f} s", torture.wait(process)


def kill_at_some_call(torture, logdir, target, words):
    action = "kill-both" if target == "both" else torture.random.choice(["kill-before", "kill-after"])
    call = int(10 ** torture.random.uniform(0, 2.3))
    fault = f"{'parent' if target == 'parent' else 'worker'}:{action}:{torture.random.choice(FILE_FUNCTIONS)}:{call}"
    result = torture.start(logdir, words=words, fault=fault)
    return torture.has_struck(logdir), fault, result


def kill(torture, logdir, targets=TARGETS, words=()):
    """Whether a kill struck, what it was, and how the start ended."""
    kind = torture.random.choice([kill_at_some_time, kill_at_some_call])
    return kind(torture, logdir, torture.random.choice(targets), words)


def kill_again_and_again(torture, wanted, kill=kill, good=(-signal.SIGKILL, 0, 1)):
    """Until `wanted` kills have struck; starts that were killed end with one of `good`. Returns the log directories of the first sweeps,
    which are kept."""
    struck = sweeps = starts = 0
    kept = []
    while struck < wanted and sweeps < 20 + wanted:
        sweeps += 1
        logdir = f"{torture.name}{sweeps}"
        for attempt in range(STARTS):
            hit, what, (code, _, err) = kill(torture, logdir)
            struck += hit
            starts += 1
            what = f"{logdir}, start {attempt + 1} ({what})"
            if code not in (good if hit else (0, 1)):
                torture.problem(f"{what}: exit code {code}\n{err[-2000:]}")
            torture.check_progress(logdir, err, what)
            if code == 0 or struck >= wanted:
                break
        torture.finish(logdir, logdir)
        if len(kept) < 3:
            kept.append(logdir)
        else:
            torture.forget(logdir)
    if struck < wanted:  # On a busy machine many starts are done before their kill.
        torture.problem(f"{struck} kills of {wanted} have struck")
    print(f"{torture.name}: {struck} kills in {starts} starts of {sweeps} sweeps", flush=True)
    return kept


def kill_search(torture, logdir):
    """All of it: a search that loses a worker alone has a failed trial, and so other trials after it."""
    return kill(torture, logdir, ("parent", "both"))


def kill_searches(arguments, directory, wanted, methods):
    """`wanted` kills of a search by each method, which end with the trials and bits of one that was left alone; returns what is wrong."""
    found = []
    for method in methods:
        sweep = search_sweep(write_data(directory / method), method)
        search = TortureSweep(arguments, directory / method, sweep)
        kill_again_and_again(search, wanted, kill_search)
        found += search.found
    return found
