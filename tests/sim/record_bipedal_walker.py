#!/usr/bin/env python3
"""Records tests/data/bipedal_walker.parity and bipedal_walker_hardcore.parity from the real Gymnasium. Run once, in an
environment with gymnasium[box2d] 1.2.3 and with box2d_probe.so, which box2d_probe.cc says how to make:

    python3 tests/sim/record_bipedal_walker.py box2d_probe.so tests/data

One line of JSON, a newline, and the arrays it names, as in record_gymnasium.py. Each episode is in an environment of its
own, as the order of contacts depends on what was in a world before. Of an episode some runs of consecutive steps are
kept: a step leads from one row of `state` to the next.

  state                    what Box2D's world holds: bodies and joints, words in the order of sim/rigid2d/rigid2d_world.h
  contacts                 of each state; their pairs and points, pair | points << 24, follow each other in contact, and
                           keys and impulses of those that touch in contact_point
  step                     which row of `state` each step begins at
  episode                  which row of `terrain` [episode][200] belongs to the step; `boxes` of each episode, corners in
                           box [..][low x, low y, high x, high y]
  policy                   0 heuristic, 1 random, 2 each half of the time, 3 no torque, beyond the end of the episode,
                           4 full torque one way for a while, 5 heuristic with noise
  action, observation, reward, terminated
  heuristic_...            return and length of whole episodes under the heuristic
  reset_...                whole resets: draws as numbers in [0, 1) for each point of the terrain (roughness or direction
                           of stairs, size, length until the next change, kind of obstacle), the force in N, and what
                           is there afterwards
"""

import ctypes
import sys
import warnings

import gymnasium
import numpy as np
from gymnasium.envs.box2d.bipedal_walker import BipedalWalkerHeuristics

import record_gymnasium

BODY_WORDS, JOINT_WORDS, CONTACT_WORDS, BODIES, JOINTS, POINTS = 13, 4, 8, 5, 4, 200
FIXED_WORDS = BODIES * BODY_WORDS + JOINTS * JOINT_WORDS
TOUCH = 12  # index of a body's word `touch`
RUN = 12  # consecutive steps
# policy: (episodes, runs of each, most steps of an episode)
EPISODES = {0: (18, 8, 1600), 1: (40, 3, 400), 2: (24, 3, 400), 3: (10, 3, 260), 4: (24, 3, 400), 5: (14, 5, 800)}
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


def probe(library, env):
    """The world's words: (bodies and joints, contacts)."""
    out, counts = np.zeros(4096, np.int32), np.zeros(3, np.int32)
    words = library.box2d_probe(int(env.world.this), out.ctypes.data, counts.ctypes.data)
    assert list(counts[:2]) == [BODIES, JOINTS] and words == FIXED_WORDS + CONTACT_WORDS * counts[2]
    fixed = out[:FIXED_WORDS].copy()
    fixed[TOUCH] = 3 if env.game_over else 0
    for i in (1, 3):
        fixed[(i + 1) * BODY_WORDS + TOUCH] = 3 if env.legs[i].ground_contact else 0
    return fixed, out[FIXED_WORDS:words].reshape(-1, CONTACT_WORDS).copy()


class Policy:
    def __init__(self, kind, rng):
        self.kind, self.rng, self.pilot = kind, rng, BipedalWalkerHeuristics()

    def __call__(self, obs, step):
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


def put_state(rows, state):
    rows["state"].append(state[0])
    rows["contacts"].append(len(state[1]))
    for contact in state[1]:
        rows["contact"].append(contact[0] | contact[1] << 24)
        if contact[1] > 0:
            rows["contact_point"].append(contact[2:])


