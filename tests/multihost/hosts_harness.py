"""Hosts for tests: network namespaces that a bridge joins, each with a name, an address and shared memory of its own.

Nothing is changed outside of them: the bridge has a namespace, too. Making them needs root's rights (CAP_NET_ADMIN and
CAP_SYS_ADMIN); where they cannot be made, a test is skipped and says why.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("", "es", "ppo")]
from workers_harness import PATIENCE_S, WorkersRun  # noqa: E402

NAMES = re.compile(r"^shoal-(\d+)-\w+$", re.MULTILINE)
INSIDE = 'hostname "$1" && mount -t tmpfs tmpfs /dev/shm && shift && exec "$@"'


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


def remove(names):
    for name in names:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


class Host:
    """One of them. What runs there is a process like any other to the test."""

    def __init__(self, name, namespace, address):
        self.name, self.namespace, self.address = name, namespace, address
        self.enter = ["ip", "netns", "exec", namespace, "unshare", "--uts", "--mount", "sh", "-c", INSIDE, "-", name]

    def set_link(self, state):
        """"down" cuts the host off, "up" brings it back."""
        ip("-netns", self.namespace, "link", "set", "eth0", state)


class Hosts:
    """As many hosts as asked for: h1 at 10.77.0.1 and so on."""

    def __init__(self, count):
        present = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
        names = [line.split()[0] for line in present.splitlines()]
        left = [n for n in names if (found := NAMES.match(n)) and not Path("/proc", found[1]).exists()]
        remove(left)  # of tests that were killed
        stem = f"shoal-{os.getpid()}"
        self.hosts = [Host(f"h{i}", f"{stem}-h{i}", f"10.77.0.{i}") for i in range(1, count + 1)]
        self.names = [f"{stem}-bridge"] + [host.namespace for host in self.hosts]
        try:
            self.make()
            subprocess.run([*self.hosts[0].enter, "true"], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            self.close()
            raise unittest.SkipTest(f"no network namespaces here: {getattr(error, 'stderr', '') or error}") from error

    def make(self):
        bridge = self.names[0]
        ip("netns", "add", bridge)
        ip("-netns", bridge, "link", "add", "bridge", "type", "bridge")
        ip("-netns", bridge, "link", "set", "bridge", "up")
        for host in self.hosts:
            ip("netns", "add", host.namespace)
            ip("link", "add", "eth0", "netns", host.namespace, "type", "veth", "peer", "name", host.name, "netns", bridge)
            ip("-netns", bridge, "link", "set", host.name, "master", "bridge", "up")
            ip("-netns", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
            ip("-netns", host.namespace, "link", "set", "lo", "up")
            ip("-netns", host.namespace, "link", "set", "eth0", "up")

    def close(self):
        remove(self.names)


class HostsTests:
    """Mixed into a WorkersTest: runs over four hosts, the master and the trainer on the first one; others join."""

    PORT = 5555

    @classmethod
    def setUpClass(cls):
        hosts = Hosts(4)
        cls.addClassCleanup(hosts.close)
        cls.hosts = hosts.hosts
        cls.endpoint = f"tcp://{cls.hosts[0].address}:{cls.PORT}"

    def setUp(self):
        super().setUp()
        shutil.rmtree(self.folder)
        self.folder = Path(tempfile.mkdtemp(prefix="shoal-hosts-"))  # on a disk: hosts have no memory in common
        self.joined = []

    def tearDown(self):
        for process in self.joined:
            process.kill()
            process.communicate()
        super().tearDown()

    def begin_here(self, *args, workers=1, **options):
        """A run whose master listens to all hosts."""
        options.setdefault("tool", self.plain)
        run = WorkersRun(self.path(), [*args, f"--workers={workers}", f"--bind-address={self.endpoint}"],
                         prefix=self.hosts[0].enter, **options)  # fmt: skip
        self.runs.append(run)
        return run

    def join(self, run, host, *args, environment=None, tool=None, by=()):
        """A worker on that host, which knows the run by its endpoint and its secret; `by`: a command that runs it."""
        run.wait_until((run.out / "master").exists, "the master")
        call = [*host.enter, *by, tool or self.plain, "--join", self.endpoint, "--secret", str(run.out / "secret"),
                "--threads=1", "--bind=none", "--device=cpu", *args]  # fmt: skip
        process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **(environment or {})})  # fmt: skip
        self.joined.append(process)
        return process

    def follow(self, run, host, *args, **options):
        """A trainer there: its collectives listen at the host's address."""
        return self.join(run, host, "--role=follower", f"--bind-address=tcp://{host.address}:*", *args, **options)

    def all_end_well(self):
        for process in self.joined:
            _, err = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(0, process.returncode, err)
            self.assertIn("the run is over", err)

    def seconds_until(self, run, holds, what):
        """How long it takes until the status says so."""
        start_s = time.monotonic()
        run.wait_for_status(holds, what)
        return time.monotonic() - start_s
