"""How well the profiler corrects a Python program for what its scopes cost there.

usage: profiler_python.py [--pairs N] [--python PROGRAM] BUILD

Pairs of runs of the same loop, in turn: without scopes, and recorded with a scope around each round of some work. Printed are
medians over the pairs, and their 95% intervals by order statistics, of ratios to the run without scopes: raw, and corrected
by what profreport says that profiling cost, which is calibrated anew for each pair: on a machine that others use, what anything
costs changes from minute to minute. Times are processor time of the loop's thread.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from profiler_correction import interval  # noqa: E402

PROGRAM = """
import sys, time
import shoal_scope

def loop(folder, work, rounds):
    step = shoal_scope.scope("env step", "simulation")
    x = 1
    start = time.thread_time()
    if folder:
        for _ in range(rounds):
            with step:
                for _ in range(work):
                    x = (x * 69069 + 1) % 4294967296
    else:
        for _ in range(rounds):
            for _ in range(work):
                x = (x * 69069 + 1) % 4294967296
    return time.thread_time() - start

folder = sys.argv[1]
if folder:
    shoal_scope.start(folder)
print(loop(folder, int(sys.argv[2]), int(sys.argv[3])))
shoal_scope.stop()
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    build = Path(options.build).resolve()
    cache = tempfile.TemporaryDirectory(prefix="shoal-python-")
    environment = {**os.environ, "PYTHONPATH": str(build / "lib"), "XDG_CACHE_HOME": cache.name}

    def report(*args):
        done = subprocess.run([build / "bin" / "profreport", *args], env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    def run(folder, work, rounds):
        command = [options.python, "-c", PROGRAM, folder, str(work), str(rounds)]
        return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)

    print("work in a scope, quantity, low, median, high, unit, rounds")
    for work in [300, 1000]:
        rounds = 6000000 // (work + 20)
        ratios = {"raw": [], "corrected": []}
        for i in range(options.pairs):
            report("--calibrate", "--python", options.python)
            with tempfile.TemporaryDirectory(prefix="shoal-python-") as folder:
                times = {}
                for kind in ["", folder] if i % 2 == 0 else [folder, ""]:
                    times[kind] = run(kind, work, rounds)
                run_report = json.loads(report("--json", folder))["runs"][0]
            if run_report["correction"] is None:
                raise SystemExit("not corrected: scopes are too dense")
            if "script" not in run_report["correction"]["each_ns"]:
                raise SystemExit(f"profreport --calibrate cannot measure the scopes of {options.python}")
            cost = 1e-9 * (run_report["total"]["wall_ns"] - run_report["correction"]["wall_ns"]["value"])
            ratios["raw"].append(times[folder] / times[""])
            ratios["corrected"].append((times[folder] - cost) / times[""])
        for what, values in ratios.items():
            low, median, high = interval(values)
            print(f"{work} rounds of arithmetic, {what}, {low:.4f}, {median:.4f}, {high:.4f}, x, {len(values)}", flush=True)


if __name__ == "__main__":
    main()
