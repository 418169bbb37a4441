#!/usr/bin/env python3
"""esrun --noise table: one table for a host's processes, the same parameters from any number of them and on any device."""

import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import esrun_harness as harness
from esrun_harness import ESRUN, SANITIZED, EsrunTest, WorkersTest, fixed

from workers_harness import PATIENCE_S, state

FLOATS = 1 << 18
TABLE = {"noise": "table", "noise_table": FLOATS}


def names():
    """Of the tables that are made or there, by processes of this network namespace."""
    found = re.findall(r"@(shoal-\d+-noise-\S+)", Path("/proc/net/unix").read_text(encoding="utf-8"))
    return sorted(found)


def tables(pid):
    """{(inode, permissions)} of the tables that a process has mapped."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    except OSError:
        return set()
    return {(line.split()[4], line.split()[1]) for line in maps.splitlines() if "/memfd:shoal-" in line}


class NoiseTest(WorkersTest):
    def setUp(self):
        super().setUp()
        # A seed of its own tells its table from those of tests at the same time.
        self.seed = self.random.randrange(1 << 40)
        self.table = {**TABLE, "seed": self.seed}

    def own_names(self):
        return [name for name in names() if f"-noise-{self.seed:x}-" in name]


class Hash(NoiseTest):
    def test_threads_lanes_and_instruction_sets(self):
        for env in ["pendulum"] if SANITIZED else ["cartpole", "parking"]:
            changes = {**self.table, "generations": 3, "pop": 16}
            expected = self.good(*fixed(env, threads=1, lanes=1, isa="baseline", **changes), "--out", self.path())
            for isa, lanes, threads in [("baseline", 8, 2), ("v3", 16, 3), ("v4", 16, 1), ("auto", 0, 2)]:
                args = fixed(env, threads=threads, lanes=lanes, isa=isa, **changes)
                with self.subTest(env=env, isa=isa, lanes=lanes, threads=threads):
                    if self.call("--dry-run", *args).code == 0:  # else not what this processor has
                        self.assertEqual(expected["params_hash"], self.good(*args, "--out", self.path())["params_hash"])

    def test_resume(self):
        whole = self.unbroken("cartpole", **self.table)
        out = self.path()
        self.good(*fixed("cartpole", **self.table, generations=5), "--out", out)
        self.refused(2, ["--noise", "--resume"], "--resume", out, "--noise=counter")
        self.assertEqual(whole["params_hash"], self.good("--resume", out, "--generations=12", "--device=cpu")["params_hash"])
        config = f"{whole['run']}/config.json"
        again = self.good("--config", config, "--device=cpu", "--out", self.path())
        self.assertEqual(whole["params_hash"], again["params_hash"])
        self.assertEqual(whole["test_return_mean"], self.good("--eval", out, "--device=cpu")["test_return_mean"])
        path = Path(out) / "config.json"
        path.write_text(path.read_text().replace(f'"noise_table": {FLOATS}', f'"noise_table": {FLOATS + 64}'))
        self.refused(2, ["noise_table", "another run"], "--resume", out, "--device=cpu", "--quiet")


class Refusals(NoiseTest):
    def test_usage(self):
        for words, *args in [
            (["'tabel'", "counter or table"], "--noise=tabel"),
            (["--noise-table 8192", "--noise table"], "--noise-table=8192"),
            (["--noise-table", "64 to 4294967296 floats"], "--noise=table", "--noise-table=63"),
            (["--noise-table", "64 to 4294967296 floats"], "--noise=table", "--noise-table=4294967360"),
            (["--noise-table 1000", "a multiple of 64"], "--noise=table", "--noise-table=1000"),
            (["--noise-table 4480", "from 4672", "4610 parameters", "to 4294967296"], "--noise=table", "--noise-table=4480",
             "--hidden=64,64"),
        ]:  # fmt: skip
            with self.subTest(args=args):
                self.refused(2, words, "cartpole", *args)

    @unittest.skipIf(SANITIZED, "sanitizers need more addresses than any limit leaves")
    def test_memory(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

        args = fixed("cartpole", noise="table", noise_table=1 << 32)
        self.refused(1, ["16.0 GiB", "Cannot allocate memory", "--noise-table"], *args, "--quiet", preexec_fn=limit)

    def test_plan(self):
        plan = self.good("--dry-run", *fixed("cartpole", **TABLE))
        items = {item["purpose"]: item["size_bytes"] for item in plan["memory"]["items"]}
        self.assertEqual(4 * FLOATS, items["noise table, one for the host"])
        self.assertEqual(4 * FLOATS, plan["memory"]["total_bytes"] - self.good("--dry-run", *fixed("cartpole"))["memory"]["total_bytes"])


class Shared(NoiseTest):
    """All processes of a host have one table, and nothing is left of it."""

    def begin_and_look(self, count, *more, **changes):
        """A run whose processes all have the table: the run, and the processes."""
        run = self.begin(*self.args(**{**self.table, **changes}), *more, workers=count, environment=self.SLOW)
        run.wait_for_workers(count)
        pids = run.pids("trainer") + run.pids("evaluator")
        self.assertEqual(count, len(pids))
        found = [run.wait_until(lambda pid=pid: tables(pid), "a table") for pid in pids]
        self.assertEqual(1, len(set.union(*found)), found)
        self.assertEqual("r--s", found[0].pop()[1])
        return run, pids

    def test_workers_have_one(self):
        expected = self.reference(**self.table, generations=40)
        self.assertEqual([], self.own_names())
        run, pids = self.begin_and_look(3, generations=40)
        self.assertEqual(3, len(self.own_names()))
        self.assertEqual(set(), tables(run.process.pid) | tables(run.pids("master")[0]))
        # A worker that is started again has it, too.
        os.kill(run.pids("evaluator")[0], signal.SIGKILL)
        run.wait_until(lambda: set(run.pids("evaluator")) - set(pids), "another evaluator")
        fresh = (set(run.pids("evaluator")) - set(pids)).pop()
        found = run.wait_until(lambda: tables(fresh), "its table")
        self.assertEqual(found, tables(run.pids("trainer")[0]))
        self.same_end(expected, run)
        self.assertEqual([], self.own_names())

    def test_nothing_is_left_after_kill(self):
        before = set(os.listdir("/dev/shm"))
        run, pids = self.begin_and_look(3, generations=1000)
        run.kill()
        run.sweep()
        run.wait_gone(pids)
        self.assertEqual([], self.own_names())
        left = [name for name in set(os.listdir("/dev/shm")) - before if "noise" in name]
        self.assertEqual([], left)

    def test_runs_have_one(self):
        """Of one seed: two runs beside each other, of different policies."""
        first, pids = self.begin_and_look(2, generations=1000)
        second, others = self.begin_and_look(2, generations=1000, hidden="7")
        self.assertEqual(tables(pids[0]), tables(others[0]))
        first.kill()
        self.assertEqual(1, len(tables(others[0])))
        second.kill()

    def is_being_made(self):
        return any(name.endswith("/lock") for name in self.own_names())

    def stopped_while_it_makes_one(self, args):
        """A process that is stopped while it makes the table."""
        for _ in range(20):
            process = self.start(*args, "--out", self.path())
            while not self.is_being_made() and process.poll() is None:
                pass
            process.send_signal(signal.SIGSTOP)
            while state(process.pid) not in ("T", "Z"):
                time.sleep(0.001)
            if self.is_being_made():
                return process
            process.kill()  # it was done already
            process.wait()
        self.fail("it is always done too soon")

    def test_the_one_that_makes_it_is_killed(self):
        """Another one waits for it, and then makes the table."""
        changes = {**self.table, "noise_table": 1 << (20 if SANITIZED else 23), "generations": 2}
        expected = self.reference(**changes)
        slow = self.stopped_while_it_makes_one(fixed("cartpole", **changes, isa="baseline", threads=1))
        args = [*fixed("cartpole", **changes), "--json", "--quiet", "--out", str(self.path())]
        with subprocess.Popen([ESRUN, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
            time.sleep(0.2)
            self.assertIsNone(other.poll())
            self.assertTrue(self.is_being_made())
            slow.kill()
            slow.wait()
            out, err = other.communicate(timeout=PATIENCE_S)
        self.assertEqual((0, ""), (other.returncode, err))
        self.assertIn(expected["params_hash"], out)
        self.assertEqual([], self.own_names())


class Confined(NoiseTest):
    """What containers are like."""

    def test_a_small_dev_shm(self):
        """Its size does not matter: nothing of the table is there."""
        space = ["unshare", "--mount", "--propagation=private"] + ([] if os.geteuid() == 0 else ["-Ur"])
        call = [*space, "sh", "-c", 'mount -t tmpfs -o size=64k none /dev/shm && exec "$@"', "sh"]
        if subprocess.run([*call, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no mount namespaces here")
        expected = self.reference(**self.table)
        folder = Path(tempfile.mkdtemp(prefix="shoal-esrun-", dir="/tmp"))  # not below /dev/shm
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        args = [*self.args(**self.table), "--workers=3", "--min-workers=3", "--json", "--quiet", "--out", str(folder / "run")]
        done = subprocess.run([*call, ESRUN, *args], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn(expected["params_hash"], done.stdout)

    def test_a_limit(self):
        """Where a process cannot share, it has a table of its own, and says so."""
        expected = self.reference(**self.table)
        done = self.call(*self.args(**self.table), "--json", "--quiet", "--out", self.path(),
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (FLOATS, FLOATS)))  # fmt: skip
        self.assertEqual(0, done.code, done)
        self.assertRegex(done.err, r"^esrun: warning: .* noise table of its own, of 1\.0 MiB: .*: File too large\n$")
        self.assertEqual(expected["params_hash"], done.json["params_hash"])


class Cuda(NoiseTest):
    def setUp(self):
        super().setUp()
        self.need_gpu()
        self.small = {"noise": "table", "noise_table": 4096, "seed": self.seed, "generations": 3, "pop": 16, "episodes": 1,
                      "time_limit": 40}  # fmt: skip

    def test_plan_and_memory(self):
        plan = self.good("--dry-run", *fixed("cartpole", **TABLE, device="cuda"))
        items = {item["purpose"]: item["size_bytes"] for item in plan["memory"]["items"]}
        self.assertEqual(4 * FLOATS, items["noise table"])
        if os.environ.get("SHOAL_TEST_CUDA") == "required":  # a virtual one
            args = fixed("cartpole", noise="table", noise_table=1 << 28, device="cuda")
            self.refused(1, ["GPU 0 memory", "cannot allocate", "1.0 GiB", "--noise-table"], *args, "--quiet",
                         env={**os.environ, "VGPU_MEMORY": "256M"})  # fmt: skip

    def test_resumed_on_the_other_device(self):
        expected = self.reference(**self.small)
        for first, second in [("cpu", "cuda"), ("cuda", "cpu")]:
            out = self.path()
            self.good(*fixed("cartpole", **{**self.small, "generations": 1}, device=first), "--out", out)
            resumed = self.good("--resume", out, f"--device={second}", "--generations=3")
            self.assertEqual(expected["params_hash"], resumed["params_hash"])

    def test_mixed_workers(self):
        expected = self.reference(**self.small)
        run = self.begin(*self.args(**self.small), "--bind-address=tcp://127.0.0.1:*", "--min-workers=2", "--hang-limit=60",
                         workers=1, tool=ESRUN)  # fmt: skip
        run.wait_for_workers(1)
        with subprocess.Popen([ESRUN, "--join", run.out, "--device=cuda", "--quiet"]) as joined:
            done = self.same_end(expected, run)
            self.assertGreater(done["workers"]["other_items"], 0)
            self.assertEqual(0, joined.wait(PATIENCE_S))


if __name__ == "__main__":
    harness.main()
