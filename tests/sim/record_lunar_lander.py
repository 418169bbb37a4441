#!/usr/bin/env python3
"""Records tests/data/lunar_lander.parity from the real Gymnasium. Run once, in an environment with gymnasium[box2d] 1.2.3
and with box2d_probe.so, which box2d_probe.cc says how to make:

    python3 tests/sim/record_lunar_lander.py box2d_probe.so tests/data

One line of JSON, a newline, and the arrays it names, as in record_gymnasium.py. A row is one step: what Box2D's world holds
before and after it, the action, the random draws, and what Gymnasium makes of them. Rows come from episodes under several
policies; of steps near the ground three in four
are kept, of others one in eight.

  before, after            bodies and joints, words in the order of sim/rigid2d/rigid2d_world.h
  before_count, after_count   contacts, whose words follow each other in before_contacts and after_contacts
  episode, terrain         which row of `terrain` [episode][11] belongs to the step
  policy                   0 heuristic, 1 random, 2 each half of the time, 3 falling, 4 spinning; + 8 continuous actions, + 16 wind
  discrete, continuous     the action; of continuous ones `discrete` is -1
  draws                    the two dispersions, in [-1, 1)
  wind                     Gymnasium's wind_idx and torque_idx before the step
  reset_...                the same of whole resets: 12 heights and 2 forces drawn, and what is there afterwards
"""

import ctypes
import sys
import warnings

import gymnasium
import numpy as np
from gymnasium.envs.box2d.lunar_lander import heuristic

import record_gymnasium

BODY_WORDS, JOINT_WORDS, CONTACT_WORDS, BODIES, JOINTS = 13, 4, 8, 3, 2
FIXED_WORDS = BODIES * BODY_WORDS + JOINTS * JOINT_WORDS
TOUCH = 12  # index of a body's word `touch`
EPISODES = {0: 16, 1: 40, 2: 24, 3: 14, 4: 14, 8: 14, 9: 24, 10: 14, 16: 12, 17: 10, 26: 10}
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


def probe(library, env):
    """The world's words: (bodies and joints, contacts)."""
    out, counts = np.zeros(4096, np.int32), np.zeros(3, np.int32)
    words = library.box2d_probe(int(env.world.this), out.ctypes.data, counts.ctypes.data)
    assert list(counts[:2]) == [BODIES, JOINTS] and words == FIXED_WORDS + CONTACT_WORDS * counts[2]
    fixed = out[:FIXED_WORDS].copy()
    fixed[TOUCH] = 3 if env.game_over else 0
    for i in range(2):
        fixed[(i + 1) * BODY_WORDS + TOUCH] = 3 if env.legs[i].ground_contact else 0
    return fixed, out[FIXED_WORDS:words].reshape(-1, CONTACT_WORDS).copy()


def act(env, policy, obs, rng, step):
    kind = policy % 8
    if kind == 1 or (kind == 2 and rng.random() < 0.5):
        if env.continuous:
            return rng.uniform(-1.2, 1.2, 2).astype(np.float32)
        return int(rng.integers(4))
    if kind == 3:
        return 0 if step < 70 or rng.random() < 0.5 else 2
    if kind == 4:
        return 1 if step % 200 < 100 else 2
    action = heuristic(env, obs)
    return action.astype(np.float32) if env.continuous else int(action)


def terrain(env):
    """The heights of the ground's eleven points."""
    edges = [f.shape.vertices for f in env.moon.fixtures]
    edges = sorted(e for e in edges if not (e[0] == (0, 0) and e[1] == (20, 0)))
    return np.array([edges[0][0][1]] + [e[1][1] for e in edges], np.float32)


def record_episode(library, policy, seed, rows, rng):
    env = gymnasium.make("LunarLander-v3", continuous=bool(policy & 8), enable_wind=bool(policy & 16)).unwrapped
    obs, _ = env.reset(seed=seed)
    env._np_random = Draws(env.np_random)
    index = len(rows["terrain"])
    rows["terrain"].append(terrain(env))
    for step in range(700):
        action = act(env, policy, obs, rng, step)
        before, shaping = probe(library, env), env.prev_shaping
        wind = [env.wind_idx, env.torque_idx] if env.enable_wind else [0, 0]
        env._np_random.drawn.clear()
        obs, reward, terminated, _, _ = env.step(action)
        after = probe(library, env)
        near = len(before[1]) > 0 or len(after[1]) > 0
        if terminated or rng.random() < (0.75 if near else 0.125):
            row = {
                "before": before[0], "after": after[0], "before_count": len(before[1]), "after_count": len(after[1]),
                "episode": index, "policy": policy, "discrete": -1 if env.continuous else action,
                "continuous": action if env.continuous else np.zeros(2), "draws": env._np_random.drawn[:2], "wind": wind,
                "shaping": [shaping, env.prev_shaping], "observation": obs, "reward": reward, "terminated": terminated,
            }  # fmt: skip
            for key, value in row.items():
                rows[key].append(value)
            rows["before_contacts"] += list(before[1])
            rows["after_contacts"] += list(after[1])
        if terminated:
            break


def record_reset(library, seed, rows):
    env = gymnasium.make("LunarLander-v3").unwrapped
    env.reset(seed=seed)
    env._np_random = Draws(env.np_random)
    obs, _ = env.reset()
    drawn = env._np_random.drawn
    after = probe(library, env)
    assert len(after[1]) == 0
    for key, value in {"heights": drawn[0], "force": drawn[1:3], "terrain": terrain(env), "after": after[0],
                       "observation": obs, "shaping": env.prev_shaping}.items():  # fmt: skip
        rows["reset_" + key].append(value)


DTYPES = {
    "before": np.int32, "after": np.int32, "before_count": np.int32, "after_count": np.int32, "episode": np.int32,
    "policy": np.int32, "discrete": np.int32, "continuous": np.float32, "draws": np.float32, "wind": np.int32,
    "shaping": np.float64, "observation": np.float32, "reward": np.float64, "terminated": np.uint8, "terrain": np.float32,
    "before_contacts": np.int32, "after_contacts": np.int32, "reset_heights": np.float64, "reset_force": np.float64,
    "reset_terrain": np.float32, "reset_after": np.int32, "reset_observation": np.float32, "reset_shaping": np.float64,
}  # fmt: skip


def main():
    warnings.simplefilter("ignore")
    library = ctypes.CDLL(sys.argv[1])
    library.box2d_probe.argtypes = [ctypes.c_void_p] * 3
    rng = np.random.default_rng(2025)
    rows = {key: [] for key in DTYPES}
    for policy, episodes in EPISODES.items():
        for _ in range(episodes):
            record_episode(library, policy, int(rng.integers(2**31)), rows, rng)
    for _ in range(RESETS):
        record_reset(library, int(rng.integers(2**31)), rows)
    arrays = {key: np.array(value, DTYPES[key]) for key, value in rows.items()}
    steps = len(rows["reward"])
    record_gymnasium.write(f"{sys.argv[2]}/lunar_lander.parity",
                           {"sim": "lunar_lander", "steps": steps, "resets": RESETS}, arrays)  # fmt: skip
    print(steps, "steps; contacts", sum(rows["before_count"]), "most", max(rows["before_count"]), "terminated",
          sum(rows["terminated"]))  # fmt: skip


if __name__ == "__main__":
    main()
