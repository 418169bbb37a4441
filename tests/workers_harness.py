"""Runs of several workers, for tests and soaks: starting one, seeing its processes, waiting for a moment in it."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from cli_harness import SANITIZED, program, tree

PATIENCE_S = 240 if SANITIZED else 90


def faults_program(tool):
    """The path of a program that can be made slow or to fail from within, by its environment."""
    return os.path.abspath(os.environ.get(f"{tool.upper()}_FAULTS", f"build/bin/tests/{tool}_faults"))


def children(pid):
    """The processes that a supervisor has started: {pid: "master" | "trainer" | "follower" | "evaluator"}."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            line = (entry / "cmdline").read_text()
        except (OSError, IndexError, ValueError):
            continue  # it has just ended
        if parent == pid and "--join=" in line:
            role = line.partition("--role=")[2].partition("\0")[0]
            found[int(entry.name)] = role or "evaluator"
    return found


def state(pid):
    """The letter that ps shows: R, S, T, Z; None if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return None


def shared_memory():
    """Names of payloads that some run has left or is using."""
    return {p.name for p in Path("/dev/shm").glob("shoal-????????????????-*")}


def payloads(pid):
    """Names of the payloads that a process has mapped."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return set()  # it has just ended
    return set(re.findall(r"/dev/shm/(shoal-[0-9a-f]{16}-\d+)", maps))


