#!/usr/bin/env python3
"""esrun with several workers: the same parameters for any number of them and after any fault, and what is said of it."""

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from pathlib import Path

import esrun_harness as harness
from cli_bad_input import InfiniteTests
from esrun_harness import ESRUN, ESRUN_FAULTS, SANITIZED, WorkersTest

from workers_harness import PATIENCE_S, DiskTests, StopTests, children, payloads, shared_memory, state


class Hash(WorkersTest):
    """The number of evaluators changes nothing."""

    def test_numbers_of_evaluators(self):
        for env in ["pendulum"] if SANITIZED else ["cartpole", "pendulum", "parking"]:
            expected = self.reference(env)
            for workers in [1, 3] if SANITIZED else [1, 2, 3, 5, 17] if env == "cartpole" else [3, 9]:
                with self.subTest(env=env, workers=workers):
                    run = self.begin(*self.args(env), f"--min-workers={workers}", workers=workers, tool=ESRUN)
                    done = self.same_end(expected, run)
                    if workers > 1:
                        self.assertGreater(done["workers"]["other_items"], 0)
                        items = done["workers"]["own_items"] + done["workers"]["other_items"]
                        self.assertEqual(done["workers"]["rounds"] * 32, items)

    def test_settings_that_matter(self):
        """What evaluators are told: everything that a member's return follows from."""
        for changes, flags in [
            ({"recurrent": 4, "precision": "bf16"}, []),
            ({"activation": "relu", "hidden": "none"}, ["--no-normalize"]),
            ({"noise": "table", "noise_table": 8192}, []),
            ({"episodes": 3}, ["--no-common-random", "--randomize=gravity_mps2=8:12", "--set=pole_mass_kg=0.2"]),
        ]:
            with self.subTest(changes=changes):
                args = [*self.args(**changes), *flags]
                expected = self.good(*args, "--out", self.path())
                done = self.same_end(expected, self.begin(*args, "--min-workers=3", workers=3, tool=ESRUN))
                self.assertGreater(done["workers"]["other_items"], 0)

    def test_what_is_said_of_the_whole_run(self):
        """Who evaluated its members: also those before this start, and those that nobody could help with."""
        out, options = self.path(), ["--threads=1", "--bind=none", "--device=cpu", "--quiet"]
        whole = r"with evaluators: (\d+) members? here, (\d+) elsewhere, \d+ twice, 0 lost; "
        alone = self.call(*self.args(generations=3), "--bind-address=tcp://127.0.0.1:*", "--quiet", "--out", out)
        self.assertEqual(("96", "0"), re.search(whole, alone.out).groups(), alone)
        parts = whole.replace("elsewhere, ", "elsewhere, (\\d+) before generation 3, ")
        done = self.call("--resume", out, "--generations=12", "--workers=2", "--min-workers=2", *options)
        here, elsewhere, before = map(int, re.search(parts, done.out).groups())
        self.assertEqual((96, 9 * 32), (before, here + elsewhere), done)
        self.assertIn("by message, since generation 3\n", done.out)
        again = self.good("--resume", out, "--generations=14", "--workers=2", "--min-workers=2", *options[:-1])["workers"]
        self.assertEqual((12 * 32, 2 * 32), (again["earlier_items"], again["here_items"] + again["other_items"]))

    def test_nothing_is_left(self):
        run = self.begin(*self.args(), workers=3, environment=self.SLOW)
        run.wait_for_workers(3)
        run.wait_for_rows(2)
        names = run.wait_until(lambda: payloads(run.pids("trainer")[0]), "shared parameters")
        done = run.end()
        self.assertGreater(done["workers"]["other_items"], 0)
        runs = {name[: len("shoal-01234567")] for name in names}  # the part of the name that is the run's own
        self.assertEqual(1, len(runs))
        self.assertEqual([], [name for name in shared_memory() for tag in runs if name.startswith(tag)])
        self.assertFalse((run.out / "master").exists())


