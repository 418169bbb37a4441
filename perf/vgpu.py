#!/usr/bin/env python3
"""The virtual GPU's speed on Shoal's own evaluation kernel: thread-instructions a second, and what each checker costs.

Usage: vgpu.py BUILD_FOLDER. Prints the lines of perf/perf.h: case, min, median, unit, repeats. The cases take turns, so
that what else the machine does falls on all of them alike.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile

REPEATS = 7
RUN = ["cartpole", "--pop", "1024", "--generations", "1", "--time-limit", "200", "--test-every", "2", "--test-episodes", "8", "--seed", "3", "--quiet",
       "--device", "cuda"]
CASES = {
    "vgpu, 1 thread, no checker": ("1", "none"),
    "vgpu, 2 threads, no checker": ("2", "none"),
    "vgpu, 1 thread, bounds": ("1", "bounds"),
    "vgpu, 1 thread, init": ("1", "init"),
    "vgpu, 1 thread, races": ("1", "races"),
    "vgpu, 1 thread, all checkers": ("1", "all"),
}


def rate(build, threads, checks):
    """Millions of thread-instructions a second while kernels ran."""
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{build}/lib/vgpu", VGPU_STATS="1", VGPU_THREADS=threads,
                       VGPU_CHECK=checks)
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([f"{build}/bin/esrun", *RUN, "--out", f"{folder}/run"], env=environment, text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    found = re.search(r"vgpu: .* ([0-9.]+) million a second", run.stderr)
    if run.returncode != 0 or not found:
        sys.exit(f"vgpu.py: esrun on the virtual GPU failed:\n{run.stderr}")
    return float(found.group(1))


def main():
    build = os.path.abspath(sys.argv[1])
    rates = {case: [] for case in CASES}
    for _ in range(REPEATS):
        for case, (threads, checks) in CASES.items():
            rates[case].append(rate(build, threads, checks))
    for case, values in rates.items():
        print(f"{case}, {min(values):.4g}, {statistics.median(values):.4g}, M thread-instr/s, {len(values)}")


if __name__ == "__main__":
    main()
