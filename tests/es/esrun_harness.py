"""What the command-line tests of esrun share: its settings, and what all trainers' tests share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cli_harness import *  # noqa: E402,F403
from cli_harness import TrainerTest, options, program  # noqa: E402
from workers_harness import WorkersTests, faults_program  # noqa: E402

ESRUN = program("esrun")
ESRUN_FAULTS = faults_program("esrun")

# Every setting that a hash depends on, so that no test depends on the defaults, which may be tuned.
FIXED = {
    "pop": 32, "episodes": 2, "hidden": "16,8", "recurrent": 0, "activation": "tanh", "precision": "float32",
    "noise": "counter", "sigma": 0.1, "sigma-decay": 0.99, "sigma-min": 0.05, "lr": 0.05, "lr-decay": 0.98, "lr-min": 0.01,
    "beta1": 0.9, "beta2": 0.999, "weight-decay": 0.005, "seed": 5, "generations": 12, "checkpoint-every": 3, "test-every": 4, "test-episodes": 8,
    "bind": "none", "threads": 2, "device": "cpu",
}  # fmt: skip


def fixed(env, **changes):
    """Options of a small run that always does the same; `changes` replace some (None leaves one out)."""
    return options(env, ["--no-stop-at-target", "--common-random", "--normalize"], FIXED, changes)


class EsrunTest(TrainerTest):
    TOOL = "esrun"
    STEP = "generation"
    LENGTH, DONE = "generations", 12
    fixed = staticmethod(fixed)


class WorkersTest(WorkersTests, EsrunTest):
    """A test of runs with several workers."""
