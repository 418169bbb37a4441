#!/usr/bin/env python3
"""Checks what nvcc made of the kernels: no stack frame and no spill, and only arithmetic that every device rounds alike.

usage: check_kernels.py FOLDER NAME... [--double NAME...]     reads FOLDER/NAME.txt (ptxas -v) and FOLDER/NAME.ptx
Those after --double may compute in double precision: sums and statistics, whose order is fixed.
Simulators on rigid bodies, whose worlds are arrays and whose steps are calls, have frames, and registers are saved in
them: both up to a limit.
exit status: 0 nothing found, 1 something, 2 bad usage
"""

import re
import sys
from pathlib import Path

KERNEL = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
FRAMES = {"lunar_lander": 8192, "bipedal_walker": 24576}  # bytes a thread, at most
SPILL_MOST = 1024  # bytes a thread, of these
REGISTERS = re.compile(r"Used (\d+) registers")

# PTX instructions that the determinism rules exclude, and why.
FORBIDDEN = [
    (re.compile(r"\.ftz\b"), "flushes subnormals"),
    (re.compile(r"\.(approx|full)\b"), "an approximation"),
    (re.compile(r"\b(add|sub|mul)\.f(32|64)\b"), "without .rn: ptxas may fuse it"),
    (re.compile(r"\bmad(\.\w+)*\.f(32|64)\b"), "a contracted multiply-add"),
    (re.compile(r"\bfma(\.\w+)*\.f64\b"), "a multiply-add that the CPU does not make"),
    (re.compile(r"\b(min|max)(\.\w+)*\.f(32|64)\b"), "differs on signed zeros and NaN"),
    (re.compile(r"\b(atom|red)\b.*\.f(16|32|64)"), "a float atomic: its order is not fixed"),
    (re.compile(r"\b(wmma|mma|wgmma)\."), "a tensor core"),
]
DOUBLE = (re.compile(r"\.f64\b"), "double precision")


def check_report(name, text):
    """Findings in one ptxas report."""
    kernel = None
    kernels = 0
    for line in text.splitlines():
        if match := KERNEL.search(line):
            kernel = f"{match.group(1)} ({match.group(2)})"
            kernels += 1
        elif match := FRAME.search(line):
            frame, stores, loads = map(int, match.groups())
            frame_most = next((most for sim, most in FRAMES.items() if kernel and sim in kernel), 0)
            spill_most = SPILL_MOST if frame_most > 0 else 0
            if frame > frame_most or max(stores, loads) > spill_most:
                yield f"{name}: {kernel}: {frame} bytes of stack, {stores} of spill stores, {loads} of spill loads"
        elif match := REGISTERS.search(line):
            print(f"{int(match.group(1)):4} registers  {kernel}")
    if kernels == 0:
        yield f"{name}: no kernel in it"


def check_ptx(name, text, may_be_double=False):
    """Findings in one PTX file."""
    forbidden = FORBIDDEN if may_be_double else [*FORBIDDEN, DOUBLE]
    if ".entry" not in text:
        yield f"{name}: no kernel in it"
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0]
        for pattern, reason in forbidden:
            if pattern.search(code):
                yield f"{name}:{number}: {code.strip()}: {reason}"


def findings(folder, words):
    may_be_double = False
    for name in words:
        if name == "--double":
            may_be_double = True
            continue
        for suffix, check in ((".txt", check_report), (".ptx", lambda *file: check_ptx(*file, may_be_double))):
            path = Path(folder) / (name + suffix)
            if path.is_file():
                yield from check(path.name, path.read_text(encoding="utf-8"))
            else:
                yield f"{path}: not there"


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    found = list(findings(sys.argv[1], sys.argv[2:]))
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
