#!/usr/bin/env python3
"""What the real TensorBoard shows of a directory that tbwriter wrote. Numbers in names of tests are those of
conformance.txt: 1-3 and 48 read files, the others ask a server.

  conformance_test.py --demo PROGRAM --venv VENV --loader fast|slow|none
"""

import argparse
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from server import needed_venv
from shown_checks import CONTEXT, Shown
from peer_checks import Peer
from process_checks import BothLoaders, Killed, ManyRuns
from special_checks import Experiment, Files, Full, Sessions, Strict

READ_FROM_FILES = {1, 2, 48}


def with_loader(fast, *classes):
    return [type(case.__name__, (case,), {"fast": fast}) for case in classes]


class EveryItem(unittest.TestCase):
    """Every item of the list has a test, and every number is one of the list; items that ask a server have a test for
    each loader."""

    def test_every_item_has_a_test(self):
        lines = Path(__file__).with_name("conformance.txt").read_text().splitlines()
        items = {int(re.match(r"(\d+)\. .+: .+", line)[1]) for line in lines}
        self.assertEqual(items, set(range(1, len(lines) + 1)))
        asked = items - READ_FROM_FILES
        for loader, expected in (("fast", asked), ("slow", asked - {3}), ("none", READ_FROM_FILES)):
            names = {name for case in self.classes[loader] for name in dir(case)}
            numbers = {int(match[1]) for name in names if (match := re.match(r"test_(\d\d)_", name))}
            self.assertEqual(expected - numbers, set(), msg=loader)
            self.assertEqual(numbers - items, set(), msg=loader)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--demo", type=Path, required=True)
    parser.add_argument("--venv")
    parser.add_argument("--peers", help="a Python that has torch, to compare with; without it kept files are read")
    parser.add_argument("--loader", choices=["fast", "slow", "none"], required=True)
    parser.add_argument("--keep", type=Path, help="write the log directory here and leave it")
    parser.add_argument("-k", dest="pattern", help="only tests whose names contain this")
    options = parser.parse_args()
    CONTEXT.venv = needed_venv(options.venv)
    more = (Sessions, Experiment, Killed, ManyRuns, Peer)
    # What is shown comes first, as others add a run.
    classes = {"fast": with_loader(True, Shown, Strict, *more), "slow": with_loader(False, Shown, Full, *more),
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
