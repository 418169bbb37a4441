"""What the command-line tests of all trainers share: a folder of their own, running a program, its result, what is on disk.

Set by ctest: ESRUN or PPORUN (the program), SHOAL_SANITIZE (the build's sanitizers: it is slow and needs more memory).
SHOAL_TEST_SEED repeats a failed test's random moments.
"""

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SANITIZED = os.environ.get("SHOAL_SANITIZE", "") != ""
THREAD_SANITIZED = os.environ.get("SHOAL_SANITIZE", "") == "thread"
SEED = int(os.environ.get("SHOAL_TEST_SEED", time.time_ns() % 1_000_000))

SIMULATORS = ["cartpole", "mountain_car", "mountain_car_continuous", "acrobot", "pendulum", "position_only_cartpole",
              "parking", "lunar_lander", "lunar_lander_continuous", "bipedal_walker",
              "bipedal_walker_hardcore"]  # fmt: skip
# The simulators' own, but for walkers, which stand about for a long time.
TIME_LIMIT = {"cartpole": 500, "mountain_car": 200, "mountain_car_continuous": 999, "acrobot": 500, "pendulum": 200,
              "position_only_cartpole": 500, "parking": 100, "lunar_lander": 1000,
              "lunar_lander_continuous": 1000, "bipedal_walker": 60,
              "bipedal_walker_hardcore": 60}  # fmt: skip
# Thousands of instructions a step: minutes on a virtual GPU.
HEAVY = ["lunar_lander", "lunar_lander_continuous", "bipedal_walker", "bipedal_walker_hardcore"]
# For tests of what is the same for all simulators, which a sanitizer need not see once more with each of them.
SAMPLE = ["cartpole", "parking"] if SANITIZED else SIMULATORS

# Columns of metrics.csv that differ from run to run.
TIMES = {"train_s", "env_steps_per_s"}


# Checkpoints are synced to the disk, which takes 10 ms where a disk is busy; memory forgets none of them either, short
# of a power cut.
TEMPORARY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def program(tool):
    """The path of a program: what ctest says, else the release build's."""
    return os.path.abspath(os.environ.get(tool.upper(), f"build/bin/{tool}"))


def options(env, flags, fixed, changes):
    """A command line: the simulator, flags, and fixed settings, some replaced by `changes` (None leaves one out)."""
    values = {**fixed, "time-limit": TIME_LIMIT[env], **{k.replace("_", "-"): v for k, v in changes.items()}}
    return [env, *flags] + [f"--{name}={value}" for name, value in values.items() if value is not None]


class Done:
    """A finished call of a program."""

    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"{' '.join(map(str, self.args))}: status {self.code}\nstdout: {self.out}\nstderr: {self.err}"


def tree(folder):
    """Every path below a folder with its bytes (None for a folder)."""
    return {p.relative_to(folder).as_posix(): None if p.is_dir() else p.read_bytes() for p in Path(folder).rglob("*")}


