#!/usr/bin/env python3
"""Trains a policy for every simulator with esrun and pporun, and records what Gymnasium's own environments make of it.
Run once, in an environment with gymnasium 1.2.3; needs the release build:

    python3 tests/transfer/gymnasium_policies.py tests/data/policies

For each program and simulator, a folder TOOL/SIMULATOR: the run as the program left it (config.json and the last
checkpoint), and gymnasium.json, with the returns of EPISODES episodes that the policy played in Gymnasium. The policy is
evaluated by checkpoint_policy.py.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium
import numpy as np
from checkpoint_policy import Policy

IDS = {
    "cartpole": "CartPole-v1",
    "mountain_car": "MountainCar-v0",
    "mountain_car_continuous": "MountainCarContinuous-v0",
    "acrobot": "Acrobot-v1",
    "pendulum": "Pendulum-v1",
}
EPISODES = 400
SEED = 1000  # of Gymnasium's first episode


def policy_of(checkpoint, space):
    if isinstance(space, gymnasium.spaces.Discrete):
        return Policy(checkpoint, int(space.n))
    return Policy(checkpoint, space.shape[0], (space.low, space.high))


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


def record(tool, name, folder):
    """Trains, plays, and leaves the fixture in `folder`."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch, "run")
        call = [f"build/bin/{tool}", name, "--hidden=16,16", "--checkpoint-every=1000000", f"--out={run}", "--quiet"]
        subprocess.run([*call, "--device=cpu"], check=True)
        (checkpoint,) = run.glob("checkpoint/gen-*.safetensors")
        env = gymnasium.make(IDS[name])
        policy = policy_of(checkpoint, env.action_space)
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