class Faults(StopTests, WorkersTest):
    """Ten faults from outside, at random moments of a run; each must have landed, and the run ends as if it had not."""

    WORKERS = 4

    def setUp(self):
        super().setUp()
        self.expected = self.reference()

    def inject(self, hurt, *more):
        """hurt(run) at a random moment; returns the run and what it gave."""
        run = self.begin(*self.args(), *more, workers=self.WORKERS, environment=self.SLOW)
        run.wait_for_workers(self.WORKERS)
        run.wait_for_rows(1)
        time.sleep(self.random.uniform(0, 0.15))
        self.assertLess(run.rows(), 12, "too late")
        return run, hurt(run)

    def killed(self, *counts):
        """Kills so many processes of each role at once: (role, how many)."""

        def hurt(run):
            pids = [pid for role, count in counts for pid in run.pids(role)[:count]]
            self.assertEqual(sum(count for _, count in counts), len(pids))
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            return pids

        run, pids = self.inject(hurt)
        done = self.same_end(self.expected, run)
        for pid in pids:
            self.assertRegex(done["stderr"], rf"\(process {pid}\) was ended by signal 9", done)

    def test_kill_an_evaluator(self):
        self.killed(("evaluator", 1))

    def test_kill_two_evaluators(self):
        self.killed(("evaluator", 2))

    def test_kill_all_evaluators(self):
        self.killed(("evaluator", 3))

    def test_kill_the_master(self):
        self.killed(("master", 1))

    def test_kill_the_trainer(self):
        self.killed(("trainer", 1))

    def test_kill_master_trainer_and_evaluator(self):
        self.killed(("master", 1), ("trainer", 1), ("evaluator", 1))

    def test_stop_an_evaluator(self):
        self.stopped("evaluator")

    def test_stop_the_master(self):
        self.stopped("master")

    def test_stop_the_trainer(self):
        self.stopped("trainer")

    def test_kill_all_and_resume(self):
        run, _ = self.inject(lambda run: run.kill())
        self.assertGreaterEqual(run.rows(), 1)
        self.assertLess(run.rows(), 12)
        again = self.begin("--resume", run.out, "--threads=1", "--bind=none", "--device=cpu", workers=3, tool=ESRUN)
        again.out = run.out
        self.same_end(self.expected, again)


