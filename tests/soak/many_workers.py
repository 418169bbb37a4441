#!/usr/bin/env python3
"""many_workers.sh's work: 50 generations of a population of 2,048 by EVALUATORS (1024) processes, 100 of which are killed
on the way: the parameters must be those of one process, and nothing may be lost. Prints what it took: capacity, not speed,
on a machine of few cores."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for folder in ["", "es"]:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / folder))
import esrun_harness  # noqa: E402
from cli_harness import SEED  # noqa: E402
from workers_harness import WorkersRun, children  # noqa: E402

EVALUATORS = int(os.environ.get("EVALUATORS", "1024"))
KILLS = int(os.environ.get("KILLS", "100"))


def main():
    print(f"SHOAL_TEST_SEED={SEED}")
    draw = random.Random(SEED)
    folder = Path(tempfile.mkdtemp(prefix="shoal-many-", dir=esrun_harness.TEMPORARY))
    args = esrun_harness.fixed("pendulum", threads=1, pop=2048, generations=50, test_every=50, checkpoint_every=10)
    call = [esrun_harness.ESRUN, *args, "--json", "--quiet", "--out", folder / "alone"]
    alone = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    start_s = time.monotonic()
    run = WorkersRun(folder / "run", [*args, f"--workers={EVALUATORS + 1}", f"--min-workers={EVALUATORS + 1 - KILLS}",
                                      "--hang-limit=60"], esrun_harness.ESRUN)  # fmt: skip
    run.wait_for_rows(1)
    joined_s = time.monotonic() - start_s
    killed, seen = [], run.status()
    while len(killed) < KILLS and run.process.poll() is None:
        pids = [pid for pid, role in children(run.process.pid).items() if role == "evaluator" and pid not in killed]
        for pid in draw.sample(pids, min(KILLS - len(killed), 20, len(pids))):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        seen = run.status() or seen
        time.sleep(0.2)
    while run.process.poll() is None and run.rows() < 49:
        seen = run.status() or seen
        time.sleep(0.1)
    done = run.end()
    same = f'"{done["params_hash"]}"' in alone and done["workers"]["lost_items"] == 0
    landed = sum(f"(process {pid}) was ended by signal 9" in done["stderr"] for pid in killed)
    figures = {
        "evaluators": EVALUATORS, "workers seen": len(seen["workers"]), "killed": landed, "seconds to the first generation": joined_s,
        "seconds of 50 generations": done["train_s"], "seconds in one process": float(alone.split('"train_s": ')[1].split(",")[0]),
        "master's CPU seconds": seen["master"]["cpu_s"], "master's MiB": seen["master"]["memory_bytes"] / 2**20,
        "members computed again": done["workers"]["repeated_items"], "MB of results": done["workers"]["result_bytes"] / 1e6,
    }  # fmt: skip
    for name, value in figures.items():
        print(f"{name:<34}{value:>10.2f}")
    print("the same parameters as one process" if same else "OTHER PARAMETERS")
    shutil.rmtree(folder)
    return 0 if same and landed == KILLS else 1


if __name__ == "__main__":
    sys.exit(main())
