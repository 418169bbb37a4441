#!/usr/bin/env python3
"""Objectives without a simulator: built-in ones, commands, libraries; alone and by several workers."""

import json
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import esrun_harness as harness
from esrun_harness import ESRUN, SANITIZED, SIMULATORS, WorkersTest, rows

from workers_harness import PATIENCE_S, state

FIXED = {"pop": 16, "sigma": 0.1, "lr": 0.05, "seed": 5, "generations": 12, "checkpoint-every": 3, "test-every": 4,
         "dim": 3, "bind": "none", "threads": 2, "device": "cpu"}  # fmt: skip
OBJECTIVES = ["sphere", "rastrigin", "rosenbrock", "sleep", "exec", "lib"]

# Answers with x1 - x2^2; what it does besides is the test's.
SCRIPT = """
import os, sys, time
for number, line in enumerate(sys.stdin):
    x = [float(v) for v in line.split()]
    {0}
    print(repr(x[0] - x[1] * x[1]), flush=True)
"""


def float32(text):
    """The float32 that a number of nine digits stands for."""
    return struct.unpack("f", struct.pack("f", float(text)))[0]


def reference(name, x):
    """What the formulas give, in double precision."""
    if name == "sphere":
        return -sum(v * v for v in x)
    if name == "rastrigin":
        return -sum(v * v + 10 - 10 * math.cos(2 * math.pi * v) for v in x)
    return -sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


class ObjectiveTest(WorkersTest):
    """A test of runs of objectives."""

    STEP = "generation"

    @staticmethod
    def fixed(env, **changes):
        values = {**FIXED, **{k.replace("_", "-"): v for k, v in changes.items()}}
        return [env, "--no-stop-at-target"] + [f"--{name}={value}" for name, value in values.items() if value is not None]

    def best(self, run):
        return json.loads((self.folder / run / "best.json").read_text(encoding="utf-8"))

    def script(self, body="pass", name="fitness.py"):
        """objective:exec of a script that does something before each answer."""
        path = self.path(name)
        path.write_text(SCRIPT.format(body.replace("\n", "\n    ")), encoding="utf-8")
        return f"objective:exec:exec {sys.executable} -S {path}"

    def library(self, kind):
        """A copy of one of tests/es/objective_module.c's."""
        path = self.path(f"lib{kind}-").with_suffix(".so")
        shutil.copy(os.environ.get("OBJECTIVE_LIBRARY", f"{os.path.dirname(ESRUN)}/tests/objective_module_KIND.so").replace("KIND", str(kind)), path)
        return path

    def same_for_all_workers(self, env, *counts, **changes):
        """The result of a run alone, which runs of several workers and threads must have, too."""
        expected = self.good(*self.args(env, **changes), "--out", self.path())
        one = self.good(*self.fixed(env, **{**changes, "threads": 3}), "--out", self.path())
        self.assertEqual(expected["params_hash"], one["params_hash"])
        for workers in counts:
            run = self.begin(*self.args(env, **changes), f"--min-workers={workers}", workers=workers, tool=ESRUN)
            done = self.same_end(expected, run)
            self.assertGreater(done["workers"]["other_items"], 0)
            self.assertEqual(self.best(expected["run"]), self.best(run.out))
        return expected


