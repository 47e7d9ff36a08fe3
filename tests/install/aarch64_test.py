#!/usr/bin/env python3
"""Makes the packages for aarch64 of what tools/release --arch aarch64 built, and trains with their program under qemu.

  aarch64_test.py --build DIR --program PROGRAM

PROGRAM is of the same sources, for this machine: a network of linear layers gets the same bits from both. Exits with 77 and the reason where
there is nothing to test, or nothing to run it with.
"""
import argparse
import json
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "support/python"))
from environments import skip  # noqa: E402
from processes import run  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LINEAR = json.dumps({"layers": [{"type": "flatten"}, {"type": "linear", "out_features": 32}, {"type": "relu"},
                                {"type": "linear", "out_features": 10}]})


def under_qemu(*command, **options):
    return run("bash", "-c", '. "$0/tools/common.sh"; . "$0/tools/aarch64.sh"; under_qemu "$@"', ROOT, *command, **options)


def train(runner, program, folder, samples, *overrides):
    """[(weights, metrics)] of the runs of a short training."""
    folder.mkdir()
    runner(program, "init", cwd=folder)
    runner(program, "sweep.json", "--quiet", f"dataset.limit={samples}", "epochs=2", "device=cpu", "lr=0.01", *overrides, cwd=folder)
    trained = []
    for run_folder in sorted(folder.glob("runs/*/*/")):
        checkpoint = (run_folder / "checkpoint.safetensors").read_bytes()
        header = struct.unpack("<Q", checkpoint[:8])[0]
        epochs = json.loads((run_folder / "run.json").read_text())["epochs"]
        trained.append((checkpoint[8 + header:], [{key: value for key, value in epoch.items() if "loss" in key or "accuracy" in key}
                                                  for epoch in epochs]))
    assert len(trained) == 2 and all(len(epochs) == 2 and "loss" in epochs[0] for _, epochs in trained), trained
    return trained


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=lambda path: Path(path).resolve())
    parser.add_argument("--program", required=True, type=lambda path: Path(path).resolve())
    arguments = parser.parse_args()
    for needed, package in (("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu"), ("qemu-aarch64-static", "qemu-user-static")):
        if not shutil.which(needed):
            skip(f"there is no {needed}; apt-get install {package}")
    built = arguments.build / "bin/sweep"
    if not built.exists():
        skip("nothing is built for aarch64; tools/release --arch aarch64 DIR does that")
    entered = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True, text=True)
    if entered.returncode != 0:
        skip(f"qemu cannot be registered in a user namespace: {entered.stderr.strip()}")
    version = run(arguments.program, "--version")
    if under_qemu(built, "--version") != version:
        skip("what is built for aarch64 is of another commit")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = folder / "files"
        run(ROOT / "tools/release", "--built", arguments.build, files)
        (wheel,) = files.glob("sweep_runner-*-py3-none-manylinux_2_*_aarch64.whl")
        assert wheel.stat().st_size < 12e6, wheel.stat().st_size
        for package in files.glob("*.deb"):
            assert run("dpkg-deb", "--field", package, "Architecture") == "arm64\n", package
        (package,) = files.glob("sweep-runner_*.deb")
        needed = run("dpkg-deb", "--field", package, "Depends")
        for library in ("libc6 (>= 2.34)", "libstdc++6", "libzip4", "libprotobuf"):
            assert library in needed, needed
        (archive,) = files.glob("sweep-*-linux-aarch64.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(folder)
        (program,) = folder.glob("sweep-*/bin/sweep")
        assert under_qemu(program, "--version") == version
        there, here = (train(runner, path, folder / f"linear-{path.parents[1].name}", 2000, f"network={LINEAR}")
                       for runner, path in ((under_qemu, program), (run, arguments.program)))
        assert there == here
        # Sums over the images of a block are added in another order: bits differ, the training is the same.
        there, here = (train(runner, path, folder / f"convolutions-{path.parents[1].name}", 300)
                       for runner, path in ((under_qemu, program), (run, arguments.program)))
        for (_, emulated), (_, expected) in zip(there, here):
            assert abs(emulated[-1]["loss"] - expected[-1]["loss"]) < 1e-4 * expected[-1]["loss"], (emulated, expected)


if __name__ == "__main__":
    main()
