#!/usr/bin/env python3
"""Bad input to pporun: what it shares with other trainers (cli_bad_input.py), and its own; and what only looks bad: huge
rewards and observations."""

import math
import shutil

import pporun_harness as harness
from cli_bad_input import FileTests, InfiniteTests, UsageTests
from pporun_harness import UPDATE_STEPS, PporunTest, fixed, rows, tree


class Usage(UsageTests, PporunTest):
    COUNT, COUNT_RANGE = "envs", "1 to 1048576 envs"
    TOO_SHORT = UPDATE_STEPS
    OTHER_TOOL = "esrun"

    def test_own_ranges(self):
        self.refuses_ranges([
            ("rollout", 0, "1 to 1000000 steps"),
            ("epochs", 0, "1 to 1000"),
            ("minibatches", 0, "1 to"),
            ("shards", 0, "1 to 65536"),
            ("gamma", 1.1, "0 to 1"),
            ("lambda", "inf", "0 to 1"),
            ("clip", -1, "0 to 100"),
            ("entropy", -1, "0 to 100"),
            ("value-weight", -1, "0 to 100"),
            ("max-grad-norm", -1, "0 to 1000000000"),
            ("target-kl", -1, "0 to 1000000000"),
            ("log-std", 6, "-20 to 5"),
            ("adam-epsilon", 0, "1e-12 to 1"),
            ("recurrent", -1, "0 to 1024 units"),
            ("recurrent", 1025, "0 to 1024 units"),
        ])  # fmt: skip

    def test_sizes_that_do_not_fit(self):
        self.refuses_values([
            (["--shards 48", "power of two"], "--envs=48", "--shards=48"),
            (["--envs 100", "multiple of --shards 64"], "--envs=100", "--shards=64"),
            (["--minibatches 3", "64 steps", "--envs 64 / --shards 32", "--rollout 32"],
             "--envs=64", "--shards=32", "--rollout=32", "--minibatches=3"),
            (["--minibatches 4", "divide a shard's 2 envs", "--envs 64 / --shards 32", "--recurrent"],
             "--envs=64", "--shards=32", "--minibatches=4", "--recurrent=8"),
            (["--rollout 4097", "at most 4096 steps", "--recurrent"],
             "--envs=8", "--rollout=4097", "--minibatches=1", "--recurrent=8"),
            (["--steps 1000", "takes 2048"], "--envs=64", "--rollout=32", "--minibatches=4", "--steps=1000"),
            (["--envs 1048576 x --rollout 4096", "at most 2147483647"], "--envs=1048576", "--rollout=4096"),
            (["--steps", "at most 134217727 updates"], "--envs=1", "--rollout=1", "--minibatches=1", "--steps=1000000000"),
        ])  # fmt: skip
        self.refuses_configs(self.folder / "config.json", [('{"shards": 48}', "power of two")])

    @staticmethod
    def counted(number, what):
        return f"{number} {what}{'s' if number != 1 else ''}"

    def test_shards_follow_the_envs(self):
        for envs, shards in [(1, 1), (8, 8), (96, 32), (64, 64), (4096, 64)]:
            out = self.call("cartpole", "--dry-run", "--device=cpu", "--bind=none", f"--envs={envs}", "--rollout=64",
                            "--minibatches=4", "--steps=10000000").out  # fmt: skip
            self.assertIn(f"{self.counted(envs, 'env')} ({self.counted(shards, 'shard')})", out)
        for envs, shards in [(4, 1), (64, 16), (4096, 64)]:  # a shard has an env for each minibatch
            out = self.call("cartpole", "--dry-run", "--device=cpu", "--bind=none", f"--envs={envs}", "--rollout=64",
                            "--minibatches=4", "--steps=10000000", "--recurrent=8").out  # fmt: skip
            self.assertIn(f"{self.counted(envs, 'env')} ({self.counted(shards, 'shard')})", out)

    def test_annealed_runs_keep_their_length(self):
        for flag, what in [("--lr-anneal", "learning rate"), ("--clip-anneal", "clip")]:
            run = self.good(*fixed("cartpole"), flag, "--out", self.path())["run"]
            more = 2 * 12 * UPDATE_STEPS
            self.refused(2, [f"--steps {more}", what, str(12 * UPDATE_STEPS)], "--resume", run, f"--steps={more}",
                         "--device=cpu", "--bind=none")  # fmt: skip
        run = self.unbroken("cartpole", updates=6)["run"]
        more = self.good("--resume", run, f"--steps={12 * UPDATE_STEPS}", "--device=cpu", "--bind=none")
        self.assertEqual(self.unbroken("cartpole")["params_hash"], more["params_hash"])


