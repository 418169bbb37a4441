"""What a stand-in library exports, against the real one: a program must find each function under the same name and version.

    test_symbols.py NM STAND_IN REAL all|some

all: every function of the real one is there; some: it may have fewer. More than it has are only those of vgpu_*.
"""

import subprocess
import sys


def read_symbols(nm, library):
    lines = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    functions = [line.split() for line in lines.splitlines()]
    return {name for _, kind, name in functions if kind in "TWDRB"}


def main():
    nm, stand_in, real, how = sys.argv[1:]
    own, others = read_symbols(nm, stand_in), read_symbols(nm, real)
    extra = {name for name in own - others if not name.startswith("vgpu_")}
    missing = others - own if how == "all" else set()
    for what, names in (("not in the real library", extra), ("missing", missing)):
        if names:
            print(f"{what}: {' '.join(sorted(names))}")
    if extra or missing or not own & others:
        sys.exit(1)
    print(f"{len(own & others)} symbols of {len(others)}")


if __name__ == "__main__":
    main()
