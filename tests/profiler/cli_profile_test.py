"""--profile of the trainers and profreport: what is recorded is what is reported, in every form, whole or not."""

import csv
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import unittest
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import cli_harness  # noqa: E402
from cli_harness import SANITIZED, Done, TrainerTest, options, program  # noqa: E402
from trace_reader import Trace  # noqa: E402

BOUNDS = ["GPU-bound", "overlapped", "communication-bound", "simulation-bound", "host-bound", "idle"]

ES = {"pop": 32, "hidden": "16,8", "seed": 5, "generations": 12, "test-every": 4, "test-episodes": 8, "bind": "none",
      "threads": 2, "device": "cpu"}  # fmt: skip
PPO = {"envs": 16, "shards": 4, "rollout": 32, "minibatches": 2, "epochs": 3, "steps": 4096, "seed": 5, "test-every": 4,
       "test-episodes": 8, "bind": "none", "threads": 2, "device": "cpu"}  # fmt: skip


class ProfileTest(TrainerTest):
    """A TrainerTest whose program is one of the trainers, by `tool`."""

    TOOL = "esrun"

    def train(self, tool, *args, env="cartpole", **changes):
        """A run's result; its folder is under "run"."""
        fixed = ES if tool == "esrun" else PPO
        args = [*options(env, ["--no-stop-at-target"], fixed, changes), "--json", "--quiet", *map(str, args)]
        if not any(a in ("--out", "--resume") for a in args):
            args += ["--out", str(self.path())]
        done = self.run_tool(tool, *args)
        self.assertEqual(0, done.code, done)
        return done.json

    def run_tool(self, tool, *args, **popen):
        args = [str(a) for a in args]
        done = subprocess.run([program(tool), *args], capture_output=True, text=True, cwd=self.folder, timeout=300,
                              check=False, **popen)  # fmt: skip
        return Done([tool, *args], done.returncode, done.stdout, done.stderr)

    def report(self, *args):
        done = self.run_tool("profreport", *args)
        self.assertEqual(0, done.code, done)
        return done.out

    def report_json(self, *runs):
        return json.loads(self.report(*runs, "--json"))["runs"]


