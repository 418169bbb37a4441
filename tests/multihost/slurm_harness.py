"""A Slurm cluster of four nodes on this machine, for tests: munged, slurmctld and four slurmd as children of the test, with
files and free ports of their own. Nothing of the system's own Slurm is used or changed.
"""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

NODES = 4
PATIENCE_S = 90  # on a busy machine
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"

# No cgroups and no systemd; every node is this machine. Nobody shares a node's two cores.
CONFIG = """
ClusterName=shoal
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
CompleteWait=0
KillWait=10
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port={node_ports} CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    """Ports that nobody listens at now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """call() runs a command of Slurm's in it."""

    def __init__(self):
        missing = [p for p in ("munged", "mungekey", "slurmctld", "slurmd", "srun", "sbatch") if shutil.which(p, path=PATH) is None]
        if missing:
            raise unittest.SkipTest(f"no Slurm here: {', '.join(missing)} (Debian: slurmctld slurmd slurm-client munge)")
        if os.geteuid() != 0:
            raise unittest.SkipTest("slurmd needs root's rights")
        self.folder = Path(tempfile.mkdtemp(prefix="shoal-slurm-"))
        self.daemons = []
        self.environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        f = self.folder
        (f / "state").mkdir()
        ports = free_ports(1 + NODES)
        (f / "slurm.conf").write_text(CONFIG.format(folder=f, host=socket.gethostname().split(".")[0], ports=ports, nodes=NODES,
                                                    node_ports=f"[{','.join(map(str, ports[1:]))}]"))  # fmt: skip
        subprocess.run(["mungekey", "--create", "--keyfile", f / "munge.key"], check=True, env=self.environment)
        self.daemon("munged", "--foreground", "--force", f"--socket={f}/munge.socket", f"--key-file={f}/munge.key",
                    f"--pid-file={f}/munged.pid", f"--log-file={f}/munged.log", f"--seed-file={f}/munged.seed")  # fmt: skip
        self.wait_until((f / "munge.socket").exists, "munged")
        self.daemon("slurmctld", "-D", "-c")
        for node in range(1, NODES + 1):
            self.daemon("slurmd", "-D", "-N", f"n{node}")
        idle = f"{NODES} idle"
        self.wait_until(lambda: self.call("sinfo", "-h", "-o", "%D %t", check=False).stdout.strip() == idle, "all nodes")

    def daemon(self, *command):
        """A child that ends with the test, whatever ends that."""
        with open(self.folder / f"{command[0]}{len(self.daemons)}.out", "w", encoding="utf-8") as log:
            self.daemons.append(subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *map(str, command)], env=self.environment,
                                                 stdout=log, stderr=log, stdin=subprocess.DEVNULL))  # fmt: skip

    def wait_until(self, holds, what):
        until = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > until:
                logs = "".join(f"{p.name}:\n{p.read_text()[-2000:]}\n" for p in sorted(self.folder.glob("*.out")))
                raise AssertionError(f"waited {PATIENCE_S} s for {what}\n{logs}")
            time.sleep(0.05)

    def call(self, *command, cwd=None, check=True, environment=None):
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=cwd, check=False, timeout=2 * PATIENCE_S,
                              env={**self.environment, **(environment or {})})  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(f"{command}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def submit(self, script, cwd, environment=None):
        """The job's number."""
        out = self.call("sbatch", "--parsable", "--output=job-%j.out", script, cwd=cwd, environment=environment).stdout
        return int(re.match(r"\d+", out)[0])

    def is_queued(self, job=None):
        """Whether the job, or any one, waits or runs."""
        chosen = [] if job is None else ["--jobs", str(job)]
        return self.call("squeue", "-h", *chosen, check=False).stdout.strip() != ""

    def wait_for_end(self, job=None):
        self.wait_until(lambda: not self.is_queued(job), "the end of all jobs")

    def close(self):
        if len(self.daemons) > 1:
            self.call("scancel", "--user=root", check=False)
            try:
                self.wait_for_end()
            except AssertionError as error:
                print(error)
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
