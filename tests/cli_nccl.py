"""What the tests of trainers that exchange by NCCL share, of every program: each has a GPU of its own, or why not.

A subclass mixes them into a test of trainers (cli_trainers.TrainersTests) and says CHANGES, those that make a run small,
and GPU_STEPS, of a run that takes a few seconds."""

import os
import signal
import subprocess

from workers_harness import PATIENCE_S

GPUS = 4
TRIES = 5


class NcclTests:
    def setUp(self):
        super().setUp()
        self.need_gpu()
        done = self.call(*self.fixed("cartpole", device="cuda"), f"--gpu={GPUS - 1}", "--dry-run")
        if done.code != 0 and os.environ.get("VGPU_DEVICES") is None:
            self.skipTest(done.err)
        self.assertEqual(0, done.code, done)
        self.changes = {**self.CHANGES, **self.length(self.GPU_STEPS), "checkpoint_every": 50}

    def gpu_args(self, **changes):
        return self.args(**{**self.changes, "device": "cuda", **changes})

    def begin_gpus(self, trainers, *args, **options):
        return self.begin_trainers(trainers, *self.gpu_args(), f"--min-workers={trainers}", "--hang-limit=10", *args,
                                   tool=self.plain, **options)  # fmt: skip

    def follower(self, run, *args, environment=None):
        call = [self.plain, "--join", run.out, "--role=follower", "--threads=1", "--bind=none", *args]
        return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                env={**os.environ, **(environment or {})})  # fmt: skip

    def ended(self, follower):
        """The exit status of a follower, and what it said."""
        _, err = follower.communicate(timeout=PATIENCE_S)
        return follower.returncode, err

    def same_by_nccl(self, expected, run, groups=1):
        done = self.same_end(expected, run)
        self.assertGreaterEqual(done["workers"]["nccl_groups"], groups, done)
        self.assertIn("cuda", done["device"])
        return done


class NcclHashTests(NcclTests):
    def test_any_number_of_gpus(self):
        """The bits of one CPU; and as many bytes between the trainers as by Gloo."""
        expected = self.reference(**self.changes)
        for trainers in (2, GPUS):
            with self.subTest(trainers=trainers):
                done = self.same_by_nccl(expected, self.begin_gpus(trainers))
                self.assertEqual(done["workers"]["groups"], done["workers"]["nccl_groups"], done)
        by_nccl, by_gloo = (self.in_one_group(expected, GPUS, name) for name in ("nccl", "gloo"))
        self.assertEqual((1, 0), (by_nccl["nccl_groups"], by_gloo["nccl_groups"]))
        self.assertEqual(by_gloo["collective_bytes"], by_nccl["collective_bytes"])

    def in_one_group(self, expected, trainers, name):
        """The workers' figures of a run that was of one group from its begin to its end, which not every one is: a group is
        formed again where somebody comes late."""
        for _ in range(TRIES):
            workers = self.same_end(expected, self.begin_gpus(trainers, f"--collectives={name}"))["workers"]
            if workers["groups"] == 1:
                return workers
        return self.fail(f"{TRIES} runs of more than one group: {workers}")

    def test_what_is_said_of_it(self):
        """Once by the run, and by its status whenever it is asked."""
        out = self.path()
        done = self.call(*self.gpu_args(**self.length(2)), *self.of_trainers(2), "--min-workers=2", "--out", out)
        self.assertEqual(0, done.code, done)
        self.assertEqual(1, done.err.count("2 trainers by nccl: each trainer has a GPU of its own"), done)
        run = self.begin_gpus(2)
        seen = run.wait_for_status(lambda s: s["trainers"] == 2, "two trainers")
        self.assertEqual(("nccl", "each trainer has a GPU of its own"), (seen["collectives"], seen["collectives_why"]))
        run.end()


