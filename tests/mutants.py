#!/usr/bin/env python3
"""Breaks the sources in the places of mutants.json, one at a time, and runs the tests that have to find it.

  mutants.py SOURCE BUILD [NUMBER…]     all, or some of them; SOURCE is a checkout without changes, for which BUILD is configured
  mutants.py SOURCE                     only whether the places are still in the sources

Changes the file, builds the one test program, and puts the file back. Takes some 30 s per mutant. Prints a line for each, with
TIMEOUT for tests that no longer end; exits with 1 if a mutant survives, and with 2 if a place or a test is no longer there.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

MUTANTS = json.loads(Path(__file__).with_name("mutants.json").read_text())


def outcome_of(build, program, tests):
    if subprocess.run(["ninja", "-C", build, f"tests/{program}"], capture_output=True, check=False).returncode != 0:
        return "NOT COMPILED"
    command = [build / "tests" / program, "--gtest_brief=1", f"--gtest_filter={tests}"]
    try:
        # Else the engine would use libraries in place of the kernels that are broken.
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300,
                              env={**os.environ, "SWEEP_CUDA_KERNELS": "builtin"}, check=False)
    except subprocess.TimeoutExpired:
        return "TIMEOUT"
    if "] 0 tests from 0 test suites ran" in done.stdout:
        return "NO TEST"
    return "found" if done.returncode != 0 else "SURVIVED"


def run(source, build, name, text, mutant, program, tests):
    file = source / name
    whole = file.read_text()
    try:
        file.write_text(whole.replace(text, mutant))
        return outcome_of(build, program, tests)
    finally:
        file.write_text(whole)


def main():
    source = Path(sys.argv[1]).resolve()
    lost = [f"{name}: {text!r}" for name, text, *_ in MUTANTS if (source / name).read_text().count(text) != 1]
    if lost:
        print("not once in the source: " + "; ".join(lost))
        sys.exit(2)
    if len(sys.argv) == 2:
        return
    build = Path(sys.argv[2]).resolve()
    if subprocess.run(["git", "-C", source, "diff", "--quiet", "HEAD"], check=False).returncode != 0:
        sys.exit(f"{source} has changes; commit them first, as its files are changed and put back")
    outcomes = set()
    for number in [int(word) for word in sys.argv[3:]] or range(1, len(MUTANTS) + 1):
        name, text, _, program, tests = MUTANTS[number - 1]
        outcome = run(source, build, *MUTANTS[number - 1])
        outcomes.add(outcome)
        print(f"{number:2}  {outcome:8}  {name}: {text.strip().splitlines()[0]}  [{program} {tests}]", flush=True)
    sys.exit(0 if outcomes <= {"found", "TIMEOUT"} else 1 if "SURVIVED" in outcomes else 2)


main()
