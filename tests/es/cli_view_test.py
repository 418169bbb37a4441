#!/usr/bin/env python3
"""--eval --html of esrun: what it shares with other trainers (cli_view.py)."""

import esrun_harness as harness
from cli_view import ViewBrowserTests, ViewCudaTests, ViewDataTests, ViewRefusedTests
from esrun_harness import EsrunTest, fixed


class EsrunViewTest(EsrunTest):
    @staticmethod
    def quick(env, **changes):
        return fixed(env, **{"pop": 4, "episodes": 1, "generations": 1, "test_every": 1000, "test_episodes": 1, **changes})


class Refused(ViewRefusedTests, EsrunViewTest):
    pass


class Data(ViewDataTests, EsrunViewTest):
    pass


class Browser(ViewBrowserTests, EsrunViewTest):
    SHOWN = ["cartpole", "acrobot", "mountain_car", "lunar_lander", "position_only_cartpole"]


class Cuda(ViewCudaTests, EsrunViewTest):
    pass


if __name__ == "__main__":
    harness.main()
