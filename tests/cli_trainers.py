"""What the tests of several trainers share, of every program: faults at random moments, joins, stops, resumes.

A subclass mixes them into a test of workers and says begin_trainers(trainers, *args, ...), which starts a run of so many,
length(steps), the changes that make a run so many steps long, and goes_on(steps), the argument that does."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from cli_harness import SANITIZED
from workers_harness import PATIENCE_S, DiskTests, StopTests

STEPS = 12  # generations or updates of a run, of length() too


class TrainersTests:
    """Mixed into a test of workers."""

    def wait_for_trainers(self, run, count):
        return run.wait_for_status(lambda s: s["trainers"] >= count, f"{count} trainers in a group")

    def resume(self, trainers, run, *args):
        again = self.begin_trainers(trainers, "--resume", run.out, *args, "--threads=1", "--bind=none", "--device=cpu",
                                    tool=self.plain)  # fmt: skip
        again.out = run.out
        return again


class TrainersResumeTests(DiskTests):
    """From any number of trainers to any other, and to one process; whatever ended the run."""

    def test_a_disk_full_at_a_checkpoint(self):
        steps = 30
        self.full_disk(steps, lambda args: self.begin_trainers(2, *args, environment=self.SLOW),
                       lambda run: self.resume(3, run, self.goes_on(steps)), hidden="32,32", checkpoint_every=1,
                       **self.length(steps))  # fmt: skip

    def test_resume(self):
        expected = self.reference()
        for first, second in [(3, 2)] if SANITIZED else [(3, 2), (1, 4), (2, 1)]:
            with self.subTest(first=first, second=second):
                run = self.begin_trainers(first, *self.args(**self.length(7)), tool=self.plain)
                run.end()
                self.same_end(expected, self.resume(second, run, self.goes_on(STEPS)))


class TrainersFaultTests(StopTests):
    """Faults at random moments; each must have landed, and the run ends as if it had not. Nothing is done twice but the
    step under way: done_twice(done, before) checks it of a run that had so many rows."""

    TRAINERS = 3

    def setUp(self):
        super().setUp()
        self.expected = self.reference(checkpoint_every=50)

    def inject(self, hurt, *more, steps=STEPS, **options):
        """hurt(run) at a random moment; the run and what that gave. There is no checkpoint meanwhile."""
        run = self.begin_trainers(self.TRAINERS, *self.args(checkpoint_every=50, **self.length(steps)), *more,
                                  environment=self.SLOW, **options)  # fmt: skip
        run.wait_for_workers(run.workers)
        self.wait_for_trainers(run, self.TRAINERS)
        run.wait_for_rows(2)
        time.sleep(self.random.uniform(0, 0.15))
        self.assertLess(run.rows(), steps, "too late")
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
        """Only the step under way is done again: the followers have the rest."""
        done, before = self.killed(("trainer", 1))
        self.assertIn("the trainer", done["stderr"])
        self.done_twice(done, before)

    def test_kill_all_trainers_but_one(self):
        self.done_twice(*self.killed(("trainer", 1), ("follower", 1)))

    def test_kill_all_followers(self):
        self.killed(("follower", 2))

    def test_kill_the_lead_and_the_master(self):
        self.killed(("trainer", 1), ("master", 1))

    def test_kill_the_master(self):
        self.killed(("master", 1))

    def test_kill_all_trainers(self):
        """Back to the last checkpoint: there is none, so from the start."""
        self.killed(("trainer", 1), ("follower", 2))

    def test_the_lead_twice(self):
        """The second one, too, has all rows from the others, with the tests'."""
        steps = 40  # long enough for two leads to die
        expected = self.reference(checkpoint_every=50, **self.length(steps))
        run, first = self.inject(self.kill_lead, steps=steps)
        self.wait_for_trainers(run, self.TRAINERS)
        rows_before = run.rows()
        run.wait_until(lambda: run.pids("trainer") not in ([], [first]), "another lead")
        run.wait_until(lambda: run.rows() > rows_before or run.rows() >= steps - 1, "a step of it")
        self.kill_lead(run)
        self.same_end(expected, run)

    def kill_lead(self, run):
        pid = run.pids("trainer")[0]
        os.kill(pid, signal.SIGKILL)
        return pid

    def test_stop_a_follower(self):
        self.stopped("follower")

    def test_stop_the_lead(self):
        self.stopped("trainer")

    def test_stop_the_master(self):
        self.stopped("master")


class TrainersJoinTests:
    """Trainers that come from elsewhere, and go; stops; and where collectives listen."""

    def start_follower(self, run, *args):
        call = [self.faulty, "--join", run.out, "--role=follower", "--threads=1", "--bind=none", "--device=cpu", *args]
        return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                env={**os.environ, **self.SLOW})  # fmt: skip

    def test_join_and_leave_in_mid_run(self):
        expected = self.reference(**self.length(40))
        run = self.begin_trainers(2, *self.args(**self.length(40)), "--bind-address=tcp://127.0.0.1:*", environment=self.SLOW)
        self.wait_for_trainers(run, 2)
        run.wait_for_rows(2)
        joined = self.start_follower(run)
        self.wait_for_trainers(run, 3)
        rows_then = run.rows()
        run.wait_until(lambda: run.rows() >= rows_then + 3, "three steps of three trainers")
        joined.send_signal(signal.SIGTERM)
        _, err = joined.communicate(timeout=PATIENCE_S)
        self.assertEqual(0, joined.returncode, err)
        self.assertRegex(err, r"trains cartpole on cpu[^\n]*\n.*stopped")
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
        self.same_end(expected, self.resume(2, run))

    def test_collectives_listen_on_loopback_only(self):
        run = self.begin_trainers(2, *self.args(**self.length(200)), environment=self.SLOW)
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
