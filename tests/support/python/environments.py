"""Interpreters with what tests need, and the end of tests that lack it."""
import os
import subprocess
import sys
from pathlib import Path


def skip(reason):
    """Ends the program with CTest's SKIP_RETURN_CODE."""
    print(f"SKIPPED: {reason}", flush=True)
    sys.exit(77)


def has_modules(python, *modules):
    return Path(python).exists() and subprocess.run([python, "-c", f"import {', '.join(modules)}"], capture_output=True,
                                                    check=False).returncode == 0


def make_venv(venv, *packages):
    """The interpreter of a virtual environment. If it is missing it is made, with packages from PyPI as far as they can be had."""
    python = Path(venv) / "bin/python"
    if not python.exists() and subprocess.run([sys.executable, "-m", "venv", venv], check=False, capture_output=True).returncode == 0:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", "--retries", "2",
                        *packages],
                       check=False, capture_output=True, timeout=300)
    return python


def run_with_torch(named, *words, **variables):
    """Runs this program once more, with the interpreter $SWEEP_TORCH_PYTHON or the one named, which tools/bench installs; returns the exit
    code. Without PyTorch the test is skipped."""
    python = os.environ.get("SWEEP_TORCH_PYTHON", named)
    if not has_modules(python, "torch"):
        skip("no PyTorch: SWEEP_TORCH_PYTHON names an interpreter that has it")
    return subprocess.run([python, "-B", sys.argv[0], *words], check=False, env=os.environ | variables).returncode
