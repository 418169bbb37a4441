#!/usr/bin/env python3
"""An interrupted run of esrun goes on to the bits that an unbroken one reaches: signals, kill -9, full disks."""

import os
import resource
import shutil
import signal
import subprocess

import esrun_harness as harness
from esrun_harness import ESRUN, EsrunTest, KillTests, SignalTests, fixed, rows, tree

# Enough generations that a run takes a few tenths of a second.
LONG = {"cartpole": 60, "mountain_car": 120, "mountain_car_continuous": 80, "acrobot": 60, "pendulum": 100,
        "position_only_cartpole": 60, "parking": 100, "lunar_lander": 8,
        "lunar_lander_continuous": 8, "bipedal_walker": 4, "bipedal_walker_hardcore": 4}  # fmt: skip


def long(env):
    """What makes a run long enough."""
    return {"generations": LONG[env] // (4 if harness.SANITIZED else 1)}


class Signals(SignalTests, EsrunTest):
    long = staticmethod(long)

    def test_in_the_first_generation(self):
        changes = {"generations": 2, "episodes": 200 if harness.SANITIZED else 2000, "test_episodes": 8}
        at = self.stopped_in_phase("first", changes, lambda out: (out / "metrics.csv").exists())
        self.assertEqual(0, at)

    def test_in_a_test(self):
        changes = {"generations": 3, "episodes": 1, "test_every": 2, "test_episodes": 5000 if harness.SANITIZED else 50000}
        at = self.stopped_in_phase("test", changes, lambda out: (out / "metrics.csv").exists() and len(rows(out)) >= 1)
        self.assertIn(at, [1, 2])

    def test_in_the_final_test(self):
        changes = {"generations": 3, "test_every": 1000, "test_episodes": 5000 if harness.SANITIZED else 50000}
        last = "checkpoint/gen-00000003.safetensors"
        self.assertEqual(3, self.stopped_in_phase("final", changes, lambda out: (out / last).exists()))


class Target(EsrunTest):
    """A run that reached its target is done: going on with it must not train further."""

    ARGS = {"pop": 64, "generations": 1000, "test_every": 1, "seed": 3, "lr": 0.1, "test_episodes": 20}

    def args(self, **changes):
        return fixed("cartpole", **{**self.ARGS, **changes}) + ["--stop-at-target", "--target=200"]

    def test_interrupted(self):
        whole = self.good(*self.args(), "--out", self.path())
        self.assertEqual("target held", whole["outcome"])
        last = whole["generations"]
        for at in sorted({1, last // 2, last - 1, last}):
            with self.subTest(stopped_at=at):
                out = self.path()
                process = self.start(*self.args(), "--out", out)
                while process.poll() is None and not ((out / "metrics.csv").exists() and len(rows(out)) >= at):
                    pass
                process.send_signal(self.random.choice([signal.SIGINT, signal.SIGKILL]))
                process.wait()
                done = self.go_on(out, self.args())
                self.assertEqual(whole["params_hash"], done["params_hash"])
                self.assertEqual(("target held", last), (done["outcome"], done["generations"]))
                self.same_rows(whole["run"], out, tests_may_lack=True)

    def test_finished(self):
        whole = self.good(*self.args(), "--out", self.path())
        again = self.good("--resume", whole["run"], "--device=cpu")
        for name in ["params_hash", "outcome", "generations", "test_return_mean", "env_steps"]:
            self.assertEqual(whole[name], again[name])
        more = whole["generations"] + 2
        further = self.good("--resume", whole["run"], "--no-stop-at-target", f"--generations={more}", "--device=cpu")
        self.assertEqual(more, further["generations"])
        self.assertEqual([str(i + 1) for i in range(more)], [r["generation"] for r in rows(whole["run"])])


class Kill(KillTests, EsrunTest):
    long = staticmethod(long)


class Disk(EsrunTest):
    def limited(self, size_bytes, *args):
        """esrun with files of at most that size."""
        return self.call(*args, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes,) * 2))

    def test_file_size_limit(self):
        args = fixed("cartpole", generations=60, checkpoint_every=1)
        whole = self.unbroken("cartpole", generations=60)
        file_bytes = os.path.getsize(f"{whole['run']}/checkpoint/gen-00000060.safetensors")
        metrics_bytes = os.path.getsize(f"{whole['run']}/metrics.csv")
        self.assertLess(file_bytes, metrics_bytes)
        for name, limit in [("config.json", 200), ("gen-00000001", 1500), ("metrics.csv", (file_bytes + metrics_bytes) // 2)]:
            with self.subTest(limit=limit):
                out = self.path()
                done = self.limited(limit, *args, "--out", out, "--quiet")
                self.assertEqual(1, done.code, done)
                self.assertRegex(done.err, rf"^esrun: cannot write .*{name}.*: File too large\n$")
                self.assertEqual([], [path for path in tree(out) if ".tmp-" in path])
                self.assertEqual(whole["params_hash"], self.go_on(out, args)["params_hash"])
                self.same_rows(whole["run"], out)

    def test_full_disk(self):
        probe = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o size=64k tmpfs {self.folder}"]
        if os.geteuid() != 0 or subprocess.run(probe, capture_output=True, check=False).returncode != 0:
            self.skipTest("mounting a small tmpfs needs root and mount namespaces")
        settings = {"generations": 40, "hidden": "32,32", "checkpoint_every": 1}
        args = fixed("cartpole", **settings)
        whole = self.unbroken("cartpole", **settings)
        mount, kept = self.path("mount"), self.path("kept")
        mount.mkdir()
        # The namespace, and with it the tmpfs, is gone afterwards: the folder is copied out of it.
        script = 'kept=$1; shift; mount -t tmpfs -o size=64k tmpfs "$0" || exit 99; "$@"; s=$?; cp -r "$0/run" "$kept"; exit $s'
        call = ["unshare", "--mount", "sh", "-c", script, mount, kept, ESRUN, *args, "--quiet", "--out", mount / "run"]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        self.assertEqual(1, done.returncode, done)
        self.assertRegex(done.stderr, r"^esrun: cannot \w+ .*: No space left on device\n$")
        checkpoints = [name for name in tree(kept) if name.endswith(".safetensors")]
        self.assertGreaterEqual(len(checkpoints), 1)
        self.assertEqual([], [name for name in tree(kept) if ".tmp-" in name])
        self.assertEqual(whole["params_hash"], self.go_on(kept, args)["params_hash"])
        self.same_rows(whole["run"], kept)

    def test_moved_folder(self):
        """A run's folder may be moved or copied before it is gone on with."""
        whole = self.unbroken("acrobot")
        first = self.unbroken("acrobot", generations=5)["run"]
        moved = self.path("moved")
        shutil.copytree(first, moved)
        shutil.rmtree(first)
        done = self.good("--resume", moved, "--generations=12", "--device=cpu", "--bind=none")
        self.assertEqual(whole["params_hash"], done["params_hash"])
        self.assertEqual(str(moved), done["run"])
        self.same_rows(whole["run"], moved)


if __name__ == "__main__":
    harness.main()
