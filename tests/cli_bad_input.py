"""Bad input to any trainer: the exit status, one clear line on stderr, nothing written. Mixed into a TrainerTest by each
tool's cli_usage_test.py, which adds what only that tool has.
"""

import fcntl
import json
import os
import shutil

from cli_harness import SANITIZED, SIMULATORS, tree

QUIET = ["--device=cpu", "--bind=none", "--quiet"]


class UsageTests:
    """Mixed into a TrainerTest."""

    COUNT, COUNT_RANGE = "", ""  # an option that a run keeps, an integer from 1 or 2 on, and its range in messages
    TOO_SHORT = 0  # a length of less than fixed() has, but enough for one step
    OTHER_TOOL = ""

    def test_names(self):
        self.refused(2, ["unknown simulator 'cartpol'", "'cartpole'"], "cartpol")
        self.refused(2, ["unknown simulator 'mountain_cra'", "'mountain_car'"], "--list", "mountain_cra")
        self.refused(2, [f"unknown option --{self.COUNT}p", f"--{self.COUNT}"], "cartpole", f"--{self.COUNT}p=4")
        self.refused(2, [f"unknown option --{self.LENGTH[:-1]}", f"--{self.LENGTH}"], "cartpole", f"--{self.LENGTH[:-1]}", 4)
        self.refused(2, ["unknown option '-x'"], "cartpole", "-x")
        self.refused(2, ["'gpu'", "auto, cpu or cuda"], "cartpole", "--device=gpu")
        self.refused(2, ["'gelu'", "tanh or relu"], "cartpole", "--activation=gelu")
        self.refused(2, ["cartpole has no parameter 'pole_mass'", "'pole_mass_kg'"], "cartpole", "--set=pole_mass=1")
        self.refused(2, ["no parameter 'dt'", "'dt_s'"], "pendulum", "--randomize=dt=1:2")

    def refuses_ranges(self, cases):
        """cases: (option, value, words of the allowed range)"""
        for option, value, allowed in cases:
            with self.subTest(option=option, value=value):
                self.refused(2, [f"--{option}", str(value).split(",")[0], allowed], "cartpole", f"--{option}={value}")

    def refuses_values(self, cases):
        """cases: (words of the message, options...)"""
        for words, *args in cases:
            with self.subTest(args=args):
                self.refused(2, words, "cartpole", *args)

    def test_ranges(self):
        self.refuses_ranges([
            (self.COUNT, 0, self.COUNT_RANGE),
            (self.COUNT, 1048578, self.COUNT_RANGE),
            (self.LENGTH, 0, "1 to 100000000"),
            ("lr", -0.1, "0 to 10"),
            ("lr", "inf", "0 to 10"),
            ("lr", "nan", "0 to 10"),
            ("lr", "1e30", "0 to 10"),
            ("beta1", 1, "0 to 0.999999"),
            ("beta2", 1, "0 to 0.999999"),
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
        ])  # fmt: skip

    def test_values(self):
        self.refuses_values([
            (["NAME=VALUE"], "--set=dt_s"),
            (["dt_s=", "number"], "--set=dt_s="),
            (["dt_s=x", "number"], "--set=dt_s=x"),
            (["dt_s=1e39"], "--set=dt_s=1e39"),
            (["NAME=LOW:HIGH"], "--randomize=dt_s=1"),
            (["NAME=LOW:HIGH"], "--randomize=dt_s"),
            (["dt_s=1:x", "number"], "--randomize=dt_s=1:x"),
            (["2 is above 1"], "--randomize=dt_s=2:1"),
            (["too wide"], "--randomize=dt_s=-3e38:3e38"),
            (["needs a value"], f"--{self.COUNT}"),
            (["needs a value"], f"--{self.COUNT}", "--lr=1"),
            (["one simulator at a time", "'pendulum'"], "pendulum"),
            (["UTF-8"], "--out=\udcff"),
        ])  # fmt: skip
        self.refused(2, f"which simulator? {self.TOOL} ENV")
        self.refused(2, "one simulator at a time", "--list", "cartpole", "pendulum")
        self.refused(2, ["one simulator at a time", "--env pendulum"], "cartpole", "--env=pendulum")

    def refuses_configs(self, config, cases):
        """cases: (text of the file, words of the message)"""
        for text, words in cases:
            with self.subTest(text=text):
                config.write_text(text, encoding="utf-8")
                self.refused(2, words, "cartpole", "--config", config)

    def test_config_file(self):
        config = self.folder / "config.json"
        self.refused(1, ["config.json", "No such file"], "cartpole", "--config", config)
        self.refuses_configs(config, [
            ("", "malformed"),
            (f'{{"{self.COUNT}": 4', "malformed JSON at line 1"),
            ("[1]", "not a JSON object"),
            (f'{{"tool": "{self.OTHER_TOOL}"}}', f"another tool, '{self.OTHER_TOOL}'"),
            (f'{{"{self.COUNT}p": 4}}', self.COUNT),
            (f'{{"{self.COUNT}": "4"}}', "integer expected"),
            (f'{{"{self.COUNT}": 0}}', self.COUNT_RANGE),
            ('{"threads": "4"}', "command line"),
            ('{"set": ["dt=1"]}', "'dt_s'"),
            ('{"env": "pendulum"}', "is of pendulum, not of cartpole"),
        ])  # fmt: skip
        config.unlink()
        os.mkfifo(config)  # would be waited for without end
        done = self.call("cartpole", "--config", config, limit_s=20)
        self.assertEqual(1, done.code, done)

    def test_resume_and_eval(self):
        run = self.unbroken("cartpole")["run"]
        self.refused(2, ["--lr", "--resume"], "--resume", run, "--lr=0.1")
        self.refused(2, ["--beta2", "--resume"], "--resume", run, "--beta2=0.1")
        self.refused(2, ["--set", "--resume"], "--resume", run, "--set=dt_s=0.1")
        for name, value in [("--precision", "bf16"), ("--precision", "float32"), ("--recurrent", 3)]:
            for mode in ["--resume", "--eval"]:
                self.refused(2, f"{name} cannot be changed with {mode}", mode, run, f"{name}={value}")
        self.refused(2, ["--resume", "leave out --out"], "--resume", run, "--out", self.folder / "other")
        self.refused(2, ["--eval", "leave out --config"], "--eval", run, "--config", "x")
        self.refused(2, [f"--{self.COUNT}", "--eval"], "--eval", run, f"--{self.COUNT}=64")
        self.refused(2, "one of them", "--eval", run, "--resume", run)
        self.refused(2, ["is of cartpole, not of pendulum"], "pendulum", "--resume", run)
        self.refused(2, [f"--{self.LENGTH} {self.TOO_SHORT}", str(self.DONE)], "--resume", run,
                     f"--{self.LENGTH}={self.TOO_SHORT}", *QUIET)  # fmt: skip
        self.refused(2, ["holds a run already", "--resume"], "cartpole", "--out", run, *QUIET)
        self.refused(1, ["nothing", "No such file"], "--resume", self.folder / "nothing")
        self.refused(1, ["nothing", "No such file"], "--eval", self.folder / "nothing")
        empty = self.path("empty")
        empty.mkdir()
        self.refused(1, "config.json", "--resume", empty)


