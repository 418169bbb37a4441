#!/bin/sh
# NVIDIA's assembler accepts every module of a folder.
#
# usage: check_ptx.sh PTXAS FOLDER
set -u
status=0
count=0
for module in "$2"/*.ptx; do
    count=$((count + 1))
    "$1" -arch=sm_90 "$module" -o /dev/null || status=1
done
echo "$count modules"
[ "$count" -gt 50 ] && exit $status
exit 1
