#!/usr/bin/env python3
"""Bad input to esrun: the exit status, one clear line on stderr, nothing written."""

import fcntl
import json
import os
import shutil
import unittest

import esrun_harness as harness
from esrun_harness import EsrunTest, fixed, tree


class Usage(EsrunTest):
    def test_names(self):
        self.refused(2, ["unknown simulator 'cartpol'", "'cartpole'"], "cartpol")
        self.refused(2, ["unknown simulator 'mountain_cra'", "'mountain_car'"], "--list", "mountain_cra")
        self.refused(2, ["unknown option --poop", "--pop"], "cartpole", "--poop=4")
        self.refused(2, ["unknown option --generation", "--generations"], "cartpole", "--generation", 4)
        self.refused(2, ["unknown option '-x'"], "cartpole", "-x")
        self.refused(2, ["'gpu'", "auto, cpu or cuda"], "cartpole", "--device=gpu")
        self.refused(2, ["cartpole has no parameter 'pole_mass'", "'pole_mass_kg'"], "cartpole", "--set=pole_mass=1")
        self.refused(2, ["no parameter 'dt'", "'dt_s'"], "pendulum", "--randomize=dt=1:2")

    def test_ranges(self):
        for option, value, allowed in [
            ("pop", 1, "2 to 1048576 members"),
            ("pop", 1048578, "2 to 1048576"),
            ("generations", 0, "1 to 100000000"),
            ("episodes", 65537, "1 to 65536"),
            ("sigma", 0, "1e-06 to 100"),
            ("sigma", "nan", "1e-06 to 100"),
            ("lr", -0.1, "0 to 10"),
            ("lr", "inf", "0 to 10"),
            ("beta1", 1, "0 to 0.999999"),
            ("hidden", "0,3", "1 to 1024 units"),
            ("hidden", "1,2,3,4,5,6,7,8,9", "8 sizes"),
            ("seed", -1, "at least 0"),
            ("time-limit", 0, "1 to 8000000 steps"),
            ("threads", 0, "1 to 1024 threads"),
            ("threads", -2, "1 to 1024 threads"),
            ("threads", "abc", "1 to 1024 threads"),
            ("threads", "99999", "1 to 1024 threads"),
            ("lanes", 3, "1, 8 or 16"),
            ("lanes", 17, "0 to 16"),
            ("isa", "v5", "auto, baseline, v3 or v4"),
        ]:
            with self.subTest(option=option, value=value):
                self.refused(2, [f"--{option}", str(value).split(",")[0], allowed], "cartpole", f"--{option}={value}")

    def test_values(self):
        for words, *args in [
            (["--pop 7", "even"], "--pop=7"),
            (["sigma-min", "above"], "--sigma=0.001", "--sigma-min=0.1", "--sigma-decay=0.9"),
            (["NAME=VALUE"], "--set=dt_s"),
            (["dt_s=", "number"], "--set=dt_s="),
            (["dt_s=x", "number"], "--set=dt_s=x"),
            (["dt_s=1e39"], "--set=dt_s=1e39"),
            (["NAME=LOW:HIGH"], "--randomize=dt_s=1"),
            (["NAME=LOW:HIGH"], "--randomize=dt_s"),
            (["dt_s=1:x", "number"], "--randomize=dt_s=1:x"),
            (["2 is above 1"], "--randomize=dt_s=2:1"),
            (["too wide"], "--randomize=dt_s=-3e38:3e38"),
            (["at most"], "--pop=1048576", "--episodes=65536"),
            (["needs a value"], "--pop"),
            (["needs a value"], "--pop", "--lr=1"),
            (["one simulator at a time", "'pendulum'"], "pendulum"),
            (["UTF-8"], "--out=\udcff"),
        ]:
            with self.subTest(args=args):
                self.refused(2, words, "cartpole", *args)
        self.refused(2, "which simulator?")
        self.refused(2, "one simulator at a time", "--list", "cartpole", "pendulum")
        self.refused(2, ["one simulator at a time", "--env pendulum"], "cartpole", "--env=pendulum")

    def test_config_file(self):
        config = self.folder / "config.json"
        self.refused(1, ["config.json", "No such file"], "cartpole", "--config", config)
        for text, words in [
            ("", "malformed"),
            ('{"pop": 4', "malformed JSON at line 1"),
            ("[1]", "not a JSON object"),
            ('{"tool": "pporun"}', "another tool, 'pporun'"),
            ('{"popp": 4}', "pop"),
            ('{"pop": "4"}', "integer expected"),
            ('{"pop": 5}', "even"),
            ('{"pop": 1}', "2 to 1048576"),
            ('{"threads": "4"}', "command line"),
            ('{"set": ["dt=1"]}', "'dt_s'"),
            ('{"env": "pendulum"}', "is of pendulum, not of cartpole"),
        ]:
            with self.subTest(text=text):
                config.write_text(text, encoding="utf-8")
                self.refused(2, words, "cartpole", "--config", config)
        config.unlink()
        os.mkfifo(config)  # would be waited for without end
        done = self.call("cartpole", "--config", config, limit_s=20)
        self.assertEqual(1, done.code, done)

    def test_resume_and_eval(self):
        run = self.unbroken("cartpole")["run"]
        self.refused(2, ["--lr", "--resume"], "--resume", run, "--lr=0.1")
        self.refused(2, ["--weight-decay", "--resume"], "--resume", run, "--weight-decay=0.1")
        self.refused(2, ["--set", "--resume"], "--resume", run, "--set=dt_s=0.1")
        self.refused(2, ["--resume", "leave out --out"], "--resume", run, "--out", self.folder / "other")
        self.refused(2, ["--eval", "leave out --config"], "--eval", run, "--config", "x")
        self.refused(2, ["--pop", "--eval"], "--eval", run, "--pop=64")
        self.refused(2, "one of them", "--eval", run, "--resume", run)
        self.refused(2, ["is of cartpole, not of pendulum"], "pendulum", "--resume", run)
        self.refused(2, ["--generations 5", "12"], "--resume", run, "--generations=5", "--device=cpu")
        self.refused(2, ["holds a run already", "--resume"], "cartpole", "--out", run, "--device=cpu")
        self.refused(1, ["nothing", "No such file"], "--resume", self.folder / "nothing")
        self.refused(1, ["nothing", "No such file"], "--eval", self.folder / "nothing")
        empty = self.path("empty")
        empty.mkdir()
        self.refused(1, "config.json", "--resume", empty)


