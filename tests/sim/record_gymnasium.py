#!/usr/bin/env python3
"""Records the files in tests/data from the real Gymnasium. Run once, in an environment with gymnasium 1.2.3:

    python3 tests/sim/record_gymnasium.py tests/data

Each file is one line of JSON, a newline, and the arrays it names, little-endian, one after the other without padding.

  <sim>.parity    10,000 single steps: a state, an action, and what the original makes of them in float64. The states
                  and continuous actions are float32-representable. Half the steps come from rollouts under random and
                  under decent policies, half from the whole state space, with extra weight near walls, goals and
                  thresholds.
  <sim>_<mode>.vec
                  whole episodes of a SyncVectorEnv in one autoreset mode, arrays of [step][env]. `was_reset` is 1 where
                  the env was reset in that row, to `reset_state`: in next_step the row is the reset itself (its action
                  is ignored); in same_step the reset follows the step, whose observation is in `final_obs`; in disabled
                  the caller resets an env that was done, then steps it. Episodes start at `first_state`.
"""

import json
import sys
import warnings

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

IDS = {
    "cartpole": "CartPole-v1",
    "mountain_car": "MountainCar-v0",
    "mountain_car_continuous": "MountainCarContinuous-v0",
    "acrobot": "Acrobot-v1",
    "pendulum": "Pendulum-v1",
}
STEPS = 10000
# The env count, steps and time limit of the vector recordings: long enough to cross terminations and truncations.
VECTOR = {
    "cartpole": (6, 300, 30),
    "mountain_car": (4, 420, 150),
    "mountain_car_continuous": (4, 420, 120),
    "acrobot": (5, 400, 115),  # short enough not to become chaotic
    "pendulum": (4, 260, 60),
}
PI = np.pi


def write(path, header, arrays):
    """arrays: name -> array; their dtypes and shapes go to the header, in order."""
    header = dict(header)
    header["gymnasium"] = gymnasium.__version__
    header["numpy"] = np.__version__
    header["arrays"] = [
        {"name": name, "dtype": array.dtype.name, "shape": list(array.shape)} for name, array in arrays.items()
    ]
    with open(path, "wb") as file:
        file.write(json.dumps(header, separators=(",", ":")).encode() + b"\n")
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).tobytes())


def float32(x):
    return np.asarray(x, dtype=np.float64).astype(np.float32).astype(np.float64)


def decent_action(name, state, rng):
    """A policy that reaches the interesting parts of the state space."""
    if name == "cartpole":
        return int(state[2] + 0.3 * state[3] + 0.05 * state[1] > 0)
    if name == "mountain_car":
        return 2 if state[1] >= 0 else 0
    if name == "mountain_car_continuous":
        return np.array([(1.3 if state[1] >= 0 else -1.3) * rng.uniform(0.3, 1.0)])
    if name == "acrobot":
        return 2 if state[3] > 0 else 0  # pumps energy
    theta = (state[0] + PI) % (2 * PI) - PI
    if abs(theta) < 0.5:
        return np.array([-10.0 * theta - 2.0 * state[1]])
    return np.array([2.0 if state[1] * (1 - 0.3 * state[1] ** 2 / 10) >= 0 else -2.0])


def random_action(name, env, rng):
    space = env.action_space
    if isinstance(space, gymnasium.spaces.Discrete):
        return int(rng.integers(space.n))
    return float32(rng.uniform(1.5 * space.low, 1.5 * space.high))  # also beyond the bounds: clipping is checked


