#!/usr/bin/env bash
# Runs every benchmark; with --peers also the peers (./dev bench --peers sets up their virtual environment).
set -euo pipefail
cd "$(dirname "$0")/.."
echo "case, min, median, unit, repeats"
for program in build/bin/perf_*; do
  "$program"
done
if [ -e build/lib/vgpu ]; then
  python3 perf/vgpu.py build
fi
if [ "${1:-}" = --peers ]; then
  build/peers/bin/python perf/peers.py build/bin/perf_batch
fi
