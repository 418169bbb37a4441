#!/usr/bin/env python3
"""kill9.sh's work: kills runs of esrun and pporun at random moments; each must go on to the unbroken run's hash."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for folder in ["es", "ppo"]:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / folder))
import esrun_harness  # noqa: E402
import pporun_harness  # noqa: E402
from cli_harness import SEED, SIMULATORS, program, rows, tree  # noqa: E402

KILLS = int(os.environ.get("KILLS", "100"))
TOOLS = os.environ.get("TOOLS", "esrun pporun").split()
FIXED = {"esrun": esrun_harness.fixed, "pporun": pporun_harness.fixed}
# Steps (generations, updates) of a run that takes a few tenths of a second.
STEPS = {
    "esrun": {"cartpole": 60, "mountain_car": 120, "mountain_car_continuous": 80, "acrobot": 60, "pendulum": 100,
               "position_only_cartpole": 60, "parking": 100, "lunar_lander": 8, "lunar_lander_continuous": 8},
    "pporun": dict.fromkeys(SIMULATORS, 120),
}
STEP = {"esrun": "generation", "pporun": "update"}


def settings(tool, env, **changes):
    """Options of a run of that many steps."""
    return FIXED[tool](env, **{f"{STEP[tool]}s": STEPS[tool][env]}, **changes)


def train(folder, tool, *args):
    """A call that must succeed; returns its hash and how long it took."""
    start_s = time.monotonic()
    call = [program(tool), *map(str, args), "--json", "--quiet"]
    done = subprocess.run(call, capture_output=True, text=True, cwd=folder, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(call)}: status {done.returncode}: {done.stderr}")
    return done.stdout.split('"params_hash": "')[1][:16], time.monotonic() - start_s


def kill(folder, tool, seconds, *args):
    """Kills a call after that time; whether it still ran."""
    call = [program(tool), *map(str, args)]
    process = subprocess.Popen(call, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    alive = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    return alive


def one_run(folder, tool, env, number, draw, figures):
    """Kills a run until it has been killed at least once, two times at most; False if it does not end as it should."""
    args = settings(tool, env, seed=number, checkpoint_every=draw.choice([1, 2, 7]))
    expected, duration_s = train(folder, tool, *args, "--out", folder / "whole")
    out = folder / "killed"
    for _ in range(2):
        resume = (out / "config.json").exists()
        call = ["--resume", out, "--threads=2", "--bind=none"] if resume else [*args, "--out", out]
        if kill(folder, tool, draw.uniform(0, duration_s), *call):
            figures["kills"] += 1
            figures["before config.json"] += not (out / "config.json").exists()
            figures["before a checkpoint"] += not list(out.glob("checkpoint/gen-*.safetensors"))
            figures["with a torn file"] += any(".tmp-" in name for name in tree(out)) if out.exists() else 0
    resume = (out / "config.json").exists()
    found, _ = train(folder, tool, *(["--resume", out] if resume else [*args, "--out", out]))
    steps = [row[STEP[tool]] for row in rows(out)]
    good = found == expected and steps == [str(i + 1) for i in range(STEPS[tool][env])]
    if not good:
        print(f"{tool} {env}, seed {number}: {found}, unbroken {expected}; {len(steps)} rows; kept in {out}")
    return good


def soak(tool, draw):
    """Kills runs of one program and prints the figures; how many runs did not end as they should."""
    figures = dict.fromkeys(["kills", "before config.json", "before a checkpoint", "with a torn file"], 0)
    runs = failures = 0
    while figures["kills"] < KILLS:
        folder = Path(tempfile.mkdtemp(prefix="shoal-kill9-"))  # on a disk, whose syncs make the critical moments longer
        good = one_run(folder, tool, SIMULATORS[runs % len(SIMULATORS)], runs + 1, draw, figures)
        runs += 1
        failures += not good
        if good:
            shutil.rmtree(folder)
    print(f"{tool + ' runs':<24}{runs:>6}")
    for name, value in figures.items():
        print(f"{name:<24}{value:>6}")
    print(f"{'other hash or rows':<24}{failures:>6}", flush=True)
    return failures


def main():
    print(f"SHOAL_TEST_SEED={SEED}")
    draw = random.Random(SEED)
    return 1 if sum([soak(tool, draw) for tool in TOOLS]) > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
