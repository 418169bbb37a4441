#!/usr/bin/env python3
"""One trajectory everywhere: the same params_hash for any threads, instruction set, lanes and build.

golden_hashes.txt holds what the settings below gave when it was made: a build whose hashes differ computes something
else. `cli_hash_test.py --write` makes it anew; do that only when a change is meant to change results, and say so.
`cli_hash_test.py --list` prints simulator, case, hash and esrun's options of each, with tabs between: for machines
without Python.
"""

import os
import unittest
from pathlib import Path

import esrun_harness as harness
from esrun_harness import HEAVY, EsrunTest, fixed

from cli_golden import CudaHashes, GoldenHashes, main

CASES = {
    "plain": ({}, []),
    "one episode": ({"episodes": 1, "pop": 70, "seed": 17}, []),
    "own episodes": ({"hidden": "20", "activation": "relu"}, ["--no-common-random", "--no-normalize"]),
    "short": ({"pop": 64, "generations": 2, "time_limit": 50}, []),
    "linear": ({"hidden": "none", "pop": 600, "episodes": 1, "generations": 4}, []),
    "recurrent": ({"hidden": "10", "recurrent": 20, "pop": 70}, []),
    "bf16": ({"hidden": "40,9", "precision": "bf16"}, []),
    "recurrent, bf16": ({"hidden": "10", "recurrent": 20, "pop": 70, "precision": "bf16"}, []),
    "noise table": ({"noise": "table", "noise_table": 4096, "pop": 70}, []),
}


class HashTest(GoldenHashes, EsrunTest):
    GOLDEN = Path(__file__).with_name("golden_hashes.txt")
    CASES = CASES


class Hash(HashTest):
    def test_golden(self):
        self.check_golden_on_cpu(short="short")

    @unittest.skipIf(harness.SANITIZED, "of no interest to a sanitizer")
    def test_hashes_differ(self):
        """A hash that does not change with a setting would prove nothing."""
        changes = [{}, {"seed": 6}, {"generations": 11}, {"lr": 0.051}, {"pop": 34}, {"episodes": 3}, {"sigma": 0.11},
                   {"weight-decay": 0.006}, {"hidden": "8,16"}, {"activation": "relu"}, {"precision": "bf16"},
                   {"recurrent": 8}, {"recurrent": 9}, {"recurrent": 8, "precision": "bf16"}, {"noise": "table", "noise_table": 640},
                   {"noise": "table", "noise_table": 704}, {"noise": "table", "noise_table": 640, "seed": 6}]  # fmt: skip
        flags = ["--no-common-random", "--no-normalize"]
        hashes = [self.hash(*fixed("cartpole", **c)) for c in changes]
        hashes += [self.hash(*fixed("cartpole"), flag) for flag in flags]
        self.assertEqual(len(hashes), len(set(hashes)), hashes)

    def test_threads_lanes_and_instruction_sets(self):
        # A few members with many episodes each are cut up in another way than many members with few.
        runs = [{}] if harness.SANITIZED else [{}, {"pop": 2, "episodes": 37}]
        self.check_ways(lambda env: [{**run, "generations": 1 if env in HEAVY else 4} for run in runs])

    def test_more_threads_than_cores(self):
        threads = len(os.sched_getaffinity(0)) + 3
        done = self.call(*fixed("cartpole", threads=threads), "--json", "--out", self.path())
        self.assertEqual(0, done.code, done)
        self.assertRegex(done.err, rf"warning: {threads} threads, but this process may use \d+ cores?")
        self.assertEqual(self.hash(*fixed("cartpole")), done.json["params_hash"])

    def test_pinned_to_cores(self):
        self.assertEqual(self.hash(*fixed("cartpole")), self.hash(*fixed("cartpole", bind="core")))


class Cuda(CudaHashes, HashTest):
    FEW = "--generations=4"

    def test_golden(self):
        def short(env, name):
            return name == "short" and env not in HEAVY

        def quick(env, name):
            return env == "cartpole" and name != "short" or (env, name) == ("position_only_cartpole", "recurrent")

        # Whole episodes of a heavy simulator take minutes each.
        self.check_golden_on_gpu(quick=quick, short=short, most=lambda env, name: env not in HEAVY or name == "short")

    def test_resumed_on_the_other_device(self):
        for first, second in [("cpu", "cuda"), ("cuda", "cpu")]:
            folder = self.path()
            self.good(*fixed("parking", device=first, recurrent=5, generations=3), "--out", folder)
            resumed = self.good("--resume", folder, f"--device={second}", "--generations=6")
            self.assertEqual(self.hash(*fixed("parking", recurrent=5, generations=6)), resumed["params_hash"])


if __name__ == "__main__":
    main(Hash)