class Report(ProfileTest):
    def check_sums(self, figures):
        """Every nanosecond in one class, one category, one phase."""
        self.assertEqual(figures["wall_ns"], sum(figures["bound_ns"].values()))
        self.assertEqual(BOUNDS, list(figures["bound_ns"]))
        self.assertEqual(figures["wall_ns"], sum(figures["phase_ns"].values()))
        self.assertEqual(figures["thread_ns"], sum(figures["category_thread_ns"].values()))
        self.assertEqual(figures["wall_ns"], figures["main_ns"])

    def test_what_was_recorded(self):
        for tool in ["esrun", "pporun"]:
            with self.subTest(tool=tool):
                plain = self.train(tool)
                profiled = self.train(tool, "--profile")
                self.assertEqual(plain["params_hash"], profiled["params_hash"])
                self.assertFalse((Path(plain["run"]) / "profile").exists())
                run = self.report_json(profiled["run"])[0]
                self.assertEqual(tool, run["tool"])
                self.assertEqual(1, len(run["workers"]))
                self.check_sums(run["total"])
                self.assertFalse(run["workers"][0]["damage"]["is_cut"])
                self.assertEqual(0, run["total"]["dropped_events"])
                self.assertEqual(sum(s["thread_ns"] for s in run["scopes"]), run["total"]["thread_ns"])
                self.assertGreater(run["total"]["phase_ns"]["evaluate"], 0)
                # Leaf scopes of all that a run consists of.
                leaves = {s["path"].rsplit("/", 1)[1] for s in run["scopes"] if s["leaf"] and s["count"] > 0}
                wanted = {"es evaluate", "metrics", "checkpoint", "wait for workers"}
                wanted |= {"es update", "es shape"} if tool == "esrun" else {"ppo rollout", "ppo gradient", "ppo step"}
                self.assertLessEqual(wanted, leaves)

    def test_another_reader_finds_the_same(self):
        for tool in ["esrun", "pporun"]:
            with self.subTest(tool=tool):
                folder = self.train(tool, "--profile")["run"]
                data = (Path(folder) / "profile" / "rank-0.trace").read_bytes()
                trace = Trace(data)
                self.assertEqual(tool, trace.process["tool"])
                self.assertEqual(2, len(trace.clocks))
                self.assertEqual(trace.end["events"], sum(map(len, trace.events.values())))
                found = self.report_json(folder)[0]["scopes"]
                names = {"/(outside)": "(outside)", "/(lost)": None, "/(unknown launch)": None}
                found = {names.get(s["path"], s["path"]): [s["count"], s["thread_ns"]] for s in found}
                found.pop(None)
                expected = trace.scopes()
                self.assertEqual({p: v for p, v in expected.items() if v != [0, 0]},
                                 {p: v for p, v in found.items() if v != [0, 0]})  # fmt: skip

    def test_another_reader_knows_every_kind_of_event(self):
        """A trace with a device, by hand: what the other reader finds, and what profreport makes of it."""
        path = Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "trace" / "all_kinds"
        trace = Trace(path.read_bytes())
        self.assertEqual([(5000, "BEGIN", {"name": 0}), (5010, "CAPTURE", {"node": 9}), (5020, "LAUNCH", {"correlation": 1}),
                          (5030, "SPLIT", {"weights": {0: 3, 1: 400}}), (5090, "END", {}),
                          (5100, "PHASE", {"phase": 2}), (5100, "DROPPED", {"count": 5}),
                          (5100, "BEGIN", {"name": 1}), (5110, "LAUNCH", {"correlation": 2}), (5120, "BEGIN", {"name": 2}),
                          (5300, "END", {}), (5400, "END", {})], trace.events[0])  # fmt: skip
        self.assertEqual([(5010, "JOIN", {"name": 0, "stream": 0}), (5080, "END", {})], trace.events[1][:2])
        self.assertEqual((5130, "INTERVAL", {"duration": 100, "correlation": 2, "node": 9, "work": 0, "name": 0, "threads": 0}),
                         trace.events[2][1])  # fmt: skip
        self.assertEqual({"device": True, "main": False, "os_id": 0, "number": 0, "capacity": 1000, "name": "stream 2"},
                         trace.streams[2])  # fmt: skip
        self.assertEqual({"category": 15, "layer": 2, "name": "call"}, trace.names[3])
        run = self.report_json(path)[0]
        scopes = {s["path"]: s for s in run["scopes"]}
        for name, (count, ns) in trace.scopes().items():
            found = scopes["/(outside)" if name == "(outside)" else name]
            self.assertEqual((count, ns), (found["count"], found["thread_ns"]), name)
        self.assertEqual(60, scopes["/simulate"]["device_ns"])
        self.assertEqual(100, scopes["/act/simulate"]["device_ns"])  # captured in the one, launched in the other
        self.assertEqual(100, scopes["/(unknown launch)"]["device_ns"])
        self.assertEqual((1000, 5, None), (run["total"]["wall_ns"], run["total"]["dropped_events"], run["no_gpu_time_because"]))

    def test_the_fuzzers_corpus_has_every_kind_of_event(self):
        here = Path(__file__).resolve().parents[1]
        found = set()
        for path in (here / "fuzz" / "corpus" / "trace").iterdir():
            found |= set(Trace(path.read_bytes()).notes)
        page = (here.parent / "profiler" / "FORMAT.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| (\d+) \| ([A-Z]+) \|", page[page.index("## Events") :], re.MULTILINE)
        kinds = {name for _, name in rows} - {"OTHER"}
        self.assertEqual(7 + 13, len(kinds), kinds)
        self.assertEqual(set(), kinds - found)

    def test_text_says_why_there_is_no_gpu_time(self):
        text = self.report(self.train("esrun", "--profile")["run"])
        for words in [*BOUNDS, "No GPU time: the run computed on the CPU (cpu: 2 threads", "Outside leaf scopes:",
                      "es evaluate", "% policy"]:  # fmt: skip
            self.assertIn(words, text)

    def test_phases(self):
        folder = self.train("esrun", "--profile", generations=8)["run"]
        whole = self.report_json(folder)[0]
        parts = [json.loads(self.report(folder, "--json", "--phase", p))["runs"][0]
                 for p in ["setup", "warm-up", "train", "evaluate"]]  # fmt: skip
        self.assertEqual(whole["total"]["wall_ns"], sum(p["total"]["wall_ns"] for p in parts))
        count = {p: sum(s["count"] for s in parts[p]["scopes"] if s["path"] == "/es generation") for p in range(4)}
        self.assertEqual({0: 0, 1: 1, 2: 7, 3: 0}, count)

    def test_csv_has_what_json_has(self):
        folder = self.train("pporun", "--profile")["run"]
        rows = list(csv.DictReader(io.StringIO(self.report(folder, "--csv"))))
        scopes = self.report_json(folder)[0]["scopes"]
        self.assertEqual([s["path"] for s in scopes], [r["scope"] for r in rows])
        for column in ["count", "thread_ns", "main_ns", "within_ns", "device_ns", "cpu_only_ns"]:
            self.assertEqual([s[column] for s in scopes], [int(r[column]) for r in rows])

    def test_chrome_timeline(self):
        folder = self.train("esrun", "--profile")["run"]
        self.report(folder, "--chrome", self.folder / "timeline.json")
        with open(self.folder / "timeline.json", encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        depth, last, count = defaultdict(int), defaultdict(float), defaultdict(int)
        for e in events:
            key = e["pid"], e["tid"]
            if e["ph"] == "M":
                continue
            self.assertGreaterEqual(e["ts"], last[key])
            last[key] = e["ts"]
            depth[key] += {"B": 1, "E": -1}.get(e["ph"], 0)
            self.assertGreaterEqual(depth[key], 0)
            count[e.get("name")] += e["ph"] == "B"
        self.assertEqual({0}, set(depth.values()))
        self.assertEqual(12, count["es generation"])
        self.assertIn("esrun, rank 0", events[0]["args"]["name"])

    def test_configuration_of_a_run(self):
        """What the trainers say of themselves, also where the window is a part of the run."""
        for tool, args, rows in [("esrun", ["--profile"], slice(0, 12)), ("esrun", ["--profile-window", "3:5"], slice(2, 5)),
                                 ("pporun", ["--profile"], slice(0, 8)), ("pporun", ["--profile-window", "2:4"], slice(1, 4))]:  # fmt: skip
            with self.subTest(tool=tool, args=args):
                folder = self.train(tool, *args)["run"]
                steps = [0, *(int(r["env_steps"]) for r in cli_harness.rows(folder))]
                run = self.report_json(folder)[0]
                found = {k: run["configuration"][k] for k in ["devices", "workers", "threads", "envs", "env_steps"]}
                self.assertEqual({"devices": 1, "workers": 1, "threads": 2, "envs": 32 if tool == "esrun" else 16,
                                  "env_steps": steps[rows.stop] - steps[rows.start]}, found)  # fmt: skip

    def test_page(self):
        folder = self.train("esrun", "--profile")["run"]
        self.report(folder, "--html", self.folder / "page.html")
        page = (self.folder / "page.html").read_text(encoding="utf-8")
        found = re.search(r'<script type="application/json" id="profile">(.*?)</script>', page, re.DOTALL)
        self.assertEqual(self.report_json(folder)[0]["total"], json.loads(found.group(1))["runs"][0]["total"])

    def test_comparison(self):
        runs = [self.train("esrun", "--profile", threads=n)["run"] for n in [1, 2]]
        text = self.report(*runs)
        tail = text[text.index("comparison") :].splitlines()
        self.assertEqual(["1", "1"], [l for l in tail if l.startswith("workers")][0].split()[-2:])
        self.assertEqual(["1", "2"], [l for l in tail if l.startswith("threads  ")][0].split()[-2:])
        self.assertEqual(["32", "32"], [l for l in tail if l.startswith("envs  ")][0].split()[-2:])
        self.assertTrue(any(l.startswith("efficiency, per thread") for l in tail), text)
        self.assertEqual("1.00x", [l for l in tail if l.startswith("speed-up")][0].split()[-2])
        for bound in BOUNDS:
            self.assertTrue(any(l.startswith(bound) for l in tail), text)

    def test_several_workers(self):
        first = Path(self.train("esrun", "--profile")["run"])
        second = Path(self.train("esrun", "--profile", seed=6)["run"])
        (second / "profile" / "rank-0.trace").rename(first / "profile" / "rank-1.trace")
        run = self.report_json(first)[0]
        self.assertEqual(2, len(run["workers"]))
        for key in ["wall_ns", "thread_ns", "events"]:
            self.assertEqual(run["total"][key], sum(w[key] for w in run["workers"]))
        for worker in run["workers"]:
            self.check_sums(worker)
        shares = [w["bound_ns"]["host-bound"] / w["wall_ns"] for w in run["workers"]]
        self.assertAlmostEqual(sum(shares) / 2, run["bound_share"]["host-bound"]["mean"], places=12)
        self.assertAlmostEqual(abs(shares[0] - shares[1]) / 2**0.5, run["bound_share"]["host-bound"]["deviation"], places=7)
        self.assertEqual(24, sum(s["count"] for s in run["scopes"] if s["path"] == "/es generation"))


class Workers(ProfileTest):
    def test_all_workers_of_a_run(self):
        """Each writes a trace of its own, of the window's steps."""
        for tool, flags, ranks in [("esrun", ["--workers=3", "--trainers=2"], 3), ("pporun", ["--workers=2"], 2)]:
            with self.subTest(tool=tool):
                flags = [*flags, f"--min-workers={ranks}", "--profile-window=2:5"]
                folder = Path(self.train(tool, *flags, threads=1)["run"])
                run = self.report_json(folder)[0]
                found = sorted(w["rank"] for w in run["workers"])
                self.assertEqual(list(range(ranks)), found)
                text = self.report(folder)
                for rank in found:
                    self.assertRegex(text, rf"rank {rank} on \S+ +[\d.]+ \w+ +[\d.]+ \w+ +[\d.]+%")
                self.assertRegex(text, r"Computes longest: rank \d+\.")
                self.assertEqual(4 if tool == "esrun" else 4 * ranks,
                                 sum(s["count"] for s in run["scopes"] if s["path"].endswith(("/es generation", "/ppo learn"))))


class Recording(ProfileTest):
    def test_recording_changes_no_bit(self):
        """Rounds that are timed take other paths through fused loops."""
        for tool, env, changes in [
            ("esrun", "cartpole", {"hidden": "64,64", "pop": 256, "threads": 1}),  # pipelines of two gangs
            ("esrun", "pendulum", {"hidden": "32,32", "pop": 128, "activation": "relu"}),
            ("esrun", "acrobot", {"hidden": "16", "recurrent": 8, "pop": 64, "generations": 4}),
            ("esrun", "parking", {"hidden": "20,20", "pop": 128, "episodes": 4}),
            ("pporun", "pendulum", {"envs": 64, "rollout": 64, "steps": 16384}),
            ("pporun", "parking", {"recurrent": 8, "envs": 32, "shards": 4, "steps": 8192}),
        ]:
            if SANITIZED and tool == "esrun":
                changes["generations"] = 3
            with self.subTest(tool=tool, env=env):
                plain = self.train(tool, env=env, **changes)
                profiled = self.train(tool, "--profile", env=env, **changes)
                self.assertEqual(plain["params_hash"], profiled["params_hash"])
                self.assertEqual(plain["test_return_mean"], profiled["test_return_mean"])
                scopes = self.report_json(profiled["run"])[0]["scopes"]
                fused = [s for s in scopes if s["path"].endswith(("/es generation/es evaluate", "/ppo rollout"))]
                self.assertEqual(1, len(fused))
                # By esrun the simulator has what is left of a round without the policy: of a few percent a busy machine may
                # leave nothing.
                expected = {"policy", "learning"} if tool == "esrun" else {"simulation", "policy", "learning"}
                self.assertLessEqual(expected, set(fused[0]["split"]))
                full = self.train(tool, "--profile-detail", "full", env=env, **changes)
                self.assertEqual(plain["params_hash"], full["params_hash"])
                scopes = {s["path"]: s for s in self.report_json(full["run"])[0]["scopes"]}
                path = fused[0]["path"]
                for part in ["simulation", "policy", "learning"]:
                    self.assertGreater(scopes[f"{path}/{part}"]["count"], 0)
                self.assertLessEqual({"simulation", "policy", "learning"}, set(scopes[path]["split"]))
                self.assertTrue(scopes[path]["leaf"])

    def entered(self, folder, path):
        return sum(s["count"] for s in self.report_json(folder)[0]["scopes"] if s["path"] == path)

    def test_window(self):
        for window, steps in [("3:5", 3), ("1:1", 1), ("10:99", 3)]:
            folder = self.train("esrun", "--profile-window", window)["run"]
            self.assertEqual(steps, self.entered(folder, "/es generation"), window)
        out = self.path()
        done = self.run_tool("esrun", *options("cartpole", ["--no-stop-at-target"], ES, {}), "--profile-window", "20:30", "--out", out)
        self.assertIn("warning: no profile: the run did no generation from 20 on", done.err)
        self.assertFalse((Path(out) / "profile").exists())

    def test_resumed_run_has_another_trace(self):
        folder = self.train("esrun", "--profile", generations=6)["run"]
        done = self.run_tool("esrun", "--resume", folder, "--generations=9", "--threads=2", "--bind=none", "--device=cpu",
                             "--profile", "--quiet")  # fmt: skip
        self.assertEqual(0, done.code, done)
        self.assertEqual({"rank-0.trace", "rank-0.2.trace"}, {p.name for p in (Path(folder) / "profile").iterdir()})
        self.assertEqual(9, self.entered(folder, "/es generation"))

    @unittest.skipIf(SANITIZED, "stretches enough for a correction take minutes")
    def test_full_detail(self):
        """Loops are corrected by their own plain stretches; a run that goes on may have another detail."""
        for tool, loop, changes in [("pporun", "/ppo update/ppo learn/ppo gradient", {"steps": 102400}),
                                    ("esrun", "/es generation/es evaluate", {"pop": 256, "generations": 60})]:  # fmt: skip
            with self.subTest(tool=tool):
                folder = self.train(tool, "--profile-detail", "full", threads=1, **changes)["run"]
                run = self.report_json(folder)[0]
                excess = run["correction"]["full_detail_ns"]
                self.assertLess(excess["low"], excess["high"])
                self.assertTrue(excess["low"] <= excess["value"] <= excess["high"])
                taken_off = excess["value"] + run["correction"]["costs_ns"]["value"]
                self.assertAlmostEqual(run["correction"]["wall_ns"]["value"] + taken_off, run["total"]["wall_ns"], places=3)
                scopes = {s["path"]: s for s in run["scopes"]}
                self.assertGreater(run["total"]["main_thread_recorded"]["stretch"], 0)
                # On one thread, what the loops lose is what the wall clock does.
                lost = sum(s["thread_ns"] - s["corrected_thread_ns"]["value"] for s in run["scopes"])
                self.assertAlmostEqual(excess["value"], lost, places=2)
                self.assertGreater(scopes[loop + ("/policy" if tool == "esrun" else "/loss")]["count"], 0)
                self.assertIn("Full detail took: ", self.report(folder))
        done = self.run_tool("esrun", "--resume", folder, "--generations=62", "--threads=1", "--bind=none", "--device=cpu",
                             "--profile", "--quiet")  # fmt: skip
        self.assertEqual(0, done.code, done)
        second = Path(folder) / "profile" / "rank-0.2.trace"
        self.assertEqual(0, self.report_json(second)[0]["total"]["main_thread_recorded"]["stretch"])

    def test_killed_run(self):
        out = self.path()
        args = [*options("cartpole", ["--no-stop-at-target"], ES, {"generations": 1000000, "test-every": 1000}), "--profile",
                "--quiet", "--out", out]  # fmt: skip
        process = subprocess.Popen([program("esrun"), *map(str, args)], cwd=self.folder, stdout=subprocess.DEVNULL)
        trace = out / "profile" / "rank-0.trace"
        until = time.monotonic() + 60
        while not (trace.exists() and trace.stat().st_size > 5000) and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        text = self.report(out)
        self.assertIn("the trace was cut off: it is analysed up to its last event", text)
        run = self.report_json(out)[0]
        self.assertTrue(run["workers"][0]["damage"]["is_cut"])
        self.assertEqual(run["total"]["wall_ns"], sum(run["total"]["bound_ns"].values()))
        self.assertGreater(self.entered(out, "/es generation"), 0)

    def test_full_disk_ends_no_run(self):
        def limit():  # a file's size, as far as any checkpoint of this run goes, and not the trace
            resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))

        changes = {"envs": 4, "hidden": "8", "rollout": 16, "epochs": 20, "steps": 6400, "test-every": 1000}
        plain = self.train("pporun", **changes)
        out = self.path()
        args = [*options("cartpole", ["--no-stop-at-target"], PPO, changes), "--profile", "--json", "--quiet", "--out", out]
        done = self.run_tool("pporun", *args, preexec_fn=limit)
        self.assertEqual(0, done.code, done)
        self.assertEqual(plain["params_hash"], done.json["params_hash"])
        self.assertIn("pporun: warning: the profile is not whole: cannot write", done.err)
        self.assertIn("cut off", self.report(out))
        self.assertLess((Path(out) / "profile" / "rank-0.trace").stat().st_size, 30001) # a quarter is given back

    def test_refused(self):
        out = self.path()
        for code, words, args in [
            (2, "--profile-window 5: FIRST:LAST", ["--profile-window=5"]),
            (2, "--profile-window", ["--profile-window=5:3"]),
            (2, "--profile-window", ["--profile-window=0:3"]),
            (2, "--profile-window", ["--profile-window=x:3"]),
            (2, "--profile is for training", ["--profile", "--dry-run"]),
            (2, "--profile is for training", ["--profile-detail=full", "--dry-run"]),
            (2, "--profile-detail", ["--profile-detail=fine"]),
            (2, "--profile-detail", ["--profile", "--profile-detail="]),
        ]:
            with self.subTest(args=args):
                self.refused(code, words, "cartpole", "--out", out, "--device=cpu", *args)