class Functions(ObjectiveTest):
    """The built-in ones, alone."""

    def test_what_a_run_leaves(self):
        for name in ["sphere", "rastrigin", "rosenbrock"]:
            with self.subTest(name=name):
                done = self.unbroken(f"objective:{name}", dim=5)
                self.assertEqual([f"objective:{name}", 5, 12, 12 * 16],
                                 [done[k] for k in ["env", "params", "generations", "env_steps"]])  # fmt: skip
                found, table = self.best(done["run"]), rows(done["run"])
                best, mean = found["member"], found["mean"]
                self.assertEqual(done["best_return"], found[found["best"]]["fitness"])
                self.assertEqual(done["best_return"], max(best["fitness"], mean["fitness"]))
                self.assertEqual(best["fitness"], max(float32(r["return_max"]) for r in table))
                self.assertEqual(best["fitness"], float32(table[best["generation"]]["return_max"]))
                self.assertAlmostEqual(1, best["fitness"] / reference(name, best["params"]), places=5)
                self.assertAlmostEqual(1, mean["fitness"] / reference(name, mean["params"]), places=5)
                self.assertEqual(done["test_return_mean"], mean["fitness"])
                self.assertEqual((0, 1), (done["test_return_std"], done["test_episodes"]))
                self.assertEqual(done["test_return_mean"], self.good("--eval", done["run"])["test_return_mean"])

    def test_evolution_gets_there(self):
        """With the defaults, in twice the generations that the slowest of twenty seeds takes."""
        for name, least, options in [
            ("sphere", -0.01, ["--dim=20", "--generations=200"]),
            ("rastrigin", -1.0, ["--dim=20", "--generations=800"]),
            ("rosenbrock", -1.0, ["--dim=6", "--generations=400"]),
        ]:
            with self.subTest(name=name):
                call = [f"objective:{name}", *options, "--seed=3", "--threads=1", "--bind=none"]
                first = self.good(*call, "--generations=1", "--out", self.path())
                done = self.good(*call, "--out", self.path())
                self.assertLess(first["test_return_mean"], 5 * least)
                self.assertEqual("target held", done["outcome"], done)
                self.assertEqual(least, done["target_return"])
                self.assertGreaterEqual(done["test_return_mean"], least)
                self.assertGreaterEqual(done["best_return"], least)

    def test_resume(self):
        whole = self.unbroken("objective:rastrigin")
        half = self.good(*self.fixed("objective:rastrigin", generations=7), "--out", self.path())
        done = self.good("--resume", half["run"], "--generations=12", "--bind=none", "--threads=1")
        self.assertEqual(whole["params_hash"], done["params_hash"])
        self.assertEqual(self.best(whole["run"]), self.best(half["run"]))
        self.same_rows(whole["run"], half["run"])

    def test_where_it_begins(self):
        done = self.unbroken("objective:sphere", init="2", generations=1, sigma=1e-6, lr=0)
        self.assertEqual([2, 2, 2], self.best(done["run"])["mean"]["params"])
        done = self.unbroken("objective:sphere", init="-3:-2", generations=1, lr=0)
        self.assertTrue(all(-3 <= v <= -2 for v in self.best(done["run"])["mean"]["params"]))

    def test_folder_plan_and_profile(self):
        done = self.good(*self.fixed("objective:rosenbrock"), "--profile")
        self.assertRegex(done["run"], r"^runs/objective-rosenbrock-\d{8}-1$")
        self.assertTrue(any((self.folder / done["run"] / "profile").iterdir()))
        plan = self.call(*self.fixed("objective:sphere", dim=1000), "--dry-run")
        self.assertIn("population: 16 members, each evaluated once in a generation", plan.out)
        self.assertIn("1000 parameters", plan.out)
        self.assertIn("best parameters", plan.out)
        self.assertEqual(1000, self.good(*self.fixed("objective:sphere", dim=1000), "--dry-run")["params"])
        script = self.call(*self.fixed(self.script()), "--emit=slurm", "--workers=3")
        self.assertEqual(0, script.code, script)
        self.assertIn("'objective:exec:exec ", script.out)
        self.assertIn("runs/objective-exec", script.out)

    def test_people_are_told(self):
        done = self.call(*self.fixed("objective:sphere", device="auto"), "--out", self.path())
        self.assertEqual(0, done.code, done)
        self.assertIn("on the CPU: objectives without a simulator run on CPUs", done.err)
        self.assertRegex(done.err, r"fitness -\d.*evaluations/s")
        self.assertRegex(done.out, r"objective:sphere: generations done after 12 generations, 192 evaluations, ")
        self.assertRegex(done.out, r"fitness -\S+ at the mean of the search \(solved at -0.01\)\nfitness -\S+ of the best member")