def box_state(name, rng):
    """A state from the whole space, or close to one of its edges."""
    edge = rng.random() < 0.4
    near = rng.choice([1e-2, 1e-4, 1e-6]) * rng.standard_normal()
    if name == "cartpole":
        state = rng.uniform([-2.6, -4, -0.25, -4], [2.6, 4, 0.25, 4])
        if edge:
            if rng.random() < 0.5:
                state[0] = rng.choice([-2.4, 2.4]) - 0.02 * state[1] + near
            else:
                state[2] = rng.choice([-1, 1]) * 12 * PI / 180 - 0.02 * state[3] + near
    elif name.startswith("mountain_car"):
        state = rng.uniform([-1.2, -0.07], [0.6, 0.07])
        if edge:
            goal = 0.5 if name == "mountain_car" else 0.45
            kind = rng.integers(4)
            if kind == 0:
                state[0] = np.clip(-1.2 + abs(near), -1.2, 0.6)
            elif kind == 1:
                state[0] = np.clip(goal - state[1] + near, -1.2, 0.6)
            elif kind == 2:
                state[0] = np.clip(goal + abs(near), -1.2, 0.6)
                state[1] = near
            else:
                state[1] = np.clip(rng.choice([-0.07, 0.07]) + near, -0.07, 0.07)
    elif name == "acrobot":
        state = rng.uniform([-PI, -PI, -4 * PI, -9 * PI], [PI, PI, 4 * PI, 9 * PI])
        if edge:
            kind = rng.integers(3)
            if kind == 0:  # slow, near the goal's height
                state[2:] = rng.uniform(-1, 1, 2)
                state[0] = rng.choice([-1, 1]) * rng.uniform(PI / 2, PI)
            elif kind == 1:
                state[2:] = rng.uniform([-2, -4], [2, 4])
            else:
                state[rng.integers(2)] = rng.choice([-PI, PI]) + near
    else:
        state = rng.uniform([-3 * PI, -8], [3 * PI, 8])
        if edge:
            kind = rng.integers(3)
            if kind == 0:
                state[1] = np.clip(rng.choice([-8, 8]) + near, -8, 8)
            elif kind == 1:
                state[0] = rng.integers(-2, 3) * PI + near
            else:
                state[0] = rng.uniform(-80, 80)  # as far as 200 steps can wind it up
    return float32(state)


def step_once(name, env, state, action):
    """Steps the original once from a float64 state; everything it computes stays in float64."""
    env.state = np.array(state, dtype=np.float64)
    if name == "cartpole":
        env.steps_beyond_terminated = None
    observation, reward, terminated, truncated, _ = env.step(action)
    assert not truncated
    return np.array(env.state, dtype=np.float64), np.array(observation), float(reward), terminated


def record_parity(name, folder):
    rng = np.random.default_rng(2024)
    env = gymnasium.make(IDS[name]).unwrapped
    env.reset(seed=1)
    continuous = isinstance(env.action_space, gymnasium.spaces.Box)
    columns = {key: [] for key in ("state", "action", "next_state", "observation", "reward", "terminated")}

    def keep(state, action):
        if continuous:
            action = float32(action)
        result = step_once(name, env, state, action)
        columns["state"].append(state)
        columns["action"].append(action if continuous else [action])
        for key, value in zip(("next_state", "observation", "reward", "terminated"), result):
            columns[key].append(value)
        return result

    limit = gymnasium.spec(IDS[name]).max_episode_steps
    while len(columns["state"]) < STEPS // 2:  # rollouts, rounded to float32 before each step
        env.reset(seed=int(rng.integers(2**31)))
        state = float32(env.state)
        mix = rng.choice([0.0, 0.2, 1.0])  # share of random actions
        for _ in range(limit):
            action = random_action(name, env, rng) if rng.random() < mix else decent_action(name, state, rng)
            next_state, _, _, terminated = keep(state, action)
            state = float32(next_state)
            if terminated or len(columns["state"]) == STEPS // 2:
                break
    while len(columns["state"]) < STEPS:
        keep(box_state(name, rng), random_action(name, env, rng))

    columns = {key: np.array(value) for key, value in columns.items()}
    columns["state"] = columns["state"].astype(np.float32)
    columns["action"] = columns["action"].astype(np.float32 if continuous else np.int32)
    columns["terminated"] = columns["terminated"].astype(np.uint8)
    write(f"{folder}/{name}.parity", {"sim": name, "gymnasium_id": IDS[name], "steps": STEPS}, columns)
    print(name, "terminated:", int(columns["terminated"].sum()))


