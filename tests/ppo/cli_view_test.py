#!/usr/bin/env python3
"""--eval --html of pporun: what it shares with other trainers (cli_view.py)."""

import pporun_harness as harness
from cli_view import ViewBrowserTests, ViewCudaTests, ViewDataTests, ViewRefusedTests
from pporun_harness import PporunTest, fixed


class PporunViewTest(PporunTest):
    @staticmethod
    def quick(env, **changes):
        # Rollouts of whole envs are what a memory learns from: a shard has two.
        minibatches = 2 if changes.get("recurrent") else 4
        return fixed(env, 1, **{"minibatches": minibatches, "test_every": 1000, "test_episodes": 1, **changes})


class Refused(ViewRefusedTests, PporunViewTest):
    pass


class Data(ViewDataTests, PporunViewTest):
    pass


class Browser(ViewBrowserTests, PporunViewTest):
    SHOWN = ["parking", "pendulum", "mountain_car_continuous", "lunar_lander_continuous"]


class Cuda(ViewCudaTests, PporunViewTest):
    pass


if __name__ == "__main__":
    harness.main()