class Names(ObjectiveTest):
    """Lists, and what is refused."""

    OF_POLICIES = ["hidden", "recurrent", "activation", "precision", "normalize", "episodes", "test_episodes", "time_limit", "set",
                   "randomize", "common_random"]  # fmt: skip

    def test_lists(self):
        names = SIMULATORS + [f"objective:{o}" for o in OBJECTIVES]
        self.assertEqual(names, [s["name"] for s in self.good("--list")])
        self.assertIn("objective:sleep[:MS[:MS]]", self.call("--list").out)
        for name in OBJECTIVES:
            listed = self.good("--list", f"objective:{name}")
            self.assertEqual(f"objective:{name}", listed["name"])
            has_target = name in ["sphere", "rastrigin", "rosenbrock"]
            self.assertEqual((has_target, has_target), (listed["target_return"] is not None, "target" in listed["settings"]))
            self.assertIn("dim", listed["settings"])
            self.assertEqual(name == "lib", "lib_hash" in listed["settings"])
            self.assertEqual([], [option for option in self.OF_POLICIES if option in listed["settings"]])
            self.assertEqual(not has_target, "target: none" in self.call("--list", f"objective:{name}").out)
        self.assertEqual(3, self.call("--list").out.count(", target: none\n"))
        self.assertEqual([], [option for option in ["dim", "init", "lib_hash"] if option in self.good("--list", "cartpole")["settings"]])
        text = self.call("--list", "objective:rosenbrock").out
        for word in ["100 (x_(i+1) - x_i^2)^2", "at least 2", "between -2 and 2", '"dim"']:
            self.assertIn(word, text)

    def test_names(self):
        for code, words, *args in [
            (2, ["'objective:rastrigin'"], "objective:rastrgin"),
            (2, ["did you mean 'objective:rastrigin'"], "rastrigin"),
            (2, ["did you mean 'objective:rastrigin'"], "--list", "objective:rastrgin"),
            (2, ["nothing.so", "No such file"], "objective:nothing.so", "--dim=2"),
            (2, ["nothing", "No such file"], "objective:lib:nothing", "--dim=2"),
            (2, ["/etc", "regular file"], "objective:lib:/etc", "--dim=2"),
            (2, ["cannot be loaded"], "objective:lib:/etc/passwd", "--dim=2"),
            (2, ["which command?"], "objective:exec:", "--dim=2"),
            (2, ["how many parameters? --dim"], "objective:exec:cat"),
            (2, ["one simulator at a time"], "objective:sphere", "--env=cartpole"),
            (2, ["--dim 1", "at least 2"], "objective:rosenbrock", "--dim=1"),
            (2, ["1 to 16777216 parameters"], "objective:sphere", "--dim=0"),
            (2, ["--init", "2 is above 1"], "objective:sphere", "--init=2:1"),
            (2, ["--device cuda", "run on CPUs"], "objective:sphere", "--device=cuda"),
            (2, ["--html", "--eval"], "cartpole", "--html=x"),
            (2, ["--dim is for objectives", "cartpole"], "cartpole", "--dim=3"),
            (2, ["--lib-hash 12", "objective:lib"], "objective:sphere", "--lib-hash=12"),
            (2, ["--init is for objectives"], "cartpole", "--init=3"),
        ]:
            with self.subTest(args=args):
                self.refused(code, words, *args)
        pporun = Path(ESRUN).with_name("pporun")
        if pporun.exists():
            done = self.call("objective:sphere", tool=str(pporun))
            self.assertEqual(2, done.code, done)
            self.assertIn("pporun is for simulators", done.err)

    def test_options_of_policies(self):
        for option in ["--hidden=3", "--recurrent=2", "--activation=relu", "--precision=bf16", "--normalize", "--episodes=2",
                       "--test-episodes=2", "--time-limit=5", "--set=a=1", "--randomize=a=1:2", "--no-common-random"]:  # fmt: skip
            name = option.replace("--no-", "--").partition("=")[0]
            self.refused(2, f"{name} is for policies in simulators", "objective:sphere", option)

    def test_of_a_run(self):
        run = self.unbroken("objective:sphere")["run"]
        self.refused(2, ["is of objective:sphere, not of objective:rastrigin"], "objective:rastrigin", "--resume", run)
        self.refused(2, ["--dim cannot be changed"], "--resume", run, "--dim=4")
        self.refused(2, ["--html", "objective:sphere"], "--eval", run, "--html=x.html")
        config = self.folder / run / "config.json"
        settings = json.loads(config.read_text(encoding="utf-8"))
        for name, value in [("episodes", 2), ("normalize", True), ("test_episodes", 3)]:
            config.write_text(json.dumps({**settings, name: value}), encoding="utf-8")
            self.refused(2, "evaluated once", "--resume", run, "--device=cpu")