def rows(run):
    """metrics.csv as a list of dictionaries."""
    with open(Path(run) / "metrics.csv", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


class TrainerTest(unittest.TestCase):
    """A test of a program; a subclass says which."""

    TOOL = ""  # "esrun"
    STEP = ""  # "generation": the first column of metrics.csv
    LENGTH, DONE = "", 0  # "generations": the option that says how long a run is, and its value in fixed()

    @staticmethod
    def fixed(env, **changes):
        """Options of a small run that always does the same; `changes` replace some."""
        raise NotImplementedError

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix=f"shoal-{self.TOOL}-", dir=TEMPORARY))
        self.random = random.Random(SEED)
        self.count = 0

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name="run"):
        """A path below the test's folder that was not used yet."""
        self.count += 1
        return self.folder / f"{name}{self.count}"

    def call(self, *args, limit_s=300, tool=None, **popen):
        args = [str(a) for a in args]
        done = subprocess.run([tool or program(self.TOOL), *args], capture_output=True, text=True, cwd=self.folder, timeout=limit_s,
                              check=False, **popen)  # fmt: skip
        return Done(args, done.returncode, done.stdout, done.stderr)

    def start(self, *args):
        """Starts the program and does not wait."""
        return subprocess.Popen([program(self.TOOL), *[str(a) for a in args]], cwd=self.folder, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)  # fmt: skip

    def good(self, *args, **popen):
        """Runs the program, which must succeed, with --json; returns what it printed."""
        done = self.call(*args, "--json", "--quiet", **popen)
        self.assertEqual(0, done.code, done)
        return done.json

    def unbroken(self, env, **changes):
        """A whole run: its result, with its folder under "run"."""
        return self.good(*self.fixed(env, **changes), "--out", self.path())

    def need_gpu(self):
        """Skips the test where there is no GPU, neither a real one nor a virtual one."""
        done = self.call(*self.fixed("cartpole", device="cuda"), "--dry-run")
        if done.code != 0 and os.environ.get("SHOAL_TEST_CUDA") != "required":
            self.skipTest(done.err)
        self.assertEqual(0, done.code, done)

    def refused(self, code, words, *args, **popen):
        """The program must end with this status and one line on stderr that holds these words, and leave the disk alone."""
        before = tree(self.folder)
        done = self.call(*args, **popen)
        self.assertEqual(code, done.code, done)
        self.assertEqual("", done.out, done)
        self.assertTrue(done.err.startswith(f"{self.TOOL}: ") and done.err.count("\n") == 1, done)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, done.err, done)
        self.assertEqual(before, tree(self.folder), done)
        return done

    def same_rows(self, expected, run, tests_may_lack=False):
        """metrics.csv of a run holds each step once, with the figures of another run, times apart."""
        wanted, found = rows(expected), rows(run)
        self.assertEqual([r[self.STEP] for r in wanted], [r[self.STEP] for r in found])
        for a, b in zip(wanted, found):
            for name, value in a.items():
                lacks = tests_may_lack and name.startswith("test_") and b[name] == "nan"
                if name not in TIMES and not lacks:
                    self.assertEqual(value, b[name], f"{name} of {self.STEP} {a[self.STEP]} of {run}")

    def go_on(self, out, args):
        """Goes on with a run whose process was ended at some moment; before config.json it is not a run yet."""
        if (out / "config.json").exists():
            return self.good("--resume", out, "--threads=2", "--bind=none", "--device=cpu")
        return self.good(*args, "--out", out)

    def stop_after(self, seconds, signals, *args):
        """Sends the signals, a moment apart, to a run; returns its status."""
        process = self.start(*args)
        time.sleep(seconds)
        for number in signals:
            process.send_signal(number)
            time.sleep(self.random.uniform(0, 0.01))
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            self.fail(f"{self.TOOL} {args} did not end within 60 s of signal {signals}")


class CudaTests:
    """Mixed into a TrainerTest that needs a GPU, a real one or a virtual one."""

    def setUp(self):
        super().setUp()
        self.need_gpu()


