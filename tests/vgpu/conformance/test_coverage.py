#!/usr/bin/env python3
"""Tests of coverage.py."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import coverage

TABLE = """add\tu16|s32\tt t t
add\trn|rz? ftz? f32\tt t t
ld\tglobal? v2|v4? u32|f32\tv m
shfl\tsync up|down b32\tt|p x u32 u32 u32
bra\tuni?\t
vote\tall\tp p u32
vote\tall\tp u32 u32
mov\tb32\t{x} t
"""


def check(source, name="source.ptx"):
    """The exit status and what was printed for a source text."""
    with tempfile.TemporaryDirectory() as folder:
        table, text = Path(folder, "table"), Path(folder, name)
        table.write_text(TABLE)
        text.write_text(source)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            status = coverage.main([str(table), folder if name.endswith(".ptx") else str(text)])
        return status, out.getvalue()


ALL = """
.reg .pred %p, %q<2>;
LOOP: add.s32 %a, %b, 1;
@%p add.rz.ftz.f32 %a, %b, %c;
ld.global.v4.u32 {%a, %b, %c, %d}, [%m+4];
@!%p shfl.sync.up.b32 %d|%p, %a, 1, 0, -1;
bra.uni LOOP;
vote.all %q0, !%q1, 1;
vote.all %q0, %a, 1;
mov.b32 {%a, %b}, %c;
"""


class Coverage(unittest.TestCase):
    def test_every_row_used(self):
        self.assertEqual(check(ALL)[0], 0)

    def test_each_row_left_out_is_named(self):
        names = ("u16|s32", "ftz? f32", "v2|v4?", "shfl", "bra", "p p", "p u32 u32", "{x}")
        for line, name in zip(ALL.strip().splitlines()[1:], names):
            status, text = check(ALL.replace(line, ""))
            self.assertEqual(status, 1)
            self.assertEqual(text.count("no case:"), 1)
            self.assertIn(name, text)

    def test_shapes_of_operands(self):
        self.assertEqual(check(ALL.replace("{%a, %b}, %c", "%a, %c"))[0], 1)
        self.assertEqual(check(ALL.replace("[%m+4]", "%m"))[0], 1)
        self.assertEqual(check(ALL.replace("%b, 1;", "%b;"))[0], 1)
        self.assertEqual(check(ALL.replace("%d|%p", "%d"))[0], 0)  # the second of a pair may be left out

    def test_words_that_no_row_has(self):
        status, text = check(ALL + "add.rn.sat.f32 %a, %b, %c;\n")
        self.assertEqual(status, 0)
        self.assertIn("no row: add.rn.sat.f32", text)

    def test_strings_of_cxx(self):
        source = 'x ? "add.s32 %a, %b, 1;" : "add.f32 %a,"\n" %b;";\nload(R"(add.f32 %a, %b, %c;\n)"); bra.uni LOOP;'
        text = check(source, "test.cc")[1]
        self.assertNotIn("no case: add", text)
        self.assertIn("no case: bra", text)  # that is no string


if __name__ == "__main__":
    unittest.main()
