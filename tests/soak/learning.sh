#!/usr/bin/env bash
# Every simulator with the defaults of esrun and pporun (TOOLS) and SEEDS (10) seeds: the median time until its target is
# held, under 60 s; LunarLander by esrun: 180 s, BipedalWalker by pporun: 600 s.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/soak/learning.py
