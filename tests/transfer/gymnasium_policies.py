#!/usr/bin/env python3
"""Trains a policy for every simulator with esrun and pporun, and records what Gymnasium's own environments make of it.
Run once, in an environment with gymnasium 1.2.3, numpy and safetensors; needs the release build:

    python3 tests/transfer/gymnasium_policies.py tests/data/policies

For each program and simulator, a folder TOOL/SIMULATOR: the run as the program left it (config.json and the last
checkpoint), and gymnasium.json, with the returns of EPISODES episodes that the policy played in Gymnasium. The policy is
evaluated here, by numpy in float64 from the checkpoint alone, as a user would.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

IDS = {
    "cartpole": "CartPole-v1",
    "mountain_car": "MountainCar-v0",
    "mountain_car_continuous": "MountainCarContinuous-v0",
    "acrobot": "Acrobot-v1",
    "pendulum": "Pendulum-v1",
}
EPISODES = 400
SEED = 1000  # of Gymnasium's first episode


class Policy:
    """A frozen policy out of a checkpoint of esrun or pporun; README, "A run's folder", has the formulas."""

    def __init__(self, checkpoint, space):
        tensors = load_file(checkpoint)
        with safe_open(checkpoint, framework="numpy") as file:
            settings = json.loads(file.metadata()["config"])
        self.is_ppo = settings["tool"] == "pporun"
        self.activation = np.tanh if settings["activation"] == "tanh" else lambda x: np.maximum(x, 0)
        self.mean, variance = self.statistics(tensors, settings)
        self.scale = 1 / np.sqrt(np.maximum(variance, 1e-6))
        self.discrete = isinstance(space, gymnasium.spaces.Discrete)
        outputs = int(space.n) if self.discrete else space.shape[0]
        self.space = space
        self.layers = []
        sizes, at = [len(self.mean), *settings["hidden"], outputs], 0
        for size_in, size_out in zip(sizes, sizes[1:]):
            weights = tensors["params"][at : at + size_in * size_out].reshape(size_in, size_out)
            at += size_in * size_out
            self.layers.append((weights.astype(np.float64), tensors["params"][at : at + size_out].astype(np.float64)))
            at += size_out

    def statistics(self, tensors, settings):
        """Mean and variance of the observations that the policy was trained on; 0 and 1 where they are not normalised."""
        if self.is_ppo:
            count, mean, square = tensors["obs_count"][0], tensors["obs_mean"], tensors["obs_square"]
            is_on, variance = settings["normalize_obs"], square / max(count, 1)
        else:
            count = tensors["normalizer_count"][0]
            mean = tensors["normalizer_sum"] / max(count, 1)
            is_on, variance = settings["normalize"], tensors["normalizer_square"] / max(count, 1) - mean**2
        return (mean, variance) if is_on and count > 0 else (0 * mean, 0 * mean + 1)

    def __call__(self, obs):
        x = np.clip((obs - self.mean) * self.scale, -5, 5)
        for weights, biases in self.layers[:-1]:
            x = self.activation(x @ weights + biases)
        weights, biases = self.layers[-1]
        y = x @ weights + biases
        if self.discrete:
            return int(np.argmax(y))
        y = np.clip(y, -1, 1) if self.is_ppo else np.tanh(y)
        return (self.space.low + (self.space.high - self.space.low) * (y + 1) / 2).astype(np.float32)


def play(policy, env, seed):
    """The return of one episode."""
    obs, _ = env.reset(seed=seed)
    total, done = 0.0, False
    while not done:
        obs, reward, terminated, truncated, _ = env.step(policy(obs))
        total += float(reward)
        done = terminated or truncated
    return total


def record(tool, name, folder):
    """Trains, plays, and leaves the fixture in `folder`."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch, "run")
        call = [f"build/bin/{tool}", name, "--hidden=16,16", "--checkpoint-every=1000000", f"--out={run}", "--quiet"]
        subprocess.run([*call, "--device=cpu"], check=True)
        (checkpoint,) = run.glob("checkpoint/gen-*.safetensors")
        env = gymnasium.make(IDS[name])
        policy = Policy(checkpoint, env.action_space)
        returns = [play(policy, env, SEED + i) for i in range(EPISODES)]
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "checkpoint").mkdir(parents=True)
        shutil.copy(run / "config.json", folder)
        shutil.copy(checkpoint, folder / "checkpoint")
    text = json.dumps({"gymnasium": gymnasium.__version__, "id": IDS[name], "first_seed": SEED, "returns": returns})
    (folder / "gymnasium.json").write_text(text + "\n", encoding="utf-8")
    print(f"{tool} {name}: {np.mean(returns):.2f} +- {np.std(returns) / EPISODES**0.5:.2f} in Gymnasium")


def main():
    for tool in ["esrun", "pporun"]:
        for name in IDS:
            record(tool, name, Path(sys.argv[1], tool, name))


if __name__ == "__main__":
    main()
