#!/usr/bin/env python3
"""pporun with several trainers: the same parameters for any number of them and after any fault, and nothing done twice."""

import json
import os
import signal
import subprocess
import time

import pporun_harness as harness
from pporun_harness import PPORUN, SANITIZED, CudaTests, WorkersTest

from cli_nccl import NcclFaultTests, NcclHashTests
from cli_trainers import STEPS, TrainersFaultTests, TrainersJoinTests, TrainersResumeTests, TrainersTests
from workers_harness import PATIENCE_S


class TrainersTest(TrainersTests, WorkersTest):
    def begin_trainers(self, trainers, *args, **options):
        return self.begin(*args, workers=trainers, **options)

    def of_trainers(self, trainers):
        return (f"--workers={trainers}",)

    def length(self, updates):
        return {"updates": updates}

    def goes_on(self, updates):
        return f"--steps={updates * harness.UPDATE_STEPS}"


class Hash(TrainersResumeTests, TrainersTest):
    """The number of trainers changes nothing. There are 8 shards in most of these: of three trainers two share them."""

    NUMBERS = [2, 3] if SANITIZED else [2, 3, 4, 8]

    def compare(self, env, *flags, numbers=None, **changes):
        expected = self.good(*self.args(env, **changes), *flags, "--out", self.path())
        for trainers in numbers or self.NUMBERS:
            with self.subTest(env=env, trainers=trainers):
                run = self.begin_trainers(trainers, *self.args(env, **changes), *flags, f"--min-workers={trainers}", tool=PPORUN)
                done = self.same_end(expected, run)
                self.assertEqual(1, done["workers"]["groups"], done)
                self.assertGreater(done["workers"]["collective_bytes"], 12 * 4 * done["params"], done)

    def test_discrete(self):
        self.compare("cartpole")

    def test_continuous(self):
        self.compare("pendulum", "--lr-anneal", target_kl=0.003, epochs=4)

    def test_settings_that_matter(self):
        self.compare("cartpole", "--shared", "--no-normalize-obs", recurrent=5, hidden="19", precision="bf16",
                     minibatches=2, numbers=[2])  # fmt: skip
        self.compare("parking", "--no-normalize-reward", "--randomize=drag_per_s=0.05:0.2", shards=4, numbers=[5])

    def test_more_trainers_than_shards(self):
        self.compare("cartpole", shards=2, numbers=[3])
        run = self.begin_trainers(2, *self.args(shards=1), "--min-workers=2", tool=PPORUN)
        self.same_end(self.reference(shards=1), run)

    def test_traffic_is_what_it_must_be(self):
        """A gradient from each to each in every minibatch; after a rollout its envs and what is known of it."""
        run = self.begin_trainers(2, *self.args(), "--min-workers=2", tool=PPORUN)
        done = run.end()
        exchanges = 2 * harness.FIXED["epochs"] * harness.FIXED["minibatches"]
        told = done["workers"]["collective_bytes"] / 12 / exchanges - 4 * done["params"]
        self.assertGreater(told, 8 / 2 * 5 * 8)  # the losses of a trainer's shards
        self.assertLess(told, 8 / 2 * 5 * 8 + 64 + 512)  # a part's padding, and a share of the update's other exchanges


