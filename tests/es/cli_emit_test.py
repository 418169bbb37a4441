#!/usr/bin/env python3
"""esrun --emit: what the texts say is what the command line said, and runs where Slurm and Kubernetes would run it."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
import unittest
from pathlib import Path

import esrun_harness as harness
from esrun_harness import EsrunTest

try:
    import jsonschema
    import yaml
except ImportError as error:
    jsonschema = yaml = None
    MISSING = str(error)

SCHEMA = Path(__file__).resolve().parents[1] / "data" / "k8s_schema.json"
SECRET = "a secret that nobody is to see"

# Stands in for a program: notes its words and prints a line.
STAND_IN = """#!/usr/bin/env python3
import json, os, sys
with open(os.environ["NOTES"], "a") as notes:
    notes.write(json.dumps([os.path.basename(sys.argv[0])] + sys.argv[1:]) + "\\n")
print("4711")
"""


class EmitTest(EsrunTest):
    def setUp(self):
        super().setUp()
        self.tools = self.folder / "tools"
        self.notes = self.folder / "notes"
        self.tools.mkdir()

    def stand_in(self, *names):
        for name in names:
            path = self.tools / name
            path.write_text(STAND_IN)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def environment(self, **variables):
        return {**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}", "NOTES": str(self.notes), **variables}

    def emit(self, kind, *args):
        """The text; nothing but the text comes of it."""
        before = harness.tree(self.folder)
        done = self.call(*args, "--emit", kind, env={**os.environ, "SHOAL_SECRET": SECRET})
        self.assertEqual(0, done.code, done)
        self.assertEqual("", done.err)
        self.assertNotIn(SECRET, done.out)
        self.assertEqual(before, harness.tree(self.folder))
        return done.out

    def called(self):
        """What the stand-ins were called with since last time."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        self.notes.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]


class SlurmTest(EmitTest):
    def script(self, *args):
        path = self.path("job")
        path.write_text(self.emit("slurm", *args))
        checked = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
        self.assertEqual((0, ""), (checked.returncode, checked.stderr))
        return path

    def run_script(self, script, **variables):
        self.stand_in("srun", "sbatch", "scancel", "hostname")
        done = subprocess.run(["bash", script], capture_output=True, text=True, cwd=self.folder, check=False,
                              env=self.environment(SLURM_CPUS_PER_TASK="3", **variables))  # fmt: skip
        self.assertEqual(0, done.returncode, done.stderr)
        return [call for call in self.called() if call[0] != "hostname"]


