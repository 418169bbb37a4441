#!/usr/bin/env python3
"""What esrun prints and writes: JSON in every mode, lists, plans and their memory, tests, metrics.csv, config.json."""

import json
import os
import subprocess
import unittest

import esrun_harness as harness
from esrun_harness import ESRUN, SAMPLE, SIMULATORS, EsrunTest, fixed, rows, tree

ALLOWANCE_KIB = 30 * 1024


class Json(EsrunTest):
    ODD = ['a "quoted" name', "back\\slash", "tab\tand\nnewline", "ünïcödé-☃-𝛑", "{}[],:", "\x01\x7f", "%s%n"]

    def test_every_mode(self):
        run = self.good(*fixed("acrobot"), "--out", self.path())["run"]
        self.assertEqual(SIMULATORS, [s["name"] for s in self.good("--list")][: len(SIMULATORS)])
        for env in SIMULATORS:
            listed = self.good("--list", env)
            self.assertEqual(env, listed["name"])
            self.assertEqual("esrun", listed["settings"]["tool"])
            self.assertIn("default", listed["parameters"][0])
        for args in [["--dry-run", *fixed("acrobot")], ["--eval", run], ["--resume", run], ["--dry-run", "--resume", run]]:
            with self.subTest(args=args):
                self.assertEqual("acrobot", self.good(*args)["env"])

    def test_odd_folder_names(self):
        for name in self.ODD:
            with self.subTest(name=name):
                out = str(self.folder / name)
                first = self.good(*fixed("pendulum", generations=3), "--out", out)
                self.assertEqual(out, first["run"])
                self.assertEqual(first["params_hash"], self.good("--eval", out)["params_hash"])
                self.assertEqual(out, self.good("--resume", out, "--generations=4")["run"])

    def test_people_and_machines(self):
        """People's output goes to stderr where --json is asked for, and the result to stdout in any case."""
        done = self.call(*fixed("pendulum"), "--json", "--out", self.path())
        self.assertEqual("pendulum", done.json["env"])
        self.assertIn("run folder", done.err)
        done = self.call(*fixed("pendulum"), "--quiet", "--out", self.path())
        self.assertIn("pendulum: generations done after 12 generations", done.out)
        self.assertEqual("", done.err)

    def test_default_folder(self):
        runs = [self.good(*fixed("cartpole"))["run"] for _ in range(2)]
        self.assertEqual(2, len(set(runs)))
        for run in runs:
            self.assertRegex(run, r"^runs/cartpole-\d{8}-\d+$")
            self.assertTrue((self.folder / run / "config.json").exists())


class Stdout(EsrunTest):
    MODES = [["--list"], ["--list", "cartpole"], ["--help"], ["--version"], ["--dry-run", *fixed("cartpole")]]

    def with_stdout(self, redirection, *args):
        call = ["sh", "-c", f'"$@" {redirection}', "sh", ESRUN, *map(str, args)]
        return subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                              check=False)  # fmt: skip

    def test_lost_output(self):
        for redirection, reason in [("> /dev/full", "No space left"), (">&-", "Bad file descriptor")]:
            for args in self.MODES:
                with self.subTest(redirection=redirection, args=args):
                    done = self.with_stdout(redirection, *args)
                    self.assertEqual(1, done.returncode, done)
                    self.assertRegex(done.stderr, f"^esrun: cannot write to stdout: {reason}.*\n$")

    def test_a_run_whose_result_is_lost(self):
        whole = self.unbroken("cartpole")
        for redirection in ["> /dev/full", ">&-", "<&- >&- 2>&-", "2>&-", "2> /dev/full", "<&-"]:
            with self.subTest(redirection=redirection):
                out = self.path()
                done = self.with_stdout(redirection, *fixed("cartpole"), "--out", out)
                self.assertEqual(1 if ">&-" in redirection.split() or ">" in redirection.split() else 0, done.returncode)
                self.same_rows(whole["run"], out)
                json.loads((out / "config.json").read_text(encoding="utf-8"))
                self.assertEqual(b"", (out / ".lock").read_bytes())
                self.assertEqual(whole["params_hash"], self.good("--eval", out)["params_hash"])


class Lists(EsrunTest):
    def test_all(self):
        done = self.call("--list")
        self.assertEqual(SIMULATORS, [line.split()[0] for line in done.out.splitlines()][: len(SIMULATORS)])
        self.assertIn("CartPole-v1", done.out)

    def test_one(self):
        done = self.call("--list", "cartpole")
        for word in ["pole_mass_kg", "theta_dot_radps", '"pop"', "2 discrete"]:
            self.assertIn(word, done.out)
        listed = self.good("--list", "Pendulum-v1")  # by its Gymnasium id too
        self.assertEqual("pendulum", listed["name"])
        self.assertEqual(["theta_rad", "theta_dot_radps"], listed["state"])
        self.assertEqual((-2, 2), (listed["action_low"], listed["action_high"]))

    def test_help_and_version(self):
        out = self.call("--help").out
        for option in ["--pop", "--resume", "--eval", "--[no-]normalize", "--dry-run", "--set"]:
            self.assertIn(option, out)
        self.assertRegex(self.call("--version").out, r"^esrun \d+\.\d+\.\d+\n$")


