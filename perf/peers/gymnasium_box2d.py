"""Gymnasium's LunarLander and BipedalWalkers under their own heuristics, beside Shoal's: returns, and steps per second
of CPU time, round after round.

usage: gymnasium_box2d.py PERF_BOX2D_PROGRAM [EPISODES [SIMULATOR...]]. Prints for each simulator the lines of
perf/perf.h: case, min, median, unit, repeats; then both means, and the p-value of Kolmogorov and Smirnov's test that the
returns are of one distribution.
"""

import math
import subprocess
import sys
import time
import warnings

import gymnasium
import numpy as np
from gymnasium.envs.box2d.bipedal_walker import BipedalWalkerHeuristics
from gymnasium.envs.box2d.lunar_lander import heuristic

from gymnasium_batch import line

ROUNDS = 6
IDS = {
    "lunar_lander": "LunarLander-v3",
    "bipedal_walker": "BipedalWalker-v3",
    "bipedal_walker_hardcore": "BipedalWalkerHardcore-v3",
}


def pilot_of(env):
    """What maps an episode's observations to actions."""
    if env.spec.id == IDS["lunar_lander"]:
        return lambda obs: heuristic(env, obs)
    walker = BipedalWalkerHeuristics()
    return lambda obs: walker.step_heuristic(obs).copy()


def gymnasium_episodes(env, seeds):
    """Returns of the episodes, steps/s of env.step, steps/s of Box2D's part of it."""
    returns, steps, env_s, world_s = [], 0, 0.0, [0.0]
    inner = env.unwrapped
    for seed in seeds:
        obs, _ = env.reset(seed=int(seed))

        def timed(*args, world=inner.world):
            start = time.process_time()
            type(world).Step(world, *args)
            world_s[0] += time.process_time() - start

        inner.world.Step = timed
        total, done, pilot = 0.0, False, pilot_of(env)
        while not done:
            action = pilot(obs)
            start = time.process_time()
            obs, reward, terminated, truncated, _ = env.step(action)
            env_s += time.process_time() - start
            total += reward
            steps += 1
            done = terminated or truncated
        returns.append(total)
    return returns, steps / env_s, steps / world_s[0]


def shoal_episodes(program, name, count, seed):
    out = subprocess.run([program, name, str(count), str(seed)], capture_output=True, text=True, check=True).stdout
    values = [float(x) for x in out.split()]
    return values[:-1], values[-1]


def kolmogorov_smirnov(a, b):
    """The largest distance of two samples' distribution functions, and its p-value (the asymptotic series)."""
    a, b = np.sort(a), np.sort(b)
    both = np.concatenate([a, b])
    distance = np.abs(np.searchsorted(a, both, "right") / len(a) - np.searchsorted(b, both, "right") / len(b)).max()
    n = math.sqrt(len(a) * len(b) / (len(a) + len(b)))
    x = (n + 0.12 + 0.11 / n) * distance
    p = 2 * sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 101))
    return distance, min(1.0, max(0.0, p))


def compare(program, name, episodes):
    env = gymnasium.make(IDS[name], disable_env_checker=True)
    rng = np.random.default_rng(5)
    theirs, ours, env_rates, world_rates, our_rates = [], [], [], [], []
    for number in range(ROUNDS):
        returns, env_rate, world_rate = gymnasium_episodes(env, rng.integers(2**31, size=episodes // ROUNDS))
        theirs += returns
        env_rates.append(env_rate * 1e-3)
        world_rates.append(world_rate * 1e-3)
        returns, rate = shoal_episodes(program, name, episodes // ROUNDS, number + 1)
        ours += returns
        our_rates.append(rate * 1e-3)
    line(f"{name} batch", our_rates, "kstep/s")
    line(f"Gymnasium's {IDS[name]}, env.step", env_rates, "kstep/s")
    line(f"Gymnasium's {IDS[name]}, Box2D's part of it", world_rates, "kstep/s")
    line(f"{name} batch / Box2D's part", [a / b for a, b in zip(our_rates, world_rates)], "x")
    line(f"{name} batch / env.step", [a / b for a, b in zip(our_rates, env_rates)], "x")
    distance, p = kolmogorov_smirnov(ours, theirs)
    print(f"returns of {len(ours)} and {len(theirs)} episodes: {np.mean(ours):.1f} +- {np.std(ours) / len(ours)**0.5:.1f} "
          f"and {np.mean(theirs):.1f} +- {np.std(theirs) / len(theirs)**0.5:.1f}; largest distance {distance:.3f}, "
          f"p = {p:.3f}")  # fmt: skip


def main():
    warnings.simplefilter("ignore")
    program, episodes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 600
    for name in sys.argv[3:] or IDS:
        compare(program, name, episodes)


if __name__ == "__main__":
    main()
