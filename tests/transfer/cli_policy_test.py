#!/usr/bin/env python3
"""Recurrent policies out of checkpoints, in float32 and bfloat16, as checkpoint_policy.py reads them: the state that they
reach is the trainer's, and in a CartPole of their own they do as well as in Shoal's."""

import math
import random
import statistics
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import cli_harness as harness  # noqa: E402
from checkpoint_policy import Policy, bfloat16, identity, read_checkpoint  # noqa: E402
from cli_harness import TrainerTest  # noqa: E402

EPISODES = 200
PRECISIONS = ["float32", "bf16"]


def play(policy, rng):
    """One episode of PositionOnlyCartPole; returns how long it was."""
    x, x_dot, theta, theta_dot = (rng.uniform(-0.05, 0.05) for _ in range(4))
    policy.reset()
    for step in range(1, 501):
        force = 10.0 if policy([x, theta]) == 1 else -10.0
        sin, cos = math.sin(theta), math.cos(theta)
        push = (force + 0.05 * theta_dot**2 * sin) / 1.1
        theta_acc = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        x_acc = push - 0.05 * theta_acc * cos / 1.1
        x, x_dot = x + 0.02 * x_dot, x_dot + 0.02 * x_acc
        theta, theta_dot = theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc
        if abs(x) > 2.4 or abs(theta) > 12 * math.pi / 180:
            return step
    return 500


def forgetful(policy):
    """Makes a policy begin every step without memory."""
    outputs = policy.outputs

    def outputs_from_zero(obs):
        policy.reset()
        return outputs(obs)

    policy.outputs = outputs_from_zero


class Returns:
    """Mixed into a TrainerTest: partly trained policies, whose returns tell right from wrong. Seeds are fixed, so that no
    test fails by chance."""

    HALF_WAY = ""  # the option that ends the training there

    def apart(self, precision, change):
        """How many standard errors the mean return is from Shoal's once `change` was made to the policy."""
        run = self.path()
        tested = self.good("position_only_cartpole", "--hidden=6", "--recurrent=8", f"--precision={precision}", "--seed=3",
                           "--no-stop-at-target", self.HALF_WAY, "--test-every=1000", "--checkpoint-every=1000",
                           f"--test-episodes={10 * EPISODES}", "--device=cpu", "--bind=none", "--out", run)  # fmt: skip
        (checkpoint,) = run.glob("checkpoint/gen-*.safetensors")
        policy = Policy(checkpoint, 2)
        change(policy)
        rng = random.Random(7)
        lengths = [play(policy, rng) for _ in range(EPISODES)]
        error = math.hypot(statistics.stdev(lengths), tested["test_return_std"] / math.sqrt(10)) / math.sqrt(EPISODES)
        return abs(statistics.mean(lengths) - tested["test_return_mean"]) / error

    def test_returns_agree(self):
        for precision in PRECISIONS:
            with self.subTest(precision=precision):
                self.assertLessEqual(self.apart(precision, identity), 2.0)

    def test_without_memory_they_disagree(self):
        """What the comparison can tell apart."""
        for precision in PRECISIONS:
            with self.subTest(precision=precision):
                self.assertGreater(self.apart(precision, forgetful), 4.0)


class Esrun(Returns, TrainerTest):
    TOOL = "esrun"
    HALF_WAY = "--generations=40"


class Pporun(Returns, TrainerTest):
    TOOL = "pporun"
    HALF_WAY = "--steps=80000"


class State(TrainerTest):
    """A checkpoint of PPO ends with each env's observation and recurrent states, the actor's and the critic's: with
    rollouts of one step, those of the next checkpoint follow from them."""

    TOOL = "pporun"
    ENVS, OBS, UNITS = 64, 2, 9

    def envs(self, file):
        """(observation, the actor's state) of every env."""
        words = read_checkpoint(file)[1]["envs"]
        floats = struct.unpack(f"<{len(words)}f", struct.pack(f"<{len(words)}I", *words))
        size = len(words) // self.ENVS
        for last in range(size, len(words) + 1, size):
            at = last - 2 * self.UNITS
            yield floats[at - self.OBS : at], floats[at : at + self.UNITS]

    def errors(self, precision, activation, change):
        """Of each unit of the envs whose episode goes on."""
        run = self.path()
        self.good("position_only_cartpole", f"--envs={self.ENVS}", "--rollout=1", "--minibatches=1", "--shards=1",
                  f"--steps={30 * self.ENVS}", "--hidden=17,6", f"--recurrent={self.UNITS}", f"--precision={precision}",
                  f"--activation={activation}", "--checkpoint-every=1", "--test-every=1000", "--device=cpu", "--bind=none",
                  "--out", run)  # fmt: skip
        before, after = sorted(run.glob("checkpoint/gen-*.safetensors"))
        policy = Policy(before, 2)
        change(policy)
        errors = []
        for (obs, state), (_, expected) in zip(self.envs(before), self.envs(after)):
            policy.state = state
            policy.outputs(obs)
            if any(expected):
                errors += [abs(x - y) for x, y in zip(policy.state, expected)]
        self.assertGreater(len(errors), self.ENVS * self.UNITS // 2)
        return errors

    def test_is_the_trainers(self):
        for precision in PRECISIONS:
            for activation in ["tanh", "relu"]:
                with self.subTest(precision=precision, activation=activation):
                    self.assertLess(max(self.errors(precision, activation, identity)), 1e-6)

    def test_without_rounding_it_is_another(self):
        """What the comparison can tell apart."""
        self.assertGreater(max(self.errors("bf16", "tanh", lambda policy: setattr(policy, "round", identity))), 1e-4)


class Bfloat16(unittest.TestCase):
    def test_rounds_to_nearest_even(self):
        """Eight bits of significand, which Python's own rounding, to even, gives as well."""
        rng = random.Random(harness.SEED)
        values = [rng.gauss(0, 1) * 2.0 ** rng.randrange(-30, 30) for _ in range(1000)]
        values += [sign * (128 + k + half) / 128 for sign in [-1, 1] for k in range(128) for half in [0, 0.5]]
        for x in values:
            (x,) = struct.unpack("<f", struct.pack("<f", x))
            significand, exponent = math.frexp(x)
            self.assertEqual(math.ldexp(round(significand * 256), exponent - 8), bfloat16(x))


if __name__ == "__main__":
    harness.main()