class Inside(WorkersTest):
    """Faults from within: esrun_faults."""

    def fault(self, kind, generation=3, member=17):
        self.marker = self.path("marker")
        # A sanitizer would take the signal for a finding, and end the process with a status.
        plain = {name: os.environ.get(name, "") + ":handle_segv=0" for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}
        return {**self.SLOW, **plain, "SHOAL_TEST_FAULT": f"{kind}:{generation}:{member}:{self.marker}"}

    def test_a_thread_that_spins(self):
        expected = self.reference(generations=16)  # long enough for it to end
        run = self.begin(*self.args(generations=16), "--hang-limit=1", environment={**self.fault("spin"), "SHOAL_TEST_SLOW_MS": "60"})
        seen = run.wait_for_status(lambda s: any(w["state"] == "hangs" for w in s["workers"]), "a hang")
        self.assertTrue(self.marker.exists())
        (pid,) = [w["pid"] for w in seen["workers"] if w["state"] == "hangs"]
        run.wait_until(lambda: state(pid) in (None, "Z"), "the end of what hangs")
        done = self.same_end(expected, run)
        # On a loaded machine its supervisor may be first.
        self.assertRegex(done["stderr"], rf"process {pid}\b.* s.* \(--hang-limit 1\): it (ends itself|is ended)\n")
        ending = r"(ended with status 75|was ended by signal 9 \(Killed\)), for it hung \(--hang-limit 1\); "
        self.assertRegex(done["stderr"], rf"\(process {pid}\) {ending}")

    def test_a_long_step_is_no_hang(self):
        """An evaluation of 3 s, under a limit of 1 s: its thread looks for a stop meanwhile."""
        expected = self.reference()
        run = self.begin(*self.args(), "--min-workers=2", f"--hang-limit={4 if SANITIZED else 2}", workers=2,
                         environment=self.fault("nap"))  # fmt: skip
        run.wait_until(self.marker.exists, "the evaluation")
        seen = run.wait_for_status(lambda s: s["generation"] > 3, "the next generation")
        self.assertEqual(0, seen["failures"]["hangs"], seen)
        self.assertEqual(0, seen["failures"]["deaths"], seen)
        self.same_end(expected, run)

    def lost(self, kind):
        """A member that ends every worker is ranked last, named and recorded, whoever found out."""
        lowest = self.fault("lowest")
        done = self.call(*self.args(), "--out", self.path(), "--json", "--quiet", env={**os.environ, **lowest}, tool=ESRUN_FAULTS)
        self.assertEqual(0, done.code, done)
        self.assertTrue(self.marker.exists() or kind)  # nothing is marked: nothing went wrong
        expected = done.json["params_hash"]
        for workers in [3] if SANITIZED else [2, 3]:
            with self.subTest(workers=workers):
                run = self.begin(*self.args(), f"--min-workers={workers}", workers=workers,
                                 environment={**self.fault(kind), "SHOAL_TEST_SLOW_MS": "1"})  # fmt: skip
                done = run.end()
                self.assertTrue(self.marker.exists())
                self.assertEqual(expected, done["params_hash"])
                self.assertEqual(1, done["workers"]["lost_items"])
                self.assertIn("generation 3: member 17 ends every worker that evaluates it", done["stderr"])
                self.good("--resume", run.out, "--generations=13", "--device=cpu", "--bind=none")  # it is read back
                newest = sorted((run.out / "checkpoint").iterdir())[-1]
                self.assertEqual("gen-00000013.safetensors", newest.name)
                self.assertIn(b'"lost"', newest.read_bytes())
                self.assertIn((3).to_bytes(8, "little") + (17).to_bytes(8, "little"), newest.read_bytes())

    def test_a_member_that_crashes(self):
        self.lost("crash")

    def test_a_member_that_vanishes(self):
        self.lost("vanish")

    def test_a_nan_is_said_as_in_one_process(self):
        sets = [f"--set={s}" for s in InfiniteTests.BLOW_UP["pendulum"][0].split()]
        alone = self.call(*self.args("pendulum"), *sets, "--out", self.path(), "--quiet")
        self.assertEqual(1, alone.code, alone)
        done = self.call(*self.args("pendulum"), *sets, "--workers=3", "--min-workers=3", "--out", self.path(), "--quiet")
        self.assertEqual(1, done.code, done)
        self.assertEqual(alone.err, done.err)


