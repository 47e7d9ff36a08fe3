"""Runs that several devices train together, killed again and again, and resumed with another number of devices.

A CNN, an MLP, and a residual network with batch normalization and dropout; the devices are threads or MPI ranks, 1 to 4; one process
or the launcher is killed. Weights, optimizer state and metrics have to be those of a run that one device trained undisturbed, bit for
bit. Without mpirun, or a program built with MPI, there are threads alone.
"""
import json
import os
import shutil
import signal
import time
from pathlib import Path

import torture_sweep
from kills import kill_again_and_again
from processes import children_of, send, until

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"]
# On one machine with fewer cores than ranks, and without opening a port.
MPI_SETTINGS = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
                "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_oob_tcp_if_include": "lo"}
# What is written before the program, by the number of devices.
LAUNCHERS = {"threads": lambda devices: [], "ranks": lambda devices: [*MPIRUN, str(devices)]}


def conv(name, channels):
    return {"name": name, "type": "conv2d", "out_channels": channels, "kernel_size": 3, "padding": 1}


HEAD = [{"name": "flatten", "type": "flatten"}, {"name": "drop", "type": "dropout", "p": 0.3},
        {"name": "out", "type": "linear", "out_features": 4}]
NETWORKS = {
    "cnn": [conv("conv1", 6), {"name": "relu1", "type": "relu"}, {"name": "pool1", "type": "max_pool2d", "kernel_size": 2},
            conv("conv2", 8), {"name": "relu2", "type": "relu"}, HEAD[0], HEAD[2]],
    "mlp": [HEAD[0], {"name": "fc1", "type": "linear", "out_features": 40}, {"name": "relu1", "type": "relu"}, HEAD[2]],
    "residual": [conv("stem", 6), {"name": "norm", "type": "batch_norm2d"},
                 {"name": "block", "type": "residual",
                  "layers": [conv("conv1", 6), {"name": "norm1", "type": "batch_norm2d"}, {"name": "relu1", "type": "relu"}]},
                 {"name": "pool", "type": "max_pool2d", "kernel_size": 2}, *HEAD]}


class DeviceSweep(torture_sweep.TortureSweep):
    """A sweep of one run that is started with devices of any kind and number; one alone trains it undisturbed."""
    patience = 300

    def __init__(self, arguments, directory, name, pictures=1500, side=8, epochs=24, launchers=LAUNCHERS,
                 environment=os.environ | MPI_SETTINGS):
        self.launchers, self.environment = launchers, environment
        torture_sweep.write_pictures(directory / "data", {"train": pictures, "t10k": pictures // 8}, side)
        super().__init__(arguments, directory, {
            "name": name, "dataset": {"name": "quarters", "path": "data", "validation": pictures // 8},
            "network": {"name": name, "layers": NETWORKS[name]}, "optimizer": "adam", "lr": 0.005, "batch_size": 128, "device": "cpu",
            "epochs": epochs, "evaluate_first": True, "seed": 3, "checkpoint": "best"})

    def popen(self, logdir, words=(), kind=None, devices=None):
        devices = 1 if logdir == "undisturbed" else devices or self.random.randint(1, 4)
        kind = kind or ("threads" if devices == 1 else self.random.choice(list(self.launchers)))
        process = self.launch([f"{self.name}.json", *words, f"parallel.data={devices}", "--threads", str(devices), "--logdir", logdir],
                              self.launchers[kind](devices), self.environment, start_new_session=True)
        process.devices = f"{devices} {kind}"
        return process

    def finished_epochs(self, logdir):
        found = torture_sweep.checkpoint_of(self.sweep(logdir) / "run")
        return len(torture_sweep.seconds_of(map(json.loads, found[0]["epochs"].splitlines()))) if found else 0

    def missing_reason(self, kind):
        """Why there are no such devices here; None if there are."""
        code, _, err = self.start("try", kind=kind, devices=2)
        self.expect(f"two {kind}: exit code {code}: {err}", code == 0 or "built without MPI" in err)
        return err if code != 0 else None

    def kill(self, logdir):
        """Ends one rank, or the launcher or the program, after some epochs."""
        process = self.popen(logdir)
        wanted = self.finished_epochs(logdir) + self.random.randint(1, 5)
        until(lambda: self.finished_epochs(logdir) >= wanted or process.poll() is not None, self.patience, f"epoch {wanted}")
        time.sleep(self.random.uniform(0, 0.03))
        below = children_of(process.pid)
        victim = self.random.choice([process.pid, *below] if "ranks" in process.devices else [process.pid, *below[:1]])
        struck = process.poll() is None and below and send(signal.SIGKILL, victim)
        if struck:
            # What it leaves behind ends by itself, and holds the sweep until then.
            until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in below), self.patience, "all processes end")
        what = f"process {below.index(victim)}" if victim in below else "the first"
        return bool(struck), f"{process.devices}, {what} killed after epoch {self.finished_epochs(logdir)}", self.wait(process)


def kill_devices(arguments, directory, wanted):
    """`wanted` kills of each network; returns what is wrong."""
    found, launchers = [], dict(LAUNCHERS)
    missing = None if shutil.which("mpirun") else "mpirun is not installed"
    for name in NETWORKS:
        sweep = DeviceSweep(arguments, directory / name, name, launchers=launchers)
        missing = missing or sweep.missing_reason("ranks")
        if missing and launchers.pop("ranks", None):
            print(f"threads alone: {missing}", flush=True)
        # The launcher has an exit code of its own.
        kill_again_and_again(sweep, wanted, DeviceSweep.kill, good=range(-64, 256))
        found += sweep.found
    return found
