"""How well the profiler corrects for its own cost: runs with and without it, in turn.

usage: profiler_correction.py [--pairs N] [--threads N] [--wall] BUILD

For each case (trainer and simulator), pairs of runs of the same bits: without a profile, with --profile-detail full, and
with --profile as it is by default; which comes first changes from round to round. Printed are medians over the rounds, and
their 95% intervals by order statistics, of ratios to the run without a profile:

    raw          the run in full detail, as it was
    corrected    the same without what profreport says that profiling cost
    default      the run with the default density

Times are the processor time of the whole process, from its start to its end, less that of the recorder's own thread: on a
machine that does other things besides, that is what the run itself took. The recorder's thread is a figure of its own. With
--wall they are times on the wall clock, which is what users see, and what an idle machine should be asked for.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

# Small networks and batches: the smaller the work between two events, the denser the trace.
ES = ["--hidden", "8", "--generations", "100", "--no-stop-at-target", "--test-every", "1000"]
PPO = ["--hidden", "16", "--minibatches", "16", "--epochs", "4", "--steps", "160000", "--no-stop-at-target", "--test-every", "1000"]
CASES = [(tool, env, [*settings, *of_env])
         for tool, settings in [("esrun", ES), ("pporun", PPO)]
         for env, of_env in [("cartpole", []), ("acrobot", []), ("pendulum", [])]]  # fmt: skip
COMMON = ["--bind", "none", "--device", "cpu", "--quiet", "--seed", "3", "--checkpoint-every", "100000", "--json"]


def interval(values):
    """(low, median, high): order statistics, as prof_estimate() has them."""
    values = sorted(values)
    count, reach = len(values), math.ceil(0.98 * math.sqrt(len(values)))
    low, high = max(count // 2 - reach, 0), min((count - 1) // 2 + reach, count - 1)
    return values[low], statistics.median(values), values[high]


class Runner:
    def __init__(self, build, threads, by_wall, folder):
        self.bin, self.threads, self.by_wall, self.folder = Path(build).resolve() / "bin", threads, by_wall, Path(folder)

    def run(self, tool, env, settings, *profile):
        """(seconds on the wall, seconds of the processor, hash of the parameters, profile)"""
        out = self.folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        command = [self.bin / tool, env, *settings, *COMMON, "--threads", str(self.threads), "--out", out, *profile]
        start = time.monotonic()
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)
        result = json.loads(process.stdout.read())
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{tool} {env} failed")
        found = None
        if profile:
            text = subprocess.run([self.bin / "profreport", "--json", out], capture_output=True, text=True, check=True).stdout
            found = json.loads(text)["runs"][0]
        return wall, usage.ru_utime + usage.ru_stime, result["params_hash"], found

    def cost_s(self, report):
        """What profiling cost: the main thread (the wall clock), or all threads (the processor)."""
        if report["correction"] is None:
            raise SystemExit("not corrected: run profreport --calibrate, and on fewer other programs")
        if self.by_wall or self.threads == 1:
            return 1e-9 * (report["total"]["wall_ns"] - report["correction"]["wall_ns"]["median"])
        return 1e-9 * sum(s["thread_ns"] - s["corrected_thread_ns"]["median"] for s in report["scopes"])

    def round(self, case, number):
        """The ratios of one round: raw, corrected, default, recorder."""
        kinds = {"off": [], "full": ["--profile-detail", "full"], "default": ["--profile"]}
        order = list(kinds) if number % 2 == 0 else list(reversed(kinds))
        done = {kind: self.run(*case, *kinds[kind]) for kind in order}
        assert len({d[2] for d in done.values()}) == 1, "profiling changed a result"

        def seconds(kind):
            wall, processor, _, report = done[kind]
            recorder = 1e-9 * report["total"]["recorder_ns"] if report else 0.0
            return wall if self.by_wall else processor - recorder

        off, report = seconds("off"), done["full"][3]
        return {"raw": seconds("full") / off, "corrected": (seconds("full") - self.cost_s(report)) / off,
                "default": seconds("default") / off, "recorder": 1e-9 * report["total"]["recorder_ns"] / off,
                "seconds": off}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--pairs", type=int, default=31)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--wall", action="store_true")
    parser.add_argument("--case", default="", help="only those that contain this")
    options = parser.parse_args()
    print("case, quantity, low, median, high, unit, rounds")
    with tempfile.TemporaryDirectory(prefix="shoal-correction-") as folder:
        runner = Runner(options.build, options.threads, options.wall, folder)
        for case in CASES:
            name = f"{case[0]} {case[1]}"
            if options.case not in name:
                continue
            rounds = [runner.round(case, i) for i in range(options.pairs)]
            for what, unit in [("raw", "x"), ("corrected", "x"), ("default", "x"), ("recorder", "x"), ("seconds", "s")]:
                low, median, high = interval([r[what] for r in rounds])
                print(f"{name}, {what}, {low:.4f}, {median:.4f}, {high:.4f}, {unit}, {len(rounds)}", flush=True)


if __name__ == "__main__":
    main()
