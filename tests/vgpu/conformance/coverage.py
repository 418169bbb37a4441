#!/usr/bin/env python3
"""Fails if a row of the instruction table is one that no conformance case uses.

usage: coverage.py TABLE SOURCE...     exit status: 0 every row is used, 1 some are not, 2 bad usage

TABLE has the rows in their order, one a line: "name<TAB>modifiers<TAB>operands", in the language of exec/table.h; it
may be - for standard input. A SOURCE is a file that holds PTX, or a folder of .ptx files: PTX itself, or C++ with PTX
in its strings. Every instruction found there is taken by the first row that accepts it, as the decoder takes it.
"""

import re
import sys
from pathlib import Path



class Row:
    """A pattern of modifiers, and how many operands there are at least and at most."""

    def __init__(self, line):
        self.line = line
        self.name, modifiers, operands = (line.split("\t") + ["", ""])[:3]
        self.modifiers = [(word.rstrip("?").split("|"), word.endswith("?")) for word in modifiers.split()]
        self.operands = [(word.rstrip("?"), word.endswith("?")) for word in operands.split()]
        self.used_by = None

    def accepts(self, words, operands):
        return match_modifiers(self.modifiers, words) and match_operands(self.operands, operands)


def match_modifiers(pattern, words):
    """Each word of the pattern takes one of the instruction's, or none if it is optional."""
    if not pattern:
        return not words
    (alternatives, optional), rest = pattern[0], pattern[1:]
    if words and words[0] in alternatives and match_modifiers(rest, words[1:]):
        return True
    return optional and match_modifiers(rest, words)


def match_operands(pattern, operands):
    """An operand comes with whether it is a predicate."""
    if not pattern:
        return not operands
    (kind, optional), rest = pattern[0], pattern[1:]
    if operands and operand_fits(kind, *operands[0]) and match_operands(rest, operands[1:]):
        return True
    return optional and match_operands(rest, operands)


def operand_fits(kind, operand, is_predicate):
    """By the shape of an operand: an address, a pair, registers in braces, a predicate, anything else."""
    is_address, is_vector, is_pair = operand.startswith("["), operand.startswith("{"), "|" in operand
    if kind == "m":
        return is_address
    if kind.startswith("{"):
        return is_vector
    if kind == "v":
        return not is_address and not is_pair
    if is_address or is_vector:
        return False
    if is_pair:
        return "|" in kind
    return operand == "_" or kind.startswith("p") == is_predicate


# ---- instructions in text ----

GUARD = re.compile(r"^@\s*!?%?[\w$]+\s+")
INSTRUCTION = re.compile(r"^[a-z][a-z0-9]*(?:\.[A-Za-z0-9_:]+)*(?:\s|$)")


CXX_STRING = re.compile(r'R"\((.*?)\)"|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)


def ptx_of(path):
    """The file's text; of C++ its strings, one after the other."""
    text = path.read_text()
    if path.suffix == ".ptx":
        return text
    strings = (raw or plain.replace("\\n", "\n") for raw, plain in CXX_STRING.findall(text))
    return "\n".join(strings)


PREDICATES = re.compile(r"\.reg\s+\.pred\s+(.*)")
RANGE = re.compile(r"(.*)<(\d+)>$")


def declared_predicates(names):
    for name in re.split(r"\s*,\s*", names):
        prefix, count = RANGE.match(name).groups() if RANGE.match(name) else (name, None)
        yield from [prefix] if count is None else [f"{prefix}{i}" for i in range(int(count))]


def instructions(path):
    """Name, words and operands of every instruction. Strings of C++ are parts of kernels: what one of them declares is
    taken to hold for all of the file."""
    predicates = set()
    for part in statements(ptx_of(path)):
        if path.suffix == ".ptx" and (".entry" in part or ".func" in part):
            predicates = set()
        elif PREDICATES.search(part):
            predicates.update(declared_predicates(PREDICATES.search(part).group(1)))
        elif INSTRUCTION.match(part):
            name, words, operands = parse(part)
            kinds = tuple((o, bool({x.strip("! ") for x in o.split("|")} & predicates)) for o in operands)
            yield name, tuple(words), kinds, part


def statements(text):
    """What stands before semicolons, without labels and guards."""
    text = re.sub(r"//[^\n]*", "", text)
    for part in re.split(r"[;\n]", text):
        part = part.strip()
        part = re.sub(r"^[A-Za-z_$][\w$]*:\s+", "", part)
        yield GUARD.sub("", part)


def split_operands(text):
    """At commas that are in no brackets."""
    operands, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            operands.append(text[start:i].strip())
            start = i + 1
    return operands + [text[start:].strip()] if text.strip() else []


def parse(statement):
    opcode, _, operands = statement.partition(" ")
    name, *words = opcode.rstrip(",").split(".")
    return name, words, split_operands(operands.strip())


# Branches and calls name labels and functions: any operands will do.
CONTROL = ("bra", "brx", "call", "ret", "exit")


def find_row(rows, name, words, operands):
    for row in rows:
        if row.name != name:
            continue
        if row.accepts(words, operands) or (name in CONTROL and match_modifiers(row.modifiers, words)):
            return row
    return None


def source_files(arguments):
    for path in map(Path, arguments):
        yield from path.glob("*.ptx") if path.is_dir() else [path]


def main(arguments):
    if len(arguments) < 2:
        sys.stderr.write(__doc__)
        return 2
    table = sys.stdin.read() if arguments[0] == "-" else Path(arguments[0]).read_text()
    rows = [Row(line) for line in table.splitlines() if line.strip()]
    if not rows:
        sys.stderr.write("the table is empty\n")
        return 2
    names = {row.name for row in rows}
    unknown = set()
    found = {i for path in source_files(arguments[1:]) for i in instructions(path)}
    for name, words, operands, statement in found:
        row = find_row(rows, name, words, operands)
        if row is not None:
            row.used_by = statement
        elif name in names:
            unknown.add(statement)
    unused = [row for row in rows if row.used_by is None]
    for row in unused:
        print(f"no case: {row.line}")
    for statement in sorted(unknown):
        print(f"no row: {statement}")
    print(f"{len(rows) - len(unused)} of {len(rows)} rows are used; {len(unknown)} instructions have no row")
    return 1 if unused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