class Faults(TrainersFaultTests, TrainersTest):
    """Three trainers."""

    def begin_trainers(self, trainers, *args, environment=None, **options):
        self.updates = self.path("updates")
        environment = {**(environment or {}), "SHOAL_TEST_COUNT": str(self.updates)}
        return super().begin_trainers(trainers, *args, environment=environment, **options)

    def test_end_the_master(self):
        """By a signal at which it ends well: there is another one all the same, without which the trainers wait."""
        run, _ = self.inject(lambda run: os.kill(run.pids("master")[0], signal.SIGTERM))
        done = self.same_end(self.expected, run)
        self.assertGreater(done["workers"]["masters"], 1)

    def test_a_thread_that_spins(self):
        """Within an update, while the others wait for its part."""
        marker = self.path("marker")
        run = self.begin_trainers(3, *self.args(checkpoint_every=50), "--hang-limit=1", "--min-workers=3",
                                  environment={**self.SLOW, "SHOAL_TEST_SPIN": str(marker)})  # fmt: skip
        done = self.same_end(self.expected, run)
        self.assertTrue(marker.exists())
        self.assertTrue(done["workers"]["groups"] > 1 or "ended" in done["stderr"], done)  # the lead's own count

    def done_twice(self, done, before):
        self.assertLessEqual(os.stat(self.updates).st_size, self.TRAINERS * (STEPS + 1))


class Join(TrainersJoinTests, TrainersTest):
    def test_one_trainer_that_others_join(self):
        expected = self.reference(updates=40)
        run = self.begin_trainers(1, *self.args(updates=40), "--bind-address=tcp://127.0.0.1:*", environment=self.SLOW)
        run.wait_for_rows(1)
        joined = self.start_follower(run)
        self.wait_for_trainers(run, 2)
        self.same_end(expected, run)
        _, err = joined.communicate(timeout=60)
        self.assertEqual(0, joined.returncode, err)
        self.assertIn("the run is over", err)

    def test_waits_for_enough(self):
        expected = self.reference()
        run = self.begin_trainers(1, *self.args(), "--bind-address=tcp://127.0.0.1:*", "--min-workers=2")
        run.wait_for_workers(1)
        time.sleep(0.5)
        self.assertEqual(0, run.rows())
        joined = self.start_follower(run)
        done = self.same_end(expected, run)
        self.assertGreater(done["workers"]["collective_bytes"], 2 * 4 * done["params"])
        _, err = joined.communicate(timeout=60)
        self.assertEqual(0, joined.returncode, err)

    def test_a_hook_brings_a_trainer(self):
        expected = self.reference()
        hook = '"$SHOAL_PROGRAM" --join "$SHOAL_JOIN" --secret "$SHOAL_SECRET_FILE" --threads=1 --bind=none --quiet >/dev/null 2>&1 &'
        run = self.begin_trainers(1, *self.args(), "--min-workers=2", "--max-workers=2", f"--scale-hook={hook}")
        done = self.same_end(expected, run)
        self.assertGreater(done["workers"]["groups"], 0)

    def test_what_status_says(self):
        run = self.begin_trainers(2, *self.args(updates=200), environment=self.SLOW)
        run.wait_for_workers(2)
        seen = run.wait_for_status(lambda s: s["traffic"]["collective_bytes"] > 0 and s["generation"] > 0, "an update")
        self.assertEqual([("follower", 1), ("trainer", 0)], sorted((w["role"], w["rank"]) for w in seen["workers"]))
        text = self.call("--status", run.out)
        self.assertEqual(0, text.code, text)
        self.assertRegex(text.out, r"^cartpole at \S+: update [1-9]\d*; ")
        self.assertRegex(text.out, r"trainer +0 ")
        self.assertRegex(text.out, r"[1-9]\d* bytes between trainers")


class Launch(TrainersTest):
    """What starts trainers elsewhere: all workers are trainers."""

    def test_ranks(self):
        expected = self.reference()
        call = [PPORUN, *self.args(), "--min-workers=3", "--out", self.path(), "--json", "--quiet"]
        ranks = []
        for rank in self.random.sample(range(3), 3):
            environment = {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": 3, "SLURM_STEP_NUM_NODES": 1}
            ranks.append(subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                          env={**os.environ, **{k: str(v) for k, v in environment.items()}}))  # fmt: skip
        outputs = [process.communicate(timeout=300) for process in ranks]
        self.assertEqual([0, 0, 0], [process.returncode for process in ranks], outputs)
        (out,) = [out for out, _ in outputs if out != ""]
        self.assertEqual(expected["params_hash"], json.loads(out)["params_hash"])
        self.assertGreater(json.loads(out)["workers"]["collective_bytes"], 0)

    def test_emit(self):
        script = self.call("cartpole", "--workers=3", "--emit=slurm")
        self.assertEqual(0, script.code, script)
        self.assertIn("#SBATCH --ntasks=3\n", script.out)
        self.assertNotIn("--array", script.out)
        manifests = self.call("cartpole", "--workers=3", "--emit=k8s")
        self.assertEqual(0, manifests.code, manifests)
        self.assertRegex(manifests.out, r"name: shoal-cartpole-followers\nspec:\n  backoffLimit: \d+\n  completionMode: Indexed\n  completions: 2\n")
        self.assertNotIn("shoal-cartpole-evaluators", manifests.out)


