#!/usr/bin/env python3
"""esrun as a launcher of jobs starts it: several processes of one command line, which learn their rank from the environment."""

import json
import os
import signal
import subprocess
import sys
import time

import esrun_harness as harness
from esrun_harness import ESRUN, WorkersTest

from workers_harness import PATIENCE_S

# What each launcher sets, for a rank of so many on so many hosts.
LAUNCHERS = {
    "srun": lambda rank, count, hosts: {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": count, "SLURM_STEP_NUM_NODES": hosts,
                                        "SLURM_JOB_ID": 17, "SLURM_STEP_ID": 2},
    "srun --mpi=pmi2": lambda rank, count, hosts: {**LAUNCHERS["srun"](rank, count, hosts), "PMI_RANK": rank, "PMI_SIZE": count},
    "mpirun": lambda rank, count, hosts: {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": count,
                                          "OMPI_COMM_WORLD_LOCAL_SIZE": count // hosts},
    "mpiexec": lambda rank, count, hosts: {"PMI_RANK": rank, "PMI_SIZE": count, "MPI_LOCALNRANKS": count // hosts},
}  # fmt: skip


class RanksTest(WorkersTest):
    def setUp(self):
        super().setUp()
        self.ranks = []

    def tearDown(self):
        for process in self.ranks:
            if process.poll() is None:
                process.kill()
            process.communicate()
        super().tearDown()

    def environment(self, launcher, rank, count, hosts=1):
        return {**os.environ, **{k: str(v) for k, v in LAUNCHERS[launcher](rank, count, hosts).items()}}

    def launch(self, launcher, count, *args, order=None):
        """Starts so many processes; in the order of their ranks, or another one."""
        processes = {}
        for rank in order or range(count):
            processes[rank] = subprocess.Popen([ESRUN, *map(str, args), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                               text=True, cwd=self.folder, env=self.environment(launcher, rank, count))  # fmt: skip
            self.ranks.append(processes[rank])
        return [processes[rank] for rank in sorted(processes)]

    def results(self, processes):
        """All must end well; rank 0 alone prints a result."""
        outputs = [process.communicate(timeout=PATIENCE_S) for process in processes]
        for process, (out, err) in zip(processes, outputs):
            self.assertEqual(0, process.returncode, err)
        self.assertEqual([""] * (len(outputs) - 1), [out for out, _ in outputs[1:]])
        return json.loads(outputs[0][0])

    def refused_rank(self, code, words, rank, count, *args, launcher="srun", hosts=1):
        return self.refused(code, words, *args, env=self.environment(launcher, rank, count, hosts))


class Hash(RanksTest):
    """The parameters of one process."""

    def test_every_launcher(self):
        expected = self.reference()
        for launcher in LAUNCHERS:
            with self.subTest(launcher=launcher):
                out = self.path()
                order = self.random.sample(range(4), 4)
                done = self.results(self.launch(launcher, 4, *self.args(), "--min-workers=4", "--out", out, order=order))
                self.assertEqual(expected["params_hash"], done["params_hash"], done)
                self.assertGreater(done["workers"]["other_items"], 0)
                self.same_rows(expected["run"], out)

    def test_trainers(self):
        expected = self.reference()
        done = self.results(self.launch("srun", 4, *self.args(), "--min-workers=4", "--trainers=3", "--out", self.path()))
        self.assertEqual(expected["params_hash"], done["params_hash"], done)
        self.assertGreater(done["workers"]["collective_bytes"], 0)

    def test_the_folder_is_named_after_the_job(self):
        expected = self.reference()
        done = self.results(self.launch("srun", 2, *self.args(), "--min-workers=2"))
        self.assertEqual("runs/cartpole-job17.2", done["run"])
        self.assertEqual(expected["params_hash"], done["params_hash"], done)

    def test_resume(self):
        """Also where the place of a master that was killed is still in the folder."""
        expected = self.reference()
        out = self.path()
        self.results(self.launch("srun", 3, *self.args(generations=7), "--min-workers=3", "--out", out))
        (out / "master").write_text("tcp://127.0.0.1:9\n")
        options = ["--generations=12", "--threads=1", "--bind=none", "--device=cpu", "--min-workers=3"]
        done = self.results(self.launch("srun", 3, "--resume", out, *options, order=[1, 2, 0]))
        self.assertEqual(expected["params_hash"], done["params_hash"], done)
        self.same_rows(expected["run"], out)

    def test_a_rank_that_comes_too_late(self):
        out = self.path()
        done = self.results(self.launch("srun", 2, *self.args(generations=3), "--out", out, order=[0]))
        self.assertEqual(3, done["generations"])
        late = self.call(*self.args(generations=3), "--out", out, env=self.environment("srun", 1, 2))
        self.assertEqual(0, late.code, late)
        self.assertIn("rank 1: the run in", late.err)

    def test_none_means_runs_of_their_own(self):
        for rank in range(2):
            done = self.call(*self.args(generations=2), "--ranks=none", "--out", self.path(), "--json", "--quiet",
                             env=self.environment("srun", rank, 2))  # fmt: skip
            self.assertEqual(0, done.code, done)
            self.assertNotIn("workers", done.json)

    def test_one_process_is_no_rank(self):
        done = self.call(*self.args(generations=2), "--out", self.path(), "--json", "--quiet", env=self.environment("srun", 0, 1))
        self.assertEqual(0, done.code, done)
        self.assertNotIn("workers", done.json)


class Cores(RanksTest):
    """Threads of ranks that share the cores of a host."""

    def threads(self, launcher, count, cpus, given, expected, *args, affinity=None):
        """Each rank's, in a run that waits for all; cpus: that Slurm says they have on this host; given: --threads."""
        options = self.args(**{"generations": 1_000_000, "threads": given})
        script = f"import os, sys; os.sched_setaffinity(0, {affinity}); os.execv(sys.argv[1], sys.argv[1:])" if affinity else None
        out, call = self.path(), [ESRUN, *options, f"--min-workers={count}", "--quiet", *args]
        processes = []
        for rank in range(count):
            environment = {**self.environment(launcher, rank, count), "SHOAL_TEST_SLOW_MS": "20"}
            if cpus:
                environment["SLURM_CPUS_ON_NODE"] = str(cpus)
            words = [sys.executable, "-c", script, *call] if affinity else call
            processes.append(subprocess.Popen([*words, "--out", out], cwd=self.folder, env=environment, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.PIPE, text=True))  # fmt: skip
            self.ranks.append(processes[-1])
        until = time.monotonic() + PATIENCE_S
        while True:
            done = self.call("--status", out, "--json") if (out / "master").exists() else None
            if done and done.code == 0 and len(done.json["workers"]) == count:
                break
            self.assertLess(time.monotonic(), until, done)
            self.assertIsNone(processes[0].poll())
            time.sleep(0.05)
        processes[0].send_signal(signal.SIGTERM)
        for process in processes:
            _, err = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(0, process.returncode, err)
        self.assertEqual([expected] * count, [w["threads"] for w in done.json["workers"]])

    def test_they_are_shared_out(self):
        allowed = len(os.sched_getaffinity(0))
        self.threads("mpirun", 2, 0, None, max(1, allowed // 2))
        self.threads("srun", 3, 64, None, min(allowed, 21))
        self.threads("srun", 3, 2, None, 1)
        self.threads("mpirun", 2, 0, 2, 2)

    def test_those_that_are_bound_keep_theirs(self):
        self.threads("srun", 2, 2, None, 1, affinity={min(os.sched_getaffinity(0))})


class Refusals(RanksTest):
    def test_usage(self):
        self.refused_rank(2, ["--workers", "srun"], 0, 2, "cartpole", "--workers=2")
        self.refused_rank(2, ["--out DIR", "mpirun"], 0, 2, "cartpole", launcher="mpirun")
        self.refused_rank(2, ["--trainers 3", "2 workers"], 1, 2, "cartpole", "--trainers=3")
        self.refused_rank(2, ["4 processes on 2 hosts", "--bind-address"], 0, 4, "cartpole", hosts=2)
        self.refused_rank(2, ["several trainers on 2 hosts"], 3, 4, "cartpole", "--trainers=2", "--bind-address=tcp://*:*", hosts=2)
        self.refused(2, ["SLURM_PROCID", "'x'"], "cartpole", env={**self.environment("srun", 0, 2), "SLURM_PROCID": "x"})
        self.refused(2, ["SLURM_PROCID", "2"], "cartpole", env=self.environment("srun", 2, 2))

    def test_nobody_leads(self):
        self.refused_rank(1, ["rank 1 of 2", "0.3 s", "/master is not there", "--ranks none"], 1, 2, "cartpole", "--out=x",
                          "--patience=0.3")  # fmt: skip

    def test_a_master_that_does_not_answer(self):
        out = self.path()
        out.mkdir()
        (out / "master").write_text("tcp://127.0.0.1:9\n")
        environment = {**self.environment("srun", 1, 2), "SHOAL_SECRET": "a secret of somebody's own making"}
        self.refused(1, ["rank 1 of 2", "no master answers at tcp://127.0.0.1:9"], "cartpole", "--out", out, "--patience=0.3",
                     env=environment)  # fmt: skip

    def test_a_stop_while_waiting(self):
        out = self.path()
        (process,) = self.launch("srun", 2, "cartpole", "--out", out, order=[1])
        time.sleep(0.5)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        self.assertNotEqual(0, process.returncode)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    harness.main()
