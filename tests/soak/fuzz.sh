#!/usr/bin/env bash
# Runs every libFuzzer target for FUZZ_SECONDS (600), starting from its corpus. New inputs stay in build/fuzz/found, the
# finding that ended a target in build/fuzz/finding: add it to the corpus with its fix.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

seconds=${FUZZ_SECONDS:-600}
./dev build fuzz fuzz_targets
count=0
for program in build/fuzz/bin/*_fuzz; do
    [[ -x $program ]] || continue
    name=$(basename "$program" _fuzz)
    mkdir -p "build/fuzz/found/$name" "build/fuzz/finding"
    log=build/fuzz/$name.log
    if ! "$program" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/finding/$name-" "build/fuzz/found/$name" "tests/fuzz/corpus/$name" \
        >"$log" 2>&1; then
        tail -n 60 "$log"
        echo "fuzz: $name ended with a finding in build/fuzz/finding"
        exit 1
    fi
    echo "fuzz: $name: $(awk '/number_of_executed_units/ { print $2 }' "$log") inputs in $seconds s, no finding"
    count=$((count + 1))
done
((count > 0)) || { echo "fuzz: there is no target in build/fuzz/bin"; exit 1; }
