#!/usr/bin/env python3
"""One network on the ranks of `srun -K1 --mpi=pmix`, on one and on two nodes: the bits of threads and of one device, also after a rank is
killed.

  ranks_test.py --program SWEEP

Exit codes: 0 good, 1 problems, 77 there is no Slurm, or none with PMIx, or no MPI in the program.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/support/slurm_cluster"), str(ROOT / "tests/torture")]
import parallel_sweeps  # noqa: E402
import torture_sweep  # noqa: E402
from slurm_cluster import NoSlurm, SlurmCluster, until  # noqa: E402

PATIENCE = 100  # seconds for any one start
EPOCHS = 8
# Nodes that are all on this machine; ranks may be more than its cores.
MPI_SETTINGS = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_mpi_yield_when_idle": "1"}


class RanksTest:
    def __init__(self, program, cluster, directory):
        self.program, self.directory, self.found = program, directory, []
        self.environment = cluster.environment | MPI_SETTINGS
        parallel_sweeps.write_sweeps(directory, pictures=1000, side=8, epochs=EPOCHS)

    def problem(self, text):
        self.found.append(text)
        print("PROBLEM:", text, flush=True)

    def start(self, name, logdir, devices, nodes=0):
        """`devices` are ranks on so many nodes, or threads."""
        launcher = ["srun", f"--nodes={nodes}", f"--ntasks={devices}", "--overcommit", "-K1", "--mpi=pmix"] if nodes else []
        return subprocess.Popen([*launcher, self.program, f"{name}.json", f"parallel.data={devices}", "--threads", "4", "--logdir", logdir, "--quiet"],
                                cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    def end(self, process):
        try:
            _, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            _, err = process.communicate()
            self.problem(f"{' '.join(process.args)}: does not end")
        return process.returncode, err

    def finish(self, name, logdir, devices, nodes=0):
        begin = time.monotonic()
        code, err = self.end(self.start(name, logdir, devices, nodes))
        if code != 0:
            self.problem(f"{name}, {logdir}: exit code {code}: {err[-2000:]}")
        print(f"{name}, {logdir}: {time.monotonic() - begin:.1f} s", flush=True)
        return torture_sweep.bits_of(self.directory / logdir / name)

    def mpi_missing_reason(self):
        listed = subprocess.run(["srun", "--mpi=list"], env=self.environment, capture_output=True, text=True)
        if "pmix" not in listed.stdout + listed.stderr:
            return "Slurm has no PMIx (srun --mpi=list)"
        code, err = self.end(self.start("mlp", "try", 2, nodes=1))
        return err if code != 0 and "built without MPI" in err else None

    def ranks_of(self, logdir):
        """{rank: process} of the ranks that write, or would write, to `logdir`."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().split(b"\0")
                variables = (path / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            rank = [int(variable[10:]) for variable in variables if variable.startswith(b"PMIX_RANK=")]
            if words[0].decode() == self.program and logdir.encode() in words and rank and (path / "cwd").resolve() == self.directory:
                found[rank[0]] = int(path.name)
        return found

    def give_the_same_bits(self):
        for name in parallel_sweeps.NETWORKS:
            alone = self.finish(name, "alone", 1)
            for logdir, devices, nodes in (("threads", 3, 0), ("one-node", 2, 1), ("two-nodes", 3, 2)):
                if self.finish(name, logdir, devices, nodes) != alone:
                    self.problem(f"{name}: weights or metrics of {devices} devices on {nodes} nodes differ from those of one")

    def go_on_after_the_death_of_a_rank(self):
        name = "residual"
        for lost in (0, 2):
            logdir = f"lost-{lost}"
            process = self.start(name, logdir, 3, nodes=2)
            run = self.directory / logdir / name / "run"
            until(lambda: parallel_sweeps.finished_epochs(run) > 0, PATIENCE, f"{logdir}: an epoch")
            time.sleep(random.uniform(0, 0.1))
            os.kill(self.ranks_of(logdir)[lost], signal.SIGKILL)
            code, err = self.end(process)
            if code == 0 or not (f"task {lost}: Killed" in err or f"sweep: rank {lost}:" in err):
                self.problem(f"{logdir}: exit code {code}, and who was lost is not told: {err[-2000:]}")
            until(lambda: not self.ranks_of(logdir), PATIENCE, f"{logdir}: all ranks end")
            if parallel_sweeps.finished_epochs(run) == EPOCHS:
                self.problem(f"{logdir}: was complete before rank {lost} was killed")
            if self.finish(name, logdir, 4 if lost == 0 else 2, nodes=1) != torture_sweep.bits_of(self.directory / "alone" / name):
                self.problem(f"{logdir}: weights or metrics differ from those of one device")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, required=True)
    arguments = parser.parse_args()
    try:
        cluster = SlurmCluster(nodes=2, cpus=4)
    except NoSlurm as reason:
        print(f"SKIPPED: {reason}")
        return 77
    with cluster, tempfile.TemporaryDirectory(prefix="sweep-ranks-test-") as folder:
        test = RanksTest(arguments.program, cluster, Path(folder).resolve())
        if missing := test.mpi_missing_reason():
            print(f"SKIPPED: {missing}")
            return 77
        test.give_the_same_bits()
        test.go_on_after_the_death_of_a_rank()
    print(f"{len(test.found)} problems")
    return 1 if test.found else 0


if __name__ == "__main__":
    sys.exit(main())
