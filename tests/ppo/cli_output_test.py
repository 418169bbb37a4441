#!/usr/bin/env python3
"""What pporun prints and writes: JSON in every mode, lists, plans and their memory, tests, metrics.csv, config.json."""

import os
import unittest

import pporun_harness as harness
from pporun_harness import SAMPLE, SIMULATORS, UPDATE_STEPS, PporunTest, fixed, rows, tree

ALLOWANCE_KIB = 30 * 1024
COLUMNS = ("update,env_steps,train_s,env_steps_per_s,return_mean,length_mean_steps,policy_loss,value_loss,entropy,kl,"
           "clip_fraction,explained_variance,grad_norm,epochs,learning_rate,test_return_mean,test_return_std")  # fmt: skip


class Json(PporunTest):
    def test_every_mode(self):
        run = self.good(*fixed("acrobot"), "--out", self.path())["run"]
        self.assertEqual(SIMULATORS, [s["name"] for s in self.good("--list")])
        for env in SIMULATORS:
            listed = self.good("--list", env)
            self.assertEqual(env, listed["name"])
            self.assertEqual("pporun", listed["settings"]["tool"])
        for args in [["--dry-run", *fixed("acrobot")], ["--eval", run], ["--resume", run], ["--dry-run", "--resume", run]]:
            with self.subTest(args=args):
                self.assertEqual("acrobot", self.good(*args, "--device=cpu")["env"])

    def test_people_and_machines(self):
        done = self.call(*fixed("pendulum"), "--json", "--out", self.path())
        self.assertEqual(12, done.json["updates"])
        self.assertEqual(12 * UPDATE_STEPS, done.json["env_steps"])
        self.assertIn("run folder", done.err)
        done = self.call(*fixed("pendulum"), "--quiet", "--out", self.path())
        self.assertIn("pendulum: updates done after 12 updates", done.out)
        self.assertEqual("", done.err)

    def test_help_and_version(self):
        out = self.call("--help").out
        for option in ["--envs", "--rollout", "--[no-]lr-anneal", "--target-kl", "--resume", "--dry-run", "--set"]:
            self.assertIn(option, out)
        self.assertRegex(self.call("--version").out, r"^pporun \d+\.\d+\.\d+\n$")


class Eval(PporunTest):
    def test_gives_the_runs_own_figures(self):
        for env in SAMPLE:
            with self.subTest(env=env):
                run = self.unbroken(env)
                before = tree(run["run"])
                test = self.good("--eval", run["run"], "--device=cpu")
                names = ["test_return_mean", "test_return_std", "test_length_mean", "test_episodes", "params_hash"]
                self.assertEqual([run[n] for n in names], [test[n] for n in names])
                self.assertEqual(before, tree(run["run"]))

    def test_on_something_else(self):
        run = self.unbroken("pendulum", updates=30)
        other = self.good("--eval", run["run"], "--set=mass_kg=3", "--test-episodes=20", "--device=cpu")
        self.assertEqual(20, other["test_episodes"])
        self.assertEqual(run["params_hash"], other["params_hash"])
        again = self.good("--eval", run["run"], "--device=cpu")
        self.assertEqual(again["train_s"], other["train_s"])  # the run's, whatever a test takes
        self.assertLessEqual(other["train_s"], run["train_s"])
        self.assertNotEqual(run["test_return_mean"], other["test_return_mean"])