class Slurm(SlurmTest):
    def test_trainers_submit_evaluators_and_cancel_them(self):
        script = self.script("cartpole", "--workers=8", "--trainers=2", "--pop=64", "--threads=3", "--out=runs/x")
        text = script.read_text()
        for line in ["--job-name=shoal-x", "--ntasks=2", "--cpus-per-task=3"]:
            self.assertIn(f"#SBATCH {line}\n", text)
        sbatch, srun, scancel = self.run_script(script)
        self.assertEqual(["sbatch", "--parsable", "--array=1-6", "--ntasks=1", str(script)], sbatch)
        self.assertNotIn("scale", text)
        self.assertEqual(["scancel", "--quiet", "4711"], scancel)
        self.assertEqual(["--out", "runs/x", "cartpole", "--pop=64", "--threads=3", "--bind-address=tcp://4711:*", "--bind=none",
                          "--trainers=2"], srun[srun.index(harness.ESRUN) + 1 :])  # fmt: skip

    def test_a_hook_submits_what_is_missing(self):
        """Beside what waits in the queue; all of it is cancelled in the end."""
        script = self.script("cartpole", "--workers=3", "--max-workers=12", "--min-workers=2", "--out=runs/x")
        self.stand_in("squeue")
        _, srun, scancel = self.run_script(script)
        self.assertEqual(["scancel", "--quiet", "4711"], scancel)
        (hook,) = [word.partition("=")[2] for word in srun if word.startswith("--scale-hook=")]
        self.assertIn("--max-workers=12", srun)
        jobs = self.folder / "runs" / "x" / "slurm-jobs"
        for there, wanted, waiting, expected in [(3, 9, 2, 4), (3, 9, 6, 0), (9, 3, 0, 0), (4, 5, 0, 1)]:
            with self.subTest(there=there, wanted=wanted, waiting=waiting):
                jobs.write_text("17\n18\n")
                (self.tools / "squeue").write_text(STAND_IN.replace('print("4711")', f"print('18_1\\n' * {waiting}, end='')"))
                step = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_CONF": "kept"}
                done = subprocess.run(["sh", "-c", hook], capture_output=True, text=True, cwd=self.folder, check=False,
                                      env=self.environment(SHOAL_WORKERS=str(there), SHOAL_WANTED=str(wanted), **step))  # fmt: skip
                self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))
                squeue, *sbatch = self.called()
                self.assertIn("--jobs=17,18", squeue)
                call = ["sbatch", "--parsable", f"--array=1-{expected}", "--ntasks=1", str(script)]
                self.assertEqual([call] if expected else [], sbatch)
                self.assertEqual("17\n18\n" + "4711\n" * bool(expected), jobs.read_text())

    def test_an_objective_a_table_and_collectives(self):
        words = ["objective:exec:bc -l", "--dim=3", "--noise=table", "--collectives=gloo"]
        script = self.script(*words, "--workers=4", "--trainers=2", "--out=x")
        srun = next(call for call in self.run_script(script) if call[0] == "srun")
        self.assertEqual(sorted([*words, "--trainers=2"]), sorted(word for word in srun if word in words or "trainers" in word))
        (self.folder / "x" / "master").write_text("tcp://node:5555\n")
        (srun,) = self.run_script(script, SLURM_ARRAY_TASK_ID="1")
        self.assertNotRegex(" ".join(srun), "objective:|--noise|--collectives")

    def test_a_hook_of_ones_own(self):
        script = self.script("cartpole", "--workers=3", "--max-workers=12", "--scale-hook=./it's mine", "--out=x")
        _, srun, _ = self.run_script(script)
        self.assertEqual(["--scale-hook=./it's mine"], [word for word in srun if "scale-hook" in word])

    def test_evaluators_are_profiled_into_the_runs_folder(self):
        script = self.script("cartpole", "--workers=3", "--profile", "--out=x")
        (self.folder / "x").mkdir()
        (self.folder / "x" / "master").write_text("tcp://node:5555\n")
        (srun,) = self.run_script(script, SLURM_ARRAY_TASK_ID="1")
        self.assertIn("--profile=true", srun)
        self.assertIn("--out=x", srun)

    def test_a_run_that_is_there_is_gone_on_with(self):
        script = self.script("cartpole", "--pop=64", "--out=x", "--quiet")
        (self.folder / "x").mkdir()
        (self.folder / "x" / "config.json").write_text("{}")
        (srun,) = self.run_script(script)  # no evaluators were asked for
        self.assertEqual(["--resume", "x", "--threads=3", "--bind-address=tcp://4711:*", "--bind=none", "--quiet=true"],
                         srun[srun.index(harness.ESRUN) + 1 :])  # fmt: skip

    def test_an_evaluator_joins_by_the_folder(self):
        script = self.script("cartpole", "--workers=2", "--out=x", "--isa=baseline", "--pop=64")
        (self.folder / "x").mkdir()
        (self.folder / "x" / "master").write_text("tcp://node:5555\n")
        (srun,) = self.run_script(script, SLURM_ARRAY_TASK_ID="1")
        self.assertEqual(["--join", "x", "--threads=3", "--bind=none", "--isa=baseline"], srun[srun.index(harness.ESRUN) + 1 :])

    def test_words_that_a_shell_would_take_apart(self):
        folder = "it's a \"run\" of $(date) `x` $HOME \\ * ;"
        script = self.script("pendulum", "--out", folder, "--set=gravity_mps2=9", "--set=mass_kg=2", "--randomize=length_m=0.9:1.1",
                             "--no-normalize", "--bind-address=tcp://*:5555")  # fmt: skip
        (srun,) = self.run_script(script)
        self.assertEqual(["--out", folder, "pendulum", "--normalize=false", "--set=gravity_mps2=9", "--set=mass_kg=2",
                          "--randomize=length_m=0.9:1.1", "--threads=3", "--bind-address=tcp://*:5555", "--bind=none"],
                         srun[srun.index(harness.ESRUN) + 1 :])  # fmt: skip
        self.assertIn("--job-name=shoal-it-s-a-run-of-date-x-home\n", script.read_text())

    def test_resume_and_gpus(self):
        run = self.good(*self.fixed("cartpole", generations=2), "--out", self.path())["run"]
        script = self.script("--resume", run, "--generations=20", "--device=cuda")
        self.assertIn("#SBATCH --gpus-per-task=1\n", script.read_text())
        (srun,) = self.run_script(script)
        self.assertIn("--gpus-per-task=1", srun)
        words = srun[srun.index(harness.ESRUN) + 1 :]
        self.assertEqual(["--resume", run, "--generations=20"], words[:3])
        self.assertIn("--device=cuda", words)