class StateRecorder(gymnasium.Wrapper):
    """Rounds each reset's state to float32, so that a float build starts from the same one, and remembers it."""

    def __init__(self, env):
        super().__init__(env)
        self.resets = []

    def reset(self, **kwargs):
        _, info = self.env.reset(**kwargs)
        inner = self.unwrapped
        inner.state = float32(inner.state)
        self.resets.append(inner.state.astype(np.float32))
        return observe(inner), info


def observe(inner):
    for method in ("_get_ob", "_get_obs"):
        if hasattr(inner, method):
            return getattr(inner, method)()
    return np.array(inner.state, dtype=np.float32)


def record_vector(name, mode, folder):
    env_count, steps, limit = VECTOR[name]
    rng = np.random.default_rng(7)
    make = lambda: StateRecorder(gymnasium.make(IDS[name], max_episode_steps=limit, disable_env_checker=True))
    envs = SyncVectorEnv([make] * env_count, autoreset_mode=mode)
    obs, _ = envs.reset(seed=99)
    rows = {key: [] for key in ("action", "observation", "reward", "terminated", "truncated", "has_final", "final_obs",
                                "reset_state", "was_reset")}
    first_state = np.array([env.resets[-1] for env in envs.envs])
    first_obs = obs.copy()
    continuous = isinstance(envs.single_action_space, gymnasium.spaces.Box)
    previous_done = np.zeros(env_count, bool)
    for step in range(steps):
        counts = [len(env.resets) for env in envs.envs]
        if mode == AutoresetMode.DISABLED and previous_done.any():
            # The user resets the envs that are done, before this step.
            envs.reset(options={"reset_mask": previous_done.copy()})
        actions = []
        for i, env in enumerate(envs.envs):
            state = np.asarray(env.unwrapped.state)
            # Env 0 acts at random throughout, the others mostly well.
            bad = i == 0 or rng.random() < 0.1 * i
            if continuous:
                action = random_action(name, env, rng) if bad else decent_action(name, state, rng)
                actions.append(np.float32(action))
            else:
                actions.append(random_action(name, env, rng) if bad else decent_action(name, state, rng))
        actions = np.array(actions)
        obs, reward, terminated, truncated, info = envs.step(actions)
        final = np.zeros((env_count,) + obs.shape[1:], np.float32)
        has_final = np.zeros(env_count, np.uint8)
        if "final_obs" in info:
            for i in range(env_count):
                if info["_final_obs"][i]:
                    has_final[i] = 1
                    final[i] = info["final_obs"][i]
        was_reset = np.array([len(env.resets) > n for env, n in zip(envs.envs, counts)])
        reset_state = np.array([env.resets[-1] for env in envs.envs])
        reset_state[~was_reset] = 0
        rows["action"].append(actions.reshape(env_count, -1).astype(np.float32 if continuous else np.int32))
        rows["observation"].append(obs.astype(np.float32))
        rows["reward"].append(reward.astype(np.float64))
        rows["terminated"].append(terminated.astype(np.uint8))
        rows["truncated"].append(truncated.astype(np.uint8))
        rows["has_final"].append(has_final)
        rows["final_obs"].append(final)
        rows["was_reset"].append(was_reset.astype(np.uint8))
        rows["reset_state"].append(reset_state)
        previous_done = terminated | truncated
    arrays = {"first_state": first_state, "first_observation": first_obs.astype(np.float32)}
    arrays.update({key: np.array(value) for key, value in rows.items()})
    short = mode.name.lower()
    header = {"sim": name, "gymnasium_id": IDS[name], "autoreset": short, "envs": env_count, "steps": steps,
              "time_limit": limit}
    write(f"{folder}/{name}_{short}.vec", header, arrays)
    print(name, short, "terminated", int(arrays["terminated"].sum()), "truncated", int(arrays["truncated"].sum()),
          "resets", int(arrays["was_reset"].sum()))


def main():
    warnings.simplefilter("ignore")
    gymnasium.logger.min_level = gymnasium.logger.ERROR
    folder = sys.argv[1]
    for name in IDS:
        record_parity(name, folder)
        for mode in AutoresetMode:
            record_vector(name, mode, folder)


if __name__ == "__main__":
    main()
