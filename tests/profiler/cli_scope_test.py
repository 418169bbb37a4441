"""Programs that are not Shoal's own: annotated in C, in Python or with NVTX, recorded by libshoal_inject.so, and reported."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cli_harness import SANITIZED  # noqa: E402
from cli_profile_test import ProfileTest  # noqa: E402

LIBRARY = Path(os.environ["SHOAL_INJECT"])
PROGRAMS = Path(os.environ["SHOAL_TEST_PROGRAMS"])


class ScopeTest(ProfileTest):
    def run_program(self, *command, code=0, **environment):
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=self.folder, timeout=60,
                              check=False, env={**os.environ, **{k: str(v) for k, v in environment.items()}})  # fmt: skip
        self.assertEqual(code, done.returncode, done)
        return done

    def python(self, text, code=0, **environment):
        path = self.folder / f"program{self.path().name}.py"
        path.write_text(text, encoding="utf-8")
        return self.run_program(sys.executable, path, code=code, **{"PYTHONPATH": LIBRARY.parent, **environment})

    def scopes(self, run):
        """Of all workers: path -> (category, count); and the report."""
        report = self.report_json(run)[0]
        return {s["path"]: (s["category"], s["count"]) for s in report["scopes"] if s["count"] > 0}, report


class C(ScopeTest):
    EXPECTED = {"/log": ("io", 10), "/after the fork": ("learning", 1)}
    for level in range(3):
        EXPECTED[f"/level {level}"] = ("policy", 2)
        EXPECTED[f"/level {level}/env step"] = ("simulation", 2)
        EXPECTED[f"/level {level}/of no category"] = ("host", 2)

    def test_scopes(self):
        self.run_program(PROGRAMS / "scope_program", "run")
        found, report = self.scopes(self.folder / "run")
        self.assertEqual(self.EXPECTED, found)
        self.assertEqual(("scope_program", 1, 2), (report["tool"], len(report["workers"]), report["total"]["threads"]))
        self.assertEqual(0, report["total"]["dropped_events"])
        self.assertFalse(report["workers"][0]["damage"]["is_cut"])
        self.assertGreater(report["total"]["phase_ns"]["train"], 0)

    def test_the_environment_starts_a_profile(self):
        self.run_program(PROGRAMS / "scope_program", SHOAL_PROFILE="run", SHOAL_RANK=3, SHOAL_WORKERS=8)
        found, report = self.scopes(self.folder / "run")
        self.assertEqual({**self.EXPECTED, "/before the start": ("host", 1)}, found)
        self.assertEqual(["rank-3.trace"], [p.name for p in (self.folder / "run" / "profile").iterdir()])
        self.assertEqual(3, report["workers"][0]["rank"])

    def test_without_a_profile_nothing_happens(self):
        self.run_program(PROGRAMS / "scope_program")
        self.assertEqual([], list(self.folder.iterdir()))

    def test_a_second_run_leaves_the_first(self):
        for _ in range(2):
            self.run_program(PROGRAMS / "scope_program", "run")
        self.assertEqual({"rank-0.trace", "rank-0.2.trace"}, {p.name for p in (self.folder / "run" / "profile").iterdir()})

    def test_bad_folders(self):
        (self.folder / "file").write_text("")
        done = self.run_program(PROGRAMS / "scope_program", "file/run", code=3)
        self.assertIn("file", done.stdout)
        done = self.run_program(PROGRAMS / "scope_program", SHOAL_PROFILE="file/run")
        self.assertIn("shoal: no profile:", done.stderr)

    def test_a_full_disk_ends_the_profile_alone(self):
        done = self.run_program(PROGRAMS / "scope_program", SHOAL_PROFILE="/dev/full")
        self.assertIn("shoal: no profile:", done.stderr)


@unittest.skipIf(SANITIZED, "an interpreter without the sanitizer cannot load the library")
class Python(ScopeTest):
    TRAINER = """
import threading
import shoal_scope
from shoal_scope import scope
{start}
@scope("act", "policy")
def act(obs):
    "Doc."
    return obs + 1
assert (act.__name__, act.__doc__, act(1)) == ("act", "Doc.", 2)
step = scope("env step", "simulation")
def work():
    for _ in range(5):
        with step, step:
            pass
shoal_scope.phase("train")
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
with scope("episode"):
    for i in range(7):
        with step:
            act(i)
try:
    with scope("fails", "io"):
        raise KeyError
except KeyError:
    pass