class Workers(ObjectiveTest):
    """Several workers change nothing."""

    def test_functions(self):
        for name in ["rastrigin"] if SANITIZED else ["sphere", "rastrigin", "rosenbrock"]:
            with self.subTest(name=name):
                self.same_for_all_workers(f"objective:{name}", *([3] if SANITIZED else [2, 3]), dim=70)

    def test_a_table_of_noise(self):
        changes = {"dim": 70, "generations": 6, "noise": "table", "noise_table": 1 << 16}
        done = self.same_for_all_workers("objective:rastrigin", 3, **changes)
        del changes["noise"], changes["noise_table"]
        self.assertNotEqual(self.reference("objective:rastrigin", **changes)["params_hash"], done["params_hash"])

    def test_sleep(self):
        """Tasks of uneven length, at least as long as they must be."""
        start_s = time.monotonic()
        done = self.same_for_all_workers("objective:sleep:1:8", 3, generations=4)
        self.assertGreaterEqual(time.monotonic() - start_s, 4 * 16 * 0.001)
        self.assertGreater(done["best_return"], 0.5)  # the largest of 64 random numbers
        self.assertLess(done["best_return"], 1)

    def test_target_stops(self):
        call = ["objective:sphere", "--dim=2", "--target=-0.5", "--test-every=1", "--seed=2", "--bind=none", "--threads=1"]
        alone = self.good(*call, "--out", self.path())
        self.assertEqual("target held", alone["outcome"])
        self.assertGreaterEqual(alone["test_return_mean"], -0.5)
        self.same_end(alone, self.begin(*call, "--min-workers=2", workers=2, tool=ESRUN))

    def test_kill_trainer_and_resume(self):
        expected = self.reference("objective:rosenbrock", generations=40)
        run = self.begin(*self.args("objective:rosenbrock", generations=40), workers=3, environment=self.SLOW)
        run.wait_for_rows(4)
        os.kill(run.pids("trainer")[0], signal.SIGKILL)
        self.same_end(expected, run)
        self.assertEqual(self.best(expected["run"]), self.best(run.out))


class Trainers(ObjectiveTest):
    """Those that share the state have the best parameters, too."""

    def test_two(self):
        expected = self.reference("objective:rastrigin", dim=200, generations=40)
        call = self.args("objective:rastrigin", dim=200, generations=40)
        run = self.begin(*call, "--trainers=2", "--min-workers=3", workers=3, environment=self.SLOW)
        run.wait_for_rows(4)
        os.kill(run.pids("trainer")[0], signal.SIGKILL)  # another one gets the state from the follower
        self.same_end(expected, run)
        self.assertEqual(self.best(expected["run"]), self.best(run.out))