class Files(FileTests, PporunTest):
    POLICY, OTHER_POLICY = "cartpole 4-16-8-2 tanh, separate critic", "cartpole 4-3-2 tanh, separate critic"
    RECURRENT = {"recurrent": 3, "minibatches": 2}
    ENDLESS = {"updates": 100000}

    def test_checkpoint_of_another_kind_of_run(self):
        other = self.good(*fixed("cartpole"), "--shared", "--out", self.path())
        self.refuses_checkpoint_of(other, "'cartpole 4-16-8-2 tanh, shared critic'")
        self.refuses_checkpoint_of(self.unbroken("cartpole", envs=32, rollout=16), "envs: U32 [32,")

    def test_edited_settings_are_another_run(self):
        blow_up = Infinite.BLOW_UP["pendulum"][0].split()
        edits = [("set", blow_up), ("seed", 99), ("lr", 0.5), ("gamma", 0.9), ("shards", 4)]
        self.refuses_edited_settings({"updates": 6}, edits)


class Infinite(InfiniteTests, PporunTest):
    WHERE = r"update 0, env \d+, step \d+: "
    WHERE_RETURN = "update 0: "
    UNDISCOUNTED = {"gamma": 0}  # else it is the discounted return that overflows first

    def test_learning_that_blows_up(self):
        """The message names update, epoch, minibatch and tensor; the checkpoints of before are whole, and the run as far as
        they go is the one that an unbroken run of that length makes."""
        changes = {"lr": 10, "max_grad_norm": 0, "activation": "relu", "checkpoint_every": 1, "updates": 40}
        out = self.path()
        done = self.call(*fixed("pendulum", **changes), "--out", out, "--quiet")
        self.assertEqual(1, done.code, done)
        self.assertRegex(done.err, r"^pporun: pendulum: update \d+, epoch \d, minibatch \d: "
                         r"(the gradient of (actor|critic) (layer \d|head) (weights|biases)|the gradient of log_std|"
                         r"the loss's part (policy|value|entropy|KL)) is NaN or infinite\n$")  # fmt: skip
        update = int(done.err.split("update ")[1].split(",")[0])
        self.assertGreaterEqual(update, 2)
        names = [f"gen-{n:08}.safetensors" for n in [update - 1, update]]
        self.assertEqual(names, sorted(p.name for p in (out / "checkpoint").iterdir()))
        self.assertEqual([str(i + 1) for i in range(update)], [r["update"] for r in rows(out)])
        tested = self.good("--eval", out, "--device=cpu", "--bind=none")
        self.assertTrue(math.isfinite(tested["test_return_mean"]))
        whole = self.unbroken("pendulum", **{**changes, "updates": update})
        self.assertEqual(whole["params_hash"], tested["params_hash"])
        before = tree(out / "checkpoint")
        again = self.call("--resume", out, "--quiet", "--device=cpu", "--bind=none")
        self.assertEqual(done.err, again.err)
        self.assertEqual(before, tree(out / "checkpoint"))


class Large(PporunTest):
    """Rewards and observations a million times what is usual."""

    def test_rewards(self):
        """They are divided by their deviation: the run learns as one with the usual rewards does."""
        usual = self.learn("mountain_car_continuous")
        large = self.learn("mountain_car_continuous", "--set=goal_reward=1e8", "--set=action_cost=1e5")
        self.assertGreater(usual["test_return_mean"], 90)
        self.assertGreater(large["test_return_mean"], 90e6)

    def test_rewards_as_they_are(self):
        """Not divided, they are more than the value function learns, and everything stays finite all the same."""
        sets = ["--no-normalize-reward", "--set=action_cost=1e8"]
        self.finite(self.good(*fixed("mountain_car_continuous"), *sets, "--out", self.path())["run"])

    def test_observations(self):
        """CartPole with every length, and so every position and speed, a million times as large: the same task."""
        large = ["--set=half_pole_length_m=5e5", "--set=gravity_mps2=9.8e6", "--set=force_n=1e7", "--set=max_x_m=2.4e6"]
        self.assertGreater(self.learn("cartpole", *large)["test_return_mean"], 450)

    def learn(self, env, *options):
        done = self.good(env, *options, "--hidden=16", "--bind=none", "--device=cpu", "--out", self.path())
        self.finite(done["run"])
        return done

    def finite(self, run):
        for row in rows(self.folder / run):
            for name, value in row.items():
                may_lack = name.startswith("test_") or name in ["return_mean", "length_mean_steps"]
                self.assertTrue(math.isfinite(float(value)) or may_lack, f"{name} is {value} in update {row['update']}")


if __name__ == "__main__":
    harness.main()
