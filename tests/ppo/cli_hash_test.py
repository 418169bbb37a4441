#!/usr/bin/env python3
"""One trajectory everywhere: the same params_hash for any threads, instruction set, lanes and build.

golden_hashes.txt holds what the settings below gave when it was made: a build whose hashes differ computes something
else. `cli_hash_test.py --write` makes it anew; do that only when a change is meant to change results, and say so.
"""

import os
import sys
import unittest
from pathlib import Path

import pporun_harness as harness
from pporun_harness import SIMULATORS, UPDATE_STEPS, PporunTest, fixed

GOLDEN = Path(__file__).with_name("golden_hashes.txt")

CASES = {
    "plain": ({}, []),
    "shared": ({"hidden": "32", "activation": "relu"}, ["--shared", "--no-clip-value"]),
    "annealed": ({"lr": 0.003, "target-kl": 0.003, "epochs": 4}, ["--lr-anneal", "--clip-anneal"]),
    "nothing normalised": ({"seed": 17, "max-grad-norm": 0},
                           ["--no-normalize-obs", "--no-normalize-reward", "--no-normalize-advantage"]),
    "linear": ({"hidden": "none", "envs": 8, "rollout": 100, "minibatches": 5, "updates": 4}, []),
    "recurrent": ({"hidden": "10", "recurrent": 20, "minibatches": 2}, []),
    "recurrent, shared": ({"hidden": "none", "recurrent": 7, "shards": 4, "rollout": 60, "updates": 4}, ["--shared"]),
}  # fmt: skip
RANDOMIZE = {
    "cartpole": "pole_mass_kg=0.05:0.2", "mountain_car": "force=0.0008:0.0012",
    "mountain_car_continuous": "power=0.001:0.002", "acrobot": "link1_mass_kg=0.8:1.2", "pendulum": "mass_kg=0.8:1.2",
    "position_only_cartpole": "pole_mass_kg=0.05:0.2", "parking": "thrust_mps2=1:3",
}  # fmt: skip


def cases():
    """(env, case, options) of every golden hash."""
    for env in SIMULATORS:
        for name, (changes, flags) in CASES.items():
            yield env, name, fixed(env, **changes) + flags
        yield env, "randomized", fixed(env) + ["--randomize=" + RANDOMIZE[env]]


def read_golden():
    golden = {}
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            env, name, value = line.split("\t")
            golden[env, name] = value
    return golden


class HashTest(PporunTest):
    def hash(self, *args):
        return self.good(*args, "--out", self.path())["params_hash"]

    def check_golden(self, *more, wanted=lambda env, name: True):
        golden = read_golden()
        self.assertEqual([(env, name) for env, name, _ in cases()], list(golden))
        for env, name, args in cases():
            if wanted(env, name):
                with self.subTest(env=env, case=name):
                    self.assertEqual(golden[env, name], self.hash(*args, *more))


class Hash(HashTest):
    def test_golden(self):
        self.check_golden()

    def write_golden(self):
        lines = ["# simulator, case of cli_hash_test.py, params_hash; made by cli_hash_test.py --write"]
        lines += [f"{env}\t{name}\t{self.hash(*args)}" for env, name, args in cases()]
        GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def test_hashes_differ(self):
        """A hash that does not change with a setting would prove nothing."""
        changes = [{}, {"seed": 6}, {"updates": 11}, {"lr": 0.0011}, {"gamma": 0.97}, {"lambda": 0.8}, {"clip": 0.01},
                   {"entropy": 0.1}, {"value-weight": 0.4}, {"max-grad-norm": 0.1}, {"epochs": 3}, {"minibatches": 8},
                   {"beta1": 0.8}, {"beta2": 0.99}, {"adam-epsilon": 1e-3}, {"activation": "relu"},
                   {"recurrent": 8, "minibatches": 2}, {"recurrent": 9, "minibatches": 2}]  # fmt: skip
        flags = ["--lr-anneal", "--clip-anneal", "--shared", "--no-normalize-obs", "--no-normalize-reward",
                 "--no-normalize-advantage"]  # fmt: skip
        hashes = [self.hash(*fixed("cartpole", **c)) for c in changes]
        hashes += [self.hash(*fixed("cartpole"), flag) for flag in flags]
        hashes += [self.hash(*fixed("pendulum")), self.hash(*fixed("pendulum", log_std=0.1))]
        self.assertEqual(len(hashes), len(set(hashes)), hashes)

    def test_threads_lanes_and_instruction_sets(self):
        isas = [isa for isa in ["baseline", "v3", "v4"] if self.call("--dry-run", *fixed("cartpole", isa=isa)).code == 0]
        self.assertIn("baseline", isas)
        print(f"instruction sets: {' '.join(isas)}")
        for env in SIMULATORS:
            recurrent = {"recurrent": 18, "envs": 48, "shards": 4, "minibatches": 3, "rollout": 16}
            for changes in [recurrent] if harness.SANITIZED else [{}, {"envs": 48, "shards": 2, "rollout": 16}, recurrent]:
                changes = {**changes, "steps": 4 * changes.get("envs", 16) * changes.get("rollout", 32)}
                expected = self.hash(*fixed(env, threads=1, lanes=1, isa="baseline", **changes))
                for i, isa in enumerate(isas):
                    for j, lanes in enumerate([1, 8, 16]):
                        threads = 2 - (i + j) % 2
                        with self.subTest(env=env, isa=isa, lanes=lanes, threads=threads, changes=changes):
                            args = fixed(env, threads=threads, lanes=lanes, isa=isa, **changes)
                            self.assertEqual(expected, self.hash(*args))
                self.assertEqual(expected, self.hash(*fixed(env, threads=3, **changes)))

    def test_tests_and_checkpoints_change_nothing(self):
        expected = self.hash(*fixed("pendulum"))
        self.assertEqual(expected, self.hash(*fixed("pendulum", test_every=1, test_episodes=3, checkpoint_every=1)))
        self.assertEqual(expected, self.hash(*fixed("pendulum", test_every=1000, checkpoint_every=1000)))


class Cuda(HashTest):
    """The same hashes on a GPU, a real one or a virtual one."""

    def setUp(self):
        super().setUp()
        done = self.call(*fixed("cartpole", device="cuda"), "--dry-run")
        if done.code != 0 and os.environ.get("SHOAL_TEST_CUDA") != "required":
            self.skipTest(done.err)
        self.assertEqual(0, done.code, done)

    def test_golden(self):
        """All of them with SHOAL_TEST_LONG, which takes minutes on a virtual GPU."""
        every = os.environ.get("SHOAL_TEST_LONG") == "1"
        quick = [("cartpole", "annealed"), ("pendulum", "shared"), ("acrobot", "linear")]
        # Tests of the policy change nothing, and take most of the time of a small run.
        self.check_golden("--device=cuda", "--test-every=1000", "--test-episodes=1",
                          wanted=lambda env, name: every or (env, name) in quick)  # fmt: skip

    def test_resumed_on_the_other_device(self):
        for first, second in [("cpu", "cuda"), ("cuda", "cpu")]:
            folder, tests = self.path(), {"test_every": 1000, "test_episodes": 1}
            self.good(*fixed("pendulum", device=first, updates=2, **tests), "--out", folder)
            resumed = self.good("--resume", folder, f"--device={second}", f"--steps={4 * UPDATE_STEPS}")
            self.assertEqual(self.hash(*fixed("pendulum", updates=4, **tests)), resumed["params_hash"])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        unittest.TextTestRunner().run(Hash("write_golden"))
    else:
        harness.main()