class Calibration(ProfileTest):
    def test_raw_and_corrected(self):
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        folder = self.train("esrun", "--profile")["run"]
        before = self.run_tool("profreport", folder, env=environment)
        self.assertIn("Not corrected for the profiler's own cost: profreport --calibrate", before.out)
        self.assertIsNone(json.loads(self.run_tool("profreport", folder, "--json", env=environment).out)["runs"][0]["correction"])
        done = self.run_tool("profreport", "--calibrate", env=environment)
        self.assertEqual(0, done.code, done)
        for words in ["scope ", "join ", "split ", "stretch ", "pause ", "count for itself"]:
            self.assertIn(words, done.out)
        self.assertRegex(done.out, r"calls of CUDA were not measured: |\ncall +[\d.]+ ns")
        self.assertRegex(done.out, r"Python's scopes were not measured: |\nscript +[\d.]+ ns")
        self.assertIn("s corrected (", self.run_tool("profreport", folder, env=environment).out)
        run = json.loads(self.run_tool("profreport", folder, "--json", env=environment).out)["runs"][0]
        correction = run["correction"]
        wall, each = correction["wall_ns"], correction["each_ns"]
        self.assertTrue(wall["low"] <= wall["value"] <= wall["high"])
        recorded = run["total"]["main_thread_recorded"]
        self.assertEqual({"scope", "join", "split", "stretch", "pause"}, set(each) - {"script"})
        cost = sum(recorded[of] * each[of]["value"] for of in each)
        self.assertGreater(recorded["scope"], 0)
        self.assertAlmostEqual(cost, run["total"]["wall_ns"] - wall["value"], places=3)
        self.assertEqual({"low": 0, "value": 0, "high": 0}, correction["full_detail_ns"])
        for scope in run["scopes"]:
            self.assertLessEqual(scope["corrected_thread_ns"]["low"], scope["corrected_thread_ns"]["high"])
        (self.folder / "cache" / "shoal" / "profiler-cost.json").write_text("{", encoding="utf-8")
        done = self.run_tool("profreport", folder, env=environment)
        self.assertEqual(0, done.code, done)
        self.assertIn("profreport: warning: ", done.err)
        self.assertIn("Not corrected for the profiler's own cost", done.out)
        self.assertEqual(0, self.run_tool("profreport", "--calibrate", env=environment).code)


