"""Golden hashes, which tests of all trainers share: golden_hashes.txt beside a test holds the params_hash of every case as
it was when the file was made."""

import os
import sys
import unittest

import cli_harness as harness
from cli_harness import HEAVY, SANITIZED, SIMULATORS, CudaTests

RANDOMIZE = {
    "cartpole": "pole_mass_kg=0.05:0.2", "mountain_car": "force=0.0008:0.0012",
    "mountain_car_continuous": "power=0.001:0.002", "acrobot": "link1_mass_kg=0.8:1.2", "pendulum": "mass_kg=0.8:1.2",
    "position_only_cartpole": "pole_mass_kg=0.05:0.2", "parking": "thrust_mps2=1:3",
    "lunar_lander": "gravity_mps2=8:11", "lunar_lander_continuous": "wind=0:1",
    "bipedal_walker": "ground_friction=1:3", "bipedal_walker_hardcore": "motor_torque_nm=60:100",
}  # fmt: skip


class GoldenHashes:
    """Mixed into a TrainerTest. GOLDEN: the file's path; CASES: {name: (changes of the fixed settings, flags)}."""

    def hash(self, *args):
        # Tests of the policy change nothing, and take most of the time of a small run on a heavy simulator.
        untested = ["--test-every=1000", "--test-episodes=1"] if args[0] in HEAVY else []
        return self.good(*args, *untested, "--out", self.path())["params_hash"]

    @classmethod
    def cases(cls):
        """(env, case, options) of every golden hash."""
        for env in SIMULATORS:
            for name, (changes, flags) in cls.CASES.items():
                yield env, name, cls.fixed(env, **changes) + flags
            yield env, "randomized", cls.fixed(env) + ["--randomize=" + RANDOMIZE[env]]

    @classmethod
    def read_golden(cls):
        """{(env, case): params_hash}, in the order of the file."""
        golden = {}
        for line in cls.GOLDEN.read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                env, name, value = line.split("\t")
                golden[env, name] = value
        return golden

    def write_golden(self):
        lines = ["# simulator, case of cli_hash_test.py, params_hash; made by cli_hash_test.py --write"]
        lines += [f"{env}\t{name}\t{self.hash(*args)}" for env, name, args in self.cases()]
        self.GOLDEN.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def check_golden_on_cpu(self, heavy):
        """All of them; under a sanitizer only the case `heavy` of heavy simulators, which then take minutes."""
        self.check_golden(wanted=lambda env, name: env not in HEAVY or not SANITIZED or name == heavy)

    def check_golden(self, *options, wanted=lambda env, name: True):
        golden = self.read_golden()
        self.assertEqual([(env, name) for env, name, _ in self.cases()], list(golden))
        for env, name, args in self.cases():
            if wanted(env, name):
                with self.subTest(env=env, case=name):
                    self.assertEqual(golden[env, name], self.hash(*args, *options))


class CudaHashes(CudaTests):
    """Mixed into a test of golden hashes: the same on a GPU, a real one or a virtual one."""

    def check_golden_on_gpu(self, *options, quick, most=lambda env, name: True):
        """With SHOAL_TEST_LONG `most` of them, which takes minutes on a virtual GPU."""
        wanted = most if os.environ.get("SHOAL_TEST_LONG") == "1" else quick
        self.check_golden("--device=cuda", *options, wanted=wanted)


def main(test):
    """test: the class of the golden hashes."""
    if sys.argv[1:] == ["--write"]:
        unittest.TextTestRunner().run(test("write_golden"))
    elif sys.argv[1:] == ["--list"]:
        golden = test.read_golden()
        for env, name, args in test.cases():
            print(env, name, golden[env, name], " ".join(args), sep="\t")
    else:
        harness.main()
