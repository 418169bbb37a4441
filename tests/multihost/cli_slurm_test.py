#!/usr/bin/env python3
"""esrun under Slurm, with four nodes: by srun, and by the job script that --emit prints; the same parameters as alone."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "es")]
import esrun_harness as harness  # noqa: E402
from esrun_harness import ESRUN, ESRUN_FAULTS, WorkersTest  # noqa: E402
from slurm_harness import Cluster  # noqa: E402
from workers_harness import PATIENCE_S  # noqa: E402


class SlurmTest(WorkersTest):
    LOOPBACK = "--bind-address=tcp://127.0.0.1:*"  # by which these nodes reach each other

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)

    def compare(self, expected, out):
        """What rank 0 printed, other lines apart."""
        (line,) = [line for line in out.splitlines() if line.startswith("{")]
        done = json.loads(line)
        self.assertEqual(expected["params_hash"], done["params_hash"], out)
        self.assertEqual(expected["env_steps"], done["env_steps"])
        self.same_rows(expected["run"], self.folder / done["run"], tests_may_lack=True)
        return done


class Srun(SlurmTest):
    """One command line, started by srun as many times as there are workers."""

    def srun(self, *options, tool=ESRUN):
        return self.cluster.call("srun", *options[:2], tool, *options[2:], "--json", "--quiet", cwd=self.folder).stdout

    def test_four_nodes(self):
        expected = self.reference()
        for trainers in [1, 2, 4]:
            with self.subTest(trainers=trainers):
                out = self.srun("-N4", "-n4", *self.args(), self.LOOPBACK, f"--trainers={trainers}", "--min-workers=4", "--out",
                                self.path())  # fmt: skip
                done = self.compare(expected, out)
                self.assertGreater(done["workers"]["other_items"], 0)
                self.assertEqual(trainers > 1, done["workers"]["collective_bytes"] > 0)

    def test_objectives_and_a_table_of_noise(self):
        table = ["--noise=table", "--noise-table=8192"]
        objective = ["objective:rastrigin", "--dim=70", "--pop=16", "--generations=6", "--seed=5", "--threads=1", "--bind=none"]
        for args in [self.args(generations=6), objective]:
            args = [*args, *table]
            with self.subTest(args=args):
                expected = self.good(*args, "--out", self.path())
                done = self.compare(expected, self.srun("-N3", "-n3", *args, self.LOOPBACK, "--trainers=2", "--min-workers=3", "--out",
                                                        self.path()))  # fmt: skip
                self.assertGreater(done["workers"]["other_items"], 0)

    def test_one_node_and_no_word_of_it(self):
        """Neither a folder nor an address has to be named."""
        done = self.compare(self.reference(), self.srun("-N1", "-n2", *self.args(), "--min-workers=2"))
        self.assertRegex(done["run"], r"^runs/cartpole-job\d+\.0$")

    def test_four_nodes_need_an_address(self):
        done = self.cluster.call("srun", "-N4", "-n4", ESRUN, *self.args(), cwd=self.folder, check=False)
        self.assertEqual(2, done.returncode)
        self.assertIn("4 processes on 4 hosts: --bind-address", done.stderr)
        self.assertFalse((self.folder / "runs").exists())

    def test_a_task_that_is_killed(self):
        expected = self.reference()
        out = self.path()
        call = ["srun", "-N4", "-n4", "--kill-on-bad-exit=0", ESRUN_FAULTS, *self.args(), self.LOOPBACK, "--min-workers=3", "--json",
                "--out", str(out)]  # fmt: skip
        with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                              env={**self.cluster.environment, **self.SLOW}) as process:  # fmt: skip
            self.cluster.wait_until(lambda: self.tasks(out), "an evaluator")
            os.kill(self.tasks(out)[0], signal.SIGKILL)
            text, err = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(128 + signal.SIGKILL, process.returncode, err)  # the task's
        self.compare(expected, text)

    @staticmethod
    def tasks(out):
        """Processes that slurmstepd started and that have joined."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue  # it has just ended
            if f"--join={out}".encode() in words:
                found.append(int(entry.name))
        return found


class Script(SlurmTest):
    """The job script that --emit prints: trainers, and evaluators as an array job."""

    def script(self, *args, tool=ESRUN):
        done = self.call(*args, self.LOOPBACK, "--json", "--quiet", "--emit=slurm", tool=tool)
        self.assertEqual(0, done.code, done)
        path = self.path("job")
        path.write_text(done.out)
        self.cluster.call("sbatch", "--test-only", path, cwd=self.folder)
        return path

    def finish(self, job):
        self.cluster.wait_for_end(job)
        return (self.folder / f"job-{job}.out").read_text()

    def test_trainers_and_evaluators(self):
        script = self.script(*self.args(), "--workers=4", "--trainers=2", "--min-workers=4", "--out", self.path())
        done = self.compare(self.reference(), self.finish(self.cluster.submit(script, self.folder)))
        self.assertGreater(done["workers"]["other_items"], 0)
        self.cluster.wait_for_end()  # of the evaluators, too

    def test_evaluators_come_by_the_hook(self):
        """Of a run that is a trainer alone at first, and wants two more before it begins."""
        script = self.script(*self.args(), "--min-workers=3", "--max-workers=3", "--scale-interval=1", "--out", self.path())
        done = self.compare(self.reference(), self.finish(self.cluster.submit(script, self.folder)))
        self.assertGreater(done["workers"]["other_items"], 0)
        self.cluster.wait_for_end()

    def test_cancelled_and_submitted_again(self):
        """Goes on from a checkpoint."""
        expected = self.reference(generations=60)
        out = self.path()
        script = self.script(*self.args(generations=60), "--workers=2", "--min-workers=2", "--out", out, tool=ESRUN_FAULTS)
        first = self.cluster.submit(script, self.folder, self.SLOW)
        self.cluster.wait_until(lambda: (out / "metrics.csv").exists() and len(harness.rows(out)) >= 3, "three generations")
        self.cluster.call("scancel", first)
        self.finish(first)
        self.cluster.wait_for_end()
        self.assertLess(len(harness.rows(out)), 60)
        self.compare(expected, self.finish(self.cluster.submit(script, self.folder)))


if __name__ == "__main__":
    harness.main()
