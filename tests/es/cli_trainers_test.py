#!/usr/bin/env python3
"""esrun with several trainers: the same parameters for any number of them and after any fault, and nothing done twice."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import esrun_harness as harness
from esrun_harness import ESRUN, SANITIZED
from workers_harness import ESRUN_FAULTS, PATIENCE_S, StopTests, WorkersTest


class TrainersTest(WorkersTest):
    def begin_trainers(self, trainers, *args, evaluators=0, environment=None, tool=ESRUN_FAULTS):
        return self.begin(*args, f"--trainers={trainers}", workers=trainers + evaluators, environment=environment, tool=tool)

    def wait_for_trainers(self, run, count):
        return run.wait_for_status(lambda s: s["trainers"] >= count, f"{count} trainers in a group")



class Hash(TrainersTest):
    """Neither the number of trainers nor that of evaluators changes anything."""

    # Parameters: cartpole 250, pendulum 209, both not a multiple of 64, of 4 units; with more trainers some have none.
    NUMBERS = [(2, 1), (3, 0)] if SANITIZED else [(1, 1), (2, 0), (2, 3), (3, 1), (4, 2), (8, 0)]

    def compare(self, env, *flags, **changes):
        expected = self.good(*self.args(env, **changes), *flags, "--out", self.path())
        for trainers, evaluators in self.NUMBERS:
            with self.subTest(env=env, trainers=trainers, evaluators=evaluators):
                workers = trainers + evaluators
                run = self.begin_trainers(trainers, *self.args(env, **changes), *flags, f"--min-workers={workers}",
                                          evaluators=evaluators, tool=ESRUN)  # fmt: skip
                done = self.same_end(expected, run)
                self.assertEqual(trainers > 1, done["workers"]["groups"] > 0, done)
                if workers > 1:
                    self.assertGreater(done["workers"]["other_items"], 0)

    def test_discrete(self):
        self.compare("cartpole")

    def test_continuous(self):
        self.compare("pendulum", hidden="24")

    def test_settings_that_matter(self):
        self.compare("cartpole", "--no-normalize", "--no-common-random", recurrent=5, hidden="19", precision="bf16")

    def test_fewer_parameters_than_a_unit(self):
        self.compare("mountain_car_continuous", hidden="none", episodes=1)

    def test_resume(self):
        """From any number of trainers to any other, and to one process."""
        expected = self.reference()
        for first, second in [(3, 2)] if SANITIZED else [(3, 2), (1, 4), (2, 1)]:
            with self.subTest(first=first, second=second):
                run = self.begin_trainers(first, *self.args(generations=7), tool=ESRUN)
                run.end()
                again = self.begin_trainers(second, "--resume", run.out, "--generations=12", "--threads=1", "--bind=none",
                                            "--device=cpu", tool=ESRUN)  # fmt: skip
                again.out = run.out
                self.same_end(expected, again)

    def test_traffic_is_what_it_must_be(self):
        """Parameters and two moments from each to each, in ranges of whole units; and what the update follows from."""
        run = self.begin_trainers(2, *self.args(), "--min-workers=2", tool=ESRUN)
        done = run.end()
        units = -(-done["params"] // 64)
        gathered = 2 * 3 * 4 * 64 * -(-units // 2)
        told = done["workers"]["collective_bytes"] / 12 - gathered
        self.assertEqual(1, done["workers"]["groups"], done)
        self.assertGreater(told, 4 * 32)  # the fitness of 32 members
        self.assertLess(told, 4 * 32 + 2 * 8 * 4 + 400)  # and sums of 4 observations, and a report
        self.assertEqual(0, done["workers"]["payload_messages"])


class Faults(StopTests, TrainersTest):
    """Faults at random moments; each must have landed, and the run ends as if it had not."""

    TRAINERS = 3

    def setUp(self):
        super().setUp()
        self.expected = self.reference(checkpoint_every=50)

    def inject(self, hurt, *more, trainers=TRAINERS, evaluators=1):
        """hurt(run) at a random moment; the run and what that gave. There is no checkpoint meanwhile."""
        run = self.begin_trainers(trainers, *self.args(checkpoint_every=50), *more, evaluators=evaluators, environment=self.SLOW)
        run.wait_for_workers(trainers + evaluators)
        self.wait_for_trainers(run, trainers)
        run.wait_for_rows(2)
        time.sleep(self.random.uniform(0, 0.15))
        self.assertLess(run.rows(), 12, "too late")
        return run, hurt(run)

    def killed(self, *counts, **options):
        """Kills so many processes of each role at once: (role, how many)."""

        def hurt(run):
            pids = [pid for role, count in counts for pid in run.pids(role)[:count]]
            self.assertEqual(sum(count for _, count in counts), len(pids))
            before = run.rows()
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            return pids, before

        run, (pids, before) = self.inject(hurt, **options)
        done = self.same_end(self.expected, run)
        for pid in pids:
            self.assertRegex(done["stderr"], rf"\(process {pid}\) was ended by signal 9", done)
        return done, before

    def test_kill_a_follower(self):
        self.killed(("follower", 1))

    def test_kill_the_lead(self):
        """Only the generation under way is done again: the followers have the rest."""
        done, before = self.killed(("trainer", 1))
        self.assertIn("the trainer", done["stderr"])
        self.assertLessEqual(done["workers"]["rounds"], 12 - before + 1)

    def test_kill_all_trainers_but_one(self):
        done, before = self.killed(("trainer", 1), ("follower", 1))
        self.assertLessEqual(done["workers"]["rounds"], 12 - before + 1)

    def test_kill_all_followers(self):
        self.killed(("follower", 2), evaluators=0)

    def test_kill_the_lead_and_the_master(self):
        self.killed(("trainer", 1), ("master", 1))

    def test_kill_the_master(self):
        self.killed(("master", 1))

    def test_kill_all_trainers(self):
        """Back to the last checkpoint: there is none, so from the start."""
        done, _ = self.killed(("trainer", 1), ("follower", 2))
        self.assertEqual(12, done["generations"])

    def test_the_lead_twice(self):
        """The second one, too, has all rows from the others, with the tests'."""
        run, first = self.inject(lambda run: self.kill_lead(run))
        self.wait_for_trainers(run, self.TRAINERS)
        rows_before = run.rows()
        run.wait_until(lambda: run.pids("trainer") not in ([], [first]), "another lead")
        run.wait_until(lambda: run.rows() > rows_before or run.rows() >= 11, "a generation of it")
        self.kill_lead(run)
        self.same_end(self.expected, run)

    def kill_lead(self, run):
        pid = run.pids("trainer")[0]
        os.kill(pid, signal.SIGKILL)
        return pid

    def test_stop_a_follower(self):
        self.stopped("follower")

    def test_stop_the_lead(self):
        self.stopped("trainer")


