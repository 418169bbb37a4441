"""Golden hashes, which tests of all trainers share: golden_hashes.txt beside a test holds the params_hash of every case as
it was when the file was made."""

import os
import sys
import unittest

import cli_harness as harness
from cli_harness import HEAVY, SAMPLE, SANITIZED, SIMULATORS, THREAD_SANITIZED, CudaTests

IS_LONG = os.environ.get("SHOAL_TEST_LONG") == "1"

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

    def check_golden_on_cpu(self, short):
        """All of the light simulators, the case `short` and the randomised one of heavy ones; all cases with SHOAL_TEST_LONG.
        Under a sanitizer all of a sample of simulators, and `short` of the others, but not under TSan, to which simulators
        are nothing."""

        def wanted(env, name):
            if IS_LONG or (env in SAMPLE and env not in HEAVY):
                return True
            return (name == short and not THREAD_SANITIZED) or (name == "randomized" and not SANITIZED)

        self.check_golden(wanted=wanted)

    def check_ways(self, changes_of):
        """The same hash from every instruction set with every number of lanes, and from 1 to 3 threads, of the runs that
        changes_of(env) gives. Under a sanitizer instruction sets and lanes are paired off, in turns from simulator to
        simulator; TSan, which threads alone matter to, has a sample of the simulators."""
        isas = []
        for isa in ["baseline", "v3", "v4"]:
            done = self.call("--dry-run", *self.fixed("cartpole", isa=isa))
            if done.code == 0:
                isas.append(isa)
            else:
                self.assertIn(f"--isa {isa}: not what this processor has", done.err)
        self.assertIn("baseline", isas)
        print(f"instruction sets: {' '.join(isas)}")
        for turn, env in enumerate(SAMPLE if THREAD_SANITIZED else SIMULATORS):
            for changes in changes_of(env):
                expected = self.hash(*self.fixed(env, threads=1, lanes=1, isa="baseline", **changes))
                for i, isa in enumerate(isas):
                    for j, lanes in enumerate([1, 8, 16]):
                        if SANITIZED and j != (turn + i) % 3:
                            continue
                        threads = 2 - (i + j) % 2
                        with self.subTest(env=env, isa=isa, lanes=lanes, threads=threads, changes=changes):
                            args = self.fixed(env, threads=threads, lanes=lanes, isa=isa, **changes)
                            self.assertEqual(expected, self.hash(*args))
                self.assertEqual(expected, self.hash(*self.fixed(env, threads=3, **changes)))

    def check_golden(self, *options, wanted=lambda env, name: True):
        golden = self.read_golden()
        self.assertEqual([(env, name) for env, name, _ in self.cases()], list(golden))
        for env, name, args in self.cases():
            if wanted(env, name):
                with self.subTest(env=env, case=name):
                    self.assertEqual(golden[env, name], self.hash(*args, *options))


class CudaHashes(CudaTests):
    """Mixed into a test of golden hashes: the same on a GPU, a real one or a virtual one."""

    FEW = ""  # the option that makes a run short, in which it does all that longer ones do

    def check_golden_on_gpu(self, *options, quick, short, most=lambda env, name: True):
        """With SHOAL_TEST_LONG the golden hashes of `most` cases, which takes minutes on a virtual GPU. Else those of
        `short` cases, and the CPU's hashes of the `quick` ones made shorter."""
        self.check_golden("--device=cuda", *options, wanted=most if IS_LONG else short)
        for env, name, args in self.cases():
            if not IS_LONG and quick(env, name):
                with self.subTest(env=env, case=name):
                    expected = self.hash(*args, *options, self.FEW)
                    self.assertEqual(expected, self.hash(*args, *options, self.FEW, "--device=cuda"))


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
