"""How well the profiler corrects for its own cost: runs with and without it, at the same time on the same core.

usage: profiler_correction.py [--rounds N] [--seconds S] [--case TEXT] BUILD

For each case (trainer and simulator), rounds of runs of the same bits: two without a profile, one with --profile-detail
full, and one with --profile as it is by default. All share one core, so that the kernel gives each of them a few
milliseconds in turn: what other programs, or other machines on the same host, do to the core's speed, they do to all of
them alike. So that they do end at about the same time, the run in full detail, which has more to do, has a larger share:
the others are nicer. Times are the processor's, of the whole process less the recorder's own thread. `profreport
--calibrate` runs once, before the rounds.
Printed are medians over the rounds, and their 95% intervals by order statistics, of ratios to the mean of the two runs
without a profile:

    raw          the run in full detail, as it was
    corrected    the same without what profreport says that profiling cost
    default      the run with the default density
    same         the two runs without a profile: the noise of it all
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

# Small networks and batches: the smaller the work between two events, the denser the trace.
ES = ["--hidden", "8", "--generations", "100", "--no-stop-at-target", "--test-every", "1000"]
PPO = ["--hidden", "16", "--minibatches", "16", "--epochs", "4", "--steps", "160000", "--no-stop-at-target", "--test-every", "1000"]
CASES = [(tool, env, [*settings, *of_env])
         for tool, settings in [("esrun", ES), ("pporun", PPO)]
         for env, of_env in [("cartpole", []), ("acrobot", []), ("pendulum", [])]]  # fmt: skip
COMMON = ["--threads", "1", "--bind", "none", "--device", "cpu", "--quiet", "--seed", "3", "--checkpoint-every", "100000", "--json"]


def interval(values):
    """(low, median, high): order statistics, as prof_estimate() has them."""
    values = sorted(values)
    count, reach = len(values), math.ceil(0.98 * math.sqrt(len(values)))
    low, high = max(count // 2 - reach, 0), min((count - 1) // 2 + reach, count - 1)
    return values[low], statistics.median(values), values[high]


KINDS = {"off": [], "full": ["--profile-detail", "full"], "default": ["--profile"], "same": []}


class Runner:
    def __init__(self, build, folder):
        self.bin, self.folder = Path(build).resolve() / "bin", Path(folder)
        self.core = min(os.sched_getaffinity(0))
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder)}  # of the calibration

    def start(self, *command, nice=0):
        def prepare():
            os.sched_setaffinity(0, [self.core])
            os.nice(nice)

        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, env=self.environment, preexec_fn=prepare)

    def calibrate(self):
        self.finish({"calibrate": self.start(self.bin / "profreport", "--calibrate")})

    def train(self, kind, case, nice=0):
        tool, env, settings = case
        out = self.folder / kind
        shutil.rmtree(out, ignore_errors=True)
        return self.start(self.bin / tool, env, *settings, *COMMON, "--out", out, *KINDS[kind], nice=nice)

    @staticmethod
    def finish(processes):
        """Of each: (seconds of the processor, hash of the parameters)"""
        done, left = {}, {process.pid: name for name, process in processes.items()}
        while left:
            pid, status, usage = os.wait4(-1, 0)
            name = left.pop(pid)
            processes[name].returncode = os.waitstatus_to_exitcode(status)
            if processes[name].returncode != 0:
                raise SystemExit(f"{processes[name].args} failed")
            output = processes[name].stdout.read()
            done[name] = usage.ru_utime + usage.ru_stime, json.loads(output)["params_hash"] if name in KINDS else None
        return done

    def report(self, kind):
        command = [self.bin / "profreport", "--json", self.folder / kind]
        text = subprocess.run(command, capture_output=True, text=True, check=True, env=self.environment).stdout
        return json.loads(text)["runs"][0]

    def prepared(self, case, seconds):
        """The case with as many generations or env steps as take about that long, and how much nicer than the run in full
        detail the others have to be: a step of niceness is a quarter of the processor's time."""
        tool, env, settings = case
        done = self.finish({kind: self.train(kind, case) for kind in ["off", "full"]})
        at = settings.index("--generations" if tool == "esrun" else "--steps") + 1
        count = max(int(int(settings[at]) * seconds / done["off"][0]), int(settings[at]))
        raw = done["full"][0] - 1e-9 * self.report("full")["total"]["recorder_ns"]
        nice = max(round(math.log(raw / done["off"][0], 1.25)), 0)
        return (tool, env, [*settings[:at], count, *settings[at + 1 :]]), nice

    def round(self, case, nice):
        """The ratios of one round."""
        done = self.finish({kind: self.train(kind, case, 0 if kind == "full" else nice) for kind in KINDS})
        assert len({done[kind][1] for kind in KINDS}) == 1, "profiling changed a result"
        off = (done["off"][0] + done["same"][0]) / 2
        full, default = self.report("full"), self.report("default")
        if full["correction"] is None:
            raise SystemExit("not corrected: the calibration failed")
        cost = 1e-9 * (full["total"]["wall_ns"] - full["correction"]["wall_ns"]["value"])
        raw = done["full"][0] - 1e-9 * full["total"]["recorder_ns"]
        return {"raw": raw / off, "corrected": (raw - cost) / off,
                "default": (done["default"][0] - 1e-9 * default["total"]["recorder_ns"]) / off,
                "same": done["same"][0] / done["off"][0], "seconds": off}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=1.0, help="of the processor, for a run without a profile")
    parser.add_argument("--case", default="", help="only those that contain this")
    options = parser.parse_args()
    print("case, quantity, low, median, high, unit, rounds")
    with tempfile.TemporaryDirectory(prefix="shoal-correction-") as folder:
        runner = Runner(options.build, folder)
        for case in CASES:
            name = f"{case[0]} {case[1]}"
            if options.case not in name:
                continue
            runner.calibrate()
            case, nice = runner.prepared(case, options.seconds)
            rounds = [runner.round(case, nice) for i in range(options.rounds)]
            for what in rounds[0]:
                low, median, high = interval([r[what] for r in rounds])
                unit = "s" if what == "seconds" else "x"
                print(f"{name}, {what}, {low:.4f}, {median:.4f}, {high:.4f}, {unit}, {len(rounds)}", flush=True)


if __name__ == "__main__":
    main()
