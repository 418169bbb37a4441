#!/usr/bin/env bash
# KILLS (100) random kill -9 of each trainer (TOOLS) over the simulators: every run must go on to the unbroken run's hash,
# with each step once in metrics.csv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/soak/kill9.py