class Join(WorkersTest):
    """Evaluators that come from elsewhere, and go."""

    def start_evaluator(self, *args, environment=None, tool=ESRUN_FAULTS):
        call = [tool, *map(str, args), "--threads=1", "--bind=none", "--device=cpu"]
        return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                env={**os.environ, **(environment or {})})  # fmt: skip

    def test_join_and_leave_in_mid_generation(self):
        expected = self.reference(generations=40)
        run = self.begin(*self.args(generations=40), "--bind-address=tcp://127.0.0.1:*", workers=1, environment=self.SLOW)
        run.wait_for_rows(2)
        endpoint = (run.out / "master").read_text().strip()
        first = self.start_evaluator("--join", endpoint, "--secret", run.out / "secret", environment=self.SLOW)
        second = self.start_evaluator("--join", run.out, environment=self.SLOW)
        run.wait_for_status(lambda s: sum(w["items"] > 0 for w in s["workers"]) >= 3, "work of all three")
        first.send_signal(signal.SIGTERM)
        _, err = first.communicate(timeout=PATIENCE_S)
        self.assertEqual(0, first.returncode, err)
        self.assertRegex(err, r"esrun: stopped after \d+ members")
        seen = run.wait_for_status(lambda s: s["failures"]["leaves"] >= 1, "the leave")
        self.assertEqual(0, seen["failures"]["deaths"], seen)
        done = self.same_end(expected, run)
        self.assertGreater(done["workers"]["other_items"], 0)
        _, err = second.communicate(timeout=PATIENCE_S)
        self.assertEqual(0, second.returncode, err)
        self.assertRegex(err, r"esrun: the run is over after [1-9]\d* members")

    def test_another_host(self):
        """Where there is no memory in common, parameters come by message: once for all evaluators of a host."""
        probe = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True, check=False)
        if probe.returncode != 0:
            self.skipTest("this user may not mount a file system")
        self.addCleanup(shutil.rmtree, self.folder)
        self.folder = Path(tempfile.mkdtemp(prefix="shoal-esrun-"))  # not in the memory that is about to be hidden
        expected = self.reference(generations=40)
        run = self.begin(*self.args(generations=40), "--bind-address=tcp://127.0.0.1:*", "--min-workers=3", workers=1,
                         environment=self.SLOW)  # fmt: skip
        run.wait_for_workers(1)
        script = 'mount -t tmpfs tmpfs /dev/shm && { "$@" & a=$!; "$@" & wait $a && wait $!; }'
        call = ["unshare", "--mount", "sh", "-c", script, "-", ESRUN_FAULTS, "--join", run.out, "--threads=1", "--bind=none",
                "--device=cpu", "--quiet"]  # fmt: skip
        with subprocess.Popen(call, env={**os.environ, **self.SLOW}) as others:
            seen = run.wait_for_status(lambda s: s["round"] >= 20, "20 rounds")
            self.assertGreaterEqual(seen["traffic"]["payload_messages"], 15, seen)
            self.assertLessEqual(seen["traffic"]["payload_messages"], seen["round"], seen)
            done = self.same_end(expected, run)
            self.assertEqual(0, others.wait(PATIENCE_S))
        figures = done["workers"]
        self.assertGreater(figures["payload_messages"], 20)
        self.assertLessEqual(figures["payload_messages"], figures["rounds"])
        # 24 bytes of its own, the normaliser's two vectors of 4, the parameters.
        self.assertEqual(figures["payload_messages"] * (24 + 4 * (2 * 4 + done["params"])), figures["payload_bytes"])

    def test_below_min_workers_it_waits(self):
        expected = self.reference()
        run = self.begin(*self.args(), "--bind-address=tcp://127.0.0.1:*", "--min-workers=2", workers=1, tool=ESRUN)
        run.wait_for_workers(1)
        time.sleep(0.5)
        self.assertEqual(0, run.rows())
        joined = self.start_evaluator("--join", run.out, tool=ESRUN)
        self.same_end(expected, run)
        self.assertEqual(0, joined.wait(PATIENCE_S))
        joined.communicate()

    def test_a_stop_ends_all_after_a_checkpoint(self):
        expected = self.reference()
        run = self.begin(*self.args(), workers=3, environment=self.SLOW)
        run.wait_for_rows(2)
        processes = list(children(run.process.pid))
        run.process.send_signal(signal.SIGINT)
        done = run.end()
        self.assertEqual("stopped", done["outcome"])
        self.assertEqual([None] * len(processes), [state(pid) for pid in processes])
        again = self.begin("--resume", run.out, "--threads=1", "--bind=none", "--device=cpu", workers=2, tool=ESRUN)
        again.out = run.out
        self.same_end(expected, again)


class Disk(DiskTests, WorkersTest):
    def test_full_at_a_checkpoint(self):
        self.full_disk(60, lambda args: self.begin(*args, workers=2, environment=self.SLOW),
                       lambda run: self.begin("--resume", run.out, "--threads=1", "--bind=none", "--device=cpu", workers=3, tool=ESRUN),
                       hidden="32,32", checkpoint_every=1, generations=60)  # fmt: skip


