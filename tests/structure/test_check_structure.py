"""The structure checker finds each planted violation, and nothing in a tree that has none."""

import shutil
import tempfile
import unittest
from pathlib import Path

from check_structure import MAX_FILE_LINES, MAX_FUNCTION_LINES, findings

GUARDED = "#ifndef {0}_H\n#define {0}_H\n{1}\n#endif\n"


class CheckStructure(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="structure_"))
        self.addCleanup(shutil.rmtree, self.root)
        self.plant("sim/sim.h", GUARDED.format("SIM", "typedef float real;"))
        self.plant("host/status.h", GUARDED.format("STATUS", "int host_status(void);"))
        self.plant("kernels/kern_batch.h", GUARDED.format("BATCH", '#include "host/status.h"\n#include "sim/sim.h"'))
        self.plant("es/es_update.c", '#include "es/es_update.h"\n\nint es_update(void) {\n    return 0;\n}\n')
        self.plant("es/es_update.h", GUARDED.format("ES", '#include "kernels/kern_batch.h"\nint es_update(void);'))

    def plant(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def expect(self, check, *parts):
        found = findings(self.root)
        self.assertEqual(len(found), 1, found)
        for part in parts + (f"[{check}]",):
            self.assertIn(part, found[0])

    def test_clean_tree(self):
        self.assertEqual(findings(self.root), [])

    def test_include_upwards(self):
        for layer, target in [("sim", "host"), ("host", "sim"), ("kernels", "es"), ("es", "ppo"), ("ppo", "es"),
                              ("profiler", "kernels"), ("es", "profiler")]:
            with self.subTest(layer=layer, target=target):
                self.plant(f"{layer}/planted.c", f'\n#include "{target}/x.h"\n')
                self.expect("layers", f"{layer}/planted.c:2", f"{target}/x.h")
                (self.root / layer / "planted.c").unlink()

    def test_include_without_layer(self):
        self.plant("host/planted.c", '#include "status.h"\n')
        self.expect("layers", "status.h")

    def test_include_around_the_layers(self):
        self.plant("host/planted.c", '#  include "../sim/sim.h"\n')
        self.expect("layers", "../sim/sim.h")

    def test_launcher_includes_anything(self):
        self.plant("es/esrun.c", '#include "profiler/x.h"\n#include "ppo/y.h"\n')
        self.assertEqual(findings(self.root), [])

    def test_long_file(self):
        self.plant("host/planted.c", "\n" * MAX_FILE_LINES)
        self.assertEqual(findings(self.root), [])
        self.plant("host/planted.c", "\n" * (MAX_FILE_LINES + 1))
        self.expect("file-length", "601 lines")

    def test_long_function(self):
        for signature in ["static int f(int a) {\n", "int f(int a,\n      int b) {\n"]:
            with self.subTest(signature=signature):
                body = "    a++;\n" * (MAX_FUNCTION_LINES - 1 - signature.count("\n"))
                self.plant("host/planted.c", "// a comment\n" + signature + body + "}\n")
                self.assertEqual(findings(self.root), [])
                self.plant("host/planted.c", "// a comment\n" + signature + body + "    a++;\n}\n")
                self.expect("function-length", "host/planted.c:2", "60 lines")

    def test_long_table_is_no_function(self):
        self.plant("host/planted.c", "static const int t[] = {\n" + "    1,\n" * 100 + "};\n")
        self.assertEqual(findings(self.root), [])

    def test_same_name_twice(self):
        self.plant("sim/planted.c", "int x;\n")
        self.plant("host/planted.c", "int x;\n")
        self.expect("unique-names", "sim/planted.c", "host/planted.c")

    def test_same_base_name_in_two_folders(self):
        self.plant("sim/planted.c", "int x;\n")
        self.plant("tests/planted.cc", "int x;\n")
        self.expect("unique-names", "tests/planted.cc", "sim/planted.c")

    def test_header_that_needs_another(self):
        self.plant("host/planted.h", GUARDED.format("PLANTED", "uint32_t planted(void);"))
        self.expect("headers", "host/planted.h", "uint32_t")

    def test_header_without_guard(self):
        self.plant("host/planted.h", "typedef struct Planted {\n    int x;\n} Planted;\n")
        self.expect("headers", "host/planted.h", "redefinition")

    def test_sim_header_in_double(self):
        self.plant("sim/planted.h", GUARDED.format("PLANTED", "#ifdef SIM_REAL_DOUBLE\nmissing x;\n#endif"))
        self.expect("headers", "sim/planted.h", "SIM_REAL_DOUBLE")

    def test_path_of_one_machine(self):
        self.plant("tests/planted.py", 'DATA = "' + "/".join(["", "home", "me", "data"]) + '"\n')
        self.expect("paths", "tests/planted.py:1")
        inner = "/".join(["/usr/lib", "work", "x"])
        self.plant("tests/planted.py", f'DATA = "{inner}", "a/home/b", "https://x.org/home/b"\n')
        self.assertEqual(findings(self.root), [])


if __name__ == "__main__":
    unittest.main()
