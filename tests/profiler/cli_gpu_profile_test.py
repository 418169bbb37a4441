"""--profile of the trainers on a GPU: its time is in the report, charged to scopes, and changes no bit of a run."""

import os
import shutil
import sys
import unittest
from pathlib import Path

import cli_profile_test  # it sets the path of what follows
from cli_profile_test import ES, PPO, ProfileTest
from cli_harness import options
from trace_reader import Trace

CUDA = {"esrun": {"device": "cuda", "threads": None, "bind": None},
        "pporun": {"device": "cuda", "threads": None, "bind": None, "steps": 2048}}  # fmt: skip

# Where simulator and policy are fused, and runs that are long enough to be split.
FUSED = {"esrun": "/es generation/es evaluate", "pporun": "/ppo update/ppo rollout"}
SPLIT = {"esrun": {"pop": 64, "generations": 2}, "pporun": {"envs": 64, "epochs": 1, "rollout": 16, "steps": 4096}}


class GpuProfile(ProfileTest):
    check_sums = cli_profile_test.Report.check_sums
    plain_hashes = {}

    def plain_hash(self, tool):
        """The params_hash of a run that is not profiled; made once."""
        if tool not in self.plain_hashes:
            self.plain_hashes[tool] = self.train(tool, **CUDA[tool])["params_hash"]
        return self.plain_hashes[tool]

    def setUp(self):
        super().setUp()
        done = self.run_tool("esrun", "cartpole", "--device=cuda", "--dry-run")
        if done.code == 0:
            return
        if os.environ.get("SHOAL_TEST_CUDA") == "required":
            self.fail(str(done))
        self.skipTest(done.err)

    def test_what_was_recorded(self):
        for tool, launching in [("esrun", "/es generation/es evaluate"), ("pporun", "/ppo rollout")]:
            with self.subTest(tool=tool):
                profiled = self.train(tool, "--profile", **CUDA[tool])
                self.assertEqual(self.plain_hash(tool), profiled["params_hash"])
                run = self.report_json(profiled["run"])[0]
                total, device = run["total"], run["total"]["device"]
                self.check_sums(total)
                self.assertIsNone(run["no_gpu_time_because"])
                self.assertEqual((0, 0), (device["unknown_launches"], device["dropped"]))
                self.assertGreater(device["kernels_ns"], 0)
                self.assertGreater(device["copies_ns"], 0)
                self.assertTrue(0 < device["kernels_busy_ns"] <= device["busy_ns"] <= device["sum_ns"])
                self.assertTrue(0 < device["fill_ns"] <= device["fill_of_ns"])
                self.assertGreater(total["layer_ns"]["api"], 0)
                self.assertEqual(device["sum_ns"], sum(s["device_ns"] for s in run["scopes"]))
                for scope in run["scopes"]:  # calls have no device's time of their own
                    if scope["path"].rsplit("/", 1)[1].startswith("cuda"):
                        self.assertEqual(0, scope["device_ns"], scope)
                charged = {s["path"]: s for s in run["scopes"] if s["device_ns"] > 0}
                self.assertTrue(any(path.endswith(launching) for path in charged), charged)
                self.assertGreater(total["category_device_ns"]["simulation"], 0)
                self.assertGreater(total["category_device_ns"]["learning"], 0)
                self.assertEqual(0, total["category_device_ns"]["none"])
                text = self.report(profiled["run"])
                self.assertIn("GPU time", text)
                self.assertIn("kernels fill", text)
                self.assertNotIn("warning", text)

    def test_graphs_nodes_have_the_scopes_that_they_were_captured_in(self):
        run = self.report_json(self.train("pporun", "--profile", **CUDA["pporun"])["run"])[0]
        charged = {s["path"].split("ppo learn/")[1]: s["intervals"] for s in run["scopes"]
                   if s["device_ns"] > 0 and "ppo learn/" in s["path"]}  # fmt: skip
        # A gradient is two kernels, a step three; 2 minibatches x 3 epochs x 4 updates of each.
        self.assertEqual({"ppo gradient": 2 * 24, "ppo step": 3 * 24}, charged)

    def split(self, tool, env="cartpole", hidden="16,16"):
        """The shares of the fused scope's categories, by the SM's clock."""
        changes = {**CUDA[tool], **SPLIT[tool], "hidden": hidden, "time_limit": 30, "test_every": 100}
        folder = self.train(tool, "--profile", env=env, **changes)["run"]
        weights = next(s for s in self.report_json(folder)[0]["scopes"] if s["path"] == FUSED[tool])["split"]
        return {category: weight / sum(weights.values()) for category, weight in weights.items()}

    def test_fused_kernels_are_split_by_what_they_do(self):
        """Four Runge-Kutta evaluations take longer than one Euler step, and a wide policy longer than a narrow one."""
        for tool in FUSED:
            with self.subTest(tool=tool):
                euler, runge_kutta, wide = self.split(tool), self.split(tool, env="acrobot"), self.split(tool, hidden="64,64")
                for split in [euler, runge_kutta, wide]:
                    self.assertEqual({"simulation", "policy", "learning"}, {c for c, share in split.items() if share > 0})
                self.assertGreater(runge_kutta["simulation"], 2 * euler["simulation"])
                self.assertGreater(wide["policy"] / wide["simulation"], 2 * euler["policy"] / euler["simulation"])

    def test_a_program_that_the_library_was_loaded_into(self):
        """As the driver does with CUDA_INJECTION64_PATH, but earlier; the program itself records nothing."""
        library, out = os.environ["SHOAL_INJECT"], self.folder / "injected"
        environment = {**os.environ, "LD_PRELOAD": library, "CUDA_INJECTION64_PATH": library, "SHOAL_PROFILE": str(out)}
        args = [*options("cartpole", ["--no-stop-at-target"], ES, CUDA["esrun"]), "--json", "--quiet", "--out", self.path()]
        done = self.run_tool("esrun", *args, env=environment)
        self.assertEqual((0, ""), (done.code, done.err), done)
        self.assertEqual(self.plain_hash("esrun"), done.json["params_hash"])
        run = self.report_json(out)[0]
        device = run["total"]["device"]
        self.assertEqual(("esrun", None), (run["tool"], run["no_gpu_time_because"]))
        self.assertEqual((0, 0), (device["unknown_launches"], device["dropped"]))
        self.assertGreater(device["kernels_ns"], 0)
        self.assertTrue(0 < device["fill_ns"] <= device["fill_of_ns"])  # the devices were asked about

    def test_window(self):
        for tool in ["esrun", "pporun"]:
            folder = self.train(tool, "--profile-window", "3:4", **CUDA[tool])["run"]
            run = self.report_json(folder)[0]
            self.assertGreater(run["total"]["device"]["kernels_ns"], 0)
            self.assertEqual(0, run["total"]["device"]["unknown_launches"])

    def test_another_reader_finds_the_intervals(self):
        folder = self.train("esrun", "--profile", **CUDA["esrun"])["run"]
        trace = Trace((Path(folder) / "profile" / "rank-0.trace").read_bytes())
        device = self.report_json(folder)[0]["total"]["device"]
        found = [e[2] for s, events in trace.events.items() if trace.streams[s]["device"] for e in events if e[1] == "INTERVAL"]
        self.assertEqual((device["intervals"], device["sum_ns"]), (len(found), sum(i["duration"] for i in found)))
        self.assertEqual(device["monitor_samples"], len(trace.notes["BUSY"]))
        self.assertEqual(device["monitor_percent_sum"], sum(n["count"] for n in trace.notes["BUSY"]))
        self.assertEqual(device["memory_peak_bytes"], max((n["count"] for n in trace.notes["MEMORY"]), default=0))
        self.assertEqual(device["waits"], len(trace.notes["WAIT"]))
        self.assertGreater(device["waits"], 0)
        for number, kind in enumerate(["device", "managed", "pinned", "other"]):
            made = [n["count"] for n in trace.notes["ALLOC"] if n["kind"] == number]
            memory = device["memory"][kind]
            self.assertEqual((len(made), sum(made)), (memory["allocations"], memory["allocated_bytes"]))
            released = sum(n["count"] for n in trace.notes["RELEASE"] if n["kind"] == number)
            self.assertEqual(memory["held_bytes"], sum(made) - released)
        found = self.report_json(folder)[0]["scopes"]
        names = {"/(outside)": "(outside)"}
        found = {names.get(s["path"], s["path"]): [s["count"], s["thread_ns"]] for s in found if s["thread_ns"] > 0}
        self.assertEqual({p: v for p, v in trace.scopes().items() if v[1] > 0}, found)
        self.assertEqual("", trace.process["no_device"])

    def test_cpu_runs_say_nothing_of_it(self):
        run = self.report_json(self.train("esrun", "--profile")["run"])[0]
        self.assertIn("computed on the CPU", run["no_gpu_time_because"])

    def test_cupti_that_cannot_be_opened_ends_no_run(self):
        """The virtual GPU's runtime alone, beside files that are no libraries."""
        libraries = Path(os.environ.get("LD_LIBRARY_PATH", "").split(":")[0])
        if not (libraries / "libcupti.so.13").exists():
            self.skipTest("a real GPU's CUPTI may be anywhere")
        alone = self.folder / "libraries"
        alone.mkdir()
        shutil.copy(libraries / "libcudart.so.13", alone)
        for version in [12, 13]:
            (alone / f"libcupti.so.{version}").write_text("")
        environment = {**os.environ, "LD_LIBRARY_PATH": str(alone)}
        for tool, fixed in [("esrun", ES), ("pporun", PPO)]:
            with self.subTest(tool=tool):
                out = self.path()
                args = [*options("cartpole", ["--no-stop-at-target"], fixed, CUDA[tool]), "--profile", "--json", "--quiet", "--out", out]
                done = self.run_tool(tool, *args, env=environment)
                self.assertEqual(0, done.code, done)
                self.assertEqual(self.plain_hash(tool), done.json["params_hash"])
                self.assertIn(f"{tool}: warning: the profile has no GPU times: CUPTI cannot be opened: ", done.err)
                self.assertIn("libcupti.so.13", done.err)
                self.assertIn("No GPU time: CUPTI cannot be opened: ", self.report(out))
                self.assertIn("CUPTI cannot be opened", self.report_json(out)[0]["no_gpu_time_because"])


if __name__ == "__main__":
    print("a GPU's profile", file=sys.stderr)
    unittest.main(verbosity=2)
