#!/usr/bin/env bash
# EVALUATORS (1024) processes work for one run, and KILLS (100) of them are killed on the way.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/soak/many_workers.py
