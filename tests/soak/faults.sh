#!/usr/bin/env bash
# The command line's tests with injected faults, ROUNDS (10) times over, each time at other random moments; and TRIALS (200)
# faults of runs with several workers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export PYTHONDONTWRITEBYTECODE=1
rounds=${ROUNDS:-10}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for ((round = 1; round <= rounds; round++)); do
    for script in tests/{es,ppo}/cli_{usage,resume}_test.py; do
        if ! python3 "$script" >"$log" 2>&1; then
            cat "$log"
            echo "faults: round $round of $script failed"
            exit 1
        fi
    done
done
echo "faults: $rounds rounds of bad input, signals, kills and full disks, no failure"
python3 tests/soak/worker_faults.py