class Refusals(ProfileTest):
    def refused_report(self, code, words, *args):
        done = self.run_tool("profreport", *args)
        self.assertEqual((code, ""), (done.code, done.out), done)
        self.assertTrue(done.err.startswith("profreport: ") and done.err.count("\n") == 1, done)
        self.assertIn(words, done.err)

    def test_bad_usage_and_bad_files(self):
        text = self.folder / "text.trace"
        text.write_text("no trace at all")
        (self.folder / "empty.trace").write_text("")
        (self.folder / "run").mkdir()
        self.refused_report(2, "which run?")
        self.refused_report(2, "--jsn", "--jsn", "x")
        self.refused_report(2, "--phase", "x", "--phase", "sleep")
        self.refused_report(2, "one of them", "x", "--json", "--csv")
        self.refused_report(2, "--python goes with --calibrate", "x", "--python", "python3")
        self.refused_report(2, "--calibrate makes no report", "--calibrate", "--json")
        pipe = self.path("pipe.trace")
        os.mkfifo(pipe)
        self.refused_report(1, "no regular file", pipe)
        self.refused_report(2, "--calibrate is for the machine", "x", "--calibrate")
        self.refused_report(2, "--chrome takes one run", "x", "y", "--chrome", "z")
        self.refused_report(1, "No such file", "nowhere")
        self.refused_report(1, "there are no traces: --profile", "run")
        self.refused_report(1, "no trace: there is no whole block", text)
        self.refused_report(1, "it is empty", "empty.trace")

    def test_one_bad_trace_of_two(self):
        folder = Path(self.train("esrun", "--profile")["run"])
        (folder / "profile" / "rank-1.trace").write_text("damaged")
        done = self.run_tool("profreport", folder, "--json")
        self.assertEqual(0, done.code, done)
        self.assertIn("profreport: left out: ", done.err)
        self.assertEqual(1, len(done.json["runs"][0]["workers"]))

    def test_stdout_that_takes_nothing(self):
        folder = self.train("esrun", "--profile")["run"]
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([program("profreport"), folder], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("profreport: ", done.stderr)
        done = self.run_tool("profreport", folder, "--chrome", "/dev/full")
        self.assertEqual(1, done.code, done)

    def test_help_and_version(self):
        self.assertIn("profreport RUN...", self.report("--help"))
        self.assertIn("profreport ", self.report("--version"))


if __name__ == "__main__":
    print(f"SHOAL_TEST_SEED={cli_harness.SEED}", file=sys.stderr)
    unittest.main(verbosity=2)
