#!/usr/bin/env bash
# nvcc_compile.sh REPORT COMMAND...: runs nvcc and keeps what `-Xptxas -v` says (registers, stack frame, spills of each
# kernel and architecture) in REPORT, and the PTX of all architectures beside it (a.txt: a.ptx). Anything else that nvcc
# says is shown.
set -euo pipefail

report=$1
shift
mkdir -p "$(dirname "$report")"
kept=$(mktemp -d "$report.XXXXXX")
trap 'rm -rf "$kept" "$report.tmp"' EXIT
status=0
"$@" --keep --keep-dir "$kept" 2>"$report.tmp" || status=$?
if ((status != 0)); then
    cat "$report.tmp" >&2
    exit "$status"
fi
grep -Ev '^ptxas info|^ *[0-9]+ bytes stack frame|^$' "$report.tmp" >&2 || true
cat "$kept"/*.ptx >"${report%.txt}.ptx"
mv "$report.tmp" "$report"
