"""What record_lunar_lander.py and record_bipedal_walker.py share: worlds of Box2D word by word, which steps of an episode
are kept, and policies that were trained.

Arrays of a recording, beside the simulator's own. A step leads from one row of `state` to the next; steps that follow each
other share rows.

  state                    bodies and joints, words in the order of sim/rigid2d/rigid2d_world.h
  contacts                 of each state; their pairs and points, pair | points << 24, follow each other in contact, and
                           keys and impulses of those that touch in contact_point
  step                     which row of `state` each step begins at
  episode, terrain         which row of `terrain` belongs to the step
  policy                   which policy chose the action: a number of the recorder's
  impacts                  of continuous collision in the step
  action, observation, reward, terminated

The header counts the steps in which something happened: COUNTED, below, and TRAINED, HEURISTIC, RANDOM by policy.
"""

import ctypes
import sys
from pathlib import Path

import numpy as np

import record_gymnasium

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "transfer"))
from gymnasium_policies import policy_of  # noqa: E402

POLICIES = Path(__file__).resolve().parents[1] / "data" / "policies"
BODY_WORDS, JOINT_WORDS, CONTACT_WORDS = 13, 4, 8
AWAKE, TOUCH = 11, 12  # of a body's words
LIMIT = 2  # of a joint's
RUN = 12  # consecutive steps

COUNTED = {
    "touching": lambda world: (world.contacts[:, 1] > 0).any(),
    "at_limit": lambda world: (world.joint[:, LIMIT].view(np.float32) != 0).any(),
    "impacts": lambda world: world.impacts > 0,
    "asleep": lambda world: not world.body[:, AWAKE].all(),
}
DTYPES = {
    "state": np.int32, "contacts": np.int32, "contact": np.int32, "contact_point": np.int32, "step": np.int32,
    "episode": np.int32, "policy": np.int32, "impacts": np.uint8, "terrain": np.float32, "action": np.float32,
    "observation": np.float32, "reward": np.float64, "terminated": np.uint8,
}  # fmt: skip


class World:
    """An environment's world as it is now. impacts: of the step before."""

    def __init__(self, library, env, bodies, joints):
        out, counts = np.zeros(4096, np.int32), np.zeros(4, np.int32)
        words = library.box2d_probe(int(env.world.this), out.ctypes.data, counts.ctypes.data)
        joints_at, contacts_at = bodies * BODY_WORDS, bodies * BODY_WORDS + joints * JOINT_WORDS
        assert list(counts[:2]) == [bodies, joints] and words == contacts_at + CONTACT_WORDS * counts[2]
        self.words = out[:contacts_at].copy()
        self.body = self.words[:joints_at].reshape(bodies, BODY_WORDS)
        self.joint = self.words[joints_at:].reshape(joints, JOINT_WORDS)
        self.contacts = out[contacts_at:words].reshape(-1, CONTACT_WORDS).copy()
        self.impacts = int(counts[3])
        # Gymnasium's own notes of contacts: that the first body touched, and which legs do.
        self.body[0, TOUCH] = 3 if env.game_over else 0
        for i, leg in enumerate(env.legs):
            self.body[1 + i, TOUCH] = 3 if getattr(leg, "ground_contact", False) else 0


def load_probe(path):
    library = ctypes.CDLL(path)
    library.box2d_probe.argtypes = [ctypes.c_void_p] * 3
    return library


def trained(run, env):
    """The policy of a run in POLICIES, as observation -> action."""
    (checkpoint,) = (POLICIES / run).glob("checkpoint/gen-*.safetensors")
    policy = policy_of(checkpoint, env.action_space)
    return lambda obs: policy(obs) if policy.bounds is None else np.array(policy(obs), np.float32)


def kept(worlds, runs, rare, rng):
    """Which steps of an episode are kept, worlds[i] to worlds[i + 1] being one: `runs` runs of RUN, its end among them; and
    of each key of COUNTED in `rare` up to that many steps, with a neighbour on either side."""
    steps = len(worlds) - 1
    keep = np.zeros(steps, bool)
    places = max(1, steps // RUN)
    for place in {places - 1} | {int(x) for x in rng.choice(places, min(runs, places) - 1, replace=False)}:
        start = max(0, steps - RUN * (places - place))
        keep[start : start + RUN] = True
    for key, most in rare.items():
        found = [i for i in range(steps) if COUNTED[key](worlds[i + 1])]
        for i in rng.permutation(found)[:most]:
            keep[max(0, int(i) - 1) : int(i) + 2] = True
    return keep


class Recording:
    def __init__(self, dtypes):
        """dtypes: of the simulator's own arrays."""
        self.dtypes = DTYPES | dtypes
        self.rows = {key: [] for key in self.dtypes}
        self.counts = {key: 0 for key in [*COUNTED, "heuristic", "random", "trained"]}

    def put_state(self, world):
        self.rows["state"].append(world.words)
        self.rows["contacts"].append(len(world.contacts))
        for contact in world.contacts:
            self.rows["contact"].append(contact[0] | contact[1] << 24)
            if contact[1] > 0:
                self.rows["contact_point"].append(contact[2:])

    def put_episode(self, worlds, trace, keep, kind):
        """trace: of each step its values by array. kind: a key of `counts`, or None. Its terrain is the last one."""
        for i in np.flatnonzero(keep):
            if i == 0 or not keep[i - 1]:
                self.put_state(worlds[i])
            self.rows["step"].append(len(self.rows["state"]) - 1)
            self.rows["episode"].append(len(self.rows["terrain"]) - 1)
            self.rows["impacts"].append(worlds[i + 1].impacts)
            for key, value in trace[i].items():
                self.rows[key].append(value)
            self.put_state(worlds[i + 1])
            for key, is_so in COUNTED.items():
                self.counts[key] += bool(is_so(worlds[i + 1]))
            if kind is not None:
                self.counts[kind] += 1

    def write(self, folder, name, **header):
        arrays = {key: np.array(value, self.dtypes[key]) for key, value in self.rows.items()}
        for key in [key for key in arrays if key.endswith("box")]:
            arrays[key] = arrays[key].reshape(-1, 4)
        header = {"sim": name, "steps": len(self.rows["reward"]), **header, **self.counts}
        record_gymnasium.write(f"{folder}/{name}.parity", header, arrays)
        print(name, header, "terminated", sum(self.rows["terminated"]), "contacts of a state at most",
              max(self.rows["contacts"]))  # fmt: skip