"""
    EXPECTED = {"/act": ("policy", 1), "/env step": ("simulation", 15), "/env step/env step": ("simulation", 15),
                "/episode": ("host", 1), "/episode/env step": ("simulation", 7), "/episode/env step/act": ("policy", 7),
                "/fails": ("io", 1)}  # fmt: skip

    def test_scopes(self):
        self.python(self.TRAINER.format(start='shoal_scope.start("run", "trainer")'))
        found, report = self.scopes(self.folder / "run")
        self.assertEqual(self.EXPECTED, found)
        self.assertEqual(("trainer", 4), (report["tool"], report["total"]["threads"]))

    def test_the_environment_starts_a_profile(self):
        self.python(self.TRAINER.format(start="assert shoal_scope.is_recording()"), SHOAL_PROFILE="run")
        self.assertEqual(self.EXPECTED, self.scopes(self.folder / "run")[0])

    def test_a_folder_that_the_environment_names_and_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        done = self.python("""
import shoal_scope
assert not shoal_scope.is_recording()
with shoal_scope.scope("lost"):
    pass
shoal_scope.stop()
shoal_scope.start("run")
assert shoal_scope.is_recording()
with shoal_scope.scope("found"):
    pass
""", SHOAL_PROFILE="file/run")  # fmt: skip
        self.assertIn("shoal: no profile:", done.stderr)
        self.assertEqual({"/found": ("host", 1)}, self.scopes(self.folder / "run")[0])

    def test_nothing_is_recorded_and_nothing_needed_without_a_profile(self):
        self.python(self.TRAINER.format(start="assert not shoal_scope.is_recording()"), SHOAL_INJECT="/nowhere.so")
        self.assertEqual([], [p for p in self.folder.iterdir() if p.suffix != ".py" and p.name != "__pycache__"])

    def test_start_and_stop(self):
        self.python("""
import shoal_scope
for i in range(3):
    shoal_scope.start(f"run{i}")
    with shoal_scope.scope("open", "host"):
        shoal_scope.stop()
    shoal_scope.stop()
    with shoal_scope.scope("between"):
        shoal_scope.start(f"late{i}")
    with shoal_scope.scope("after"):
        pass
    shoal_scope.stop()