class Cuda(WorkersTest):
    """A trainer on the CPU, an evaluator on a GPU."""

    def setUp(self):
        super().setUp()
        self.need_gpu()

    def test_mixed(self):
        changes = {"generations": 5, "pop": 16, "episodes": 1, "time_limit": 40}
        expected = self.reference(**changes)
        run = self.begin(*self.args(**changes), "--bind-address=tcp://127.0.0.1:*", "--min-workers=2", "--hang-limit=60",
                         workers=1, tool=ESRUN)  # fmt: skip
        run.wait_for_workers(1)
        call = [ESRUN, "--join", run.out, "--device=cuda"]
        with subprocess.Popen(call, stderr=subprocess.PIPE, text=True) as joined:
            done = self.same_end(expected, run)
            self.assertGreater(done["workers"]["other_items"], 0)
            _, err = joined.communicate(timeout=PATIENCE_S)
            self.assertEqual(0, joined.returncode, err)
            self.assertRegex(err, r"evaluates cartpole on cuda.*\n.*the run is over after [1-9]\d* members")


class Status(WorkersTest):
    def test_what_it_says(self):
        run = self.begin(*self.args(generations=100), workers=3, environment=self.SLOW)
        run.wait_for_workers(3)
        seen = run.wait_for_status(lambda s: all(w["items"] > 0 for w in s["workers"]), "work of all")
        self.assertEqual("cartpole", seen["env"])
        self.assertEqual(32, seen["items"])
        self.assertEqual({"trainer": 1, "evaluator": 2},
                         {r: sum(w["role"] == r for w in seen["workers"]) for r in ("trainer", "evaluator")})  # fmt: skip
        pids = {w["pid"] for w in seen["workers"]}
        self.assertEqual(pids, set(run.pids("trainer") + run.pids("evaluator")))
        self.assertTrue(all(w["items_per_s"] > 0 for w in seen["workers"]))
        self.assertGreater(seen["traffic"]["result_bytes"], 0)
        self.assertEqual(0, seen["traffic"]["payload_messages"])  # all on one host
        text = self.call("--status", run.out)
        self.assertEqual(0, text.code, text)
        self.assertRegex(text.out, r"^cartpole at tcp://127\.0\.0\.1:\d+: generation \d+, ")
        self.assertEqual(2, text.out.count("evaluator "), text)
        self.assertIn("failures: 0 deaths, 0 crashes, 0 hangs", text.out)

    def test_traffic_is_what_it_must_be(self):
        """8 bytes an episode and 8 for each of its observations' sums come up, and nothing else."""
        run = self.begin(*self.args(), "--min-workers=3", workers=3, tool=ESRUN)
        figures = run.end()["workers"]
        item_bytes = 2 * (8 + 8 * 4)
        self.assertLessEqual(figures["other_items"] * item_bytes, figures["result_bytes"])
        # On a busy machine a lease may be late, and be computed by two.
        self.assertLessEqual(figures["result_bytes"], (figures["other_items"] + figures["repeated_items"]) * item_bytes)
        self.assertEqual(0, figures["payload_bytes"])