class Eval(EsrunTest):
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
        run = self.unbroken("pendulum", generations=30)
        other = self.good("--eval", run["run"], "--set=mass_kg=3", "--test-episodes=20")
        self.assertEqual(20, other["test_episodes"])
        self.assertEqual(run["params_hash"], other["params_hash"])
        again = self.good("--eval", run["run"], "--device=cpu")
        self.assertEqual(again["train_s"], other["train_s"])  # the run's, whatever a test takes
        self.assertLessEqual(other["train_s"], run["train_s"])
        self.assertNotEqual(run["test_return_mean"], other["test_return_mean"])
        self.assertNotEqual(run["test_return_mean"], self.good("--eval", run["run"], "--seed=99")["test_return_mean"])

    def test_a_run_that_goes_on(self):
        out = self.path()
        process = self.start(*fixed("cartpole", generations=100000, checkpoint_every=1), "--out", out)
        try:
            while not list(out.glob("checkpoint/gen-*.safetensors")):
                self.assertIsNone(process.poll(), "the run ended")
            self.good("--eval", out)
        finally:
            process.kill()
            process.wait()

    def test_no_checkpoint_yet(self):
        out = self.path()
        process = self.start(*fixed("cartpole", generations=1000000, checkpoint_every=1000000), "--out", out)
        while not (out / "config.json").exists():
            self.assertIsNone(process.poll(), "the run ended")
        process.kill()
        process.wait()
        self.refused(1, "no checkpoint yet", "--eval", out, "--device=cpu", "--quiet")


class Plan(EsrunTest):
    def test_prints_and_writes_nothing(self):
        before = tree(self.folder)
        done = self.call("--dry-run", *fixed("acrobot"))
        self.assertEqual(0, done.code, done)
        for word in ["acrobot on cpu", "episode results", "parameters", "total", "32 members x 2 episodes"]:
            self.assertIn(word, done.out)
        self.assertEqual(before, tree(self.folder))
        plan = self.good("--dry-run", *fixed("acrobot"))
        self.assertEqual(32 * 2 * 500, plan["env_steps_per_generation_max"])

    @unittest.skipIf(harness.SANITIZED, "a sanitizer's memory is not the program's")
    def test_peak_memory_is_within_the_plan(self):
        for name, args in {
            "small": fixed("cartpole"),
            "large population": fixed("acrobot", pop=65536, episodes=4, generations=2, hidden=8, time_limit=20),
            "large policy": fixed("pendulum", pop=8, episodes=1, hidden="1024,1024,512", generations=2, time_limit=5,
                                  checkpoint_every=100, test_every=100),
            "long test": fixed("pendulum", test_episodes=300000, time_limit=2, generations=2, test_every=100),
        }.items():  # fmt: skip
            with self.subTest(name=name):
                plan_bytes = self.good("--dry-run", *args)["memory"]["total_bytes"]
                process = self.start(*args, "--quiet", "--out", self.path())
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                self.assertEqual(0, process.returncode)
                self.assertLessEqual(usage.ru_maxrss, plan_bytes // 1024 + ALLOWANCE_KIB)
                print(f"{name}: plan {plan_bytes >> 10} KiB, peak {usage.ru_maxrss} KiB")


class Folder(EsrunTest):
    def test_metrics(self):
        run = self.folder / self.unbroken("acrobot")["run"]
        found = rows(run)
        self.assertEqual([str(i) for i in range(1, 13)], [r["generation"] for r in found])
        for column in ["env_steps", "train_s"]:
            values = [float(r[column]) for r in found]
            self.assertEqual(sorted(set(values)), values)
        tested = [r["generation"] for r in found if r["test_return_mean"] != "nan"]
        self.assertEqual(["4", "8", "12"], tested)
        self.good("--resume", run, "--generations=20")
        self.assertEqual([str(i) for i in range(1, 21)], [r["generation"] for r in rows(run)])
        self.assertEqual(found, rows(run)[:12])

    def test_two_checkpoints_are_kept(self):
        run = self.folder / self.unbroken("acrobot", generations=10)["run"]
        names = sorted(p.name for p in (run / "checkpoint").iterdir())
        self.assertEqual(["gen-00000009.safetensors", "gen-00000010.safetensors"], names)

    def test_config_comes_back(self):
        sets = ["--set=gravity_mps2=9", "--randomize=mass_kg=0.5:1.5", "--no-normalize", "--no-common-random"]
        first = self.good(*fixed("pendulum"), *sets, "--out", self.path())
        config = f"{first['run']}/config.json"
        for args in [[], ["pendulum"]]:
            again = self.good(*args, "--config", config, "--out", self.path())
            self.assertEqual(first["params_hash"], again["params_hash"])
            with open(config, encoding="utf-8") as a, open(f"{again['run']}/config.json", encoding="utf-8") as b:
                self.assertEqual(a.read(), b.read())
        other = self.good("--config", config, "--seed=6", "--out", self.path())  # the command line wins
        self.assertNotEqual(first["params_hash"], other["params_hash"])
        later = self.good("--config", config, "--set=gravity_mps2=5", "--out", self.path())
        self.assertNotEqual(first["params_hash"], later["params_hash"])


if __name__ == "__main__":
    harness.main()