class Plan(PporunTest):
    def test_prints_and_writes_nothing(self):
        before = tree(self.folder)
        done = self.call("--dry-run", *fixed("acrobot"))
        self.assertEqual(0, done.code, done)
        for word in ["acrobot on cpu", "12 updates of 512 env steps: 16 envs (8 shards) x 32 steps", "2 epochs of 4",
                     "parameters", "total"]:  # fmt: skip
            self.assertIn(word, done.out)
        self.assertEqual(before, tree(self.folder))
        self.assertEqual(UPDATE_STEPS, self.good("--dry-run", *fixed("acrobot"))["env_steps_per_update"])

    @unittest.skipIf(harness.SANITIZED, "a sanitizer's memory is not the program's")
    def test_peak_memory_is_within_the_plan(self):
        for name, args in {
            "small": fixed("cartpole"),
            "large rollout": fixed("acrobot", envs=4096, rollout=64, steps=4096 * 64, epochs=1, hidden=8),
            "large policy": fixed("pendulum", hidden="1024,1024", updates=1, epochs=1, checkpoint_every=100),
        }.items():
            with self.subTest(name=name):
                plan_bytes = self.good("--dry-run", *args)["memory"]["total_bytes"]
                process = self.start(*args, "--quiet", "--out", self.path())
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(0, process.returncode)
                self.assertLessEqual(usage.ru_maxrss, plan_bytes // 1024 + ALLOWANCE_KIB)
                print(f"{name}: plan {plan_bytes >> 10} KiB, peak {usage.ru_maxrss} KiB")


class Folder(PporunTest):
    def test_metrics(self):
        run = self.folder / self.unbroken("acrobot")["run"]
        self.assertEqual(COLUMNS, (run / "metrics.csv").read_text(encoding="utf-8").splitlines()[0])
        found = rows(run)
        self.assertEqual([str(i) for i in range(1, 13)], [r["update"] for r in found])
        self.assertEqual([str(i * UPDATE_STEPS) for i in range(1, 13)], [r["env_steps"] for r in found])
        self.assertEqual(["4", "8", "12"], [r["update"] for r in found if r["test_return_mean"] != "nan"])
        for row in found:
            self.assertEqual("2", row["epochs"])
            self.assertGreater(float(row["entropy"]), 0)
            self.assertGreater(float(row["grad_norm"]), 0)
        self.good("--resume", run, f"--steps={20 * UPDATE_STEPS}", "--device=cpu", "--bind=none")
        self.assertEqual([str(i) for i in range(1, 21)], [r["update"] for r in rows(run)])
        self.assertEqual(found, rows(run)[:12])

    def test_the_learning_rate_is_annealed(self):
        run = self.good(*fixed("cartpole"), "--lr-anneal", "--out", self.path())["run"]
        for i, row in enumerate(rows(self.folder / run)):
            self.assertAlmostEqual(0.001 * (1 - i / 12), float(row["learning_rate"]), 9)

    def test_epochs_end_at_the_target_kl(self):
        run = self.good(*fixed("cartpole", epochs=10, lr=0.01, target_kl=0.001), "--out", self.path())["run"]
        epochs = [int(r["epochs"]) for r in rows(self.folder / run)]
        self.assertLess(min(epochs), 10)
        self.assertGreaterEqual(min(epochs), 1)

    def test_config_comes_back(self):
        sets = ["--set=gravity_mps2=9", "--randomize=mass_kg=0.5:1.5", "--shared", "--no-normalize-obs"]
        first = self.good(*fixed("pendulum"), *sets, "--out", self.path())
        config = f"{first['run']}/config.json"
        again = self.good("--config", config, "--device=cpu", "--bind=none", "--out", self.path())
        self.assertEqual(first["params_hash"], again["params_hash"])
        with open(config, encoding="utf-8") as a, open(f"{again['run']}/config.json", encoding="utf-8") as b:
            self.assertEqual(a.read(), b.read())
        other = self.good("--config", config, "--seed=6", "--device=cpu", "--bind=none", "--out", self.path())
        self.assertNotEqual(first["params_hash"], other["params_hash"])


class Learns(PporunTest):
    @unittest.skipIf(harness.SANITIZED, "takes long in a sanitizer's build")
    def test_cartpole(self):
        """With its defaults; the same seed gives the same run everywhere, so this cannot fail by chance."""
        done = self.good("cartpole", "--device=cpu", "--bind=none", "--out", self.path())
        self.assertEqual("target held", done["outcome"])
        self.assertLessEqual(done["env_steps"], 100000)
        self.assertGreaterEqual(done["test_return_mean"], 475)

    @unittest.skipIf(harness.SANITIZED, "takes long in a sanitizer's build")
    def test_with_memory_and_with_several_actions(self):
        for env, least in [("position_only_cartpole", 450), ("parking", -1.7)]:
            with self.subTest(env=env):
                done = self.good(env, "--device=cpu", "--bind=none", "--out", self.path())
                self.assertEqual("target held", done["outcome"])
                self.assertGreaterEqual(done["test_return_mean"], least)

    @unittest.skipIf(harness.SANITIZED, "takes long in a sanitizer's build")
    def test_without_memory(self):
        done = self.good("position_only_cartpole", "--recurrent=0", "--steps=100000", "--device=cpu", "--bind=none",
                         "--out", self.path())  # fmt: skip
        self.assertLess(done["test_return_mean"], 200)


if __name__ == "__main__":
    harness.main()