class Files(EsrunTest):
    def test_out_below_a_file(self):
        (self.folder / "file").write_text("kept", encoding="utf-8")
        for out in ["file", "file/run", "file/a/b"]:
            self.refused(1, "file", *fixed("cartpole"), "--quiet", "--out", out)

    def test_out_in_a_folder_that_cannot_be_written(self):
        self.refused(1, "/proc/", *fixed("cartpole"), "--quiet", "--out", "/proc/shoal")

    def test_no_gpu(self):
        done = self.call("cartpole", "--device=cuda", "--gpu=1023", "--generations=1")
        self.assertEqual(1, done.code, done)
        self.assertRegex(done.err, "(?i)cuda|gpu")
        self.assertEqual({}, tree(self.folder))

    def test_locked_by_another(self):
        out = self.path()
        out.mkdir()
        with open(out / ".lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.refused(1, "in use by another process", *fixed("cartpole"), "--quiet", "--out", out)
        run = self.path()
        process = self.start(*fixed("cartpole", generations=100000), "--out", run)
        try:
            while not (run / "config.json").exists():
                self.assertIsNone(process.poll(), "the run ended")
            done = self.call("--resume", run, "--device=cpu", "--bind=none", "--quiet")
            self.assertEqual(1, done.code, done)
            self.assertIn("in use by another process", done.err)
            done = self.call(*fixed("cartpole"), "--out", run)
            self.assertEqual(2, done.code, done)
        finally:
            process.kill()
            process.wait()

    def refuses_checkpoint(self, run, file, words):
        """--resume and --eval end with status 1 and do not touch the file."""
        self.refused(1, words, "--resume", run, "--quiet", "--device=cpu", "--bind=none")
        self.refused(1, words, "--eval", run, "--quiet", "--device=cpu", "--bind=none")
        self.assertTrue(file.exists())

    def test_damaged_checkpoints(self):
        run = self.unbroken("cartpole")["run"]
        file = self.folder / run / "checkpoint" / "gen-00000012.safetensors"
        good = file.read_bytes()
        for length in [0, 7, 8, 100, len(good) // 2, len(good) - 1]:
            with self.subTest(length=length):
                file.write_bytes(good[:length])
                self.refuses_checkpoint(run, file, file.name)
        places = [0, 3, 9, len(good) - 1] + [self.random.randrange(len(good)) for _ in range(4 if harness.SANITIZED else 12)]
        for at in places:
            with self.subTest(flipped=at):
                bad = bytearray(good)
                bad[at] ^= 1 << self.random.randrange(8)
                file.write_bytes(bad)
                self.refuses_checkpoint(run, file, file.name)
        file.write_bytes(good + b"x")
        self.refuses_checkpoint(run, file, file.name)
        self.assertEqual(1, good.count(b'"shoal_format":"1"'))
        file.write_bytes(good.replace(b'"shoal_format":"1"', b'"shoal_format":"2"'))
        self.refuses_checkpoint(run, file, [file.name, "2"])
        file.write_bytes(good)
        self.good("--resume", run, "--device=cpu", "--bind=none")

    def test_checkpoint_of_another_run(self):
        run = self.unbroken("cartpole")["run"]
        file = self.folder / run / "checkpoint" / "gen-00000012.safetensors"
        for env, changes in [("acrobot", {}), ("cartpole", {"hidden": "8,16"}), ("cartpole", {"activation": "relu"})]:
            with self.subTest(env=env, changes=changes):
                other = self.unbroken(env, **changes)["run"]
                shutil.copy(f"{other}/checkpoint/{file.name}", file)
                self.refuses_checkpoint(run, file, [f"'{env} ", "'cartpole 4-16-8-2 tanh'"])

    def test_damaged_config(self):
        run = self.unbroken("cartpole")["run"]
        file = self.folder / run / "config.json"
        text = file.read_text(encoding="utf-8")
        file.write_text(text[: len(text) // 2], encoding="utf-8")
        self.refused(2, ["config.json", "malformed"], "--resume", run, "--device=cpu")
        file.write_text(json.dumps({**json.loads(text), "hidden": [3]}), encoding="utf-8")
        self.refused(1, ["'cartpole 4-16-8-2 tanh'", "'cartpole 4-3-2 tanh'"], "--resume", run, "--device=cpu",
                     "--bind=none", "--quiet")  # fmt: skip


class Infinite(EsrunTest):
    """A simulator that blows up ends the run, and the message names env, step and field."""

    BLOW_UP = {
        "cartpole": ("force_n=3e38", "_"),
        "mountain_car": ("max_speed=3e38 min_position=-3e38 max_position=3e38 goal_position=3e38 gravity=3e38", "position"),
        "mountain_car_continuous": (
            "max_speed=3e38 min_position=-3e38 max_position=3e38 goal_position=3e38 gravity=3e38", "position"),
        "acrobot": ("dt_s=3e38 max_velocity1_radps=3e38 max_velocity2_radps=3e38", "theta"),
        "pendulum": ("dt_s=3e38 max_speed_radps=3e38", "theta"),
    }  # fmt: skip

    def test_each_simulator(self):
        for env, (settings, field) in self.BLOW_UP.items():
            with self.subTest(env=env):
                out = self.path()
                sets = [f"--set={s}" for s in settings.split()]
                done = self.call(*fixed(env), *sets, "--out", out, "--quiet")
                self.assertEqual(1, done.code, done)
                self.assertRegex(done.err, rf"^esrun: {env}: generation 0, env \d+ .*member \d+.*, step \d+: .*{field}")
                self.assertEqual(1, done.err.count("\n"), done)

    def test_a_return_that_overflows(self):
        """Every reward is finite, their sum is not."""
        done = self.call(*fixed("mountain_car_continuous"), "--set=action_cost=3e38", "--json", "--quiet", "--out",
                          self.path())  # fmt: skip
        self.assertEqual(1, done.code, done)
        self.assertEqual("", done.out)
        self.assertRegex(done.err, r"^esrun: mountain_car_continuous: member \d+, episode \d+: the return is infinite")

    def test_same_message_for_any_threads_and_lanes(self):
        sets = [f"--set={s}" for s in self.BLOW_UP["pendulum"][0].split()]
        messages = set()
        for changes in [{"threads": 1}, {"threads": 2}, {"lanes": 1}, {"lanes": 8}, {"isa": "baseline"}]:
            messages.add(self.call(*fixed("pendulum", **changes), *sets, "--quiet", "--out", self.path()).err)
        self.assertEqual(1, len(messages), messages)

    def test_edited_settings_are_another_run(self):
        run = self.folder / self.unbroken("pendulum", generations=6)["run"]
        config = run / "config.json"
        sane = config.read_text(encoding="utf-8")
        for name, value in [("set", self.BLOW_UP["pendulum"][0].split()), ("seed", 99), ("lr", 0.5)]:
            values = json.loads(sane)
            values[name] = value
            config.write_text(json.dumps(values), encoding="utf-8")
            before = tree(run / "checkpoint")
            done = self.call("--resume", run, "--generations=12", "--device=cpu", "--bind=none", "--quiet")
            self.assertEqual(2, done.code, done)
            self.assertIn(f"config.json has {name} = ", done.err)
            self.assertEqual(before, tree(run / "checkpoint"))
        config.write_text(sane, encoding="utf-8")
        done = self.good("--resume", run, "--generations=12", "--device=cpu", "--bind=none")
        self.assertEqual(self.unbroken("pendulum")["params_hash"], done["params_hash"])


if __name__ == "__main__":
    harness.main()
