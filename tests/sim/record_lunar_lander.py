#!/usr/bin/env python3
"""Records tests/data/lunar_lander.parity from the real Gymnasium. Run once, in an environment with gymnasium[box2d] 1.2.3
and numpy 2.2.6, and with box2d_probe.so, which box2d_probe.cc says how to make:

    python3 tests/sim/record_lunar_lander.py box2d_probe.so tests/data

One line of JSON, a newline, and the arrays it names, as in record_gymnasium.py; box2d_recording.py describes those of the
steps. Each episode is in an environment of its own. One in which the bodies fall asleep goes on for a while.

  terrain                  [episode][11]
  policy                   0 heuristic, 1 random, 2 each half of the time, 3 falling, 4 spinning, 5 trained by pporun,
                           6 trained by esrun; + 8 continuous actions, + 16 wind
  action                   of discrete ones the first number
  draws                    the two dispersions, in [-1, 1)
  wind                     Gymnasium's wind_idx and torque_idx before the step
  shaping                  its potential before the step
  reset_...                whole resets: 12 heights and 2 forces drawn, and what is there afterwards
"""

import sys
import warnings

import gymnasium
import numpy as np
from box2d_recording import COUNTED, Recording, World, kept, load_probe, trained
from gymnasium.envs.box2d.lunar_lander import heuristic

BODIES, JOINTS = 3, 2
RARE = {"impacts": 4, "asleep": 4}
# policy: (episodes, runs of each)
EPISODES = {
    0: (24, 3), 1: (40, 2), 2: (30, 2), 3: (24, 2), 4: (16, 2), 5: (16, 3), 6: (16, 3), 8: (14, 3), 9: (20, 2),
    10: (16, 2), 16: (14, 3), 17: (14, 2), 26: (14, 2),
}  # fmt: skip
COUNTED_AS = {0: "heuristic", 1: "random", 5: "trained", 6: "trained"}
TRAINED = {5: "pporun/lunar_lander", 6: "esrun/lunar_lander"}
REST = 40  # steps of an episode after the bodies first slept
RESETS = 40


class Draws:
    """Stands in for an environment's generator and remembers what it drew."""

    def __init__(self, rng):
        self.rng, self.drawn = rng, []

    def uniform(self, low, high, size=None):
        value = self.rng.uniform(low, high, size)
        self.drawn.append(value)
        return value

    def integers(self, low, high):
        return self.rng.integers(low, high)


class Policy:
    def __init__(self, policy, env, rng):
        self.kind, self.env, self.rng = policy % 8, env, rng
        self.trained = trained(TRAINED[self.kind], env) if self.kind in TRAINED else None

    def random(self):
        return self.rng.uniform(-1.2, 1.2, 2).astype(np.float32) if self.env.continuous else int(self.rng.integers(4))

    def __call__(self, obs, step, slept):
        if slept and self.rng.random() < 0.05:
            return self.random()
        if self.trained is not None:
            return self.trained(obs)
        if self.kind == 1 or (self.kind == 2 and self.rng.random() < 0.5):
            return self.random()
        if self.kind == 3:
            return 0 if step < 70 or self.rng.random() < 0.5 else 2
        if self.kind == 4:
            return 1 if step % 200 < 100 else 2
        action = heuristic(self.env, obs)
        return action.astype(np.float32) if self.env.continuous else int(action)


def terrain(env):
    """The heights of the ground's eleven points."""
    edges = [f.shape.vertices for f in env.moon.fixtures]
    edges = sorted(e for e in edges if not (e[0] == (0, 0) and e[1] == (20, 0)))
    return np.array([edges[0][0][1]] + [e[1][1] for e in edges], np.float32)


def record_episode(library, policy, recording, rng):
    env = gymnasium.make("LunarLander-v3", continuous=bool(policy & 8), enable_wind=bool(policy & 16)).unwrapped
    obs, _ = env.reset(seed=int(rng.integers(2**31)))
    env._np_random = Draws(env.np_random)
    act, trace, worlds, slept = Policy(policy, env, rng), [], [World(library, env, BODIES, JOINTS)], 0
    recording.rows["terrain"].append(terrain(env))
    for step in range(700):
        action, shaping = act(obs, step, slept), env.prev_shaping
        wind = [env.wind_idx, env.torque_idx] if env.enable_wind else [0, 0]
        env._np_random.drawn.clear()
        obs, reward, terminated, _, _ = env.step(action)
        worlds.append(World(library, env, BODIES, JOINTS))
        trace.append({
            "policy": policy, "action": action if env.continuous else [action, 0], "draws": env._np_random.drawn[:2],
            "wind": wind, "shaping": shaping, "observation": obs, "reward": reward, "terminated": terminated,
        })  # fmt: skip
        slept += slept > 0 or COUNTED["asleep"](worlds[-1])
        if slept > REST or (terminated and env.lander.awake):
            break
    recording.put_episode(worlds, trace, kept(worlds, EPISODES[policy][1], RARE, rng), COUNTED_AS.get(policy))


def record_reset(library, recording, rng):
    env = gymnasium.make("LunarLander-v3").unwrapped
    env.reset(seed=int(rng.integers(2**31)))
    env._np_random = Draws(env.np_random)
    obs, _ = env.reset()
    drawn = env._np_random.drawn
    after = World(library, env, BODIES, JOINTS)
    assert len(after.contacts) == 0
    for key, value in {"heights": drawn[0], "force": drawn[1:3], "terrain": terrain(env), "after": after.words,
                       "observation": obs, "shaping": env.prev_shaping}.items():  # fmt: skip
        recording.rows["reset_" + key].append(value)


DTYPES = {
    "draws": np.float32, "wind": np.int32, "shaping": np.float64, "reset_heights": np.float64, "reset_force": np.float64,
    "reset_terrain": np.float32, "reset_after": np.int32, "reset_observation": np.float32, "reset_shaping": np.float64,
}  # fmt: skip


def main():
    warnings.simplefilter("ignore")
    library, rng, recording = load_probe(sys.argv[1]), np.random.default_rng(2025), Recording(DTYPES)
    for policy, (episodes, *_) in EPISODES.items():
        for _ in range(episodes):
            record_episode(library, policy, recording, rng)
    for _ in range(RESETS):
        record_reset(library, recording, rng)
    recording.write(sys.argv[2], "lunar_lander", resets=RESETS)


if __name__ == "__main__":
    main()
