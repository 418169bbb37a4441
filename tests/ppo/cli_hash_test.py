#!/usr/bin/env python3
"""One trajectory everywhere: the same params_hash for any threads, instruction set, lanes and build.

golden_hashes.txt holds what the settings below gave when it was made: a build whose hashes differ computes something
else. `cli_hash_test.py --write` makes it anew; do that only when a change is meant to change results, and say so.
"""

import unittest
from pathlib import Path

import pporun_harness as harness
from pporun_harness import HEAVY, UPDATE_STEPS, PporunTest, fixed

from cli_golden import CudaHashes, GoldenHashes, main

CASES = {
    "plain": ({}, []),
    "shared": ({"hidden": "32", "activation": "relu"}, ["--shared", "--no-clip-value"]),
    "annealed": ({"lr": 0.003, "target-kl": 0.003, "epochs": 4}, ["--lr-anneal", "--clip-anneal"]),
    "nothing normalised": ({"seed": 17, "max-grad-norm": 0},
                           ["--no-normalize-obs", "--no-normalize-reward", "--no-normalize-advantage"]),
    "linear": ({"hidden": "none", "envs": 8, "rollout": 100, "minibatches": 5, "updates": 4}, []),
    "recurrent": ({"hidden": "10", "recurrent": 20, "minibatches": 2}, []),
    "recurrent, shared": ({"hidden": "none", "recurrent": 7, "shards": 4, "rollout": 60, "updates": 4}, ["--shared"]),
    "bf16": ({"hidden": "40,9", "precision": "bf16"}, []),
    "recurrent, bf16": ({"hidden": "10", "recurrent": 20, "minibatches": 2, "precision": "bf16"}, []),
}  # fmt: skip


class HashTest(GoldenHashes, PporunTest):
    GOLDEN = Path(__file__).with_name("golden_hashes.txt")
    CASES = CASES


class Hash(HashTest):
    def test_golden(self):
        self.check_golden_on_cpu(short="linear")

    @unittest.skipIf(harness.SANITIZED, "of no interest to a sanitizer")
    def test_hashes_differ(self):
        """A hash that does not change with a setting would prove nothing."""
        changes = [{}, {"seed": 6}, {"updates": 11}, {"lr": 0.0011}, {"gamma": 0.97}, {"lambda": 0.8}, {"clip": 0.01},
                   {"entropy": 0.1}, {"value-weight": 0.4}, {"max-grad-norm": 0.1}, {"epochs": 3}, {"minibatches": 8},
                   {"beta1": 0.8}, {"beta2": 0.99}, {"adam-epsilon": 1e-3}, {"activation": "relu"},
                   {"shards": 4}, {"target-kl": 1e-4}, {"hidden": "8,16"}, {"hidden": "16"}, {"precision": "bf16"},
                   {"recurrent": 8, "minibatches": 2}, {"recurrent": 9, "minibatches": 2},
                   {"recurrent": 8, "minibatches": 2, "precision": "bf16"}]  # fmt: skip
        flags = ["--lr-anneal", "--clip-anneal", "--no-clip-value", "--shared", "--no-normalize-obs",
                 "--no-normalize-reward", "--no-normalize-advantage"]  # fmt: skip
        hashes = [self.hash(*fixed("cartpole", **c)) for c in changes]
        hashes += [self.hash(*fixed("cartpole"), flag) for flag in flags]
        hashes += [self.hash(*fixed("pendulum")), self.hash(*fixed("pendulum", log_std=0.1))]
        self.assertEqual(len(hashes), len(set(hashes)), hashes)

    def test_threads_lanes_and_instruction_sets(self):
        recurrent = {"recurrent": 18, "envs": 48, "shards": 4, "minibatches": 3, "rollout": 16}
        runs = [recurrent] if harness.SANITIZED else [{}, {"envs": 48, "shards": 2, "rollout": 16}, recurrent]

        def changes_of(env):
            updates = 2 if env in HEAVY else 4
            return [{**run, "steps": updates * run.get("envs", 16) * run.get("rollout", 32)} for run in runs]

        self.check_ways(changes_of)

    def test_tests_and_checkpoints_change_nothing(self):
        expected = self.hash(*fixed("pendulum"))
        self.assertEqual(expected, self.hash(*fixed("pendulum", test_every=1, test_episodes=3, checkpoint_every=1)))
        self.assertEqual(expected, self.hash(*fixed("pendulum", test_every=1000, checkpoint_every=1000)))


class Cuda(CudaHashes, HashTest):
    FEW = f"--steps={4 * UPDATE_STEPS}"

    def test_golden(self):
        quick = [("cartpole", "annealed"), ("pendulum", "shared"), ("parking", "plain"),
                 ("position_only_cartpole", "recurrent"), ("parking", "recurrent, shared"),
                 ("pendulum", "recurrent, bf16")]  # fmt: skip
        # Tests of the policy change nothing, and take most of the time of a small run.
        self.check_golden_on_gpu("--test-every=1000", "--test-episodes=1", quick=lambda env, name: (env, name) in quick,
                                 short=lambda env, name: (env, name) == ("acrobot", "linear"))

    def test_resumed_on_the_other_device(self):
        for first, second in [("cpu", "cuda"), ("cuda", "cpu")]:
            folder = self.path()
            settings = {"recurrent": 5, "minibatches": 2, "test_every": 1000, "test_episodes": 1}
            self.good(*fixed("parking", device=first, updates=2, **settings), "--out", folder)
            resumed = self.good("--resume", folder, f"--device={second}", f"--steps={4 * UPDATE_STEPS}")
            self.assertEqual(self.hash(*fixed("parking", updates=4, **settings)), resumed["params_hash"])


if __name__ == "__main__":
    main(Hash)
