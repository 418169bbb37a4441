#!/usr/bin/env python3
"""Checks what no compiler does: layers, sizes, names, headers that compile alone, paths of one machine.

usage: check_structure.py [ROOT] [--only CHECK]     exit status: 0 nothing found, 1 something, 2 bad usage
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 59

# What each layer may include: itself and what lies below it.
LAYERS = {
    "sim": {"sim"},
    "host": {"host"},
    "kernels": {"kernels", "sim", "host"},
    "es": {"es", "kernels", "sim", "host"},
    "ppo": {"ppo", "kernels", "sim", "host"},
    "profiler": {"profiler", "host"},
}
# The mains wire everything together and may include anything.
LAUNCHERS = {"es/esrun.c", "ppo/pporun.c", "profiler/profreport.c"}

SOURCE_SUFFIXES = {".c", ".h", ".cc", ".cpp", ".cu", ".cuh", ".def", ".inc", ".py", ".sh", ".cmake", ".html", ".css", ".js"}
CODE_SUFFIXES = {".c", ".h", ".inc", ".cc", ".cpp", ".cu", ".cuh"}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".md", ".txt", ".json", ".yml", ".yaml", ".cfg", ""}
SKIPPED_FOLDERS = {".git", "build", "runs", ".cache", "__pycache__", "data", "corpus"}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# Written in two halves, so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/" + r"(?:home|root|Users|work|workspace|mnt|scratch)/[\w.-]+")


def source_files(root):
    """Every file of the tree with its path relative to the root, in order."""
    found = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED_FOLDERS)
        found += [(Path(folder) / f).relative_to(root) for f in sorted(files) if f != ".git"]
    return found


def read(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace")


def check_layers(root, files):
    """Includes point downwards only, and name their layer: "sim/sim.h", never "sim.h" or "../sim/sim.h"."""
    for path in files:
        layer = path.parts[0]
        if layer not in LAYERS or path.suffix not in CODE_SUFFIXES | {".def"}:
            continue
        if path.as_posix() in LAUNCHERS:
            continue
        text = read(root, path)
        for match in INCLUDE.finditer(text):
            included = match.group(1)
            line = text.count("\n", 0, match.start(1)) + 1
            target = included.split("/")[0]
            if target not in LAYERS:
                yield f'{path}:{line}: "{included}" does not begin with a layer: {", ".join(LAYERS)}'
            elif target not in LAYERS[layer]:
                yield f'{path}:{line}: {layer} must not include "{included}": includes point downwards only'


def check_file_length(root, files):
    for path in files:
        if path.suffix in SOURCE_SUFFIXES or path.name == "dev":
            lines = read(root, path).count("\n")
            if lines > MAX_FILE_LINES:
                yield f"{path}: {lines} lines, and {MAX_FILE_LINES} are allowed"


def check_function_length(root, files):
    """In clang-formatted code a function begins where a line in column 0 ends in `{` and ends at `}` in column 0."""
    not_functions = re.compile(r"(typedef|struct|union|enum|extern|namespace|class)\b|.*=\s*\{$")
    for path in files:
        if path.suffix not in CODE_SUFFIXES:
            continue
        start = None
        header = 0  # first line of a signature that spans several
        for number, line in enumerate(read(root, path).splitlines(), 1):
            if start is None:
                if line[:1].isalpha() and not line.endswith((";", ":")):
                    header = number
                    text = line
                if header and line.endswith("{") and (line[:1].isalpha() or line[:1] in " \t"):
                    if not not_functions.match(text) and "(" in text:
                        start = header
                    header = 0
                elif line.endswith((";", "}")) or not line:
                    header = 0
            elif line.startswith("}"):
                length = number - start + 1
                if length > MAX_FUNCTION_LINES:
                    yield f"{path}:{start}: a function of {length} lines, and {MAX_FUNCTION_LINES} are allowed"
                start = None


def check_unique_names(root, files):
    """A base name stands for one thing: foo.c, foo.h and foo.cu belong together, so they share a top-level folder."""
    seen = {}
    for path in files:
        if path.suffix not in CODE_SUFFIXES:
            continue
        first = seen.setdefault(path.name, path)
        if first != path:
            yield f"{path}: the name is taken by {first}"
        first = seen.setdefault((path.stem,), path)
        if first.parts[0] != path.parts[0] and path.name != first.name:
            yield f"{path}: the base name is taken by {first}"


def compile_header(root, path, flags):
    """The compiler's first complaint about a file that includes nothing but this header; None if there is none."""
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        # A second inclusion finds a missing include guard; the declaration keeps the file from being empty.
        source.write(f'#include "{path}"\n#include "{path}"\nextern int not_empty;\n')
        source.flush()
        command = [os.environ.get("CC", "gcc"), "-std=gnu17", "-fsyntax-only", "-Wall", "-Werror", f"-I{root}"]
        done = subprocess.run(command + flags + [source.name], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    errors = [l for l in done.stderr.splitlines() if "error:" in l]
    return f"{path}: does not compile alone{' (' + ' '.join(flags) + ')' if flags else ''}: {(errors or ['?'])[0]}"


def check_headers(root, files):
    """Each header of a layer compiles alone; sim's also in the double build. Headers only for nvcc are .cuh."""
    jobs = []
    for path in files:
        if path.suffix == ".h" and path.parts[0] in LAYERS:
            jobs.append((path, []))
            if path.parts[0] == "sim":
                jobs.append((path, ["-DSIM_REAL_DOUBLE"]))
    with ThreadPoolExecutor(2) as pool:
        yield from filter(None, pool.map(lambda job: compile_header(root, *job), jobs))


def check_paths(root, files):
    """No path that exists on one machine only."""
    for path in files:
        if path.suffix not in TEXT_SUFFIXES or path.name == "LICENSE":
            continue
        for number, line in enumerate(read(root, path).splitlines(), 1):
            match = MACHINE_PATH.search(line)
            if match:
                yield f"{path}:{number}: a path of one machine: {match.group(0)}"


CHECKS = {
    "layers": check_layers,
    "file-length": check_file_length,
    "function-length": check_function_length,
    "unique-names": check_unique_names,
    "headers": check_headers,
    "paths": check_paths,
}


def findings(root, checks=tuple(CHECKS)):
    root = Path(root).resolve()
    files = source_files(root)
    return [f"{finding} [{name}]" for name in checks for finding in CHECKS[name](root, files)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", nargs="?", default=Path(__file__).parents[2])
    parser.add_argument("--only", choices=CHECKS, action="append")
    args = parser.parse_args()
    if not (Path(args.root) / "CMakeLists.txt").is_file():
        parser.error(f"{args.root} is not the root of the tree: it has no CMakeLists.txt")
    found = findings(args.root, args.only or tuple(CHECKS))
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
