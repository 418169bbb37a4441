#!/usr/bin/env python3
"""Policies that Gymnasium's own environments were driven with (gymnasium_policies.py recorded them) do as well in Shoal's
simulators: mean returns agree within two standard errors of their difference."""

import json
import math
import shutil
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import cli_harness as harness  # noqa: E402
from cli_harness import TrainerTest  # noqa: E402

POLICIES = Path(__file__).resolve().parents[1] / "data" / "policies"
# The simulators that Gymnasium has; of each another one, in which the same policy does differently; and episodes here.
OTHER = {
    "cartpole": ("half_pole_length_m=2", 2000),
    "mountain_car": ("force=0.0011", 2000),
    "mountain_car_continuous": ("power=0.0012", 2000),
    "acrobot": ("link2_mass_kg=1.3", 2000),
    "pendulum": ("gravity_mps2=13", 2000),
    "lunar_lander": ("main_engine_power=9", 200),
    "bipedal_walker": ("motor_torque_nm=50", 200),
}


class Transfer:
    """Mixed into a TrainerTest."""

    def apart(self, env, *options):
        """How many standard errors Shoal's mean return is from the one in Gymnasium."""
        recorded, episodes = POLICIES / self.TOOL / env, OTHER[env][1]
        run = self.path()
        shutil.copytree(recorded, run)
        theirs = json.loads((recorded / "gymnasium.json").read_text(encoding="utf-8"))["returns"]
        ours = self.good("--eval", run, f"--test-episodes={episodes}", "--device=cpu", "--bind=none", *options)
        self.assertEqual(episodes, ours["test_episodes"])
        error = math.sqrt(statistics.variance(theirs) / len(theirs) + ours["test_return_std"] ** 2 / episodes)
        difference = abs(ours["test_return_mean"] - statistics.mean(theirs))
        return difference / error if error > 0 else math.inf if difference > 0 else 0.0

    def test_returns_agree(self):
        for env in self.ENVS:
            with self.subTest(env=env):
                self.assertLessEqual(self.apart(env), 2.0)

    def test_another_simulator_disagrees(self):
        """What the comparison can tell apart."""
        for env in self.ENVS:
            with self.subTest(env=env):
                self.assertGreater(self.apart(env, f"--set={OTHER[env][0]}"), 4.0)


class Esrun(Transfer, TrainerTest):
    TOOL = "esrun"
    ENVS = [env for env in OTHER if env != "bipedal_walker"]  # which takes evolution too long


class Pporun(Transfer, TrainerTest):
    TOOL = "pporun"
    ENVS = list(OTHER)


if __name__ == "__main__":
    harness.main()