class Refusals(TrainersTest):
    def test_usage(self):
        self.refused(2, ["65 workers", "at most 64"], "cartpole", "--workers=65")
        self.refused(2, ["--collectives nccl", "one trainer", "--workers"], "cartpole", "--collectives=nccl")
        self.refused(2, ["--collectives nccl", "--device cpu"], "cartpole", "--workers=2", "--device=cpu", "--collectives=nccl")
        self.refused(2, ["--join", "--steps"], "--join=tcp://127.0.0.1:1", "--steps=1000")
        for option in ["--workers=2", "--resume=x", "--eval=x", "--config=x", "--html=x", "--dry-run", "--out=x"]:
            self.refused(2, ["--join", option.partition("=")[0]], "--join=tcp://127.0.0.1:1", option)
        self.refused(2, ["--profile", "--out"], "--join=tcp://127.0.0.1:1", "--profile")
        self.refused(2, ["--role", "--join"], "cartpole", "--role=follower")
        self.refused(2, ["65535"], "cartpole", "--bind-address=tcp://127.0.0.1:70000")

    def test_without_gloo(self):
        """Said before anything is started or written."""
        (self.folder / "libshoal_gloo.so").write_text("no library")
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.folder)}
        self.refused(1, ["libshoal_gloo.so"], "cartpole", "--workers=2", env=environment)


class Cuda(CudaTests, TrainersTest):
    """Trainers on the GPU, and on both kinds of device."""

    CHANGES = {"updates": 3, "epochs": 1, "minibatches": 2, "test_every": 1000, "test_episodes": 1}

    def shared(self, expected, run):
        """To the same end, with gradients from each to the other."""
        done = self.same_end(expected, run)
        self.assertGreater(done["workers"]["collective_bytes"], 2 * 4 * done["params"])
        return done

    def test_on_the_gpu(self):
        expected = self.reference(**self.CHANGES)
        run = self.begin_trainers(2, *self.args(**self.CHANGES, device="cuda"), "--min-workers=2", "--hang-limit=60",
                                  tool=PPORUN)  # fmt: skip
        self.assertIn("cuda", self.shared(expected, run)["device"])

    def test_mixed(self):
        changes = {**self.CHANGES, "recurrent": 5}
        expected = self.reference("pendulum", **changes)
        run = self.begin_trainers(1, *self.args("pendulum", **changes), "--bind-address=tcp://127.0.0.1:*", "--min-workers=2",
                                  "--hang-limit=60", tool=PPORUN)  # fmt: skip
        run.wait_for_workers(1)
        with subprocess.Popen([PPORUN, "--join", run.out, "--device=cuda", "--quiet"]) as joined:
            self.shared(expected, run)
            self.assertEqual(0, joined.wait(PATIENCE_S))


class Nccl(NcclHashTests, TrainersTest):
    CHANGES = {"epochs": 1, "minibatches": 2, "test_every": 1000, "test_episodes": 1}
    GPU_STEPS = 8


class NcclFaults(NcclFaultTests, TrainersTest):
    CHANGES = Nccl.CHANGES
    GPU_STEPS = 12


if __name__ == "__main__":
    harness.main()