class Exec(ObjectiveTest):
    """Commands."""

    def test_workers(self):
        self.same_for_all_workers(self.script(), *([3] if SANITIZED else [2, 3]), generations=4)

    def test_the_shell_reads_it(self):
        lines = "while read -r a b c; do echo $a; done"
        done = self.unbroken(f"objective:exec:cat | {{ {lines}; }}", generations=2)
        found = self.best(done["run"])
        self.assertEqual(found["member"]["fitness"], float32(found["member"]["params"][0]))
        self.assertIsNone(done["target_return"])
        self.assertEqual("generations done", done["outcome"])

    def test_what_it_knows(self):
        body = 'assert (len(x), os.environ["SHOAL_DIM"], os.environ["SHOAL_SEED"]) == (3, "3", "5")'
        self.unbroken(self.script(body), generations=1)

    def test_failures(self):
        """Each ends the run, names the member, and is said alike by any number of workers."""
        for body, words in [
            ("x[1] = float('nan')", "the fitness is nan"),
            ("x[0] = 1e39", "the fitness is 1e+39"),
            ("print('abc', flush=True); continue", "the command printed 'abc', which is no number"),
            ("print('', flush=True); continue", "which is no number"),
            ("print(1, 2, flush=True); continue", "'1 2', which is no number"),
            ("sys.exit(3)", "the command ended with status 3 without an answer"),
            ("os.kill(os.getpid(), 9)", "signal 9"),
        ]:
            with self.subTest(body=body):
                env = self.script(f"if number >= 5 or len(x) != 3: {body}")
                alone = self.call(*self.args(env, threads=1), "--out", self.path(), "--quiet")
                self.assertEqual(1, alone.code, alone)
                self.assertRegex(alone.err, r"^esrun: objective:exec:.*: generation 0, member 5: .*\n$")
                self.assertIn(words, alone.err)
        env = self.script("if x[0] > 0.05: sys.exit(3)", "bad.py")  # whoever computes it
        calls = [[], ["--threads=3"], ["--workers=3", "--min-workers=3"]]
        messages = {self.call(*self.args(env), *more, "--out", self.path(), "--quiet").err.splitlines()[-1] for more in calls}
        self.assertEqual(1, len(messages), messages)
        self.refused_run(["the shell cannot run 'no-such-command'", "127"], "objective:exec:no-such-command")

    def refused_run(self, words, env):
        done = self.call(*self.args(env), "--out", self.path(), "--quiet")
        self.assertEqual(1, done.code, done)
        for word in words:
            self.assertIn(word, done.err)

    def pids(self, file, count=1):
        """Process ids that the scripts have noted, once there are so many."""
        until = time.monotonic() + PATIENCE_S
        while True:
            found = file.read_text(encoding="utf-8").split() if file.exists() else []
            if len(found) >= count:
                return [int(pid) for pid in found]
            self.assertLess(time.monotonic(), until, "no script has begun")
            time.sleep(0.01)

    def all_gone(self, pids):
        until = time.monotonic() + PATIENCE_S
        while any(state(pid) not in (None, "Z") for pid in pids):
            self.assertLess(time.monotonic(), until, "a script has survived its worker")
            time.sleep(0.01)

    def noting(self, file, more):
        return self.script(f"if number == 0: open('{file}', 'a').write(str(os.getpid()) + ' ')\n{more}")

    def test_a_stop_ends_it(self):
        file = self.path("pids")
        env = self.noting(file, "if number == 20: time.sleep(1000)")
        out = self.path()
        process = subprocess.Popen([ESRUN, *self.args(env), "--out", out, "--json", "--quiet"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)  # fmt: skip
        pids = self.pids(file)
        while len(rows(out) if (out / "metrics.csv").exists() else []) < 1:
            self.assertIsNone(process.poll(), "the run ended")
        process.send_signal(signal.SIGTERM)
        done = json.loads(process.communicate(timeout=60)[0])
        self.assertEqual(("stopped", 1), (done["outcome"], done["generations"]))
        self.all_gone(pids)

    def test_it_does_not_survive_its_worker(self):
        file = self.path("pids")
        env = self.noting(file, "if number == 20: time.sleep(1000)")
        process = self.start(*self.args(env), "--out", self.path())
        pids = self.pids(file)
        process.kill()
        process.wait()
        self.all_gone(pids)

    def test_a_hang(self):
        """A command that hangs makes its worker one that hangs: others compute what it was to."""
        expected = self.good(*self.args(self.script()), "--out", self.path())
        marker, file = self.path("marker"), self.path("pids")
        hangs = f"\nif number == 3 and not os.path.exists('{marker}'):\n    open('{marker}', 'w').close()\n    time.sleep(1000)"
        run = self.begin(*self.args(self.noting(file, hangs)), "--min-workers=3", "--hang-limit=3", workers=3, tool=ESRUN)
        done = run.end()
        self.assertTrue(marker.exists())
        self.assertEqual(expected["params_hash"], done["params_hash"])
        self.all_gone(self.pids(file, 3))

    def test_one_that_takes_long(self):
        """It is no hang while it takes less than the limit; and a late answer belongs to its question."""
        expected = self.good(*self.args(self.script(), generations=3), "--out", self.path())
        slow = self.script("time.sleep(0.2 if number % 5 == 0 else 0)")
        self.same_end(expected, self.begin(*self.args(slow, generations=3), "--min-workers=3", workers=3, tool=ESRUN))


class Libraries(ObjectiveTest):
    """Shared libraries."""

    def test_workers(self):
        library = self.library(1)
        lib = self.same_for_all_workers(f"objective:lib:{library}", *([3] if SANITIZED else [2, 3]))
        exec_ = self.unbroken(self.script())
        self.assertEqual(exec_["params_hash"], lib["params_hash"])  # the same function

    def test_names_and_close(self):
        marker = self.path("closed")
        library = self.library(1)
        for name in [f"objective:{library.name}", f"objective:lib:{library.name}", f"objective:./{library.name}"]:
            done = self.call(*self.fixed(name), "--json", "--quiet", "--out", self.path(),
                             env={**os.environ, "SHOAL_TEST_CLOSED": str(marker)})  # fmt: skip
            self.assertEqual(0, done.code, done)
            self.assertEqual(f"objective:lib:{library}", done.json["env"])
            self.assertTrue(marker.exists())
            marker.unlink()
        self.good("--resume", done.json["run"], "--generations=13", "--bind=none")

    def test_what_is_wrong(self):
        self.refused(2, "no function shoal_objective()", *self.fixed(f"objective:{self.library(3)}"))
        done = self.call(*self.fixed(f"objective:{self.library(4)}"), "--out", self.path(), "--quiet")
        self.assertEqual(1, done.code, done)
        self.assertIn("shoal_objective_open() gave 5", done.err)
        done = self.call(*self.fixed(f"objective:{self.library(5)}"), "--out", self.path(), "--quiet")
        self.assertEqual(1, done.code, done)
        self.assertRegex(done.err, r"generation 0, member \d+: the fitness is -?nan")

    def test_a_member_that_crashes(self):
        """It is found by splitting its lease, ranked last and named."""
        env = f"objective:lib:{self.library(1)}"
        alone = self.good(*self.args(env, generations=1, test_every=9), "--out", self.path())
        best = self.best(alone["run"])["member"]
        # The one whose x[0] is largest may be another: the test looks for a value that one member alone has.
        highest = max(self.first_numbers(env))
        plain = {name: os.environ.get(name, "") + ":handle_segv=0" for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}
        run = self.begin(*self.args(env, generations=1, test_every=9), "--min-workers=3", workers=3, tool=ESRUN,
                         environment={**plain, "SHOAL_TEST_CRASH": repr(highest[0])})  # fmt: skip
        done = run.end()
        self.assertEqual(1, done["workers"]["lost_items"])
        self.assertIn(f"generation 0: member {highest[1]} ends every worker that evaluates it", done["stderr"])
        self.assertEqual(best["member"] == highest[1], self.best(run.out)["member"]["member"] != best["member"])

    def first_numbers(self, env):
        """(x[0], member) of the first generation's members, by a command that is asked for them in order."""
        file = self.path("numbers")
        self.good(*self.args(self.script(f"open('{file}', 'a').write(repr(x[0]) + '\\n')"), generations=1, test_every=9),
                  "--out", self.path())  # fmt: skip
        return [(float32(v), m) for m, v in enumerate(file.read_text(encoding="utf-8").split()[: FIXED["pop"]])]

    def test_another_build_is_refused(self):
        library = self.library(1)
        call = self.args(f"objective:{library}", generations=30)
        expected = self.good(*call, "--out", self.path())
        run = self.begin(*call, "--bind-address=tcp://127.0.0.1:*", workers=1, environment=self.SLOW)
        run.wait_for_rows(2)
        other = self.library(2)
        os.rename(other, library)
        joined = self.call("--join", run.out, "--quiet", "--device=cpu", "--bind=none")
        self.assertEqual(2, joined.code, joined)
        self.assertRegex(joined.err, rf"objective:lib:{library}: the library here is another one, of hash [0-9a-f]{{16}}, not ")
        self.assertEqual(expected["params_hash"], run.end()["params_hash"])
        resumed = self.call("--resume", run.out, "--generations=31", "--quiet")
        self.assertEqual(2, resumed.code, resumed)
        self.assertIn("--lib-hash", resumed.err)
        again = resumed.err.split("--lib-hash ")[1].strip()
        self.good("--resume", run.out, "--generations=31", f"--lib-hash={again}", "--device=cpu", "--bind=none")


class Cuda(ObjectiveTest):
    """Where there is a GPU, objectives leave it alone."""

    def setUp(self):
        super().setUp()
        done = self.call("cartpole", "--device=cuda", "--dry-run")
        if done.code != 0 and os.environ.get("SHOAL_TEST_CUDA") != "required":
            self.skipTest(done.err)
        self.assertEqual(0, done.code, done)

    def test_auto_takes_the_cpu(self):
        expected = self.unbroken("objective:rastrigin")
        done = self.call(*self.fixed("objective:rastrigin", device="auto"), "--json", "--out", self.path())
        self.assertIn("on the CPU: objectives without a simulator run on CPUs", done.err)
        self.assertEqual(expected["params_hash"], done.json["params_hash"])
        self.refused(2, ["--device cuda", "run on CPUs"], "objective:rastrigin", "--device=cuda")

    def test_who_joins_goes_to_the_cpu(self):
        """It learns what to compute when it has opened its device."""
        call = self.args("objective:sleep:20")  # long enough to be looked at
        expected = self.good(*call, "--out", self.path())
        run = self.begin(*call, "--bind-address=tcp://127.0.0.1:*", "--min-workers=2", workers=1, tool=ESRUN)
        run.wait_for_workers(1)
        with subprocess.Popen([ESRUN, "--join", run.out, "--bind=none", "--threads=2"], stderr=subprocess.PIPE, text=True) as joined:
            seen = run.wait_for_workers(2)
            (worker,) = [w for w in seen["workers"] if w["pid"] == joined.pid]
            self.assertEqual(2, worker["threads"], seen)
            self.assertTrue(worker["device"].startswith("cpu"), seen)
            done = self.same_end(expected, run)
            self.assertGreater(done["workers"]["other_items"], 0)
            _, err = joined.communicate(timeout=PATIENCE_S)
            self.assertEqual(0, joined.returncode, err)
            self.assertIn("evaluates objective:sleep:20 on cpu:", err)


if __name__ == "__main__":
    harness.main()
