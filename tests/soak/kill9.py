#!/usr/bin/env python3
"""kill9.sh's work: kills runs of esrun at random moments; each must go on to the unbroken run's hash."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "es"))
from esrun_harness import ESRUN, SEED, SIMULATORS, fixed, rows, tree  # noqa: E402

LONG = {"cartpole": 60, "mountain_car": 120, "mountain_car_continuous": 80, "acrobot": 60, "pendulum": 100,
        "position_only_cartpole": 60, "parking": 100}  # fmt: skip
KILLS = int(os.environ.get("KILLS", "100"))


def esrun(folder, *args):
    """A call that must succeed; returns its hash and how long it took."""
    start_s = time.monotonic()
    call = [ESRUN, *map(str, args), "--json", "--quiet"]
    done = subprocess.run(call, capture_output=True, text=True, cwd=folder, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(call)}: status {done.returncode}: {done.stderr}")
    return done.stdout.split('"params_hash": "')[1][:16], time.monotonic() - start_s


def kill(folder, seconds, *args):
    """Kills a call after that time; whether it still ran."""
    process = subprocess.Popen([ESRUN, *map(str, args)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    alive = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return alive


def one_run(folder, env, number, draw, figures):
    """Kills a run until it has been killed at least once, two times at most; False if it does not end as it should."""
    args = fixed(env, generations=LONG[env], seed=number, checkpoint_every=draw.choice([1, 2, 7]))
    expected, duration_s = esrun(folder, *args, "--out", folder / "whole")
    out = folder / "killed"
    for _ in range(2):
        resume = (out / "config.json").exists()
        call = ["--resume", out, "--threads=2", "--bind=none"] if resume else [*args, "--out", out]
        if kill(folder, draw.uniform(0, duration_s), *call):
            figures["kills"] += 1
            figures["before config.json"] += not (out / "config.json").exists()
            figures["before a checkpoint"] += not list(out.glob("checkpoint/gen-*.safetensors"))
            figures["with a torn file"] += any(".tmp-" in name for name in tree(out)) if out.exists() else 0
    resume = (out / "config.json").exists()
    found, _ = esrun(folder, *(["--resume", out] if resume else [*args, "--out", out]))
    generations = [row["generation"] for row in rows(out)]
    good = found == expected and generations == [str(i + 1) for i in range(LONG[env])]
    if not good:
        print(f"{env}, seed {number}: {found}, unbroken {expected}; {len(generations)} rows; kept in {out}")
    return good


def main():
    print(f"SHOAL_TEST_SEED={SEED}")
    draw = random.Random(SEED)
    figures = dict.fromkeys(["kills", "before config.json", "before a checkpoint", "with a torn file"], 0)
    runs = failures = 0
    while figures["kills"] < KILLS:
        folder = Path(tempfile.mkdtemp(prefix="shoal-kill9-"))  # on a disk, whose syncs make the critical moments longer
        good = one_run(folder, SIMULATORS[runs % len(SIMULATORS)], runs + 1, draw, figures)
        runs += 1
        failures += not good
        if good:
            shutil.rmtree(folder)
    print(f"{'runs':<24}{runs:>6}")
    for name, value in figures.items():
        print(f"{name:<24}{value:>6}")
    print(f"{'other hash or rows':<24}{failures:>6}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