class Refusals(WorkersTest):
    """Every mistake has its message, and leaves the disk alone."""

    def test_usage(self):
        self.refused(2, ["--join", "cartpole"], "--join=tcp://127.0.0.1:1", "cartpole")
        self.refused(2, ["--join", "--pop"], "--join=tcp://127.0.0.1:1", "--pop=4")
        self.refused(2, ["SHOAL_SECRET", "--secret"], "--join=tcp://127.0.0.1:1")
        self.refused(2, ["neither an endpoint", "'elsewhere'"], "--status=elsewhere")
        self.refused(2, ["--min-workers 3", "--bind-address"], "cartpole", "--min-workers=3", "--workers=2")
        self.refused(2, ["--workers", "1 to 4096"], "cartpole", "--workers=0")
        self.refused(2, ["'localhost:5'", "tcp://"], "cartpole", "--bind-address=localhost:5")
        self.refused(2, ["SHOAL_SECRET", "16 to 511"], "--status=tcp://127.0.0.1:1", env={**os.environ, "SHOAL_SECRET": "short"})
        self.refused(2, ["is no endpoint"], "--status=smtp://x", env={**os.environ, "SHOAL_SECRET": "x" * 20})
        for port in ["65536", "99999", "0", "-1", "x", "*"]:
            for option in ["--join", "--status"]:
                address = f"tcp://127.0.0.1:{port}"
                self.refused(2, [f"the port of {address}", "1 to 65535"], f"{option}={address}", env={**os.environ, "SHOAL_SECRET": "x" * 20})
        self.refused(2, ["SHOAL_LISTEN_FD"], "--role=master")
        secret = self.folder / "open-secret"
        secret.write_text("x" * 32)
        secret.chmod(0o644)
        self.refused(2, ["others may read", "chmod 600"], "--join=tcp://127.0.0.1:1", "--secret", secret)

    def test_a_port_in_use(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
            self.refused(1, [address, "Address already in use"], *self.args(), f"--bind-address={address}")

    def test_no_master(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))  # a port at which nobody listens
            address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
            environment = {**os.environ, "SHOAL_SECRET": "x" * 32}
            self.refused(1, ["no master at", address, "0.7 s"], f"--join={address}", "--patience=0.7", "--quiet", env=environment)

    def test_another_secret(self):
        run = self.begin(*self.args(generations=200), workers=2, environment=self.SLOW)
        run.wait_for_workers(2)
        environment = {**os.environ, "SHOAL_SECRET": "not the secret of this run"}
        endpoint = (run.out / "master").read_text().strip()
        done = self.call(f"--join={endpoint}", "--patience=1", "--quiet", env=environment)
        self.assertEqual(1, done.code, done)
        self.assertIn("not with this secret", done.err)
        seen = run.status()
        self.assertEqual(2, len(seen["workers"]), seen)
        self.assertGreater(seen["failures"]["strangers"], 0, seen)


class Secrets(WorkersTest):
    def test_the_secret_stays_secret(self):
        run = self.begin(*self.args(generations=20), workers=2, environment=self.SLOW)
        run.wait_for_workers(2)
        path = run.out / "secret"
        secret = path.read_text().strip()
        self.assertRegex(secret, r"^[0-9a-f]{64}$")
        self.assertEqual(0o600, stat.S_IMODE(path.stat().st_mode))
        for pid in [run.process.pid, *children(run.process.pid)]:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as stream:
                self.assertNotIn(secret, stream.read())
        status = self.call("--status", run.out, "--json").out
        done = run.end()
        for text in [status, done["stderr"], *done.values()]:
            self.assertNotIn(secret, str(text))
        for name, content in harness.tree(run.out).items():
            if name != "secret" and content is not None:
                self.assertNotIn(secret.encode(), content, name)

    def test_it_listens_on_loopback_only(self):
        run = self.begin(*self.args(generations=20), workers=2, environment=self.SLOW)
        run.wait_for_workers(2)
        port = int((run.out / "master").read_text().strip().rsplit(":", 1)[1])
        listening = []
        for table in ["tcp", "tcp6"]:
            with open(f"/proc/net/{table}", encoding="utf-8") as stream:
                for line in stream.readlines()[1:]:
                    address, at = line.split()[1].split(":")
                    if int(at, 16) == port and line.split()[3] == "0A":
                        listening.append(address)
        self.assertEqual(["0100007F"], listening)

    def test_a_given_secret(self):
        environment = {"SHOAL_SECRET": "a secret of somebody's own making"}
        run = self.begin(*self.args(generations=20), workers=2, environment={**self.SLOW, **environment})
        run.wait_for_workers(2)
        endpoint = (run.out / "master").read_text().strip()
        seen = self.call("--status", endpoint, "--json", env={**os.environ, **environment})
        self.assertEqual(0, seen.code, seen)
        self.assertIsNone(re.search("somebody", seen.out))


if __name__ == "__main__":
    harness.main()
