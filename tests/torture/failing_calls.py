"""Calls of a sweep fail: on its files, and for memory; once or for ever; in a new sweep and in one that goes on."""

import collections
import itertools
import shutil

from torture_sweep import FUNCTIONS

ENOSPC, EIO = 28, 5
ACTIONS = {"once": "fail-once", "always": "fail-always"}
# Nearly every line of a program takes memory: after the first calls, every so manieth part further on is tried.
FIRST_MALLOCS, MALLOC_STRIDE = 40, 10


def half_done(torture):
    """The log directory of a sweep that was killed in the middle of two of its four runs."""
    if (torture.directory / "half").exists():
        return torture.directory / "half"
    torture.start("half", fault="worker:kill-both:rename:12")
    if not torture.has_struck() or not list(torture.sweep("half").glob("*/checkpoint.safetensors")):
        torture.problem("no sweep was killed half-way")
    return torture.directory / "half"


def fail_at(torture, logdir, fault):
    """Whether the call was made at all; the exit code, and whether there was a word about it."""
    error = ENOSPC if ":write:" in fault else EIO
    what = f"{logdir} ({fault})"
    torture.check_progress(logdir, "", what)
    code, _, err = torture.start(logdir, fault=fault, error=error)
    struck = torture.has_struck()
    if struck:
        torture.check_code(code, err, what)
        torture.check_progress(logdir, err, what)
    elif code != 0:
        torture.problem(f"{what}: exit code {code} of an undisturbed sweep\n{err[-2000:]}")
    torture.finish(logdir, what)
    shutil.rmtree(torture.directory / logdir, ignore_errors=True)
    torture.finished.clear()
    # Not every failure has to be told: one of a sync that is tried again, of a worker that the kernel replaces.
    return struck, code, "sweep: " in err or "failed" in err or "not resumed" in err


def next_call(function, call, every):
    if function != "malloc" or call < FIRST_MALLOCS * every:
        return call + every
    return call + every * max(1, call // MALLOC_STRIDE)


def series_name(template, role, function, action):
    return f"{'resumed' if template else 'new'} sweep, {role}, {function} fails {action}"


def series(torture, template, role, function, action, every):
    """Each call in turn, until the sweep makes no more. Returns how many there were."""
    begin = "resumed" if template else "new"
    codes, silent = collections.Counter(), []
    call = torture.random.randint(1, every)
    while True:
        logdir = f"{begin}-{role}-{function}-{action}-{call}"
        if template:
            shutil.copytree(template, torture.directory / logdir)
        struck, code, told = fail_at(torture, logdir, f"{role}:{ACTIONS[action]}:{function}:{call}")
        if not struck:
            break
        codes[code] += 1
        if not told:
            silent.append(call)
        call = next_call(function, call, every)
    count = sum(codes.values())
    if count > 0:
        print(f"{series_name(template, role, function, action)}: {count} calls of up to {call - 1}, exit codes "
              f"{dict(sorted(codes.items()))}, of no consequence: {silent or 'none'}", flush=True)
    return count


def fail_each(torture, every, only):
    """Every `every`th call of each function, in all series with `only` in their name."""
    count = 0
    for kind in itertools.product((None, half_done(torture)), ("parent", "worker"), FUNCTIONS + ["malloc"], ACTIONS):
        if only in series_name(*kind):
            count += series(torture, *kind, every)
    print(f"{count} failing calls", flush=True)


def fail_some(torture, wanted):
    """`wanted` calls at random, of sweeps that begin and of sweeps that go on."""
    struck = 0
    half = half_done(torture)
    for count in range(wanted):
        function = torture.random.choice(FUNCTIONS + ["malloc"])
        call = int(10 ** torture.random.uniform(0, 4 if function == "malloc" else 2))
        role, action = torture.random.choice(["parent", "worker"]), torture.random.choice(list(ACTIONS))
        logdir = f"random{count}"
        if torture.random.random() < 0.5:
            shutil.copytree(half, torture.directory / logdir)
        struck += fail_at(torture, logdir, f"{role}:{ACTIONS[action]}:{function}:{call}")[0]
    print(f"{struck} of {wanted} random calls were made, and failed", flush=True)
