#!/usr/bin/env python3
"""Installs the wheel on a bare system: this machine's release of Debian as debootstrap makes it, with python3-venv and nothing else.

  bare_system_test.py --wheels DIR --base DIR [--venv VENV]

Follows what people do first: pip install, init, train, look. VENV has TensorBoard, which reads what was trained. The bare system is kept in --base.
Exits with 77 and the reason if none can be made.
"""
import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support/python"))
from environments import skip  # noqa: E402

DATASETS = Path("/usr/share/datasets")
# What the system's own directories are for a program inside: those of the kernel, and the data set's files as a mirror has them.
INSIDE = """set -e
mount --bind {work} {base}/root
mount -t proc proc {base}/proc
mkdir -p {base}/mirror && mount --bind {datasets} {base}/mirror
cd / && exec chroot {base} env -i HOME=/root PATH=/usr/bin:/bin LANG=C.UTF-8 SWEEP_DATA_MIRROR=file:///mirror bash -ec "cd /root; $1"
"""
TAGS = """import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1]).Reload()
print([(e.step, e.value) for e in events.Scalars("Accuracy/validation")])"""


def make_base(base):
    """Has debootstrap make a system in `base` unless it is there."""
    if (base / ".ready").exists():
        return
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        skip("a bare Debian is made by root with debootstrap; apt-get install debootstrap")
    release = dict(re.findall(r'^(\w+)="?(.*?)"?$', Path("/etc/os-release").read_text(), re.MULTILINE))
    sources = "".join(path.read_text() for path in Path("/etc/apt").glob("sources.list*/*debian*"))
    sources += Path("/etc/apt/sources.list").read_text() if Path("/etc/apt/sources.list").exists() else ""
    mirror = re.search(r"^(?:URIs:|deb)\s+(https?://\S*debian\S*)", sources, re.MULTILINE)
    if release.get("ID") != "debian" or not mirror:
        skip("this is no Debian with a mirror to make a bare one from")
    shutil.rmtree(base, ignore_errors=True)
    done = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3-venv", release["VERSION_CODENAME"], base, mirror[1]],
                          capture_output=True, text=True)
    if done.returncode != 0:
        skip(f"debootstrap: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    (base / ".ready").touch()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheels", required=True, type=Path)
    parser.add_argument("--base", required=True, type=Path)
    parser.add_argument("--venv", type=Path)
    arguments = parser.parse_args()
    # Where the root is no mount point, as after chroot, mounts cannot be kept from the rest of the system.
    entered = subprocess.run(["unshare", "--mount", "true"], capture_output=True, text=True)
    if entered.returncode != 0:
        skip(f"no mount namespace can be made here: {entered.stderr.strip()}")
    make_base(arguments.base)
    if not (DATASETS / "fashion-mnist").exists():
        skip("dataset-fashion-mnist is not installed")
    (wheel,) = arguments.wheels.glob("sweep_runner-*.whl")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        shutil.copy(wheel, work)
        script = INSIDE.format(work=shlex.quote(str(work)), base=shlex.quote(str(arguments.base)), datasets=DATASETS)

        def inside(command):
            done = subprocess.run(["unshare", "--mount", "bash", "-c", script, "bash", command], capture_output=True, text=True)
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
            return done.stdout

        begin = time.monotonic()
        assert inside("command -v gcc c++ curl cmake || true") == "", "the system is not bare"
        before = inside("python3 -m venv env; find env -type f -not -path '*/__pycache__/*' | sort")
        inside(f"env/bin/pip install --quiet --no-index {wheel.name}")
        # Time of the processor, as other tests run at the same time.
        started = [inside("TIMEFORMAT='%3U %3S'; { time env/bin/sweep --version >&2; } 2>&1 | tail -n 1").split() for _ in range(5)]
        milliseconds = 1000 * min(float(user) + float(kernel) for user, kernel in started)
        assert milliseconds <= 20, f"sweep --version takes {milliseconds} ms"
        missing = inside("env/bin/sweep init >&2; env/bin/sweep sweep.json --quiet 2>&1 || true")
        assert "train with --yes" in missing, missing
        table = inside("env/bin/sweep sweep.json --yes --quiet epochs=1 dataset.limit=2000")
        assert "completed" in table and not re.search("failed|skipped", table), table
        inside("env/bin/pip uninstall --yes --quiet sweep-runner")
        assert inside("find env -type f -not -path '*/__pycache__/*' | sort") == before, "something of the wheel is left"
        print(f"pip install, init, data and training: {time.monotonic() - begin:.0f} s; sweep --version: {milliseconds:.0f} ms")
        python = arguments.venv / "bin/python" if arguments.venv else None
        if not python or not python.exists():
            print("TensorBoard is not there to read it")
            return
        run = next(work.glob("runs/*/*/events.out.tfevents.*")).parent
        read = subprocess.run([python, "-c", TAGS, run], capture_output=True, text=True)
        assert re.fullmatch(r"\[\(1, 0\.\d+\)\]\n", read.stdout), read.stdout + read.stderr


if __name__ == "__main__":
    main()