def record_episode(library, env, kind, runs, most, rows, rng):
    obs, _ = env.reset(seed=int(rng.integers(2**31)))
    policy, trace, states = Policy(kind, rng), [], [probe(library, env)]
    heights, boxes = terrain(env)
    rows["terrain"].append(heights)
    rows["boxes"].append(len(boxes))
    rows["box"] += boxes
    for step in range(most):
        action = policy(obs, step)
        obs, reward, terminated, _, _ = env.step(action)
        states.append(probe(library, env))
        trace.append({"action": action, "observation": obs, "reward": reward, "terminated": terminated})
        if terminated and kind != 3:
            break
    places = max(1, len(trace) // RUN)  # the last one ends with the episode
    chosen = {places - 1} | {int(x) for x in rng.choice(places, min(runs, places) - 1, replace=False)}
    for start in sorted(max(0, len(trace) - RUN * (places - place)) for place in chosen):
        put_state(rows, states[start])
        for step in range(start, min(start + RUN, len(trace))):
            rows["step"].append(len(rows["state"]) - 1)
            rows["episode"].append(len(rows["terrain"]) - 1)
            rows["policy"].append(kind)
            for key, value in trace[step].items():
                rows[key].append(value)
            put_state(rows, states[step + 1])
    return max(len(s[1]) for s in states)


def record_reset(library, env, rows, rng):
    env._np_random = Draws(env, np.random.default_rng(int(rng.integers(2**31))))
    obs, _ = env.reset()
    heights, boxes = terrain(env)
    state = probe(library, env)
    for key, value in {"draws": env._np_random.points, "force": env._np_random.force, "terrain": heights,
                       "boxes": len(boxes), "after": state[0], "observation": obs}.items():  # fmt: skip
        rows["reset_" + key].append(value)
    rows["reset_box"] += boxes


def record_heuristic(env, rows, rng):
    obs, _ = env.reset(seed=int(rng.integers(2**31)))
    policy, total, length, done = Policy(0, rng), 0.0, 0, False
    while not done:
        obs, reward, terminated, truncated, _ = env.step(policy(obs, length))
        total, length, done = total + reward, length + 1, terminated or truncated
    rows["heuristic_return"].append(total)
    rows["heuristic_length"].append(length)


DTYPES = {
    "state": np.int32, "contacts": np.int32, "contact": np.int32, "contact_point": np.int32, "step": np.int32,
    "episode": np.int32, "policy": np.int32, "terrain": np.float32, "boxes": np.int32, "box": np.float32,
    "action": np.float32, "observation": np.float32, "reward": np.float64, "terminated": np.uint8,
    "heuristic_return": np.float32, "heuristic_length": np.int32, "reset_draws": np.float32, "reset_force": np.float32,
    "reset_terrain": np.float32, "reset_boxes": np.int32, "reset_box": np.float32, "reset_after": np.int32,
    "reset_observation": np.float32,
}  # fmt: skip


def record(library, folder, name, options):
    rng = np.random.default_rng(2026)
    rows = {key: [] for key in DTYPES}
    most_contacts = 0
    for kind, (episodes, runs, most) in EPISODES.items():
        for _ in range(episodes):
            env = gymnasium.make("BipedalWalker-v3", **options).unwrapped
            most_contacts = max(most_contacts, record_episode(library, env, kind, runs, most, rows, rng))
    for _ in range(RESETS):
        record_reset(library, gymnasium.make("BipedalWalker-v3", **options).unwrapped, rows, rng)
    limit = 2000 if options else 1600
    for _ in range(HEURISTIC_EPISODES):
        record_heuristic(gymnasium.make("BipedalWalker-v3", max_episode_steps=limit, **options), rows, rng)
    arrays = {key: np.array(value, DTYPES[key]) for key, value in rows.items()}
    arrays["box"] = arrays["box"].reshape(-1, 4)
    arrays["reset_box"] = arrays["reset_box"].reshape(-1, 4)
    header = {"sim": name, "steps": len(rows["reward"]), "resets": RESETS, "heuristic_episodes": HEURISTIC_EPISODES}
    record_gymnasium.write(f"{folder}/{name}.parity", header, arrays)
    print(name, header["steps"], "steps; contacts", len(rows["contact"]), "most of a state", most_contacts, "touching",
          len(rows["contact_point"]), "terminated", sum(rows["terminated"]), "boxes", max(rows["boxes"]), "returns",
          np.mean(rows["heuristic_return"]))  # fmt: skip


def main():
    warnings.simplefilter("ignore")
    library = ctypes.CDLL(sys.argv[1])
    library.box2d_probe.argtypes = [ctypes.c_void_p] * 3
    record(library, sys.argv[2], "bipedal_walker", {})
    record(library, sys.argv[2], "bipedal_walker_hardcore", {"hardcore": True})


if __name__ == "__main__":
    main()