class SignalTests:
    """Mixed into a TrainerTest with `long(env)`: changes that make a run take a few tenths of a second."""

    def test_one_then_resume(self):
        for env in SIMULATORS[:2] if SANITIZED else SIMULATORS:
            with self.subTest(env=env):
                start_s = time.monotonic()
                whole = self.unbroken(env, **self.long(env))
                seconds = self.random.uniform(0.02, time.monotonic() - start_s)
                out, args = self.path(), self.fixed(env, **self.long(env))
                status = self.stop_after(seconds, [signal.SIGINT], *args, "--out", out)
                self.assertIn(status, [0, -signal.SIGINT])  # ended by the signal only before it was handled
                done = self.go_on(out, args)
                self.assertEqual(whole["params_hash"], done["params_hash"])
                self.assertEqual(whole["test_return_mean"], done["test_return_mean"])
                self.assertEqual(whole["env_steps"], done["env_steps"])
                self.same_rows(whole["run"], out, tests_may_lack=True)

    def test_two_in_a_row_then_resume(self):
        whole = self.unbroken("cartpole", **self.long("cartpole"))
        for _ in range(2 if SANITIZED else 4):
            out, args = self.path(), self.fixed("cartpole", **self.long("cartpole"))
            pair = self.random.choice([[signal.SIGINT] * 2, [signal.SIGTERM] * 2, [signal.SIGINT, signal.SIGTERM]])
            status = self.stop_after(self.random.uniform(0.02, 0.4), pair, *args, "--out", out)
            self.assertIn(status, [0, -signal.SIGINT, -signal.SIGTERM])
            self.assertEqual(whole["params_hash"], self.go_on(out, args)["params_hash"])
            self.same_rows(whole["run"], out, tests_may_lack=True)

    def stopped(self, out, args, ready):
        """Stops a run once ready(run's folder) holds; returns how it ended."""
        process = subprocess.Popen([program(self.TOOL), *args, "--out", out, "--json"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)  # fmt: skip
        while not ready(out):
            self.assertIsNone(process.poll(), "the run ended too soon")
        process.send_signal(signal.SIGINT)
        text, error = process.communicate(timeout=60)
        done = Done(args, process.returncode, text, error)
        self.assertEqual(0, done.code, done)
        self.assertEqual("stopped", done.json["outcome"], done)
        self.assertIsNone(done.json["test_return_mean"], done)
        self.assertIn(f"--resume {out}", done.err)
        return done

    def test_between_tests(self):
        """Nothing but the training itself is there to see a stop."""
        length = {"generations": 10**8, "steps": 10**10}[self.LENGTH]
        changes = {self.LENGTH: length, "test_every": 10**6, "checkpoint_every": 10**6}
        out, args = self.path(), self.fixed("cartpole", **changes)
        done = self.stopped(out, args, lambda out: (out / "metrics.csv").exists() and len(rows(out)) >= 3)
        steps = done.json[self.STEP + "s"]
        self.assertGreaterEqual(steps, 3)
        self.assertEqual(steps, len(rows(out)))
        self.assertTrue((out / f"checkpoint/gen-{steps:08}.safetensors").exists())

    def stopped_in_phase(self, name, changes, ready, env="pendulum"):
        """A run that is stopped once ready(run's folder) holds, then gone on with to the end."""
        whole = self.unbroken(env, **changes)
        out, args = self.path(name), self.fixed(env, **changes)
        stopped_at = self.stopped(out, args, ready).json[self.STEP + "s"]
        after = self.go_on(out, args)
        self.assertEqual(whole["params_hash"], after["params_hash"])
        self.same_rows(whole["run"], out, tests_may_lack=True)
        return stopped_at


class KillTests:
    """Mixed into a TrainerTest with `long(env)`."""

    def test_random_moments(self):
        for i in range(5 if SANITIZED else 10):
            env = SIMULATORS[i % len(SIMULATORS)]
            with self.subTest(env=env, kill=i):
                start_s = time.monotonic()
                whole = self.unbroken(env, **self.long(env))
                duration_s = time.monotonic() - start_s
                out, args = self.path(), self.fixed(env, **self.long(env))
                self.stop_after(self.random.uniform(0, duration_s), [signal.SIGKILL], *args, "--out", out)
                if (out / "config.json").exists():  # and once more while it goes on
                    self.stop_after(self.random.uniform(0, duration_s), [signal.SIGKILL], "--resume", out)
                done = self.go_on(out, args)
                self.assertEqual(whole["params_hash"], done["params_hash"])
                self.assertEqual(whole["test_return_mean"], done["test_return_mean"])
                self.same_rows(whole["run"], out)
                left = [name for name in tree(out) if ".tmp-" in name]
                self.assertEqual([], left)


def main():
    print(f"SHOAL_TEST_SEED={SEED}", file=sys.stderr)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
