#!/usr/bin/env python3
"""esrun with several trainers: the same parameters for any number of them and after any fault, and nothing done twice."""

import os
import subprocess

import esrun_harness as harness
from esrun_harness import ESRUN, ESRUN_FAULTS, SANITIZED, WorkersTest

from cli_nccl import NcclFaultTests, NcclHashTests, NcclRefusalTests
from cli_trainers import STEPS, TrainersFaultTests, TrainersJoinTests, TrainersResumeTests, TrainersTests
from workers_harness import PATIENCE_S


class TrainersTest(TrainersTests, WorkersTest):
    def begin_trainers(self, trainers, *args, evaluators=0, environment=None, tool=None):
        return self.begin(*args, f"--trainers={trainers}", workers=trainers + evaluators, environment=environment, tool=tool)

    def of_trainers(self, trainers):
        return f"--trainers={trainers}", f"--workers={trainers}"

    def length(self, generations):
        return {"generations": generations}

    def goes_on(self, generations):
        return f"--generations={generations}"


class Hash(TrainersResumeTests, TrainersTest):
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

    def test_noise_table(self):
        self.compare("cartpole", noise="table", noise_table=8192)

    def test_fewer_parameters_than_a_unit(self):
        self.compare("mountain_car_continuous", hidden="none", episodes=1)

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


class Faults(TrainersFaultTests, TrainersTest):
    """Three trainers, and an evaluator."""

    def begin_trainers(self, trainers, *args, **options):
        return super().begin_trainers(trainers, *args, evaluators=1, **options)

    def done_twice(self, done, before):
        self.assertLessEqual(done["workers"]["rounds"], STEPS - before + 1)


class Join(TrainersJoinTests, TrainersTest):
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
        run = self.begin_trainers(3, *self.args(**self.length(200)), evaluators=1, environment=self.SLOW)
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


class Refusals(TrainersTest):
    def test_usage(self):
        self.refused(2, ["--trainers 3", "2 workers"], "cartpole", "--trainers=3", "--workers=2")
        self.refused(2, ["--trainers", "1 to 64"], "cartpole", "--trainers=65", "--workers=65")
        nccl, two = "--collectives=nccl", ("--workers=2", "--trainers=2")
        self.refused(2, ["--collectives nccl", "one trainer", "--trainers"], "cartpole", "--workers=2", nccl)
        self.refused(2, ["--collectives nccl", "--device cpu"], "cartpole", *two, "--device=cpu", nccl)
        self.refused(2, ["--collectives nccl", "objectives"], "objective:sphere", *two, nccl)

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


class Nccl(NcclHashTests, TrainersTest):
    CHANGES = {"pop": 16, "episodes": 1, "time_limit": 30}
    GPU_STEPS = 40

    def test_a_hook_brings_another_gpu(self):
        """Which the run waits for, and which is of its group."""
        hook = self.path("hook")
        hook.write_text(f'cd "{self.folder}" && mkdir called || exit 0\n'
                        '"$SHOAL_PROGRAM" --join "$SHOAL_JOIN" --secret "$SHOAL_SECRET_FILE" --role=follower --device=cuda --gpu=2'
                        ' --threads=1 --bind=none --quiet >>log 2>&1 &\n')  # fmt: skip
        run = self.begin_gpus(2, "--collectives=nccl", "--min-workers=3", "--max-workers=3", "--scale-interval=0.5",
                              f"--scale-hook=. {hook}")  # fmt: skip
        seen = run.wait_for_status(lambda s: s["trainers"] == 3, "three trainers")
        self.assertEqual(("nccl", 3), (seen["collectives"], seen["present"]), seen)
        self.same_by_nccl(self.reference(**self.changes), run)
        self.assertEqual("", (self.folder / "log").read_text())


class NcclFaults(NcclFaultTests, TrainersTest):
    CHANGES = Nccl.CHANGES
    GPU_STEPS = Nccl.GPU_STEPS


class NcclRefusals(NcclRefusalTests, TrainersTest):
    CHANGES = Nccl.CHANGES
    GPU_STEPS = Nccl.GPU_STEPS


if __name__ == "__main__":
    harness.main()
