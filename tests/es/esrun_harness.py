"""What the command-line tests of esrun share: a folder of their own, running esrun, its result, what is on disk.

Set by ctest: ESRUN (the program), SHOAL_SANITIZED (1 in a sanitizer's build, which is slow and needs more memory).
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

ESRUN = os.path.abspath(os.environ.get("ESRUN", "build/bin/esrun"))
SANITIZED = os.environ.get("SHOAL_SANITIZED", "0") == "1"
SEED = int(os.environ.get("SHOAL_TEST_SEED", time.time_ns() % 1_000_000))

SIMULATORS = ["cartpole", "mountain_car", "mountain_car_continuous", "acrobot", "pendulum"]

# Every setting that a hash depends on, so that no test depends on the defaults, which may be tuned.
FIXED = {
    "pop": 32, "episodes": 2, "hidden": "16,8", "activation": "tanh", "sigma": 0.1, "sigma-decay": 0.99,
    "sigma-min": 0.05, "lr": 0.05, "lr-decay": 0.98, "lr-min": 0.01, "beta1": 0.9, "beta2": 0.999,
    "weight-decay": 0.005, "seed": 5, "generations": 12, "checkpoint-every": 3, "test-every": 4, "test-episodes": 8,
    "bind": "none", "threads": 2, "device": "cpu",
}  # fmt: skip
TIME_LIMIT = {"cartpole": 500, "mountain_car": 200, "mountain_car_continuous": 999, "acrobot": 500, "pendulum": 200}

# Columns of metrics.csv that differ from run to run.
TIMES = {"train_s", "env_steps_per_s"}


def fixed(env, **changes):
    """Options of a small run that always does the same; `changes` replace some (None leaves one out)."""
    options = {**FIXED, "time-limit": TIME_LIMIT[env], **{k.replace("_", "-"): v for k, v in changes.items()}}
    args = [env, "--no-stop-at-target", "--common-random", "--normalize"]
    return args + [f"--{name}={value}" for name, value in options.items() if value is not None]


# Checkpoints are synced to the disk, which takes 10 ms where a disk is busy; memory forgets none of them either, short
# of a power cut.
TEMPORARY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Done:
    """A finished call of esrun."""

    def __init__(self, args, code, out, err, peak_kib=0):
        self.args, self.code, self.out, self.err, self.peak_kib = args, code, out, err, peak_kib

    @property
    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"esrun {' '.join(map(str, self.args))}: status {self.code}\nstdout: {self.out}\nstderr: {self.err}"


def tree(folder):
    """Every path below a folder with its bytes (None for a folder)."""
    return {p.relative_to(folder).as_posix(): None if p.is_dir() else p.read_bytes() for p in Path(folder).rglob("*")}


def rows(run):
    """metrics.csv as a list of dictionaries."""
    with open(Path(run) / "metrics.csv", encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


class EsrunTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="shoal-esrun-", dir=TEMPORARY))
        self.random = random.Random(SEED)
        self.count = 0

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name="run"):
        """A path below the test's folder that was not used yet."""
        self.count += 1
        return self.folder / f"{name}{self.count}"

    def esrun(self, *args, limit_s=300, **popen):
        args = [str(a) for a in args]
        done = subprocess.run([ESRUN, *args], capture_output=True, text=True, cwd=self.folder, timeout=limit_s,
                              check=False, **popen)  # fmt: skip
        return Done(args, done.returncode, done.stdout, done.stderr)

    def start(self, *args):
        """Starts esrun and does not wait."""
        return subprocess.Popen([ESRUN, *[str(a) for a in args]], cwd=self.folder, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)  # fmt: skip

    def good(self, *args, **popen):
        """Runs esrun, which must succeed, with --json; returns what it printed."""
        done = self.esrun(*args, "--json", "--quiet", **popen)
        self.assertEqual(0, done.code, done)
        return done.json

    def unbroken(self, env, **changes):
        """A whole run: its result, with its folder under "run"."""
        return self.good(*fixed(env, **changes), "--out", self.path())

    def refused(self, code, words, *args, **popen):
        """esrun must end with this status and one line on stderr that holds these words, and leave the disk alone."""
        before = tree(self.folder)
        done = self.esrun(*args, **popen)
        self.assertEqual(code, done.code, done)
        self.assertEqual("", done.out, done)
        self.assertTrue(done.err.startswith("esrun: ") and done.err.count("\n") == 1, done)
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, done.err, done)
        self.assertEqual(before, tree(self.folder), done)
        return done

    def same_rows(self, expected, run, tests_may_lack=False):
        """metrics.csv of a run holds each generation once, with the figures of another run, times apart."""
        wanted, found = rows(expected), rows(run)
        self.assertEqual([r["generation"] for r in wanted], [r["generation"] for r in found])
        for a, b in zip(wanted, found):
            for name, value in a.items():
                lacks = tests_may_lack and name.startswith("test_") and b[name] == "nan"
                if name not in TIMES and not lacks:
                    self.assertEqual(value, b[name], f"{name} of generation {a['generation']} of {run}")

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
            self.fail(f"esrun {args} did not end within 60 s of signal {signals}")


def main():
    print(f"SHOAL_TEST_SEED={SEED}", file=sys.stderr)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