class NcclFaultTests(NcclTests):
    """Faults in a group by NCCL, of which nobody but the master tells the others: they abort, and form another group.

    At least two go on, so that it is by NCCL again."""

    def setUp(self):
        super().setUp()
        self.expected = self.reference(**self.changes)

    def begin_faulty(self, *args, **options):
        run = self.begin_gpus(3, *args, **options)
        run.wait_for_status(lambda s: s["trainers"] == 3 and s["collectives"] == "nccl", "three trainers by NCCL")
        run.wait_for_rows(1)
        self.assertLess(run.rows(), self.GPU_STEPS, "too late")
        return run

    def test_kill_a_follower(self):
        run = self.begin_faulty("--min-workers=2")
        pid = run.pids("follower")[0]
        os.kill(pid, signal.SIGKILL)
        done = self.same_by_nccl(self.expected, run, groups=2)
        self.assertRegex(done["stderr"], rf"\(process {pid}\) was ended by signal 9")

    def test_stop_a_follower(self):
        run = self.begin_faulty("--min-workers=2", "--hang-limit=2")
        os.kill(run.pids("follower")[0], signal.SIGSTOP)
        self.same_by_nccl(self.expected, run, groups=2)

    def test_an_asynchronous_error(self):
        """Of every trainer's fifth call, which then hangs until it is aborted."""
        run = self.begin_gpus(2, environment={"VGPU_NCCL_ERROR": "5"})
        self.same_by_nccl(self.expected, run, groups=2)

    def test_a_cpu_joins(self):
        """And all go on by Gloo."""
        run = self.begin_gpus(2, "--bind-address=tcp://127.0.0.1:*")
        run.wait_for_status(lambda s: s["trainers"] == 2 and s["collectives"] == "nccl", "two trainers by NCCL")
        run.wait_for_rows(1)
        joined = self.follower(run, "--device=cpu", "--quiet")
        seen = run.wait_for_status(lambda s: s["trainers"] == 3, "three trainers")
        self.assertEqual("gloo", seen["collectives"], seen)
        self.assertRegex(seen["collectives_why"], rf"\(process {joined.pid}\) computes on a CPU")
        done = self.same_by_nccl(self.expected, run)
        self.assertGreater(done["workers"]["groups"], done["workers"]["nccl_groups"], done)
        self.assertEqual((0, ""), self.ended(joined))


class NcclRefusalTests(NcclTests):
    def broken_nccl(self):
        """An environment in which the library is none."""
        folder = self.folder / "broken"
        folder.mkdir(exist_ok=True)
        (folder / "libnccl.so.2").write_text("no library")
        return {**os.environ, "LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"}

    def run_two(self, *args, env=None):
        return self.call(*self.gpu_args(**self.length(2)), *self.of_trainers(2), *args, "--out", self.path(), env=env)

    def test_without_nccl(self):
        done = self.run_two("--min-workers=2", env=self.broken_nccl())
        self.assertEqual(0, done.code, done)
        self.assertRegex(done.err, r"2 trainers by gloo: the trainer on .* has no NCCL: .*libnccl\.so\.2")
        forced = self.run_two("--collectives=nccl", env=self.broken_nccl())
        self.assertEqual(1, forced.code, forced)
        self.assertRegex(forced.err, r"refused: --collectives nccl: the trainer on .* has no NCCL: .*libnccl\.so\.2")

    def test_two_on_one_gpu(self):
        done = self.run_two("--gpu=0", "--min-workers=2")
        self.assertEqual(0, done.code, done)
        self.assertRegex(done.err, r"2 trainers by gloo: processes \d+ and \d+ on .* share a GPU")

    def test_nccl_is_asked_for(self):
        """One that cannot take part is sent away, by name."""
        run = self.begin(*self.gpu_args(), "--trainers=2", "--bind-address=tcp://127.0.0.1:*", "--collectives=nccl",
                         "--min-workers=2", "--hang-limit=10", workers=1, tool=self.plain)  # fmt: skip
        run.wait_for_workers(1)
        joined = self.follower(run, "--device=cuda", "--gpu=0")
        code, err = self.ended(joined)
        self.assertEqual(2, code, err)
        self.assertRegex(err, r"refused: --collectives nccl: processes \d+ and \d+ on .* share a GPU")
        other = self.follower(run, "--device=cuda", "--gpu=1", "--quiet")
        self.same_by_nccl(self.reference(**self.changes), run)
        self.assertEqual((0, ""), self.ended(other))

    def test_an_abort_that_does_not_return(self):
        """Then the worker ends itself, as one that hangs; the others go on."""
        run = self.begin_gpus(2, "--bind-address=tcp://127.0.0.1:*", "--min-workers=3")
        run.wait_for_workers(2)
        hangs = self.follower(run, "--device=cuda", "--gpu=2", environment={"VGPU_NCCL_ABORT": "hangs"})
        run.wait_for_status(lambda s: s["trainers"] == 3 and s["collectives"] == "nccl", "three trainers by NCCL")
        run.wait_for_rows(1)
        os.kill(run.pids("follower")[0], signal.SIGKILL)
        code, err = self.ended(hangs)
        self.assertEqual(75, code, err)
        self.assertRegex(err, rf"process {hangs.pid}: its collectives did not end within 5 s of being aborted")
        again = self.follower(run, "--device=cuda", "--gpu=2", "--quiet")
        self.same_by_nccl(self.reference(**self.changes), run)
        self.assertEqual((0, ""), self.ended(again))