class WorkersRun:
    """A run of several workers, on its way. prefix: what calls are made by, where they are not this host's."""

    def __init__(self, out, args, tool, environment=None, prefix=()):
        self.out, self.args, self.tool, self.prefix = Path(out), [str(a) for a in args], tool, prefix
        self.names = set()
        call = [*prefix, tool, *self.args, "--json", "--quiet"] + ([] if "--resume" in self.args else ["--out", str(out)])
        self.process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.out.parent,
                                        env={**os.environ, **(environment or {})})  # fmt: skip

    def rows(self):
        try:
            return (self.out / "metrics.csv").read_bytes().count(b"\n") - 1
        except OSError:
            return 0

    def wait_until(self, holds, what):
        """Returns what holds() gives once that is true; the run must go on meanwhile."""
        until = time.monotonic() + PATIENCE_S
        while not (value := holds()):
            if self.process.poll() is not None:
                raise AssertionError(f"the run ended before {what}: {self.process.communicate()}")
            if time.monotonic() > until:
                raise AssertionError(f"waited {PATIENCE_S} s for {what}; status: {self.status()}")
            time.sleep(0.005)
        return value

    def wait_for_rows(self, count):
        self.wait_until(lambda: self.rows() >= count, f"{count} rows")

    def status(self):
        call = [*self.prefix, self.tool, "--status", self.out, "--json"]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def status_by(self, secret):
        """status() of a run with a secret of its own, which this process has not in its environment."""
        call = [*self.prefix, self.tool, "--status", self.out, "--json"]
        done = subprocess.run(call, capture_output=True, text=True, check=False, env={**os.environ, "SHOAL_SECRET": secret})
        return json.loads(done.stdout) if done.returncode == 0 else None

    def wait_for_status(self, holds, what):
        """The first status for which that is true."""
        return self.wait_until(lambda: (s := self.status()) and holds(s) and s, what)

    def wait_for_workers(self, count):
        return self.wait_for_status(lambda s: sum(w["state"] in ("works", "waits") for w in s["workers"]) >= count,
                                    f"{count} workers")  # fmt: skip

    def pids(self, role):
        return [pid for pid, name in children(self.process.pid).items() if name == role]

    def end(self):
        """Waits for the end; its result, with "stderr" added."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        if self.process.returncode != 0:
            raise AssertionError(f"{self.args}: status {self.process.returncode}: {out}{err}")
        if "Sanitizer" in err:  # of a process that was then started again
            raise AssertionError(err)
        return {**json.loads(out), "stderr": err}

    def kill(self):
        """Ends it, with its children, whatever state they are in. What it shared in memory stays, until the run goes on or
        sweep() removes it."""
        for pid in self.pids("trainer"):
            self.names |= payloads(pid)
        for pid in [*children(self.process.pid), self.process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.communicate()

    def wait_gone(self, pids):
        """Waits until processes are gone, whose parent may be, too."""
        until = time.monotonic() + PATIENCE_S
        while any(state(pid) not in (None, "Z") for pid in pids):
            if time.monotonic() > until:
                raise AssertionError(f"{pids} are still there")
            time.sleep(0.005)

    def sweep(self):
        for name in shared_memory():
            if any(name.startswith(mine[: len("shoal-01234567")]) for mine in self.names):
                Path("/dev/shm", name).unlink(missing_ok=True)


class SmallDisk:
    """A file system of a few hundred kB, which fill() leaves hardly any room on, and free() all of it."""

    FREE_BYTES = 8192  # for rows of metrics.csv, and too little for a checkpoint

    def __init__(self, size_kb=512):
        # In a mount namespace of a process that waits, by which everybody finds it.
        call = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o size={size_kb}k tmpfs /mnt && echo ready && exec cat"]
        self.holder = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.is_there = self.holder.stdout.readline() == "ready\n"
        self.path = Path(f"/proc/{self.holder.pid}/root/mnt")

    def fill(self):
        """To be called again as long as files come and go."""
        left = os.statvfs(self.path)
        more = left.f_bavail * left.f_bsize - self.FREE_BYTES
        if more > 0:
            with open(self.path / "ballast", "ab") as stream:
                stream.write(b"." * more)

    def free(self):
        (self.path / "ballast").unlink()

    def close(self):
        self.holder.kill()
        self.holder.communicate()


class WorkersTests:
    """Mixed into a TrainerTest: runs with several workers, of the program itself or of the one that can fail."""

    SLOW = {"SHOAL_TEST_SLOW_MS": "20"}

    def setUp(self):
        super().setUp()
        self.plain, self.faulty = program(self.TOOL), faults_program(self.TOOL)
        self.runs = []

    def tearDown(self):
        for run in self.runs:
            if run.process.poll() is None:
                run.kill()
            run.sweep()
            run.process.stdout.close()
            run.process.stderr.close()
        super().tearDown()

    def args(self, env="cartpole", **changes):
        return self.fixed(env, **{"threads": 1, **changes})

    def begin(self, *args, workers=4, environment=None, tool=None):
        run = WorkersRun(self.path(), [*args, f"--workers={workers}"], tool or self.faulty, environment)
        run.workers = workers
        self.runs.append(run)
        return run

    def reference(self, env="cartpole", **changes):
        return self.good(*self.args(env, **changes), "--out", self.path())

    def same_end(self, expected, run):
        done = run.end()
        self.assertEqual(expected["params_hash"], done["params_hash"], done)
        self.assertEqual(expected["env_steps"], done["env_steps"])
        self.assertEqual(expected["test_return_mean"], done["test_return_mean"])
        self.same_rows(expected["run"], run.out)
        return done


class DiskTests:
    """Mixed into a test of workers: a disk that is full when the lead writes a checkpoint ends the run, as it does that of one
    process: status 1, the checkpoints of before stay, everybody is told; and it goes on once there is room."""

    def full_disk(self, steps, begin, resume, **changes):
        """begin(args), resume(run): a run of so many steps on the disk, and again; changes: a checkpoint after each step."""
        disk, folder = SmallDisk(), self.folder
        self.addCleanup(disk.close)
        if not disk.is_there:
            self.skipTest("mounting a small tmpfs needs root and mount namespaces")
        self.folder = disk.path
        run = begin(self.args(**changes))
        self.folder = folder
        run.wait_for_workers(run.workers)
        call = [self.faulty, "--join", run.out, "--threads=1", "--bind=none", "--device=cpu"]
        joined = subprocess.Popen(call, stderr=subprocess.PIPE, text=True, env={**os.environ, **self.SLOW})
        run.wait_for_workers(run.workers + 1)
        run.wait_for_rows(3)
        time.sleep(self.random.uniform(0, 0.15))
        while run.process.poll() is None:
            disk.fill()
            time.sleep(0.001)
        _, err = run.process.communicate()
        _, told = joined.communicate(timeout=PATIENCE_S)
        self.assertEqual((1, 0), (run.process.returncode, joined.returncode), err + told)
        self.assertRegex(err, rf"^{self.TOOL}: cannot \w+ .*/checkpoint/gen-.*: No space left on device\n$")
        self.assertIn("the run is over", told)
        disk.free()
        self.assertEqual([], [path for path in tree(run.out) if ".tmp-" in path])
        self.assertLess(run.rows(), steps)
        again = resume(run)
        again.out = run.out
        self.same_end(self.reference(**changes), again)


class StopTests:
    """Mixed into a test of workers with inject(hurt, *args) and the result that is expected."""

    def stopped(self, role):
        """SIGSTOP: a process that is there and says nothing."""

        def hurt(run):
            pid = run.pids(role)[0]
            os.kill(pid, signal.SIGSTOP)
            run.wait_until(lambda: state(pid) == "T", "the process has stopped")
            return pid

        run, pid = self.inject(hurt, "--hang-limit=1")
        self.same_end(self.expected, run)
        self.assertIsNone(state(pid))  # it was made to go
