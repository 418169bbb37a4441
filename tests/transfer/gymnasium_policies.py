#!/usr/bin/env python3
"""Trains a policy for every simulator with esrun and pporun, and records what Gymnasium's own environments make of it.
Run once, in an environment with gymnasium[box2d] 1.2.3; needs the release build:

    python3 tests/transfer/gymnasium_policies.py tests/data/policies [TOOL/SIMULATOR...]

For each program and simulator, a folder TOOL/SIMULATOR: the run as the program left it (config.json and the last
checkpoint), and gymnasium.json, with the returns of the episodes that the policy played in Gymnasium. The policy is that of
checkpoint_policy.py, in numpy's float32. Printed are mean returns and their standard errors, there and by --eval.
"""

import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium
import numpy as np
from checkpoint_policy import Policy

CLASSIC, BOX2D = 400, 100  # episodes
SMALL = ["--hidden=16,16"]
# The environment of each, episodes, and settings beside the defaults.
SIMULATORS = {
    "cartpole": ("CartPole-v1", CLASSIC, SMALL),
    "mountain_car": ("MountainCar-v0", CLASSIC, SMALL),
    "mountain_car_continuous": ("MountainCarContinuous-v0", CLASSIC, SMALL),
    "acrobot": ("Acrobot-v1", CLASSIC, SMALL),
    "pendulum": ("Pendulum-v1", CLASSIC, SMALL),
    "lunar_lander": ("LunarLander-v3", BOX2D, []),
    "bipedal_walker": ("BipedalWalker-v3", BOX2D, ["--log-std=-1"]),
}
# BipedalWalker takes evolution too long.
RUNS = [f"{tool}/{name}" for tool in ["esrun", "pporun"] for name in SIMULATORS if (tool, name) != ("esrun", "bipedal_walker")]
SEED = 1000  # of Gymnasium's first episode


class ArrayPolicy(Policy):
    """The same policy, without a memory, on arrays of float32."""

    def __init__(self, checkpoint, outputs, bounds=None):
        super().__init__(checkpoint, outputs, bounds)
        self.shift, self.factor = np.array(self.mean, np.float32), np.array(self.scale, np.float32)
        self.layers = [tuple(np.array(part, np.float32) for part in layer) for layer in [*self.hidden, self.head]]

    def outputs(self, obs):
        x = np.clip((obs - self.shift) * self.factor, np.float32(-5), np.float32(5))
        for weights, biases in self.layers[:-1]:
            sums = weights @ x + biases
            x = np.tanh(sums) if self.activation is math.tanh else np.maximum(sums, 0)
        weights, biases = self.layers[-1]
        return (weights @ x + biases).tolist()


def policy_of(checkpoint, space):
    if isinstance(space, gymnasium.spaces.Discrete):
        return ArrayPolicy(checkpoint, int(space.n))
    return ArrayPolicy(checkpoint, space.shape[0], (space.low, space.high))


def play(policy, env, seed):
    """The return of one episode."""
    obs, _ = env.reset(seed=seed)
    policy.reset()
    total, done = 0.0, False
    while not done:
        action = policy(obs)
        action = action if policy.bounds is None else np.array(action, np.float32)
        obs, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        done = terminated or truncated
    return total


def tested(tool, run, episodes):
    """Mean return of the run's own test, and its standard error."""
    call = [f"build/bin/{tool}", "--eval", str(run), f"--test-episodes={episodes}", "--device=cpu", "--json", "--quiet"]
    result = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
    return result["test_return_mean"], result["test_return_std"] / episodes**0.5


def record(tool, name, folder):
    """Trains, plays, and leaves the fixture in `folder`."""
    env_id, episodes, settings = SIMULATORS[name]
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch, "run")
        call = [f"build/bin/{tool}", name, *settings, "--checkpoint-every=1000000", f"--out={run}", "--quiet"]
        subprocess.run([*call, "--device=cpu"], check=True)
        (checkpoint,) = run.glob("checkpoint/gen-*.safetensors")
        ours = tested(tool, run, episodes)
        env = gymnasium.make(env_id)
        policy = policy_of(checkpoint, env.action_space)
        returns = [play(policy, env, SEED + i) for i in range(episodes)]
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "checkpoint").mkdir(parents=True)
        shutil.copy(run / "config.json", folder)
        shutil.copy(checkpoint, folder / "checkpoint")
    text = json.dumps({"gymnasium": gymnasium.__version__, "id": env_id, "first_seed": SEED, "returns": returns})
    (folder / "gymnasium.json").write_text(text + "\n", encoding="utf-8")
    print(f"{tool} {name}, {episodes} episodes: {np.mean(returns):.2f} +- {np.std(returns) / episodes**0.5:.2f} in Gymnasium, "
          f"{ours[0]:.2f} +- {ours[1]:.2f} here", flush=True)  # fmt: skip


def main():
    for run in sys.argv[2:] or RUNS:
        record(*run.split("/"), Path(sys.argv[1], run))


if __name__ == "__main__":
    main()
