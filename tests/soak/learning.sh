#!/usr/bin/env bash
# Every simulator with esrun's defaults and SEEDS (10) seeds: the median time until its target is held, under 60 s.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ESRUN=${ESRUN:-build/bin/esrun} PYTHONDONTWRITEBYTECODE=1 exec python3 tests/soak/learning.py
