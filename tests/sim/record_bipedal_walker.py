#!/usr/bin/env python3
"""Records tests/data/bipedal_walker.parity and bipedal_walker_hardcore.parity from the real Gymnasium. Run once, in an
environment with gymnasium[box2d] 1.2.3 and numpy 2.2.6, and with box2d_probe.so, which box2d_probe.cc says how to make:

    python3 tests/sim/record_bipedal_walker.py box2d_probe.so tests/data [SIMULATOR...]

One line of JSON, a newline, and the arrays it names, as in record_gymnasium.py; box2d_recording.py describes those of the
steps. Each episode is in an environment of its own, as the order of contacts depends on what was in a world before.

  terrain                  [episode][200]; `boxes` of each episode, corners in box [..][low x, low y, high x, high y]
  policy                   0 heuristic, 1 random, 2 each half of the time, 3 no torque, beyond the end of the episode,
                           4 full torque one way for a while, 5 heuristic with noise, 6 trained by pporun
  heuristic_...            return and length of whole episodes under the heuristic
  reset_...                whole resets: draws as numbers in [0, 1) for each point of the terrain (roughness or direction
                           of stairs, size, length until the next change, kind of obstacle), the force in N, and what
                           is there afterwards
"""

import sys
import warnings

import gymnasium
import numpy as np
from box2d_recording import Recording, World, kept, load_probe, trained
from gymnasium.envs.box2d.bipedal_walker import BipedalWalkerHeuristics

BODIES, JOINTS, POINTS = 5, 4, 200
# policy: (episodes, runs of each, rare steps of each, most steps of an episode)
EPISODES = {
    0: (12, 8, {}, 1600), 1: (20, 3, {}, 400), 2: (16, 3, {}, 400), 3: (64, 1, {"asleep": 8}, 700), 4: (11, 3, {}, 400),
    5: (8, 4, {}, 800), 6: (7, 8, {}, 1600),
}  # fmt: skip
COUNTED_AS = {0: "heuristic", 1: "random", 6: "trained"}
HEURISTIC_EPISODES = 600
RESETS = 40


class Draws:
    """Stands in for an environment's generator and remembers what it drew for each point of the terrain."""

    def __init__(self, env, rng):
        self.env, self.rng = env, rng
        self.points, self.force = np.full((POINTS, 4), 0.5, np.float32), 0.0

    def put(self, word, share, is_after=False):
        at = len(self.env.terrain_y) - is_after
        if at < POINTS:
            self.points[at, word] = share

    def uniform(self, low, high):
        value = self.rng.uniform(low, high)
        if (low, high) == (-1, 1):
            self.put(0, (value + 1) / 2)
        self.force = value  # the last one
        return value

    def random(self):
        value = self.rng.random()
        self.put(0, value)
        return value

    def integers(self, low, high):
        value = self.rng.integers(low, high)
        word, is_after = {(5, 10): (2, True), (1, 4): (3, True), (4, 5): (None, False)}.get((low, high), (1, False))
        if word is not None:
            self.put(word, (value - low + 0.5) / (high - low), is_after)
        return value


class Policy:
    def __init__(self, kind, env, rng):
        self.kind, self.rng, self.pilot = kind, rng, BipedalWalkerHeuristics()
        self.trained = trained("pporun/bipedal_walker", env) if kind == 6 else None

    def __call__(self, obs, step):
        if self.trained is not None:
            return self.trained(obs)
        if self.kind == 3:
            return np.zeros(4, np.float32) if step > 30 else self.rng.uniform(-1, 1, 4).astype(np.float32)
        if self.kind == 4:
            if step % 40 == 0:
                self.held = self.rng.choice([-1.0, 1.0], 4).astype(np.float32)
            return self.held
        if self.kind == 1 or (self.kind == 2 and self.rng.random() < 0.5):
            return self.rng.uniform(-1.2, 1.2, 4).astype(np.float32)
        action = self.pilot.step_heuristic(obs).astype(np.float32)
        return action + self.rng.normal(0, 0.15, 4).astype(np.float32) if self.kind == 5 else action


