"""A full disk, a limit on file sizes, directories that are removed or read-only, jumps of the clock."""

import contextlib
import os
import shutil
import signal
import subprocess
import time

from starts import PATIENCE
from torture_sweep import records_of, seconds_of

NOBODY = 65534
FAKETIME = "/usr/$LIB/faketime/libfaketime.so.1"  # where Debian has it; $LIB is for the dynamic linker


def all_of_them(torture):
    for limit in (1, 4, 16, 64):
        logdir = f"limit{limit}"
        what = f"files of at most {limit} KiB"
        code, _, err = torture.start(logdir, before=["bash", "-c", f'ulimit -f {limit}; exec "$@"', "bash"])
        torture.check_code(code, err, what)
        if limit < 16 and code != 3:
            torture.problem(f"{what}: exit code {code}, want 3")
        torture.finish(logdir, what)
    removed_directory(torture)
    removed_run(torture)
    read_only_directories(torture)
    full_disk(torture)
    clock_jumps(torture)


def removed_directory(torture):
    process = torture.popen("removed")
    time.sleep(0.5 * torture.seconds)
    shutil.rmtree(torture.directory / "removed", ignore_errors=True)
    code, _, err = torture.wait(process)
    torture.check_code(code, err, "a removed directory")
    if code == 3 and "was removed" not in err:
        torture.problem(f"a removed directory: the message does not say so: {err[-500:]}")
    shutil.rmtree(torture.directory / "removed", ignore_errors=True)
    torture.finish("removed", "a removed directory")


def removed_run(torture):
    """One run's directory is removed as soon as it is there. The others end as ever."""
    what = "a removed directory of a run"
    process = torture.popen("removedrun")
    run = torture.sweep("removedrun") / "lr=0.02,batch_size=2"
    while process.poll() is None and not (run / "checkpoint.safetensors").exists():
        time.sleep(0.001)
    # At once: what a worker writes while its directory is emptied would keep that from going.
    with contextlib.suppress(OSError):
        run.rename(torture.directory / "removedrun-away")
        shutil.rmtree(torture.directory / "removedrun-away", ignore_errors=True)
    code, _, err = torture.wait(process)
    statuses = {name: record["status"] for name, record in records_of(torture.sweep("removedrun")).items()}
    if code not in (0, 1) or sorted(statuses.values())[:3] != ["completed"] * 3:
        torture.problem(f"{what}: exit code {code}, runs {statuses}:\n{err[-2000:]}")
    elif code == 1 and statuses.get(run.name) != "failed":
        torture.problem(f"{what}: exit code 1, but the run is not failed: {statuses}")
    torture.finish("removedrun", what)


def as_nobody(torture):
    """Options for a start by a user who may read everything and write nothing; None, with a word, if there is no way."""
    for directory in (torture.directory, torture.directory.parent):
        directory.chmod(0o755)
    options = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    try:
        looked = subprocess.run([torture.program, "plan", "torture.json"], cwd=torture.directory, capture_output=True,
                                text=True, **options)
    except OSError as error:
        print(f"SKIPPED: read-only directories; no program can be started as another user than root: {error}", flush=True)
        return None
    if looked.returncode != 0:
        print(f"SKIPPED: read-only directories; another user than root cannot read the sweep: {looked.stderr}", flush=True)
        return None
    return options


def read_only_directories(torture):
    options = as_nobody(torture)
    if options is None:
        return
    for what, mode, begun in (("a read-only log directory", 0o555, False), ("a read-only sweep", 0o555, True),
                              ("a sweep with a read-only run", 0o755, True)):
        logdir = what.replace(" ", "-")
        directory = torture.directory / logdir
        if begun:
            shutil.copytree(torture.half_done(), directory)
        else:
            directory.mkdir()
        places = [directory, *directory.rglob("*")]
        for place in places:
            if os.geteuid() == 0:
                os.chown(place, NOBODY, NOBODY)
            if place.is_dir() and (mode == 0o555 or place.parent == torture.sweep(logdir)):
                place.chmod(0o555)
        begin = time.monotonic()
        code, _, err = torture.start(logdir, **options)
        seconds = time.monotonic() - begin
        torture.check_code(code, err, what)
        if code != 3 or "Permission denied" not in err or str(directory.name) not in err:
            torture.problem(f"{what}: exit code {code}, want 3 with the reason:\n{err[-500:]}")
        if seconds > 1 and not begun:
            torture.problem(f"{what}: refused after {seconds:.1f} s, want 1")
        for place in places:
            if place.is_dir():
                place.chmod(0o755)
        torture.check_progress(logdir, err, what)
        torture.finish(logdir, what)


def full_disk(torture):
    for kilobytes in (64, 256, 1024):
        directory = torture.directory / f"full{kilobytes}"
        directory.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(directory)]
        if subprocess.run(mount, capture_output=True).returncode != 0:
            print("SKIPPED: a full disk; only root can mount a small one", flush=True)
            return
        try:
            what = f"a disk of {kilobytes} KiB"
            code, _, err = torture.start(directory.name)
            torture.check_code(code, err, what)
            if code == 3 and "No space left" not in err:
                torture.problem(f"{what}: the message does not say so: {err[-500:]}")
            subprocess.run(["mount", "-o", "remount,size=64m", str(directory)], check=True)
            torture.finish(directory.name, what)
        finally:
            subprocess.run(["umount", "-l", str(directory)], check=False)


def clock_jumps(torture):
    if shutil.which("faketime") is None:
        print("SKIPPED: jumps of the clock; faketime is not installed", flush=True)
        return

    def clock(**variables):
        # The monotonic clock of the machine does not jump.
        return os.environ | {"LD_PRELOAD": FAKETIME, "FAKETIME_DONT_FAKE_MONOTONIC": "1"} | variables
    for first, second in (("+1d", "-1d"), ("-400d", "+1d")):
        what, logdir = f"a clock that jumps from {first} to {second}", f"clock{first[0]}"
        process = torture.popen(logdir, environment=clock(FAKETIME=first))
        time.sleep(0.6 * torture.seconds)
        process.send_signal(signal.SIGTERM)
        torture.wait(process)
        code, _, err = torture.start(logdir, environment=clock(FAKETIME=second))
        torture.check_code(code, err, what)
        torture.finish(logdir, what)
    what = "a clock that jumps while runs are trained"
    now = torture.directory / "now"
    now.write_text("+0d\n")
    process = torture.popen("jumps", environment=clock(FAKETIME_TIMESTAMP_FILE=str(now), FAKETIME_NO_CACHE="1"))
    for jump in ("-1d", "+300d", "-40y", "+0d"):
        time.sleep(0.2 * torture.seconds)
        now.write_text(f"{jump}\n")
    code, _, err = torture.wait(process)
    if code != 0:
        torture.problem(f"{what}: exit code {code}\n{err[-2000:]}")
    for record in records_of(torture.sweep("jumps")).values():
        times = [record["seconds"]["run"], *seconds_of(record["epochs"])]
        if not all(0 <= seconds < PATIENCE for seconds in times):
            torture.problem(f"{what}: {record['name']} took {times}")
    torture.finish("jumps", what)
