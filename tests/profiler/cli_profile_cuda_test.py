"""--profile of the trainers on a GPU: what fused kernels consist of, by the SM's clock."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from cli_profile_test import ProfileTest  # noqa: E402

FUSED = {"esrun": "/es generation/es evaluate", "pporun": "/ppo update/ppo rollout"}
CUDA = {"device": "cuda", "threads": None, "test-every": 100, "time-limit": 30}
SMALL = {"esrun": {"pop": 64, "generations": 2, "hidden": "16,16"},
         "pporun": {"envs": 64, "shards": 4, "steps": 4096, "rollout": 16, "epochs": 1, "hidden": "16,16"}}  # fmt: skip


class Cuda(ProfileTest):
    def setUp(self):
        super().setUp()
        done = subprocess.run([os.environ["ESRUN"], "cartpole", "--device", "cuda", "--dry-run"], capture_output=True,
                              text=True, check=False)  # fmt: skip
        if done.returncode != 0:
            if os.environ.get("SHOAL_TEST_CUDA") == "required":
                self.fail(done.stderr)
            self.skipTest(f"no GPU: {done.stderr.strip()}")

    def split(self, tool, env="cartpole", **changes):
        """The shares of the fused scope's categories, and the run's result."""
        result = self.train(tool, "--profile", env=env, **{**CUDA, **SMALL[tool], **changes})
        scope = next(s for s in self.report_json(result["run"])[0]["scopes"] if s["path"] == FUSED[tool])
        weights = scope["split"]
        return {category: weight / sum(weights.values()) for category, weight in weights.items()}, result

    def test_fused_kernels_are_split(self):
        for tool in ["esrun", "pporun"]:
            with self.subTest(tool=tool):
                split, result = self.split(tool)
                self.assertEqual({"simulation", "policy", "learning"}, {c for c, share in split.items() if share > 0})
                plain = self.train(tool, **{**CUDA, **SMALL[tool]})
                self.assertEqual(plain["params_hash"], result["params_hash"])

    def test_the_split_follows_the_work(self):
        """Four Runge-Kutta evaluations take longer than one Euler step, and a wide policy longer than a narrow one."""
        for tool in ["esrun", "pporun"]:
            with self.subTest(tool=tool):
                euler, _ = self.split(tool, "cartpole")
                runge_kutta, _ = self.split(tool, "acrobot")
                self.assertGreater(runge_kutta["simulation"], 2 * euler["simulation"])
                wide, _ = self.split(tool, "cartpole", hidden="64,64")
                self.assertGreater(wide["policy"] / wide["simulation"], 2 * euler["policy"] / euler["simulation"])


if __name__ == "__main__":
    unittest.main()
