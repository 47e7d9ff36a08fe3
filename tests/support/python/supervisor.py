"""Runs the daemons of a SlurmCluster (slurm_cluster.py) and ends them, and all that they started, when its standard input is closed.

Reads a command a line, and answers each with a line, "ok …" or what is wrong: wait (starts what does not run, and returns when all
nodes answer), lose NODE, cut NODE, kill DAEMON.
"""
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from processes import APART, children_of, may_unshare, send, with_descendants

PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG = 36, 1
START_SECONDS = 120
CUT_OFF = "cut off"  # why a node is down
# A node's processes have numbers of their own, as on a machine of their own. The first one waits for those without a parent.
FIRST_PROCESS = """\
import os, time
while True:
    try:
        os.wait()
    except ChildProcessError:
        time.sleep(0.05)
"""
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
# Without these words the daemons listen on every interface.
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={directory}/munge/socket,cred_expire={requeue_seconds}
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool/%n
TmpFS={directory}/tmp/%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd-%n.pid
SlurmctldLogFile={directory}/log/slurmctld.log
SlurmdLogFile={directory}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MailProg=/bin/true
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
# Believe the nodes' lines below rather than the hardware.
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1
MinJobAge=3600
MaxArraySize=1001
MaxJobCount=20000
SlurmctldTimeout=10
SlurmdTimeout={node_silent_seconds}
ReturnToService=2
MessageTimeout=5
TCPTimeout=2
KillWait=5
# A machine with too much to do is slow to kill; nodes are not given up for that.
UnkillableStepTimeout=600
WaitTime=0
InactiveLimit=0
JobRequeue=1
OverTimeLimit=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PartitionName=normal Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=5 PreemptMode=REQUEUE
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


PORTS_AT_ONCE = 64
FIRST_PORT, LAST_PORT = 20000, 32000  # below those that Linux gives to connections


def take_ports(count):
    """(first, lock) of consecutive ports that nobody listens on. They are this process's until the lock is closed: another
    cluster that is set up at the same time takes others."""
    for start in range(FIRST_PORT, LAST_PORT, PORTS_AT_ONCE):
        lock = socket.socket(socket.AF_UNIX)
        sockets = []
        try:
            lock.bind(f"\0sweep-slurm-ports-{start}")
            for port in range(start, start + count):
                sockets.append(socket.socket())
                sockets[-1].bind(("127.0.0.1", port))
            return start, lock
        except OSError:
            lock.close()
        finally:
            for one in sockets:
                one.close()
    raise OSError("no free ports")