class Shellcheck(SlurmTest):
    def test_shellcheck(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("there is no shellcheck")
        for more in [[], ["--max-workers=20"]]:
            script = self.script("cartpole", "--workers=8", "--trainers=2", "--set=pole_mass_kg=0.2", "--device=cuda", *more)
            checked = subprocess.run(["shellcheck", script], capture_output=True, text=True, check=False)
            self.assertEqual(0, checked.returncode, checked.stdout)


@unittest.skipIf(yaml is None, "needs python3-yaml and python3-jsonschema")
class K8s(EmitTest):
    def manifests(self, *args):
        """By kind and name; each as the schema says."""
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        jsonschema.Draft7Validator.check_schema(schema)
        found = {}
        for document in yaml.safe_load_all(self.emit("k8s", *args)):
            jsonschema.validate(document, schema)
            key = (document["kind"], document["metadata"]["name"])
            self.assertNotIn(key, found)
            found[key] = document
        return found

    @staticmethod
    def container(job):
        (container,) = job["spec"]["template"]["spec"]["containers"]
        return container

    def run_command(self, job, **variables):
        """Runs the container's command, with a stand-in for esrun; as Kubernetes, with variables in the place of $(...)."""
        self.stand_in("esrun")
        words = [re.sub(r"\$\$\(|\$\((\w+)\)", lambda m: variables.get(m[1], m[0]) if m[1] else "$(", word)
                 for word in self.container(job)["command"]]  # fmt: skip
        subprocess.run(words, check=True, env=self.environment(), stdout=subprocess.DEVNULL, cwd=self.folder)
        (call,) = self.called()
        return call

    def test_what_there_is(self):
        found = self.manifests("cartpole", "--workers=8", "--trainers=3", "--pop=64", "--threads=2", "--device=cuda")
        self.assertEqual({("Service", "shoal-cartpole"), ("PersistentVolumeClaim", "shoal-cartpole"), ("Job", "shoal-cartpole-master"),
                          ("Job", "shoal-cartpole-followers"), ("Job", "shoal-cartpole-evaluators")}, set(found))  # fmt: skip
        for part, pods in [("followers", 2), ("evaluators", 5)]:
            spec = found["Job", f"shoal-cartpole-{part}"]["spec"]
            self.assertEqual(("Indexed", pods, pods), (spec["completionMode"], spec["completions"], spec["parallelism"]))
        labels = {}
        for (kind, name), document in found.items():
            if kind != "Job":
                continue
            labels[name] = document["spec"]["template"]["metadata"]["labels"]
            container = self.container(document)
            self.assertEqual({"cpu": "2", "nvidia.com/gpu": "1"}, container["resources"]["limits"])
            secret = next(v for v in container["env"] if v["name"] == "SHOAL_SECRET")
            self.assertEqual({"name": "shoal-cartpole", "key": "secret"}, secret["valueFrom"]["secretKeyRef"])
        service = found["Service", "shoal-cartpole"]["spec"]
        chosen = [name for name, have in labels.items() if service["selector"].items() <= have.items()]
        self.assertEqual(["shoal-cartpole-master"], chosen)
        self.assertEqual(self.container(found["Job", "shoal-cartpole-master"])["ports"][0]["containerPort"], service["ports"][0]["port"])

    def test_names_do_not_collide(self):
        """Those of runs/NAME stay; others have a tag, and fit with what is put behind them: -evaluators-NUMBER."""
        long = "a" * 40
        names = {}
        for folder in ["x", "runs/x-1", "X", "runs/x/", "a/x", "b/x", "x_1", "x--1", "-x", "My Run", "my-run", "--", "é", long, long + "b",
                       long + "c", "runs/" + "a" * 35]:  # fmt: skip
            (name,) = {name for kind, name in self.manifests("cartpole", f"--out={folder}") if kind == "Service"}
            self.assertNotIn(name, names, (folder, names.get(name)))
            self.assertLessEqual(len(name + "-evaluators-1000"), 63)
            names[name] = folder
        plain = {folder for name, folder in names.items() if name == "shoal-" + folder.removeprefix("runs/")}
        self.assertEqual({"x", "runs/x-1", "my-run"}, plain - {"runs/" + "a" * 35})

    def test_the_port(self):
        for address, port in [("tcp://*:6000", 6000), ("tcp://0.0.0.0:*", 5555), ("tcp://*:0", 5555)]:
            found = self.manifests("cartpole", "--workers=2", f"--bind-address={address}", "--out=x")
            self.assertEqual(port, found["Service", "shoal-x"]["spec"]["ports"][0]["port"])
            master = found["Job", "shoal-x-master"]
            self.assertEqual(port, self.container(master)["ports"][0]["containerPort"])
            self.assertIn(f"--bind-address=tcp://10.1.2.3:{port}", self.run_command(master, POD_IP="10.1.2.3"))
            self.assertIn(f"--join=tcp://shoal-x:{port}", self.run_command(found["Job", "shoal-x-evaluators"]))

    def test_a_hook_changes_the_evaluators_job(self):
        """Which its pod may, and nothing else."""
        found = self.manifests("cartpole", "--workers=5", "--trainers=2", "--max-workers=12", "--out=x")
        (rule,) = found["Role", "shoal-x"]["rules"]
        self.assertEqual((["batch"], ["jobs"], ["shoal-x-evaluators"]), (rule["apiGroups"], rule["resources"], rule["resourceNames"]))
        binding = found["RoleBinding", "shoal-x"]
        self.assertEqual([{"kind": "ServiceAccount", "name": "shoal-x"}], binding["subjects"])
        self.assertEqual("shoal-x", binding["roleRef"]["name"])
        self.assertIn(("ServiceAccount", "shoal-x"), found)
        accounts = {name: job["spec"]["template"]["spec"].get("serviceAccountName") for (kind, name), job in found.items() if kind == "Job"}
        self.assertEqual({"shoal-x-master": "shoal-x", "shoal-x-followers": None, "shoal-x-evaluators": None}, accounts)
        master = self.run_command(found["Job", "shoal-x-master"], POD_IP="10.1.2.3")
        self.assertIn("--max-workers=12", master)
        (hook,) = [word.partition("=")[2] for word in master if word.startswith("--scale-hook=")]
        self.stand_in("kubectl")
        for wanted, pods in [(9, 7), (3, 1), (2, 1), (1, 1)]:  # a job of no pods would be done for good
            subprocess.run(["/bin/sh", "-c", hook], check=True, env=self.environment(SHOAL_WANTED=str(wanted)), stdout=subprocess.DEVNULL)
            ((*call, patch),) = self.called()
            self.assertEqual(["kubectl", "patch", "job", "shoal-x-evaluators", "--type=merge"], call)
            self.assertEqual({"spec": {"parallelism": pods, "completions": pods}}, json.loads(patch.removeprefix("--patch=")))
        for args in [["--workers=5"], ["--workers=1", "--max-workers=4"], ["--workers=5", "--max-workers=9", "--scale-hook=mine"]]:
            self.assertNotIn("Role", {kind for kind, _ in self.manifests("cartpole", *args)})

    def test_no_more_jobs_than_there_are_workers(self):
        self.assertEqual(3, len(self.manifests("cartpole")))
        self.assertEqual(4, len(self.manifests("cartpole", "--workers=2")))
        self.assertEqual(4, len(self.manifests("cartpole", "--workers=2", "--trainers=2")))

    def test_the_commands(self):
        found = self.manifests("pendulum", "--workers=3", "--trainers=2", "--set=gravity_mps2=9", "--out=a/My Run", "--patience=7",
                               "--no-normalize")  # fmt: skip
        address = {"POD_IP": "10.1.2.3"}
        (name,) = {name for kind, name in found if kind == "Service"}
        self.assertRegex(name, r"^shoal-my-run-[0-9a-f]{8}$")
        master = self.run_command(found["Job", f"{name}-master"], **address)
        self.assertEqual(["esrun", "--out", f"/runs/{name.removeprefix('shoal-')}", "pendulum", "--normalize=false", "--set=gravity_mps2=9", "--bind=none",
                          "--patience=7.0", "--trainers=2", "--bind-address=tcp://10.1.2.3:5555"], master)  # fmt: skip
        join = ["esrun", f"--join=tcp://{name}:5555", "--patience=300", "--dismissal-status=76", "--bind=none", "--patience=7.0"]
        self.assertEqual(join, self.run_command(found["Job", f"{name}-evaluators"], **address))
        self.assertEqual([*join, "--role=follower", "--bind-address=tcp://10.1.2.3:*"],
                         self.run_command(found["Job", f"{name}-followers"], **address))  # fmt: skip

    def test_an_objective_a_table_and_collectives(self):
        library = Path(harness.ESRUN).parent / "tests" / "objective_module_1.so"
        given = [f"objective:lib:{library}", "--dim=3", "--noise=table", "--collectives=gloo", "--workers=4", "--trainers=2"]
        text = self.emit("k8s", *given)
        self.assertIn("# It has what the objective needs, too: a library at its path", text)
        self.assertNotIn("objective needs", self.emit("k8s", "cartpole"))
        found = self.manifests(*given)
        (name,) = {name for kind, name in found if kind == "Service"}
        self.assertEqual("shoal-objective-lib", name)
        master = self.run_command(found["Job", f"{name}-master"], POD_IP="10.1.2.3")
        self.assertEqual({f"objective:lib:{library}", "--dim=3", "--noise=table", "--collectives=gloo", "--trainers=2"},
                         {word for word in master if word in given or "objective:" in word})  # fmt: skip
        for part in ["followers", "evaluators"]:
            call = " ".join(self.run_command(found["Job", f"{name}-{part}"], POD_IP="10.1.2.3"))
            self.assertNotRegex(call, "objective:|--noise|--collectives")

    def test_a_stop_is_no_end(self):
        """A pod that SIGTERM ends must be started again, and esrun ends well then."""
        found = self.manifests("cartpole", "--workers=2", "--out=x")
        wait, fail = "trap 'exit 0' TERM; touch \"$NOTES\"; while :; do sleep 0.1; done", "touch \"$NOTES\"; exit 3"
        for part in ["master", "evaluators"]:
            for script, signals, expected in [(wait, [signal.SIGTERM], 143), (fail, [], 3)]:
                with self.subTest(part=part, expected=expected):
                    self.stand_in("esrun")
                    (self.tools / "esrun").write_text(f"#!/bin/sh\n{script}\n")
                    words = self.container(found["Job", f"shoal-x-{part}"])["command"]
                    pod = subprocess.Popen(words, env=self.environment(), cwd=self.folder)
                    while not self.notes.exists():
                        time.sleep(0.01)
                    for number in signals:
                        pod.send_signal(number)
                    self.assertEqual(expected, pod.wait(30))
                    self.notes.unlink()

    def test_a_run_that_is_there_is_gone_on_with(self):
        job = self.manifests("cartpole", "--pop=64", "--out=x")["Job", "shoal-x-master"]
        command = self.container(job)["command"]
        self.assertEqual("/runs/x", command[3])
        command[3] = str(self.folder)
        (self.folder / "config.json").write_text("{}")
        self.assertEqual(["esrun", "--resume", str(self.folder), "--bind=none", "--bind-address=tcp://10.1.2.3:5555"],
                         self.run_command(job, POD_IP="10.1.2.3"))  # fmt: skip

    def test_the_schema_finds_mistakes(self):
        good = self.manifests("cartpole", "--workers=2")["Job", "shoal-cartpole-evaluators"]
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        for path, value in [(("spec", "completion"), 1), (("metadata", "name"), "No_Name"), (("kind",), "job"),
                            (("spec", "template", "spec", "restartPolicy"), "Always"), (("spec", "parallelism"), "2")]:  # fmt: skip
            bad = json.loads(json.dumps(good))
            at = bad
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            with self.subTest(path=path), self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate(bad, schema)


class Refusals(EmitTest):
    def test_usage(self):
        self.refused(2, ["none, slurm or k8s", "'k9s'"], "cartpole", "--emit=k9s")
        self.refused(2, ["--eval"], "--emit=slurm", "--eval", self.good(*self.fixed("cartpole", generations=1), "--out", self.path())["run"])
        self.refused(2, ["--dry-run"], "cartpole", "--emit=slurm", "--dry-run")
        self.refused(2, ["--secret", "container"], "cartpole", "--emit=k8s", "--secret=x")
        self.refused(2, ["tcp://10.0.0.1:70", "tcp://*:70"], "cartpole", "--emit=k8s", "--bind-address=tcp://10.0.0.1:70")
        self.refused(2, ["the port of tcp://*:65536", "0 to 65535"], "cartpole", "--emit=k8s", "--bind-address=tcp://*:65536")
        self.refused(2, ["--trainers 3", "2 workers"], "cartpole", "--emit=k8s", "--workers=2", "--trainers=3")
        self.refused(2, ["--scale-interval", "--scale-hook"], "cartpole", "--emit=k8s", "--workers=1", "--max-workers=4", "--scale-interval=5")
        self.refused(2, ["--emit"], "--join=tcp://127.0.0.1:9", "--emit=slurm")
        self.refused(2, ["--pop"], "cartpole", "--emit=slurm", "--pop=3.5")


if __name__ == "__main__":
    harness.main()
