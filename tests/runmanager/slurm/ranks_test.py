#!/usr/bin/env python3
"""One network on the ranks of `srun -K1 --mpi=pmix`, on one and on two nodes: the bits of threads and of one device, also after a rank is
killed.

  ranks_test.py --program SWEEP

Exit codes: 0 good, 1 problems, 77 there is no Slurm, or none with PMIx, or no MPI in the program.
"""
import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests/support/python"), str(ROOT / "tests/torture")]
import torture_sweep  # noqa: E402
from device_sweeps import NETWORKS, DeviceSweep  # noqa: E402
from processes import send, until  # noqa: E402
from slurm_cluster import NoSlurm, SlurmCluster  # noqa: E402

PATIENCE = 100  # seconds for any one start
EPOCHS = 8
# Nodes that are all on this machine; ranks may be more than its cores.
MPI_SETTINGS = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_mpi_yield_when_idle": "1"}


def ranks_on(nodes):
    return lambda devices: ["srun", f"--nodes={nodes}", f"--ntasks={devices}", "--overcommit", "-K1", "--mpi=pmix"]


LAUNCHERS = {"threads": lambda devices: [], "one-node": ranks_on(1), "two-nodes": ranks_on(2)}


class RanksTest(DeviceSweep):
    patience = PATIENCE

    def __init__(self, arguments, cluster, directory, name):
        super().__init__(arguments, directory, name, 1000, 8, EPOCHS, LAUNCHERS, cluster.environment | MPI_SETTINGS)

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

    def expect_the_same_bits(self, logdir, kind, devices):
        begin = time.monotonic()
        code, _, err = self.start(logdir, kind=kind, devices=devices)
        if "Open MPI failed to TCP connect" in err:  # sometimes, where all nodes are one busy machine; then its process may crash
            print(f"{self.name}, {logdir}: Open MPI could not connect, once more", flush=True)
            code, _, err = self.start(logdir, kind=kind, devices=devices)
        self.expect(f"{self.name}, {logdir}: exit code {code}: {err[-2000:]}", code == 0)
        self.expect(f"{self.name}, {logdir}: weights or metrics of {devices} devices ({kind}) differ from those of one",
                    torture_sweep.bits_of(self.sweep(logdir)) == self.oracle)
        print(f"{self.name}, {logdir}: {time.monotonic() - begin:.1f} s", flush=True)

    def loses(self, lost, logdir):
        """Whether rank `lost` was killed before the run was complete."""
        process = self.popen(logdir, kind="two-nodes", devices=3)
        until(lambda: self.finished_epochs(logdir) > 0, PATIENCE, f"{logdir}: an epoch")
        time.sleep(self.random.uniform(0, 0.1))
        if rank := self.ranks_of(logdir).get(lost):
            send(signal.SIGKILL, rank)
        code, _, err = self.wait(process)
        until(lambda: not self.ranks_of(logdir), PATIENCE, f"{logdir}: all ranks end")
        if self.finished_epochs(logdir) == EPOCHS:
            return False
        self.expect(f"{logdir}: exit code {code}, and who was lost is not told: {err[-2000:]}",
                    code != 0 and (f"task {lost}: Killed" in err or f"sweep: rank {lost}:" in err))
        return True

    def goes_on_after_the_death_of(self, lost):
        # A run is complete within a second, now and then before the blow.
        logdir = next((logdir for logdir in (f"lost-{lost}-{number}" for number in range(100)) if self.loses(lost, logdir)), None)
        self.expect(f"rank {lost} was never killed in time", logdir)
        if logdir:
            self.expect_the_same_bits(logdir, "one-node", 4 if lost == 0 else 2)


def play(arguments, cluster, directory):
    """What is wrong."""
    listed = subprocess.run(["srun", "--mpi=list"], env=cluster.environment, capture_output=True, text=True)
    if "pmix" not in listed.stdout + listed.stderr:
        print("SKIPPED: Slurm has no PMIx (srun --mpi=list)")
        sys.exit(77)
    found = []
    for name in NETWORKS:
        test = RanksTest(arguments, cluster, directory / name, name)
        if missing := test.missing_reason("one-node"):
            print(f"SKIPPED: {missing}")
            sys.exit(77)
        for kind, devices in (("threads", 3), ("one-node", 2), ("two-nodes", 3)):
            test.expect_the_same_bits(kind, kind, devices)
        for lost in (0, 2) if name == "residual" else ():
            test.goes_on_after_the_death_of(lost)
        found += test.found
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=os.path.abspath, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        cluster = SlurmCluster(nodes=2, cpus=4)
    except NoSlurm as reason:
        print(f"SKIPPED: {reason}")
        return 77
    with cluster, tempfile.TemporaryDirectory(prefix="sweep-ranks-test-") as folder:
        found = play(arguments, cluster, Path(folder).resolve())
    print(f"{len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