class Join(TrainersTest):
    """Trainers that come from elsewhere, and go; and stops."""

    def start_follower(self, run, *args):
        call = [ESRUN_FAULTS, "--join", run.out, "--role=follower", "--threads=1", "--bind=none", "--device=cpu", *args]
        return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                env={**os.environ, **self.SLOW})  # fmt: skip

    def test_join_and_leave_in_mid_run(self):
        expected = self.reference(generations=40)
        run = self.begin_trainers(2, *self.args(generations=40), "--bind-address=tcp://127.0.0.1:*", environment=self.SLOW)
        self.wait_for_trainers(run, 2)
        run.wait_for_rows(2)
        joined = self.start_follower(run)
        self.wait_for_trainers(run, 3)
        rows_then = run.rows()
        run.wait_until(lambda: run.rows() >= rows_then + 3, "three generations of three trainers")
        joined.send_signal(signal.SIGTERM)
        _, err = joined.communicate(timeout=PATIENCE_S)
        self.assertEqual(0, joined.returncode, err)
        self.assertRegex(err, r"trains cartpole on cpu[^\n]*\n.*stopped after \d+ members")
        seen = run.wait_for_status(lambda s: s["trainers"] == 2, "two trainers")
        self.assertEqual(0, seen["failures"]["deaths"], seen)
        self.same_end(expected, run)

    def test_a_stop_ends_all_after_a_checkpoint(self):
        expected = self.reference()
        run = self.begin_trainers(3, *self.args(), environment=self.SLOW)
        self.wait_for_trainers(run, 3)
        run.wait_for_rows(2)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual("stopped", run.end()["outcome"])
        again = self.begin_trainers(2, "--resume", run.out, "--threads=1", "--bind=none", "--device=cpu", tool=ESRUN)
        again.out = run.out
        self.same_end(expected, again)

    def test_a_member_that_crashes(self):
        """It ends whoever evaluates it, followers among them; the run goes on without it, and all know of it."""
        marker = self.path("marker")
        plain = {name: os.environ.get(name, "") + ":handle_segv=0" for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}
        lowest = {**os.environ, "SHOAL_TEST_FAULT": f"lowest:3:17:{marker}"}
        alone = self.call(*self.args(), "--out", self.path(), "--json", "--quiet", env=lowest, tool=ESRUN_FAULTS)
        self.assertEqual(0, alone.code, alone)
        run = self.begin_trainers(3, *self.args(), "--min-workers=3",
                                  environment={**plain, "SHOAL_TEST_FAULT": f"crash:3:17:{marker}"})  # fmt: skip
        done = run.end()
        self.assertTrue(marker.exists())
        self.assertEqual(alone.json["params_hash"], done["params_hash"])
        self.assertIn("generation 3: member 17 ends every worker that evaluates it", done["stderr"])

    def test_what_status_says(self):
        run = self.begin_trainers(3, *self.args(generations=200), evaluators=1, environment=self.SLOW)
        run.wait_for_workers(4)
        self.wait_for_trainers(run, 3)
        seen = run.wait_for_status(lambda s: s["traffic"]["collective_bytes"] > 0, "collectives")
        self.assertEqual([("evaluator", -1), ("follower", 1), ("follower", 2), ("trainer", 0)],
                         sorted((w["role"], w["rank"]) for w in seen["workers"]))  # fmt: skip
        text = self.call("--status", run.out)
        self.assertEqual(0, text.code, text)
        self.assertRegex(text.out, r"trainer +0 ")
        self.assertRegex(text.out, r"follower +1 ")
        self.assertRegex(text.out, r"[1-9]\d* bytes between trainers")

    def test_collectives_listen_on_loopback_only(self):
        run = self.begin_trainers(2, *self.args(generations=200), environment=self.SLOW)
        self.wait_for_trainers(run, 2)
        run.wait_for_rows(1)
        inodes = set()
        for pid in run.pids("trainer") + run.pids("follower"):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                try:
                    inodes |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(link)))
                except OSError:
                    continue  # it was closed meanwhile
        addresses = set()
        for table in ["tcp", "tcp6"]:
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[9] in inodes:
                    addresses.add(fields[1].split(":")[0])
        self.assertTrue(addresses)
        self.assertLessEqual(addresses, {"0100007F", "0000000000000000FFFF00000100007F"})  # the second one as IPv6


