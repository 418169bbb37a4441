#!/usr/bin/env python3
"""Compiles the CPU kernels as the build does and reads the compiler's report: every loop marked `// vectorises` must be.

usage: vectorise_test.py COMPILER SOURCE_ROOT FLAG...     FLAG: the build's, without the instruction set's

A marker stands on the line of its loop: `// vectorises` or `// vectorises xN`, N the copies that the compiler makes of
it by inlining. Each copy must use vectors as wide as the instruction set's, or as the lanes where those are narrower.
Negative controls: with opaque code or an early exit planted in a loop the check must report it.

Exit status: 0 all vectorise (or the compiler is not gcc: skipped with a line), 1 one does not, 2 bad usage.
"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ISAS = {
    "v3": (["-march=x86-64-v3"], 32),
    "v4": (["-march=x86-64-v4", "-mprefer-vector-width=512"], 64),
}
LANES = (8, 16)
# Sources and the files whose markers are looked at.
FILES = {"update.c": ["update.c"], "evaluate.c": ["dense.h"], "ppo_learn.c": ["ppo_learn.c"],
         "ppo_rollout.c": ["ppo_rollout.c"], "islands.c": ["islands.c"]}  # fmt: skip
MARKER = re.compile(r"// vectorises(?: x(\d+))?\s*$")
REPORT = re.compile(r"^(.*?):(\d+):\d+: (optimized: loop vectorized using (\d+) byte vectors|missed: couldn't vectorize loop)")
SKIPPED = 77  # ctest's SKIP_RETURN_CODE


def is_gcc(compiler):
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout
    return "Free Software Foundation" in version and "clang" not in version


def simulators(root):
    """All but those on rigid bodies, whose steps are calls: a lane at a time."""
    text = (root / "sim/sim_list.h").read_text()
    found = re.findall(r"\bX\((\w+), *(\w+), *(\w+)\)", text)
    return [sim for sim in found if "SIM_BIG_FN" not in included(root, f"sim/{sim[0]}.h", set())]


def included(root, header, seen):
    """The text of a header and of what it includes, but for sim.h, which defines the words."""
    if header in seen or header == "sim/sim.h":
        return ""
    seen.add(header)
    text = (root / header).read_text()
    return text + "".join(included(root, name, seen) for name in re.findall(r'#include "([^"]+)"', text))


def markers(path):
    """Line number -> copies, of each marked loop of a file."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = MARKER.search(line)
        if match:
            found[number] = int(match.group(1) or 1)
    return found


def vectorised(compiler, flags, source, marked):
    """Compiles `source` and returns, for each file of `marked`, {line: ([widths in bytes], missed)}."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        command = [compiler, *flags, f"-fopt-info-vec-optimized-missed={report}", "-c", str(source), "-o", os.devnull]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
        lines = report.read_text().splitlines()
    found = {path.name: {line: ([], 0) for line in markers(path)} for path in marked}
    for line in lines:
        match = REPORT.match(line)
        of_file = found.get(Path(match.group(1)).name, {}) if match else {}
        if not match or int(match.group(2)) not in of_file:
            continue
        widths, missed = of_file[int(match.group(2))]
        if match.group(4):
            widths.append(int(match.group(4)))
        else:
            missed += 1
        of_file[int(match.group(2))] = (widths, missed)
    return [found[path.name] for path in marked]


def complaints(what, marked, found, width):
    expected = markers(marked)
    if not expected:
        yield f"{marked.name}: no loop is marked"
    for line, (widths, missed) in sorted(found.items()):
        # What is narrower comes on top: the rest of a loop whose count is no multiple of the vector.
        if missed or widths.count(width) < expected[line]:
            yield (
                f"{what}: {marked.name}:{line}: vectors of {widths} bytes and {missed} scalar copies; expected "
                f"{expected[line]} of {width} bytes"
            )


def instance_source(root, folder, lanes, body):
    """kernels/cpu/instance.c for one number of lanes only, over the lanes_body.inc at `body`."""
    text = (root / "kernels/cpu/instance.c").read_text()
    head = text[: text.index("#define LANES 1\n")]
    path = Path(folder) / f"instance_{lanes}.c"
    path.write_text(f'{head}\n#define LANES {lanes}\n#include "{body}"\n')
    return path


def check_simulator(compiler, root, flags, sim, isa, lanes, body):
    name, kind, constant = sim
    isa_flags, isa_width = ISAS[isa]
    defines = [f"-DISA={isa}", f"-DSIM_NAME={name}", f"-DSIM_TYPE={kind}", f"-DSIM_CONST={constant}",
               f'-DSIM_HEADER="sim/{name}.h"']
    with tempfile.TemporaryDirectory() as folder:
        source = instance_source(root, folder, lanes, body)
        (found,) = vectorised(compiler, flags + isa_flags + defines, source, [body])
    return list(complaints(f"{name}, {isa}, {lanes} lanes", body, found, min(4 * lanes, isa_width)))


def check_file(compiler, root, flags, name, marked_names, isa):
    isa_flags, isa_width = ISAS[isa]
    marked = [root / "kernels/cpu" / marked_name for marked_name in marked_names]
    found = vectorised(compiler, flags + isa_flags + [f"-DISA={isa}"], root / "kernels/cpu" / name, marked)
    return [line for path, lines in zip(marked, found) for line in complaints(f"{name}, {isa}", path, lines, isa_width)]


def planted(root, folder, name, old, new):
    text = (root / "kernels/cpu/lanes_body.inc").read_text()
    if text.count(old) != 1:
        raise RuntimeError(f"the negative control '{name}' finds its place {text.count(old)} times: {old}")
    path = Path(folder) / f"lanes_body_{name}.h"
    path.write_text(text.replace(old, new))
    return path


def controls(compiler, root, flags, folder):
    """Loops spoilt on purpose, each of which the check must report."""
    plants = {
        "call": ("        lanes->done[l] = out.terminated", '        __asm__ volatile("");\n        lanes->done[l] = out.terminated'),
        "branch": ("        care[l] = (uint32_t)(ended | cut | resets);",
                   "        if (ended) break;\n        care[l] = (uint32_t)(ended | cut | resets);"),
    }
    for name, (old, new) in plants.items():
        body = planted(root, folder, name, old, new)
        found = check_simulator(compiler, root, flags, ("cartpole", "Cartpole", "CARTPOLE"), "v3", 8, body)
        yield from [] if found else [f"the negative control '{name}' was not reported"]


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    compiler, root, flags = sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3:]
    if not is_gcc(compiler):
        print(f"skipped: {compiler} is not gcc, whose reports this test reads")
        return SKIPPED
    flags += ["-w", f"-I{root}"]
    body = root / "kernels/cpu/lanes_body.inc"
    jobs = []
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as folder:
        for isa in ISAS:
            for sim in simulators(root):
                for lanes in LANES:
                    jobs.append(pool.submit(check_simulator, compiler, root, flags, sim, isa, lanes, body))
            for name, marked in FILES.items():
                jobs.append(pool.submit(check_file, compiler, root, flags, name, marked, isa))
        jobs.append(pool.submit(lambda: list(controls(compiler, root, flags, folder))))
        found = [line for job in jobs for line in job.result()]
    for line in found:
        print(line)
    print(f"{len(jobs) - 1} compilations and their reports: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
