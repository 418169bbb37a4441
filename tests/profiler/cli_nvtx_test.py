"""Scopes as NVTX ranges: a tool that NVTX loads is told of them, nested, with their categories, and nothing else changes."""

import os
import sys
import unittest
from collections import Counter, defaultdict

from cli_profile_test import PPO, ProfileTest  # it sets the path of what follows
from cli_harness import options

CATEGORIES = ["simulation", "policy", "learning", "communication", "host", "io", "idle"]


class Nvtx(ProfileTest):
    def logged(self, tool, *args, **changes):
        """A run's result, and the tool's lines: (thread, what, category, name)."""
        log = self.folder / "nvtx.log"
        log.unlink(missing_ok=True)
        os.environ.update({"NVTX_INJECTION64_PATH": os.environ["SHOAL_NVTX_LOG_LIBRARY"], "NVTX_LOG": str(log)})
        try:
            result = self.train(tool, *args, **changes)
        finally:
            del os.environ["NVTX_INJECTION64_PATH"]
        lines = log.read_text().splitlines() if log.exists() else []
        return result, [(line.split(" ", 3)[0], line.split(" ", 3)[1], int(line.split(" ", 3)[2]), line.split(" ", 3)[3])
                        for line in lines]  # fmt: skip

    def test_ranges(self):
        for tool in ["esrun", "pporun"]:
            with self.subTest(tool=tool):
                plain = self.train(tool)
                result, lines = self.logged(tool)
                self.assertEqual(plain["params_hash"], result["params_hash"])
                self.assertEqual(["shoal"], [name for _, what, _, name in lines if what == "domain"])
                self.assertEqual(list(enumerate(CATEGORIES, 1)), [(c, n) for _, what, c, n in lines if what == "category"])
                depth, count, categories = defaultdict(int), Counter(), {}
                for thread, what, category, name in lines:
                    depth[thread] += {"push": 1, "pop": -1}.get(what, 0)
                    self.assertGreaterEqual(depth[thread], 0)
                    count[name] += what == "push"
                    if what == "push":
                        categories[name] = CATEGORIES[category - 1]
                self.assertEqual({0}, set(depth.values()))
                self.assertGreater(len(depth), 1)  # the pool's threads have joined
                # As often as a profile of the same run counts them; where a pool's threads join, more often.
                profiled, entered = self.report_json(self.train(tool, "--profile")["run"])[0], Counter()
                for scope in profiled["scopes"]:
                    name = scope["path"].rsplit("/", 1)[1]
                    entered[name] += scope["count"]
                    if name in categories and scope["count"] > 0:
                        self.assertEqual(scope["category"], categories[name], name)
                self.assertGreater(entered["metrics"], 3)
                for name in ["metrics", "es generation", "ppo step"]:
                    self.assertEqual(entered[name], count[name], name)
                self.assertLessEqual({"metrics", "checkpoint", "wait for workers", "es evaluate"}, set(count))
                self.assertLessEqual({"train", "evaluate"}, {name for _, what, _, name in lines if what == "mark"})

    def test_a_profile_of_our_own_comes_first(self):
        result, lines = self.logged("esrun", "--profile")
        self.assertFalse([name for _, what, _, name in lines if what == "push" and name == "es generation"])
        scopes = self.report_json(result["run"])[0]["scopes"]
        self.assertEqual(12, sum(s["count"] for s in scopes if s["path"] == "/es generation"))

    def test_a_tool_that_is_not_there_changes_nothing(self):
        os.environ["NVTX_INJECTION64_PATH"] = "/does/not/exist.so"
        try:
            done = self.run_tool("pporun", *options("cartpole", ["--no-stop-at-target"], PPO, {}), "--quiet", "--out", self.path())
        finally:
            del os.environ["NVTX_INJECTION64_PATH"]
        self.assertEqual(0, done.code, done)


if __name__ == "__main__":
    print("NVTX ranges", file=sys.stderr)
    unittest.main(verbosity=2)
