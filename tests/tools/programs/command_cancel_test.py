#!/usr/bin/env python3
"""Ends sweeps by `sweep cancel`.

  command_cancel_test.py PROGRAM [UNITTEST ARGUMENTS]

PROGRAM is the sweep program.
"""

import fcntl
import shutil
import subprocess
import tempfile

from program_runs import ProgramRuns, main
from processes import until


class CancelTest(ProgramRuns):
    def test_cancel_ends_a_sweep_of_this_machine(self):
        self.assertIn("runs/s: is not there", self.sweep("cancel", "runs/s", code=2).stderr)
        process = self.start("x=1,2", "--name", "s", "--", "sh", "-c", "touch $SWEEP_RUN_DIR/on; test {x} = 1 || sleep 100")
        until(lambda: (self.folder / "runs/s/x=2/on").exists(), 60, "the second run")
        done = self.sweep("cancel", "runs/s")
        self.assertEqual(process.wait(30), 143)
        self.assertEqual(done.stdout, f"Process {process.pid} ended; 1 of 2 runs are finished.\nTo go on: sweep resume runs/s\n")
        self.assertIn("no sweep works on it", self.sweep("cancel", "runs/s", code=2).stderr)
        (self.folder / "runs/s/.lock").write_text("process 1 on elsewhere\n")
        alone = ["unshare", "-rpf", "--mount-proc"]  # sees its own processes only
        if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
            return
        with (self.folder / "runs/s/.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run([*alone, self.program, "cancel", "runs/s"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertIn("held by process 1 on elsewhere; end it there", done.stderr)

    def test_cancel_ends_all_that_have_joined(self):
        words = ["x=1,2", "--name", "s", "--join", "--", "sh", "-c", "touch $SWEEP_RUN_DIR/on; sleep 100"]
        first = self.start(*words)
        until(lambda: (self.folder / "runs/s/x=1/on").exists(), 60, "the first run")
        second = self.start(*words)
        until(lambda: (self.folder / "runs/s/x=2/on").exists(), 60, "the second run")
        self.assertRegex(self.sweep("cancel", "runs/s").stdout, r"^Process \d+, \d+ ended; 0 of 2 runs")
        self.assertEqual((first.wait(30), second.wait(30)), (143, 143))

    def test_cancel_counts_the_trials_that_a_search_has_not_added_yet(self):
        process = self.start('x={"uniform": [0, 1]}', "search.method=tpe", "search.trials=9", "metrics.loss=loss=(.*)", "--name", "s", "--",
                             "sh", "-c", "touch $SWEEP_RUN_DIR/on; sleep 100")
        until(lambda: list(self.folder.glob("runs/s/*/on")), 60, "the first trial")
        self.assertIn(" ended; 0 of 9 runs are finished.\n", self.sweep("cancel", "runs/s").stdout)
        self.assertEqual(process.wait(30), 143)

    def test_cancel_finds_the_process_where_files_have_another_device_than_their_file_system(self):
        layers = [tempfile.mkdtemp(dir=folder) for folder in ("/dev/shm", self.folder)]
        self.addCleanup(shutil.rmtree, layers[0])
        for folder in ("upper", "work", "mount"):
            (self.folder / folder).mkdir()
        script = f"""mount -t overlay overlay -o lowerdir={":".join(layers)},upperdir=upper,workdir=work mount || exit 9
            cd mount; {self.program} x=1 --name s -- sh -c 'touch on; sleep 100' & while ! test -e on; do sleep 0.1; done
            {self.program} cancel runs/s || kill $!; wait"""
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 9 or "unshare: " in done.stderr:
            self.skipTest("no overlay can be mounted here")
        self.assertRegex(done.stdout, r"Process \d+ ended; 0 of 1 runs are finished")


if __name__ == "__main__":
    main()