class FileTests:
    """Mixed into a TrainerTest whose fixed() runs for 12 steps."""

    POLICY = ""  # "cartpole 4-16-8-2 tanh" of fixed("cartpole"), as messages write it
    OTHER_POLICY = ""  # the same with hidden=3
    RECURRENT = {"recurrent": 3}  # changes of fixed() that give the policy a recurrent layer
    ENDLESS = {}  # changes that make a run go on for minutes

    def test_out_below_a_file(self):
        (self.folder / "file").write_text("kept", encoding="utf-8")
        for out in ["file", "file/run", "file/a/b"]:
            self.refused(1, "file", *self.fixed("cartpole"), "--quiet", "--out", out)

    def test_out_in_a_folder_that_cannot_be_written(self):
        self.refused(1, "/proc/", *self.fixed("cartpole"), "--quiet", "--out", "/proc/shoal")

    def test_no_gpu(self):
        done = self.call("cartpole", "--device=cuda", "--gpu=1023")
        self.assertEqual(1, done.code, done)
        self.assertRegex(done.err, "(?i)cuda|gpu")
        self.assertEqual({}, tree(self.folder))

    def test_locked_by_another(self):
        out = self.path()
        out.mkdir()
        with open(out / ".lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.refused(1, "in use by another process", *self.fixed("cartpole"), "--quiet", "--out", out)
        run = self.path()
        process = self.start(*self.fixed("cartpole", **self.ENDLESS), "--out", run)
        try:
            while not (run / "config.json").exists():
                self.assertIsNone(process.poll(), "the run ended")
            done = self.call("--resume", run, *QUIET)
            self.assertEqual(1, done.code, done)
            self.assertIn("in use by another process", done.err)
            done = self.call(*self.fixed("cartpole"), "--out", run)
            self.assertEqual(2, done.code, done)
        finally:
            process.kill()
            process.wait()

    def refuses_checkpoint(self, run, file, words):
        """--resume and --eval end with status 1 and do not touch the file."""
        self.refused(1, words, "--resume", run, *QUIET)
        self.refused(1, words, "--eval", run, *QUIET)
        self.assertTrue(file.exists())

    def checkpointed(self):
        """A finished run's folder, and its last checkpoint."""
        run = self.unbroken("cartpole")["run"]
        return run, self.folder / run / "checkpoint" / "gen-00000012.safetensors"

    def test_damaged_checkpoints(self):
        run, file = self.checkpointed()
        good = file.read_bytes()
        for length in [0, 7, 8, 100, len(good) // 2, len(good) - 1]:
            with self.subTest(length=length):
                file.write_bytes(good[:length])
                self.refuses_checkpoint(run, file, file.name)
        places = [0, 3, 9, len(good) - 1] + [self.random.randrange(len(good)) for _ in range(4 if SANITIZED else 12)]
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

    def kinds_of_policy(self):
        """Changes of fixed("cartpole") that leave its layers' sizes, and the policy with them, as messages write it."""
        return [({"precision": "bf16"}, self.POLICY.replace("tanh", "tanh bf16")),
                (self.RECURRENT, self.POLICY.replace("-2 tanh", "-r3-2 tanh"))]  # fmt: skip

    def refuses_checkpoint_of(self, other, words):
        """A checkpoint of the run `other` in the folder of fixed("cartpole")."""
        run, file = self.checkpointed()
        shutil.copy(f"{other['run']}/checkpoint/{file.name}", file)
        self.refuses_checkpoint(run, file, words)

    def test_checkpoint_of_another_run(self):
        for env, changes in [("acrobot", {}), ("cartpole", {"hidden": "8,16"}), ("cartpole", {"activation": "relu"})]:
            with self.subTest(env=env, changes=changes):
                self.refuses_checkpoint_of(self.unbroken(env, **changes), [f"'{env} ", f"'{self.POLICY}'"])
        for changes, policy in self.kinds_of_policy():
            with self.subTest(changes=changes):
                words = f"holds a policy '{policy}', this run has '{self.POLICY}'"
                self.refuses_checkpoint_of(self.unbroken("cartpole", **changes), words)

    def test_config_of_another_kind_of_policy(self):
        run, file = self.checkpointed()
        config = self.folder / run / "config.json"
        settings = json.loads(config.read_text(encoding="utf-8"))
        for changes, policy in self.kinds_of_policy():
            with self.subTest(changes=changes):
                config.write_text(json.dumps({**settings, **changes}), encoding="utf-8")
                self.refuses_checkpoint(run, file, f"holds a policy '{self.POLICY}', this run has '{policy}'")

    def test_damaged_config(self):
        run = self.unbroken("cartpole")["run"]
        file = self.folder / run / "config.json"
        text = file.read_text(encoding="utf-8")
        file.write_text(text[: len(text) // 2], encoding="utf-8")
        self.refused(2, ["config.json", "malformed"], "--resume", run, "--device=cpu")
        file.write_text(json.dumps({**json.loads(text), "hidden": [3]}), encoding="utf-8")
        self.refused(1, [f"'{self.POLICY}'", f"'{self.OTHER_POLICY}'"], "--resume", run, *QUIET)

    def refuses_edited_settings(self, half, edits):
        """half: changes that end fixed("pendulum") half way. A run whose config.json was edited does not go on; once it is
        as it was, it does, to the unbroken run's hash."""
        run = self.folder / self.unbroken("pendulum", **half)["run"]
        config = run / "config.json"
        sane = config.read_text(encoding="utf-8")
        length = f"--{self.LENGTH}={self.DONE}"
        for name, value in edits:
            config.write_text(json.dumps({**json.loads(sane), name: value}), encoding="utf-8")
            before = tree(run / "checkpoint")
            done = self.call("--resume", run, length, *QUIET)
            self.assertEqual(2, done.code, done)
            self.assertIn(f"config.json has {name} = ", done.err)
            self.assertEqual(before, tree(run / "checkpoint"))
        config.write_text(sane, encoding="utf-8")
        done = self.good("--resume", run, length, "--device=cpu", "--bind=none")
        self.assertEqual(self.unbroken("pendulum")["params_hash"], done["params_hash"])


class InfiniteTests:
    """Mixed into a TrainerTest: a simulator that blows up ends the run, and the message names env, step and field."""

    WHERE = ""  # what the message says after the simulator's name, up to the field; a regular expression
    WHERE_RETURN = ""  # and for a return
    UNDISCOUNTED = {}  # changes of fixed() with which a return overflows, and nothing before it

    BLOW_UP = {
        "cartpole": ("force_n=3e38", "_"),
        "mountain_car": ("max_speed=3e38 min_position=-3e38 max_position=3e38 goal_position=3e38 gravity=3e38", "position"),
        "mountain_car_continuous": (
            "max_speed=3e38 min_position=-3e38 max_position=3e38 goal_position=3e38 gravity=3e38", "position"),
        "acrobot": ("dt_s=3e38 max_velocity1_radps=3e38 max_velocity2_radps=3e38", "theta"),
        "pendulum": ("dt_s=3e38 max_speed_radps=3e38", "theta"),
        "position_only_cartpole": ("force_n=3e38", "_"),
        "parking": ("thrust_mps2=3e38 max_x_m=3e38", "the reward"),
        "lunar_lander": ("main_engine_power=3e38 side_engine_power=3e38", "lander_x_m"),
        "lunar_lander_continuous": ("main_engine_power=3e38 side_engine_power=3e38", "lander_x_m"),
        "bipedal_walker": ("torque_cost_per_nm=3e38", "the reward"),
        "bipedal_walker_hardcore": ("torque_cost_per_nm=3e38", "the reward"),
    }  # fmt: skip

    def test_each_simulator(self):
        self.assertEqual(SIMULATORS, list(self.BLOW_UP))
        for env, (settings, field) in self.BLOW_UP.items():
            with self.subTest(env=env):
                sets = [f"--set={s}" for s in settings.split()]
                done = self.call(*self.fixed(env), *sets, "--out", self.path(), "--quiet")
                self.assertEqual(1, done.code, done)
                self.assertRegex(done.err, rf"^{self.TOOL}: {env}: {self.WHERE}.*{field}")
                self.assertEqual(1, done.err.count("\n"), done)

    def test_a_return_that_overflows(self):
        """Every reward is finite, their sum is not."""
        done = self.call(*self.fixed("mountain_car_continuous", time_limit=16, **self.UNDISCOUNTED), "--set=action_cost=3e38", "--json",
                         "--quiet", "--out", self.path())  # fmt: skip
        self.assertEqual(1, done.code, done)
        self.assertEqual("", done.out)
        self.assertRegex(done.err, rf"^{self.TOOL}: mountain_car_continuous: .*{self.WHERE_RETURN}.*the return is infinite")

    def test_same_message_for_any_threads_and_lanes(self):
        sets = [f"--set={s}" for s in self.BLOW_UP["pendulum"][0].split()]
        messages = set()
        for changes in [{"threads": 1}, {"threads": 2}, {"lanes": 1}, {"lanes": 8}, {"isa": "baseline"}]:
            messages.add(self.call(*self.fixed("pendulum", **changes), *sets, "--quiet", "--out", self.path()).err)
        self.assertEqual(1, len(messages), messages)
