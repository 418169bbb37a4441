"""What the command-line tests of pporun share: its settings, and what all trainers' tests share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cli_harness import *  # noqa: E402,F403
from cli_harness import TrainerTest, options, program  # noqa: E402
from workers_harness import WorkersTests  # noqa: E402

PPORUN = program("pporun")

# Every setting that a hash depends on, so that no test depends on the defaults, which may be tuned.
UPDATE_STEPS = 16 * 32
FIXED = {
    "envs": 16, "rollout": 32, "steps": 12 * UPDATE_STEPS, "epochs": 2, "minibatches": 4, "shards": 8, "lr": 0.001,
    "gamma": 0.98, "lambda": 0.9, "clip": 0.2, "entropy": 0.01, "value-weight": 0.5, "max-grad-norm": 0.5,
    "target-kl": 0, "hidden": "16,8", "recurrent": 0, "activation": "tanh", "precision": "float32",
    "log-std": -0.5, "beta1": 0.9, "beta2": 0.999, "adam-epsilon": 1e-5, "seed": 5, "checkpoint-every": 3, "test-every": 4, "test-episodes": 8, "bind": "none",
    "threads": 2, "device": "cpu",
}  # fmt: skip
FLAGS = ["--no-stop-at-target", "--no-lr-anneal", "--no-clip-anneal", "--clip-value", "--no-shared", "--normalize-obs",
         "--normalize-reward", "--normalize-advantage"]  # fmt: skip


def fixed(env, updates=None, **changes):
    """Options of a small run that always does the same; `changes` replace some (None leaves one out)."""
    if updates is not None:
        changes["steps"] = updates * UPDATE_STEPS
    return options(env, FLAGS, FIXED, changes)


class PporunTest(TrainerTest):
    TOOL = "pporun"
    STEP = "update"
    LENGTH, DONE = "steps", 12 * UPDATE_STEPS
    fixed = staticmethod(fixed)


class WorkersTest(WorkersTests, PporunTest):
    """A test of runs with several workers."""
