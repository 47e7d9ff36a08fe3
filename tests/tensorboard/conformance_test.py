#!/usr/bin/env python3
"""What the real TensorBoard shows of a directory that tbwriter wrote. Numbers in names of tests are those of the list
of conformance checks that the project keeps: 1-3 and 48 read files, the others ask a server.

  conformance_test.py --demo PROGRAM --venv VENV --loader fast|slow|none
"""

import argparse
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from server import SKIPPED, find_venv
from shown_checks import CONTEXT, Checks, Server
from peer_checks import FastLoaderPeer, PythonLoaderPeer
from process_checks import (BothLoaders, FastLoaderKilled, FastLoaderManyRuns, PythonLoaderKilled,
                            PythonLoaderManyRuns)
from special_checks import (FastLoaderExperiment, FastLoaderSessions, FastLoaderStrict, Files, PythonLoaderExperiment,
                            PythonLoaderFull, PythonLoaderSessions)

ITEMS = 48


class FastLoader(Checks, Server):
    fast = True


class PythonLoader(Checks, Server):
    fast = False


class EveryItem(unittest.TestCase):
    """Every item of the list has a test; those that ask a server have one for each loader."""

    def test_every_item_has_a_test(self):
        for loaders, items in ((["fast"], range(3, ITEMS)), (["slow"], range(4, ITEMS)), (["none"], [1, 2, ITEMS])):
            tests = {name for loader in loaders for case in self.classes[loader] for name in dir(case)}
            missing = [item for item in items if not any(name.startswith(f"test_{item:02}_") for name in tests)]
            self.assertEqual(missing, [], msg=loaders)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, required=True)
    parser.add_argument("--venv")
    parser.add_argument("--peers", help="a Python that has torch, to compare with; without it kept files are read")
    parser.add_argument("--loader", choices=["fast", "slow", "none"], required=True)
    parser.add_argument("--keep", type=Path, help="write the log directory here and leave it")
    parser.add_argument("-k", dest="pattern", help="only tests whose names contain this")
    options = parser.parse_args()
    CONTEXT.venv = find_venv(options.venv)
    if CONTEXT.venv is None:
        print("SKIPPED: no TensorBoard; name its virtual environment with --venv or SWEEP_TENSORBOARD_VENV")
        return SKIPPED
    classes = {"fast": [FastLoader, FastLoaderStrict, FastLoaderSessions, FastLoaderExperiment, FastLoaderKilled,
                        FastLoaderManyRuns, FastLoaderPeer],
               "slow": [PythonLoader, PythonLoaderFull, PythonLoaderSessions, PythonLoaderExperiment,
                        PythonLoaderKilled, PythonLoaderManyRuns, PythonLoaderPeer],
               "none": [Files, BothLoaders, EveryItem]}
    EveryItem.classes = classes
    with tempfile.TemporaryDirectory() as directory:
        CONTEXT.demo, CONTEXT.logdir = options.demo, options.keep or Path(directory)
        CONTEXT.peers = options.peers
        subprocess.run([CONTEXT.demo, CONTEXT.logdir], check=True)
        loader = unittest.TestLoader()
        if options.pattern:
            loader.testNamePatterns = [f"*{options.pattern}*"]
        suite = unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in classes[options.loader])
        return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
