#!/usr/bin/env bash
# Runs every benchmark; with --peers also the peers (./dev bench --peers sets up their virtual environment).
set -euo pipefail
cd "$(dirname "$0")/.."
echo "case, min, median, unit, repeats"
for program in perf_batch perf_es perf_ppo perf_profiler; do
  "build/bin/$program"
done
if [ "${1:-}" = --peers ]; then
  build/bin/perf_workers build/peers/bin/python perf/peers/pool_tasks.py
else
  build/bin/perf_workers
fi
# Without a GPU it would only say so.
if nvidia-smi --list-gpus >/dev/null 2>&1; then
  build/bin/perf_gpu
fi
if [ -e build/lib/vgpu ]; then
  python3 perf/vgpu.py build
fi
if [ "${1:-}" = --peers ]; then
  build/peers/bin/python perf/peers/gymnasium_batch.py build/bin/perf_batch
  build/peers/bin/python perf/peers/gymnasium_box2d.py build/bin/perf_box2d
  python3 perf/peers/rltools_ppo.py build/bin/pporun # says so where RLTOOLS names no checkout of it
fi
