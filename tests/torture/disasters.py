"""A full disk, a limit on file sizes, directories that are removed or read-only, jumps of the clock."""

import os
import shutil
import signal
import subprocess
import time


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
    read_only_directory(torture)
    full_disk(torture)
    clock_jumps(torture)


def removed_directory(torture):
    process = torture.popen("removed")
    time.sleep(0.5 * torture.seconds)
    shutil.rmtree(torture.directory / "removed", ignore_errors=True)
    code, _, err = torture.wait(process)
    torture.check_code(code, err, "a removed directory")
    shutil.rmtree(torture.directory / "removed", ignore_errors=True)
    torture.finish("removed", "a removed directory")


def read_only_directory(torture):
    directory = torture.directory / "readonly"
    directory.mkdir()
    directory.chmod(0o555)
    if os.geteuid() == 0:
        print("SKIPPED: a read-only directory; root may write there", flush=True)
    else:
        begin = time.monotonic()
        code, _, err = torture.start("readonly")
        torture.check_code(code, err, "a read-only directory")
        if code != 3 or time.monotonic() - begin > 1:
            torture.problem(f"a read-only directory: exit code {code}, want 3 within a second")
    directory.chmod(0o755)
    torture.finish("readonly", "a read-only directory")


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
    for first, second in (("+1 day", "-1 day"), ("-400 days", "+1 day")):
        logdir = f"clock{first[0]}"
        # The monotonic clock of the machine does not jump.
        faketime = ["env", "FAKETIME_DONT_FAKE_MONOTONIC=1", "faketime", "-f"]
        process = torture.popen(logdir, before=[*faketime, first])
        time.sleep(0.6 * torture.seconds)
        process.send_signal(signal.SIGTERM)
        torture.wait(process)
        code, _, err = torture.start(logdir, before=[*faketime, second])
        torture.check_code(code, err, f"a clock that jumps from {first} to {second}")
        torture.finish(logdir, f"a clock that jumps from {first} to {second}")
