"""Gymnasium's NumPy-vectorised CartPole on one core, beside Shoal's batch, round after round.

usage: gymnasium_batch.py PERF_BATCH_PROGRAM. Prints the lines of perf/perf.h: case, min, median, unit, repeats.
"""

import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
import gymnasium  # noqa: E402
import numpy  # noqa: E402

ENVS, STEPS, REPEATS = 16384, 60, 7


def line(name, values, unit):
    print(f"{name}, {min(values):.4g}, {statistics.median(values):.4g}, {unit}, {len(values)}", flush=True)


def gymnasium_rate(envs, actions):
    start = time.perf_counter()
    for step in range(STEPS):
        envs.step(actions[step % len(actions)])
    return ENVS * STEPS / (time.perf_counter() - start) * 1e-6


def shoal_rate(program):
    """The median of perf_batch's own rounds."""
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    fields = next(row for row in out.splitlines() if row.startswith("cartpole batch,")).split(",")
    return float(fields[2])


def main():
    envs = gymnasium.make_vec(
        "CartPole-v1",
        num_envs=ENVS,
        vectorization_mode="vector_entry_point",
        vector_kwargs={},
    )
    envs.reset(seed=1)
    rng = numpy.random.default_rng(1)
    actions = rng.integers(0, 2, size=(16, ENVS))
    gymnasium_rate(envs, actions)
    theirs, ours, ratio = [], [], []
    for _ in range(REPEATS):
        theirs.append(gymnasium_rate(envs, actions))
        ours.append(shoal_rate(sys.argv[1]))
        ratio.append(ours[-1] / theirs[-1])
    line(f"gymnasium {gymnasium.__version__} vector cartpole", theirs, "Mstep/s")
    line("cartpole batch", ours, "Mstep/s")
    line("cartpole batch / gymnasium vector", ratio, "x")


if __name__ == "__main__":
    main()
