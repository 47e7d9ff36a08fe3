"""Calls of a sweep fail or fall short: on its files, of its processes and threads, and for memory; once or for ever; in
the sweep and in its workers; in a new sweep and in one that goes on."""

import collections
import errno
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

# What each call can give. The first error is also tried with every later call.
ERRORS = {
    "open": "EIO ENOSPC EINTR EACCES EMFILE ENOMEM", "read": "EIO EINTR ENOMEM short", "readdir": "EIO ENOMEM",
    "opendir": "EIO EACCES EMFILE ENOMEM", "fopen": "EIO EACCES EMFILE ENOMEM", "memfd_create": "EMFILE ENOMEM",
    "write": "ENOSPC EIO EINTR short", "pwrite": "ENOSPC EIO EINTR short", "fsync": "EIO ENOSPC EINTR",
    "rename": "EIO ENOSPC EACCES ENOMEM", "link": "EIO ENOSPC EACCES ENOMEM EPERM", "unlink": "EIO EACCES ENOMEM",
    "mkdir": "EIO ENOSPC EACCES ENOMEM", "ftruncate": "EIO ENOSPC EINTR", "close": "EIO ENOSPC EINTR",
    "flock": "ENOLCK EINTR", "mmap": "ENOMEM EAGAIN EACCES", "socketpair": "EMFILE ENOMEM",
    "sendmsg": "EIO EAGAIN ENOMEM EINTR short", "recvmsg": "EIO EAGAIN ENOMEM EINTR short", "poll": "ENOMEM EAGAIN EINTR",
    "kill": "EPERM", "waitpid": "ECHILD EINTR", "clone": "EAGAIN ENOMEM",
    "fork": "EAGAIN ENOMEM", "stack": "ENOMEM", "malloc": "ENOMEM"}
# The sweep has to end as if nothing had happened.
HARMLESS = ("EINTR", "short")
# If all memory is refused from some call on: every call at first, then calls at growing distances.
FIRST_MALLOCS, MALLOC_STRIDE = 40, 10


def kinds():
    """(function, error, action) of each way to fail."""
    for function, errors in ERRORS.items():
        for number, error in enumerate(errors.split()):
            if function != "malloc":
                yield function, error, "short-once" if error == "short" else "fail-once"
            if (number == 0 and function != "stack") or error == "short":
                yield function, error, "short-always" if error == "short" else "fail-always"


class FailingCalls:
    def __init__(self, torture, what="sweep"):
        self.torture, self.what = torture, what
        self.half = torture.half_done()

    def series_name(self, template, role, function, error, action):
        return f"{'resumed' if template else 'new'} {self.what}, {role}, {function} {action} {error}"

    def fail_at(self, call, template, role, function, error, action):
        """The exit code; None if the call was not made at all."""
        torture = self.torture
        what = f"{self.series_name(template, role, function, error, action)}, call {call}"
        logdir = what.replace(", ", "-").replace(" ", "-")
        if template:
            shutil.copytree(template, torture.directory / logdir)
        torture.check_progress(logdir, "", what)
        code, _, err = torture.start(logdir, fault=f"{role}:{action}:{function}:{call}", fault_directory=torture.directory,
                                     error=None if error == "short" else getattr(errno, error))
        struck = torture.has_struck(logdir)
        torture.check_code(code, err, what)
        if code != 0 and (not struck or error in HARMLESS):
            torture.problem(f"{what}: exit code {code}{'' if struck else ' of an undisturbed sweep'}\n{err[-600:]}")
        torture.check_progress(logdir, err, what)
        if code == 0:
            torture.check_end(logdir, what)
        torture.finish(logdir, what)
        torture.forget(logdir)
        return code if struck else None

    def series(self, pool, kind, every):
        """Every `every`th call, until the sweep makes no more. Returns how many there were."""
        codes, last = collections.Counter(), 0
        for calls in chunks(kind, every, 2 * pool._max_workers):
            results = list(pool.map(lambda call: self.fail_at(call, *kind), calls))
            codes.update(code for code in results if code is not None)
            last = max([last] + [call for call, code in zip(calls, results) if code is not None])
            if None in results:
                break
        if last > 0:
            print(f"{self.series_name(*kind)}: {sum(codes.values())} calls up to the {last}th, exit codes "
                  f"{dict(sorted(codes.items()))}", flush=True)
        return sum(codes.values())


def chunks(kind, every, size):
    """Numbers of calls, some at a time."""
    _, _, function, _, action = kind
    if action == "short-always":
        yield [1]
    calls = []
    call = 1
    while action != "short-always":
        calls.append(call)
        malloc = function == "malloc" and call >= FIRST_MALLOCS * every
        call += every * (max(1, call // MALLOC_STRIDE) if malloc else 1)
        if len(calls) == size or call <= 2:
            yield calls
            calls = []


def fail_each(torture, search, every, only, jobs):
    """Every `every`th call of each function, in all series with `only` in their name. Of a search only what is harmless: other errors
    may end a trial, and others then follow."""
    of_sweep, of_search = FailingCalls(torture), FailingCalls(search, "search")
    starts = [(of_sweep, template, role, kinds()) for template in (None, of_sweep.half) for role in ("parent", "worker")]
    starts += [(of_search, None, role, (kind for kind in kinds() if kind[1] in HARMLESS)) for role in ("parent", "worker")]
    count = 0
    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        for failing, template, role, ways in starts:
            for kind in ways:
                if only in failing.series_name(template, role, *kind):
                    count += failing.series(pool, (template, role, *kind), every)
    print(f"{count} failing calls", flush=True)


def fail_some(torture, wanted):
    """`wanted` calls at random, of sweeps that begin and of sweeps that go on."""
    failing = FailingCalls(torture)
    struck = 0
    for _ in range(wanted):
        function, error, action = torture.random.choice(list(kinds()))
        template, role = torture.random.choice([None, failing.half]), torture.random.choice(["parent", "worker"])
        largest = {"malloc": 4, "stack": 3}.get(function, 1.5)
        call = int(10 ** torture.random.uniform(0, largest))
        struck += failing.fail_at(call, template, role, function, error, action) is not None
    print(f"{struck} of {wanted} random calls were made, and failed", flush=True)
