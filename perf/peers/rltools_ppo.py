"""Training by PPO on one core, process start to end: pporun beside RLtools' own example, seed by seed.

usage: rltools_ppo.py PPORUN      RLTOOLS=folder of a checkout of rl-tools/rl-tools (without it: skipped)
                                  SEEDS=20, CXX=g++; an OpenBLAS elsewhere through CPATH, LIBRARY_PATH, LD_LIBRARY_PATH

Both train Pendulum for 300,000 steps in full and then test the frozen policy over 100 episodes; the order of the two
alternates. RLtools is built as its own build does it (-O3 -ffast-math -march=native, OpenBLAS), and runs with the OpenBLAS
kernels that are fastest here: a release that does not know a processor falls back on code without AVX. pporun is the
shipped program with its defaults. Wall times are only worth something on an idle machine; CPU times suffer less.

Prints the lines of perf/perf.h: case, min, median, unit, repeats.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = 300_000
SEEDS = int(os.environ.get("SEEDS", "20"))
FLAGS = ["-std=c++17", "-O3", "-ffast-math", "-march=native", "-w"]
DEFINES = ["-DRL_TOOLS_BACKEND_ENABLE_OPENBLAS", "-DRL_TOOLS_DISABLE_TENSORBOARD"]
CORES = ["", "Haswell", "Zen", "SkylakeX", "SapphireRapids"]  # of OpenBLAS; "": its own choice


def line(name, values, unit):
    print(f"{name}, {min(values):.4g}, {statistics.median(values):.4g}, {unit}, {len(values)}", flush=True)


def build(rltools, folder):
    program = f"{folder}/rltools_ppo"
    source = Path(__file__).with_name("rltools_ppo.cc")
    subprocess.run([os.environ.get("CXX", "g++"), *FLAGS, *DEFINES, f"-I{rltools}/include", f"-I{rltools}/src", source,
                    "-o", program, "-lopenblas"], check=True)  # fmt: skip
    return program


def children_cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(call, environment=None):
    """Runs a program that prints one JSON object: that, with the wall time and the CPU time of the whole process."""
    before_s, start_s = children_cpu_s(), time.monotonic()
    out = subprocess.run(call, capture_output=True, text=True, check=True, env=environment).stdout
    return {**json.loads(out), "wall_s": time.monotonic() - start_s, "cpu_s": children_cpu_s() - before_s}


def blas_environment(core):
    known = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    return {**known, "OPENBLAS_NUM_THREADS": "1", **({"OPENBLAS_CORETYPE": core} if core else {})}


def fastest_core(program):
    """The name for OPENBLAS_CORETYPE that makes RLtools fastest. Those the processor cannot run end with a signal."""
    times = {}
    for core in CORES:
        try:
            times[core] = timed([program, "1"], blas_environment(core))["cpu_s"]
        except subprocess.CalledProcessError:
            continue
    return min(times, key=times.get)


def shoal(program, seed, folder, *options):
    return timed([program, "pendulum", f"--steps={STEPS}", "--threads=1", f"--seed={seed}", "--device=cpu", "--json",
                  "--quiet", f"--out={tempfile.mkdtemp(dir=folder)}/run", *options])  # fmt: skip


def show(name, results):
    line(f"{name}, wall", [r["wall_s"] for r in results], "s")
    line(f"{name}, CPU", [r["cpu_s"] for r in results], "s")
    returns = [r["test_return_mean"] for r in results]
    error = statistics.stdev(returns) / len(returns) ** 0.5 if len(returns) > 1 else 0.0
    line(f"{name}, frozen policy (mean {statistics.mean(returns):.1f} +- {error:.1f})", returns, "return")


def main():
    rltools = os.environ.get("RLTOOLS", "")
    if not Path(rltools, "include/rl_tools").is_dir():
        print("rltools_ppo: skipped, RLTOOLS names no checkout of rl-tools/rl-tools", file=sys.stderr)
        return
    whole = ["--no-stop-at-target", f"--test-every={STEPS}"]
    theirs, ours, shipped = [], [], []
    with tempfile.TemporaryDirectory(prefix="shoal-rltools-") as folder:
        program = build(rltools, folder)
        core = fastest_core(program)
        print(f"rltools_ppo: OPENBLAS_CORETYPE={core or '(unset)'}", file=sys.stderr)
        for seed in range(1, SEEDS + 1):
            calls = [lambda s=seed: theirs.append(timed([program, str(s)], blas_environment(core))),
                     lambda s=seed: ours.append(shoal(sys.argv[1], s, folder, *whole))]  # fmt: skip
            for call in calls if seed % 2 else reversed(calls):
                call()
            shipped.append(shoal(sys.argv[1], seed, folder))
    show(f"rltools ppo pendulum, {theirs[0]['env_steps']} steps", theirs)
    show(f"pporun pendulum, {ours[0]['env_steps']} steps", ours)
    show("pporun pendulum, until the target is held", shipped)
    for kind in ["wall", "cpu"]:
        line(f"rltools / pporun, {kind}", [a[f"{kind}_s"] / b[f"{kind}_s"] for a, b in zip(theirs, ours)], "x")


if __name__ == "__main__":
    main()
