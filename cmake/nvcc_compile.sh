#!/usr/bin/env bash
# nvcc_compile.sh REPORT COMMAND...: runs nvcc and keeps what `-Xptxas -v` says (registers, stack frame, spills of each
# kernel and architecture) in REPORT. Anything else that nvcc says is shown.
set -euo pipefail

report=$1
shift
mkdir -p "$(dirname "$report")"
status=0
"$@" 2>"$report.tmp" || status=$?
if ((status != 0)); then
    cat "$report.tmp" >&2
    rm -f "$report.tmp"
    exit "$status"
fi
grep -Ev '^ptxas info|^ *[0-9]+ bytes stack frame|^$' "$report.tmp" >&2 || true
mv "$report.tmp" "$report"