class Refusals(TrainersTest):
    def test_usage(self):
        self.refused(2, ["--trainers 3", "2 workers"], "cartpole", "--trainers=3", "--workers=2")
        self.refused(2, ["--trainers", "1 to 64"], "cartpole", "--trainers=65", "--workers=65")

    def test_without_gloo(self):
        """Said before anything is started or written."""
        (self.folder / "libshoal_gloo.so").write_text("no library")
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.folder)}
        self.refused(1, ["libshoal_gloo.so"], "cartpole", "--trainers=2", "--workers=2", env=environment)


class Cuda(TrainersTest):
    """Trainers on the GPU, and on both kinds of device."""

    def setUp(self):
        super().setUp()
        self.need_gpu()

    CHANGES = {"generations": 4, "pop": 16, "episodes": 1, "time_limit": 40}

    def test_on_the_gpu(self):
        expected = self.reference(**self.CHANGES)
        run = self.begin_trainers(2, *self.args(**{**self.CHANGES, "device": "cuda"}), "--min-workers=2", "--hang-limit=60",
                                  tool=ESRUN)  # fmt: skip
        done = self.same_end(expected, run)
        self.assertIn("cuda", done["device"])
        self.assertGreater(done["workers"]["other_items"], 0)

    def test_mixed(self):
        expected = self.reference(**self.CHANGES)
        run = self.begin_trainers(2, *self.args(**self.CHANGES), "--bind-address=tcp://127.0.0.1:*", "--min-workers=3",
                                  "--hang-limit=60", tool=ESRUN)  # fmt: skip
        run.wait_for_workers(2)
        with subprocess.Popen([ESRUN, "--join", run.out, "--role=follower", "--device=cuda", "--quiet"]) as joined:
            self.same_end(expected, run)
            self.assertEqual(0, joined.wait(PATIENCE_S))


if __name__ == "__main__":
    harness.main()