class Supervisor:
    def __init__(self, settings):
        self.directory = Path(settings["directory"])
        self.settings = settings
        self.daemons, self.resumed = {}, {}
        # What daemons leave behind becomes a child of this process, and so is found.
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.die_with_parent = lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    @property
    def nodes(self):
        return [f"n{i + 1}" for i in range(self.settings["nodes"])]

    def configure(self):
        for folder in ("state", "log", "munge", "dev", *(f"{kind}/{node}" for kind in ("spool", "tmp") for node in self.nodes)):
            (self.directory / folder).mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o755)
        (self.directory / "munge").chmod(0o755)
        port, self.ports_lock = take_ports(self.settings["nodes"] + 1)
        host = socket.gethostname().split(".")[0]
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        text = CONFIGURATION.format(host=host, port=port, user=user, **self.settings)
        gpus, gres = self.settings["gpus"], ["AutoDetect=off"]
        for i, node in enumerate(self.nodes):
            text += (f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + 1 + i} CPUs={self.settings['cpus']} "
                     f"RealMemory=1000{f' Gres=gpu:{gpus}' if gpus else ''} State=UNKNOWN\n")
            if gpus:
                gres.append(f"NodeName={node} Name=gpu File={self.directory}/dev/gpu[0-{gpus - 1}]")
        for gpu in range(gpus):
            (self.directory / f"dev/gpu{gpu}").symlink_to("/dev/null")
        (self.directory / "slurm.conf").write_text(text)
        (self.directory / "gres.conf").write_text("\n".join(gres) + "\n" if gpus else "")
        # slurmd loads such a plug-in even when nothing uses it; "disabled" is known from 23.02 on.
        version = subprocess.run(["slurmd", "-V"], capture_output=True, text=True, check=True).stdout
        old = int(re.search(r"(\d+)\.", version).group(1)) < 23
        (self.directory / "cgroup.conf").write_text(f"CgroupPlugin={'cgroup/v1' if old else 'disabled'}\n")
        key = self.directory / "munge/key"
        key.touch(0o600)
        key.write_bytes(os.urandom(1024))

    def runs(self, name):
        return name in self.daemons and self.daemons[name].poll() is None

    def start(self, name, *words):
        if self.runs(name):
            return
        with open(self.directory / f"log/{name}.out", "a") as log:
            self.daemons[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                  start_new_session=True, preexec_fn=self.die_with_parent)

    def start_all(self):
        """Returns what is wrong, or ""."""
        self.resumed = {}  # node -> why it took no jobs; "": it was cut off
        resume_again = {}  # node -> when, if it is drained once more
        munge, configuration = self.directory / "munge", self.directory / "slurm.conf"
        if not self.runs("munged"):
            for left in ("socket", "socket.lock"):
                (munge / left).unlink(missing_ok=True)
        self.start("munged", "munged", "--foreground", "--force", "--num-threads=2", f"--socket={munge}/socket",
                   f"--key-file={munge}/key", f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        deadline = time.monotonic() + START_SECONDS
        while not (munge / "socket").exists():
            if not self.runs("munged") or time.monotonic() > deadline:
                return "munged does not start: " + self.said("munged")
            time.sleep(0.02)
        self.start("slurmctld", "slurmctld", "-D", "-f", str(configuration))
        for node in self.nodes:
            self.start(f"slurmd-{node}", *self.inside(node), "slurmd", "-D", "-f", str(configuration), "-N", node)
        while True:
            states = subprocess.run(["sinfo", "-h", "-N", "-p", "normal", "-o", "%N %T %E"], capture_output=True, text=True).stdout
            if len(re.findall(r"^\S+ (?:idle|mixed|allocated|completing) ", states, re.M)) == len(self.nodes):
                return ""
            # Slurm drains a node for good when a job could not be killed in time there, or was said to be killed and is not. That
            # happens again if such a job's next attempt is started there before its last one has ended.
            for node, reason in re.findall(rf"^(\S+) (?:drain\S* (.*)|down\S* {CUT_OFF})$", states, re.M):
                if time.monotonic() >= resume_again.get(node, 0):
                    self.resumed[node] = reason
                    resume_again[node] = time.monotonic() + 1
                    subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], capture_output=True)
            for name, daemon in self.daemons.items():
                if daemon.poll() is not None:
                    return f"{name} ended with {daemon.returncode}: {self.said(name)}"
            if time.monotonic() > deadline:
                return f"the nodes are not ready after {START_SECONDS} s: {' '.join(states.split())}"
            time.sleep(0.05)

    def inside(self, node):
        """What starts a program among the processes of the node."""
        if not self.settings["namespaces"]:
            return []
        self.start(f"first-{node}", *APART, sys.executable, "-c", FIRST_PROCESS)
        while not (first := children_of(self.daemons[f"first-{node}"].pid)):
            if not self.runs(f"first-{node}"):
                raise OSError(f"first-{node}: {self.said(f'first-{node}')}")
            time.sleep(0.02)
        return ["nsenter", "--target", str(first[0]), "--pid", "--mount"]

    def said(self, name):
        text = (self.directory / f"log/{name}.out").read_text(errors="replace").strip()
        return " / ".join(text.splitlines()[-3:])

    def steps(self, node):
        """The processes that slurmd of `node` has started for jobs: they are known by its log, which they hold open."""
        found = []
        for pid in with_descendants(os.getpid()):
            try:
                if Path(f"/proc/{pid}/comm").read_text().strip() != "slurmstepd":
                    continue
                opened = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()]
            except OSError:
                continue
            if str(self.directory / f"log/slurmd-{node}.log") in opened:
                found.append(pid)
        return found

    def kill_daemon(self, name):
        if self.runs(name):
            # nsenter, if there is one, waits for its only child, the daemon.
            pid = self.daemons[name].pid
            is_apart = self.settings["namespaces"] and name.startswith("slurmd")
            send(signal.SIGKILL, *(children_of(pid) if is_apart else [pid]))
            self.daemons[name].wait()

    def obey(self, words):
        if words[0] == "wait":
            return self.start_all()
        if words[0] == "kill":
            self.kill_daemon(words[1])
        elif words[0] in ("lose", "cut"):
            steps = self.steps(words[1])
            self.kill_daemon(f"slurmd-{words[1]}")
            if words[0] == "lose":
                send(signal.SIGKILL, *(pid for step in steps for pid in with_descendants(step)))
            else:
                # Slurm itself would find out within a minute.
                subprocess.run(["scontrol", "update", f"nodename={words[1]}", "state=down", f"reason={CUT_OFF}"],
                               check=True, capture_output=True)
        else:
            return f"unknown command {words[0]}"
        return ""

    def end(self):
        for name in sorted(self.daemons, reverse=True):
            send(signal.SIGKILL, self.daemons[name].pid)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            below = [pid for pid in with_descendants(os.getpid()) if pid != os.getpid()]
            if not below:
                return
            send(signal.SIGKILL, *below)
            try:
                while os.waitpid(-1, os.WNOHANG)[0] != 0:
                    pass
            except ChildProcessError:
                pass
            time.sleep(0.02)


def main():
    settings = json.loads(sys.argv[1])
    settings["namespaces"] = may_unshare()
    supervisor = Supervisor(settings)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        supervisor.configure()
        said = "" if settings["namespaces"] else " processes have the same numbers on all nodes: unshare is not permitted here;"
        for line in sys.stdin:
            problem = supervisor.obey(line.split())
            resumed = "".join(f" {node} was drained: {reason};" for node, reason in supervisor.resumed.items() if reason)
            print(problem.replace("\n", " ") if problem else f"ok{said}{resumed}", flush=True)
            said = ""
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"the cluster cannot be set up: {error}", flush=True)
    finally:
        supervisor.end()
        shutil.rmtree(supervisor.directory, ignore_errors=True)


main()