def terrain(env):
    """Heights of the points and the boxes' corners, both in the order of creation."""
    fixtures = [body.fixtures[0].shape.vertices for body in reversed(env.terrain)]
    boxes = [v for v in fixtures if len(v) == 4]
    edges = [v for v in fixtures if len(v) == 2]
    assert fixtures == boxes + edges and len(edges) == POINTS - 1
    heights = np.array([edges[0][0][1]] + [e[1][1] for e in edges], np.float32)
    return heights, [np.concatenate([np.min(v, axis=0), np.max(v, axis=0)]).astype(np.float32) for v in boxes]


def record_episode(library, env, kind, recording, rng):
    _, runs, rare, most = EPISODES[kind]
    obs, _ = env.reset(seed=int(rng.integers(2**31)))
    policy, trace, worlds = Policy(kind, env, rng), [], [World(library, env, BODIES, JOINTS)]
    heights, boxes = terrain(env)
    recording.rows["terrain"].append(heights)
    recording.rows["boxes"].append(len(boxes))
    recording.rows["box"] += boxes
    for step in range(most):
        action = policy(obs, step)
        obs, reward, terminated, _, _ = env.step(action)
        worlds.append(World(library, env, BODIES, JOINTS))
        trace.append({"policy": kind, "action": action, "observation": obs, "reward": reward, "terminated": terminated})
        if terminated and kind != 3:
            break
    recording.put_episode(worlds, trace, kept(worlds, runs, rare, rng), COUNTED_AS.get(kind))


def record_reset(library, env, recording, rng):
    env._np_random = Draws(env, np.random.default_rng(int(rng.integers(2**31))))
    obs, _ = env.reset()
    heights, boxes = terrain(env)
    after = World(library, env, BODIES, JOINTS).words
    for key, value in {"draws": env._np_random.points, "force": env._np_random.force, "terrain": heights,
                       "boxes": len(boxes), "after": after, "observation": obs}.items():  # fmt: skip
        recording.rows["reset_" + key].append(value)
    recording.rows["reset_box"] += boxes


def record_heuristic(env, recording, rng):
    obs, _ = env.reset(seed=int(rng.integers(2**31)))
    policy, total, length, done = BipedalWalkerHeuristics(), 0.0, 0, False
    while not done:
        obs, reward, terminated, truncated, _ = env.step(policy.step_heuristic(obs).astype(np.float32))
        total, length, done = total + reward, length + 1, terminated or truncated
    recording.rows["heuristic_return"].append(total)
    recording.rows["heuristic_length"].append(length)


DTYPES = {
    "boxes": np.int32, "box": np.float32, "heuristic_return": np.float32, "heuristic_length": np.int32,
    "reset_draws": np.float32, "reset_force": np.float32, "reset_terrain": np.float32, "reset_boxes": np.int32,
    "reset_box": np.float32, "reset_after": np.int32, "reset_observation": np.float32,
}  # fmt: skip


def record(library, folder, name, options):
    rng, recording = np.random.default_rng(2026), Recording(DTYPES)
    heuristic_rng = np.random.default_rng(2027)
    for kind, (episodes, *_) in EPISODES.items():
        for _ in range(episodes):
            record_episode(library, gymnasium.make("BipedalWalker-v3", **options).unwrapped, kind, recording, rng)
    for _ in range(RESETS):
        record_reset(library, gymnasium.make("BipedalWalker-v3", **options).unwrapped, recording, rng)
    limit = 2000 if options else 1600
    for _ in range(HEURISTIC_EPISODES):
        record_heuristic(gymnasium.make("BipedalWalker-v3", max_episode_steps=limit, **options), recording, heuristic_rng)
    recording.write(folder, name, resets=RESETS, heuristic_episodes=HEURISTIC_EPISODES)


def main():
    warnings.simplefilter("ignore")
    library = load_probe(sys.argv[1])
    for name in sys.argv[3:] or ["bipedal_walker", "bipedal_walker_hardcore"]:
        record(library, sys.argv[2], name, {"hardcore": True} if name == "bipedal_walker_hardcore" else {})


if __name__ == "__main__":
    main()