""")
        for i in range(3):
            self.assertEqual({"/open": ("host", 1)}, self.scopes(self.folder / f"run{i}")[0])
            self.assertEqual({"/after": ("host", 1)}, self.scopes(self.folder / f"late{i}")[0])

    def test_what_scopes_cost_here_is_taken_off(self):
        """An interpreter's scopes have a class of their own, which is measured in that interpreter."""
        self.python(self.TRAINER.format(start='shoal_scope.start("run", "trainer")'))
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        done = self.run_tool("profreport", "--calibrate", "--python", "/no/such/python", env=environment)
        self.assertEqual(0, done.code, done)
        self.assertIn("Python's scopes were not measured: /no/such/python: there is no such program", done.out)
        text = self.run_tool("profreport", "run", env=environment).out
        self.assertIn("Not corrected for: Python's scopes; profreport --calibrate has not measured what they cost.", text)
        correction = json.loads(self.run_tool("profreport", "run", "--json", env=environment).out)["runs"][0]["correction"]
        self.assertIn("Not corrected for: Python's scopes;", correction["not_corrected_for"])
        # Neither a profile that the environment asks for is the calibration's, nor a launcher's rank.
        temporary = self.folder / "temporary"
        temporary.mkdir()
        other = {**environment, "SHOAL_PROFILE": str(self.folder / "another"), "RANK": "3", "WORLD_SIZE": "4", "TMPDIR": str(temporary)}
        done = self.run_tool("profreport", "--calibrate", "--python", sys.executable, env=other)
        self.assertEqual(0, done.code, done)
        self.assertRegex(done.out, r"script +[\d.]+ ns")
        self.assertFalse((self.folder / "another").exists())
        self.assertEqual([], list(temporary.iterdir()))
        done = self.run_tool("profreport", "run", "--json", env=environment)
        run = json.loads(done.out)["runs"][0]
        recorded, each = run["total"]["main_thread_recorded"], run["correction"]["each_ns"]
        self.assertEqual((0, 17), (recorded["scope"], recorded["script"]))  # act, an episode of 7 steps and acts, fails
        self.assertGreater(each["script"]["value"], each["scope"]["value"])
        cost = run["total"]["wall_ns"] - run["correction"]["wall_ns"]["value"]
        self.assertAlmostEqual(sum(recorded[c] * each[c]["value"] for c in each), cost, places=3)
        self.assertGreater(run["total"]["layer_ns"]["script"], 0)
        self.assertEqual(0, run["total"]["layer_ns"]["code"])

    def test_forked_workers_record_for_themselves(self):
        self.python("""
import multiprocessing, shoal_scope
def work(n):
    assert not shoal_scope.is_recording()
    with shoal_scope.scope("lost"):
        pass
    shoal_scope.start("run", f"worker {n}")
    with shoal_scope.scope("env step", "simulation"):
        pass
    shoal_scope.stop()
shoal_scope.start("run", "parent")
processes = [multiprocessing.get_context("fork").Process(target=work, args=[n]) for n in range(3)]
for p in processes: p.start()
for p in processes: p.join()
assert all(p.exitcode == 0 for p in processes)
with shoal_scope.scope("join"):
    pass
""")
        found, report = self.scopes(self.folder / "run")
        self.assertEqual({"/env step": ("simulation", 3), "/join": ("host", 1)}, found)
        self.assertEqual(4, len(report["workers"]))

    def test_errors(self):
        done = self.python("""
import shoal_scope
for bad in [lambda: shoal_scope.scope("x", "physics"), lambda: shoal_scope.phase("lunch")]:
    try:
        bad()
    except ValueError as error:
        print(error)
open("file", "w").close()
for folder in ["file/run", "run", "run"]:
    try:
        shoal_scope.start(folder)
    except shoal_scope.ProfileError as error:
        print(error)
""")
        lines = done.stdout.splitlines()
        for line, words in zip(lines, ["one of simulation, policy", "one of setup, warm-up", "file", "run: is being recorded already"], strict=True):
            self.assertIn(words, line)
        done = self.python("import shoal_scope; shoal_scope.start('run')", code=1, SHOAL_INJECT="/nowhere.so",
                           PYTHONPATH=self.copy_of_module())  # fmt: skip
        self.assertIn("ProfileError: cannot load libshoal_inject.so", done.stderr)

    def copy_of_module(self):
        """A folder that holds the module and not the library."""
        folder = self.path("module")
        folder.mkdir()
        (folder / "shoal_scope.py").write_text((LIBRARY.parent / "shoal_scope.py").read_text(encoding="utf-8"), encoding="utf-8")
        return folder

    def test_the_text_names_the_program(self):
        self.python(self.TRAINER.format(start='shoal_scope.start("run", "trainer")'))
        report = self.report(self.folder / "run")
        self.assertIn("trainer on the CPU", report)
        self.assertIn("No GPU time: CUDA_INJECTION64_PATH named no libshoal_inject.so", report)


@unittest.skipUnless((PROGRAMS / "nvtx_program").exists(), "built without NVTX")
class Nvtx(ScopeTest):
    EXPECTED = {f"/episode {i}{path}": (category, 2) for i in range(2) for path, category in
                [("", "host"), ("/simulation: step", "simulation"), ("/act", "policy"), ("/descend", "learning"),
                 ("/descend/registered", "host"), ("/gr\u00fc\u00dfe", "host")]}  # fmt: skip

    def test_ranges_are_scopes(self):
        self.run_program(PROGRAMS / "nvtx_program", NVTX_INJECTION64_PATH=LIBRARY, SHOAL_PROFILE="run")
        found, report = self.scopes(self.folder / "run")
        self.assertEqual(self.EXPECTED, found)
        self.assertEqual("nvtx_program", report["tool"])

    def test_the_default_folder(self):
        self.run_program(PROGRAMS / "nvtx_program", NVTX_INJECTION64_PATH=LIBRARY)
        self.assertEqual(self.EXPECTED, self.scopes(self.folder / "shoal-profile")[0])

    @unittest.skipIf(SANITIZED, "an interpreter without the sanitizer cannot load the library")
    def test_the_entry_of_the_cuda_driver(self):
        """As the driver calls it; NVTX then finds the library as well."""
        done = self.python(f"""
import ctypes, json, os, subprocess
library = ctypes.CDLL({str(LIBRARY)!r})
assert library.InitializeInjection() == 1
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
print(libc.getenv(b"NVTX_INJECTION64_PATH").decode())
""")
        self.assertEqual(str(LIBRARY), done.stdout.strip())
        self.assertTrue((self.folder / "shoal-profile" / "profile" / "rank-0.trace").exists())


if __name__ == "__main__":
    unittest.main()
