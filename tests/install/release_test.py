#!/usr/bin/env python3
"""Looks at the packages that tools/release made, and installs the wheel into an empty environment with an empty PATH.

  release_test.py --files DIR
"""
import argparse
import os
import re
import shutil
import sys
import tarfile
import tempfile
import unittest
import venv
import zipfile
from pathlib import Path
from types import SimpleNamespace

sys.path.append(str(Path(__file__).resolve().parents[1] / "support/python"))
from processes import run  # noqa: E402

CONTEXT = SimpleNamespace(files=None)
CONFIG = {"name": "mine", "dataset": {"name": "fashion-mnist", "limit": 600, "validation": 100}, "epochs": 2,
          "network": {"layers": [{"type": "flatten"}, {"type": "linear", "out_features": 10}]},
          "params": {"lr": [0.1, 0.01], "batch_size": [50], "device": ["cpu"]}}


class Release(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.files = Path(CONTEXT.files)
        cls.environment = cls.folder / "environment"
        venv.create(cls.environment, with_pip=True)
        cls.python = cls.environment / "bin/python"
        (cls.wheel,) = cls.files.glob("sweep_runner-*.whl")
        cls.before = cls.installed()
        cls.pip("install", "--no-index", cls.wheel)

    @classmethod
    def installed(cls):
        return {path for path in cls.environment.rglob("*") if path.is_file() and "__pycache__" not in str(path)}

    @classmethod
    def pip(cls, *words):
        run(cls.python, "-m", "pip", "--disable-pip-version-check", *words)

    def in_environment(self, *command):
        """What a command prints that finds programs of the environment only."""
        path = {"PATH": str(self.environment / "bin"), "HOME": str(self.folder)}
        data = {key: os.environ[key] for key in ("SWEEP_DATA",) if key in os.environ}
        return run(self.environment / "bin" / command[0], *command[1:], cwd=self.folder, env={**path, **data})

    def test_the_program_of_the_wheel_trains(self):
        self.assertRegex(self.in_environment("sweep", "--version"), r"^sweep \d+\.\d+\.\d+ ")
        self.in_environment("sweep", "init")
        self.assertIn("lr", self.in_environment("sweep", "plan", "sweep.json"))
        script = f"import sweep; print(len(sweep.run({CONFIG!r}).runs)); print(sorted(sweep.load('runs/mine').epochs[0]))"
        printed = self.in_environment("python", "-c", script).splitlines()
        self.assertEqual(printed[-2], "2")
        for column in ("run", "lr", "epoch", "loss", "validation_accuracy", "epoch_seconds"):
            self.assertIn(f"'{column}'", printed[-1])
        self.assertEqual(len(list(self.folder.glob("runs/mine/*/events.out.tfevents.*"))), 2)
        self.assertIn("mine", self.in_environment("python", "-m", "sweep", "ls", "runs"))

    def test_errors_are_those_of_the_program(self):
        script = "import sweep\ntry:\n  sweep.load('nowhere')\nexcept ValueError as error:\n  print(error)"
        self.assertIn("nowhere", self.in_environment("python", "-c", script))

    def test_numbers_are_numbers_and_no_column_hides_another(self):
        report = "echo '{\"step\": 1, \"score\": NaN, \"best\": -Infinity}' >> $SWEEP_METRICS"
        config = {"name": "own", "command": ["/bin/sh", "-c", report], "params": {"score": [7], "x": [1]}}
        script = (f"import sweep\nresults = sweep.run({config!r}, options=['--quiet'])\n"
                  "print([results.epochs[0][key] for key in ('reported_score', 'best', 'score', 'x', 'epoch')])\n"
                  "print([results.runs[0][key] for key in ('reported_score', 'best', 'score', 'x', 'status')])\n"
                  "for options in (['--fresh'], ['name=other'], ['--dry-run'], ['--launcher', 'slurm'], '--jobs 2'):\n"
                  f"  try:\n    sweep.run({config!r}, options=options)\n"
                  "  except (TypeError, ValueError) as error:\n    print(error)\n"
                  "try:\n  sweep.load('runs/own/score=7,x=1')\nexcept ValueError as error:\n  print(error)")
        printed = self.in_environment("python", "-c", script).splitlines()
        elsewhere = "choose the directory by logdir and by the config's \"name\""
        self.assertEqual(printed[-8:], ["[nan, -inf, 7, 1, 1]", "[nan, -inf, 7, 1, 'completed']",
                                        f"--fresh: {elsewhere}", f"name=other: {elsewhere}", "--dry-run: leaves no results",
                                        "--launcher slurm: there are results with --wait only",
                                        "options: got the text '--jobs 2', want a list of words",
                                        "runs/own/score=7,x=1: is the directory of a run; want that of its sweep"])

    def test_an_interrupt_ends_a_sweep_in_order(self):
        # Only Python gets the signal, as from a notebook. Its numbers are of another library than json knows, its paths no texts.
        script = """import os, pathlib, sweep
class Number:
    tolist = lambda self: 7
program = f"trap 'echo asked > {os.getcwd()}/asked; exit 75' TERM; kill -INT {os.getpid()}; /bin/sleep 9 & wait"
try:
    sweep.run({"name": "stopped", "command": [pathlib.Path("/bin/sh"), "-c", program], "params": {"x": [Number()]}})
except KeyboardInterrupt:
    print(pathlib.Path("asked").read_text(), sweep.load("runs/stopped").runs[0]["status"], sweep.load("runs/stopped").runs[0]["x"])
try:
    sweep.run({"name": "failed", "command": ["/bin/false"], "params": {"x": [1]}})
except RuntimeError as error:
    print(error.returncode)
"""
        self.assertEqual(self.in_environment("python", "-c", script).split()[-4:], ["asked", "interrupted", "7", "1"])

    def test_sigterm_ends_a_sweep_in_order(self):
        script = """import os, pathlib, subprocess, sys, sweep
if len(sys.argv) > 1:
    program = f"trap 'echo asked > {os.getcwd()}/asked; exit 75' TERM; kill -TERM {os.getpid()}; /bin/sleep 9 & wait"
    sweep.run({"name": "ended", "command": ["/bin/sh", "-c", program], "params": {"x": [1]}})
print(subprocess.run([sys.executable, __file__, "inner"]).returncode)
print(pathlib.Path("asked").read_text(), sweep.load("runs/ended").runs[0]["status"])
"""
        (self.folder / "ended.py").write_text(script)
        self.assertEqual(self.in_environment("python", "ended.py").split()[-3:], ["-15", "asked", "interrupted"])

    def test_the_program_is_found_whatever_the_installer_lists_first(self):
        (record,) = self.environment.glob("lib/python*/site-packages/sweep_runner-*.dist-info/RECORD")
        written = record.read_text()
        lines = written.splitlines(keepends=True)
        record.write_text("".join(sorted(lines, key=lambda line: "bash-completion" not in line)))
        self.addCleanup(record.write_text, written)
        find = ("python", "-c", "import sweep\ntry:\n  print(sweep.binary())\nexcept FileNotFoundError as error:\n  print(error)")
        self.assertEqual(self.in_environment(*find), f"{self.environment.resolve()}/bin/sweep\n")
        # As pip install --target leaves it.
        beside = record.parents[1] / "bin"
        beside.mkdir()
        self.addCleanup(shutil.rmtree, beside)
        (beside / "sweep").touch()
        self.assertIn("pip install --target leaves out the libraries", self.in_environment(*find))

    def test_every_library_is_there(self):
        for line in run("ldd", self.environment / "bin/sweep").splitlines():
            if "/" in line and not any(name in line for name in ("ld-linux", "libc.so", "libm.so", "libgcc_s", "libstdc++")):
                self.assertIn("/lib/sweep/", line)

    def test_every_library_has_its_licence(self):
        texts = self.environment / "share/doc/sweep-runner"
        self.assertIn("Apache License", (texts / "copyright").read_text())
        licences = {path.name: path.stat().st_size for path in (texts / "licences").iterdir()}
        self.assertGreater(min(licences.values()), 500)
        libraries = [path.name for path in (self.environment / "lib/sweep").iterdir()]
        for name in libraries:
            of_package = {"libcrypto": "libssl", "libz": "zlib"}.get(name.split(".so")[0], name.split(".so")[0])
            self.assertTrue([licence for licence in licences if licence.startswith(of_package)], f"{name}: {sorted(licences)}")
        self.assertIn("unifont", licences)

    def test_extras_are_those_of_the_program(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            metadata = wheel.read(name).decode()
        needed = set(re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE))
        opened = set(re.findall(r"lib(cublasLt|cudnn|nccl)\.so", self.in_environment("sweep", "devices")))
        self.assertLessEqual({"tensorboard; extra == 'tensorboard'", "pandas; extra == 'pandas'"}, needed)
        self.assertEqual(len([line for line in needed if re.match(r"nvidia-\S+ ==\d+\.\*; extra == 'cuda'$", line)]), len(opened))
        self.assertEqual("Provides-Extra: cuda" in metadata, bool(opened))

    def test_the_driver_is_opened_at_run_time(self):
        needed = re.findall(r"NEEDED.*\[(.+)\]", run("readelf", "-d", self.environment / "bin/sweep"))
        self.assertIn("libc.so.6", needed)
        self.assertFalse([name for name in needed if re.match(r"lib(cuda|cudart|cublas|cudnn|nccl)", name)])

    def test_the_wheel_is_small(self):
        limit = 30e6 if "cublasLt" in self.in_environment("sweep", "devices") else 12e6
        self.assertLess(self.wheel.stat().st_size, limit)

    def test_the_archive_holds_the_program_that_runs_anywhere(self):
        (archive,) = self.files.glob("sweep-*.tar.gz")
        with tarfile.open(archive) as tar:
            # What root unpacks belongs to root, whoever packed it, and others may read it.
            self.assertEqual({(member.uid, member.gid) for member in tar}, {(0, 0)})
            self.assertEqual([member.name for member in tar if member.mode & 0o077 not in (0o044, 0o055)], [])
            tar.extractall(self.folder / "unpacked")
        (program,) = self.folder.glob("unpacked/*/bin/sweep")
        self.assertRegex(run(program, "--version", env={}), r"^sweep ")

    def test_debian_packages_say_what_they_need(self):
        (program,) = self.files.glob("sweep-runner_*.deb")
        (development,) = self.files.glob("libsweep-dev_*.deb")
        self.assertIn("libc6", run("dpkg-deb", "--field", program, "Depends"))
        self.assertEqual(run("dpkg-deb", "--field", program, "Conflicts"), "sweep\n")  # Debian's audio editor of that name
        # Between two releases the wheel and the packages of each commit have a version of their own, before the next release's.
        version = run("dpkg-deb", "--field", program, "Version").strip()
        self.assertRegex(version, r"^\d+\.\d+\.\d+(~dev\d+)?$")
        self.assertIn(f"sweep_runner-{version.replace('~', '.')}-py3", self.wheel.name)
        for module in self.files.glob("sweep-runner-mpi_*.deb"):
            self.assertIn(f"sweep-runner (= {version})", run("dpkg-deb", "--field", module, "Depends"))
        self.assertNotIn("mpi", run("dpkg-deb", "--field", program, "Depends"))
        contents = run("dpkg-deb", "--contents", program)
        self.assertIn("/usr/bin/sweep\n", contents)
        self.assertIn("/usr/share/doc/sweep-runner/copyright\n", contents)
        for made in ("share/man/man1/sweep.1", "share/bash-completion/completions/sweep"):
            self.assertRegex(contents, rf" [1-9]\d* \S+ \S+ \./usr/{made}\n")
        self.assertEqual([line for line in contents.splitlines() if not re.match(r"[-dl]rw.r.[-x]r.[-x] ", line)], [])
        self.assertIn("nlohmann-json3-dev", run("dpkg-deb", "--field", development, "Depends"))
        self.assertIn("sweepConfig.cmake\n", run("dpkg-deb", "--contents", development))

    @classmethod
    def tearDownClass(cls):
        cls.pip("uninstall", "--yes", "sweep-runner")
        remains = cls.installed() - cls.before
        assert not remains, remains


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", required=True)
    arguments, rest = parser.parse_known_args()
    CONTEXT.files = arguments.files
    sys.exit(not unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful())
