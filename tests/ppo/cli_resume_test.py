#!/usr/bin/env python3
"""An interrupted run of pporun goes on to the bits that an unbroken one reaches: signals, kill -9, full disks."""

import os
import resource
import shutil
import signal

import pporun_harness as harness
from pporun_harness import SIMULATORS, KillTests, PporunTest, SignalTests, fixed, rows, tree

# Enough updates that a run takes a few tenths of a second.
LONG = {"cartpole": 200, "mountain_car": 200, "mountain_car_continuous": 200, "acrobot": 150, "pendulum": 200,
        "position_only_cartpole": 200, "parking": 200, "lunar_lander": 40,
        "lunar_lander_continuous": 40, "bipedal_walker": 20, "bipedal_walker_hardcore": 20}  # fmt: skip


def long(env):
    """What makes a run long enough."""
    return {"updates": LONG[env] // (4 if harness.SANITIZED else 1)}


class Signals(SignalTests, PporunTest):
    long = staticmethod(long)

    def test_in_a_test(self):
        changes = {"updates": 3, "test_every": 2, "test_episodes": 5000 if harness.SANITIZED else 50000}
        at = self.stopped_in_phase("test", changes, lambda out: (out / "metrics.csv").exists() and len(rows(out)) >= 1)
        self.assertIn(at, [1, 2])

    def test_in_the_final_test(self):
        changes = {"updates": 3, "test_every": 1000, "test_episodes": 5000 if harness.SANITIZED else 50000}
        last = "checkpoint/gen-00000003.safetensors"
        self.assertEqual(3, self.stopped_in_phase("final", changes, lambda out: (out / last).exists()))


class Resume(PporunTest):
    def test_at_every_update(self):
        """Whatever is in the state: annealing, moments, normalisers, envs in the middle of an episode."""
        recurrent = {"recurrent": 9, "minibatches": 2}
        runs = [(env, {}) for env in SIMULATORS]
        runs += [("cartpole", recurrent), ("pendulum", {**recurrent, "precision": "bf16"})]
        for env, changes in runs:
            flags = ["--lr-anneal", "--clip-anneal", "--shared", "--randomize=" + {
                "cartpole": "pole_mass_kg=0.05:0.2", "mountain_car": "force=0.0008:0.0012",
                "mountain_car_continuous": "power=0.001:0.002", "acrobot": "link1_mass_kg=0.8:1.2",
                "pendulum": "mass_kg=0.8:1.2", "position_only_cartpole": "pole_mass_kg=0.05:0.2",
                "parking": "thrust_mps2=1:3", "lunar_lander": "gravity_mps2=8:11",
                "lunar_lander_continuous": "wind=0:1", "bipedal_walker": "ground_friction=1:3",
                "bipedal_walker_hardcore": "motor_torque_nm=60:100"}[env]]  # fmt: skip
            out = self.path()
            whole = self.good(*fixed(env, checkpoint_every=1, updates=5, **changes), *flags, "--out", out)
            for kept in [4, 5]:  # two checkpoints are kept
                with self.subTest(env=env, kept=kept, **changes):
                    copy = self.path()
                    shutil.copytree(out, copy)
                    for file in (copy / "checkpoint").iterdir():
                        if file.name != f"gen-{kept:08}.safetensors":
                            file.unlink()
                    done = self.good("--resume", copy, "--device=cpu", "--bind=none", "--threads=1")
                    self.assertEqual(whole["params_hash"], done["params_hash"])
                    self.assertEqual(whole["test_return_mean"], done["test_return_mean"])
                    self.same_rows(out, copy)


class Target(PporunTest):
    """A run that reached its target is done: going on with it must not train further."""

    def args(self):
        return fixed("cartpole", updates=400, test_every=1, lr=0.003) + ["--stop-at-target", "--target=60"]

    def test_finished_and_interrupted(self):
        whole = self.good(*self.args(), "--out", self.path())
        self.assertEqual("target held", whole["outcome"])
        last = whole["updates"]
        self.assertGreater(last, 1)
        again = self.good("--resume", whole["run"], "--device=cpu", "--bind=none")
        for name in ["params_hash", "outcome", "updates", "test_return_mean", "env_steps"]:
            self.assertEqual(whole[name], again[name])
        out = self.path()
        process = self.start(*self.args(), "--out", out)
        while process.poll() is None and not ((out / "metrics.csv").exists() and len(rows(out)) >= last // 2):
            pass
        process.send_signal(self.random.choice([signal.SIGINT, signal.SIGKILL]))
        process.wait()
        done = self.go_on(out, self.args())
        self.assertEqual(whole["params_hash"], done["params_hash"])
        self.assertEqual(("target held", last), (done["outcome"], done["updates"]))


class Kill(KillTests, PporunTest):
    long = staticmethod(long)


class Disk(PporunTest):
    def test_file_size_limit(self):
        args = fixed("cartpole", updates=60, checkpoint_every=1)
        whole = self.unbroken("cartpole", updates=60)
        file_bytes = os.path.getsize(f"{whole['run']}/checkpoint/gen-00000060.safetensors")
        for name, limit in [("config.json", 200), ("gen-00000001", file_bytes // 2)]:
            with self.subTest(limit=limit):
                out = self.path()
                done = self.call(*args, "--out", out, "--quiet",
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit,) * 2))  # fmt: skip
                self.assertEqual(1, done.code, done)
                self.assertRegex(done.err, rf"^pporun: cannot write .*{name}.*: File too large\n$")
                self.assertEqual([], [path for path in tree(out) if ".tmp-" in path])
                self.assertEqual(whole["params_hash"], self.go_on(out, args)["params_hash"])
                self.same_rows(whole["run"], out)


if __name__ == "__main__":
    harness.main()
