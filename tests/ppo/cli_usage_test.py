#!/usr/bin/env python3
"""Bad input to pporun: the exit status, one clear line on stderr, nothing written. What it shares with esrun is tested
there; here is what differs."""

import json
import shutil

import pporun_harness as harness
from pporun_harness import UPDATE_STEPS, PporunTest, fixed, tree


class Usage(PporunTest):
    def test_names(self):
        self.refused(2, ["unknown simulator 'cartpol'", "'cartpole'"], "cartpol")
        self.refused(2, ["unknown option --nvs", "--envs"], "cartpole", "--nvs=4")
        self.refused(2, ["unknown option --clip-rang"], "cartpole", "--clip-rang", 4)
        self.refused(2, ["'gelu'", "tanh or relu"], "cartpole", "--activation=gelu")
        self.refused(2, ["cartpole has no parameter 'pole_mass'", "'pole_mass_kg'"], "cartpole", "--set=pole_mass=1")
        self.refused(2, "which simulator? pporun ENV")

    def test_ranges(self):
        for option, value, allowed in [
            ("steps", 0, "1 to"),
            ("envs", 0, "1 to 1048576 envs"),
            ("rollout", 0, "1 to 1000000 steps"),
            ("epochs", 0, "1 to 1000"),
            ("minibatches", 0, "1 to"),
            ("shards", 0, "1 to 65536"),
            ("lr", -0.1, "0 to 10"),
            ("lr", "nan", "0 to 10"),
            ("gamma", 1.1, "0 to 1"),
            ("lambda", "inf", "0 to 1"),
            ("clip", -1, "0 to 100"),
            ("entropy", -1, "0 to 100"),
            ("value-weight", -1, "0 to 100"),
            ("max-grad-norm", -1, "0 to 1000000000"),
            ("target-kl", -1, "0 to 1000000000"),
            ("log-std", 6, "-20 to 5"),
            ("beta2", 1, "0 to 0.999999"),
            ("adam-epsilon", 0, "1e-12 to 1"),
            ("hidden", "0,3", "1 to 1024 units"),
            ("recurrent", -1, "0 to 1024 units"),
            ("recurrent", 1025, "0 to 1024 units"),
            ("seed", -1, "at least 0"),
            ("threads", 0, "1 to 1024 threads"),
            ("lanes", 3, "1, 8 or 16"),
        ]:
            with self.subTest(option=option, value=value):
                self.refused(2, [f"--{option}", str(value).split(",")[0], allowed], "cartpole", f"--{option}={value}")

    def test_sizes_that_do_not_fit(self):
        for words, *args in [
            (["--shards 48", "power of two"], "--envs=48", "--shards=48"),
            (["--envs 100", "multiple of --shards 64"], "--envs=100", "--shards=64"),
            (["--minibatches 3", "64 steps", "--envs 64 / --shards 32", "--rollout 32"],
             "--envs=64", "--shards=32", "--rollout=32", "--minibatches=3"),
            (["--minibatches 4", "divide a shard's 2 envs", "--envs 64 / --shards 32", "--recurrent"],
             "--envs=64", "--shards=32", "--minibatches=4", "--recurrent=8"),
            (["--rollout 4097", "at most 4096 steps", "--recurrent"],
             "--envs=8", "--rollout=4097", "--minibatches=1", "--recurrent=8"),
            (["--steps 1000", "takes 2048"], "--envs=64", "--rollout=32", "--minibatches=4", "--steps=1000"),
            (["--envs 1048576 x --rollout 4096", "at most 2147483647"], "--envs=1048576", "--rollout=4096"),
            (["--steps", "at most 134217727 updates"], "--envs=1", "--rollout=1", "--minibatches=1", "--steps=1000000000"),
        ]:  # fmt: skip
            with self.subTest(args=args):
                self.refused(2, words, "cartpole", *args)

    def test_shards_follow_the_envs(self):
        for envs, shards in [(1, 1), (8, 8), (96, 32), (64, 64), (4096, 64)]:
            out = self.call("cartpole", "--dry-run", "--device=cpu", "--bind=none", f"--envs={envs}", "--rollout=64",
                            "--minibatches=4", "--steps=10000000").out  # fmt: skip
            self.assertIn(f"{envs} envs ({shards} shards)", out)
        for envs, shards in [(4, 1), (64, 16), (4096, 64)]:  # a shard has an env for each minibatch
            out = self.call("cartpole", "--dry-run", "--device=cpu", "--bind=none", f"--envs={envs}", "--rollout=64",
                            "--minibatches=4", "--steps=10000000", "--recurrent=8").out  # fmt: skip
            self.assertIn(f"{envs} envs ({shards} shards)", out)

    def test_resume_and_eval(self):
        run = self.unbroken("cartpole")["run"]
        self.refused(2, ["--lr", "--resume"], "--resume", run, "--lr=0.1")
        self.refused(2, ["--envs", "--eval"], "--eval", run, "--envs=64")
        self.refused(2, "one of them", "--eval", run, "--resume", run)
        self.refused(2, ["is of cartpole, not of pendulum"], "pendulum", "--resume", run)
        self.refused(2, [f"--steps {UPDATE_STEPS}", str(12 * UPDATE_STEPS)], "--resume", run,
                     f"--steps={UPDATE_STEPS}", "--device=cpu", "--bind=none")  # fmt: skip
        self.refused(2, ["holds a run already", "--resume"], "cartpole", "--out", run, "--device=cpu", "--bind=none")
        self.refused(1, ["nothing", "No such file"], "--eval", self.folder / "nothing")

    def test_annealed_runs_keep_their_length(self):
        for flag, what in [("--lr-anneal", "learning rate"), ("--clip-anneal", "clip")]:
            run = self.good(*fixed("cartpole"), flag, "--out", self.path())["run"]
            more = 2 * 12 * UPDATE_STEPS
            self.refused(2, [f"--steps {more}", what, str(12 * UPDATE_STEPS)], "--resume", run, f"--steps={more}",
                         "--device=cpu", "--bind=none")  # fmt: skip
        run = self.unbroken("cartpole", updates=6)["run"]
        more = self.good("--resume", run, f"--steps={12 * UPDATE_STEPS}", "--device=cpu", "--bind=none")
        self.assertEqual(self.unbroken("cartpole")["params_hash"], more["params_hash"])


class Files(PporunTest):
    def refuses_checkpoint(self, run, file, words):
        """--resume and --eval end with status 1 and do not touch the file."""
        self.refused(1, words, "--resume", run, "--quiet", "--device=cpu", "--bind=none")
        self.refused(1, words, "--eval", run, "--quiet", "--device=cpu", "--bind=none")
        self.assertTrue(file.exists())

    def test_damaged_checkpoints(self):
        run = self.unbroken("cartpole")["run"]
        file = self.folder / run / "checkpoint" / "gen-00000012.safetensors"
        good = file.read_bytes()
        for length in [0, 7, 100, len(good) // 2, len(good) - 1]:
            with self.subTest(length=length):
                file.write_bytes(good[:length])
                self.refuses_checkpoint(run, file, file.name)
        for at in [0, 9, len(good) - 1] + [self.random.randrange(len(good)) for _ in range(8)]:
            with self.subTest(flipped=at):
                bad = bytearray(good)
                bad[at] ^= 1 << self.random.randrange(8)
                file.write_bytes(bad)
                self.refuses_checkpoint(run, file, file.name)
        file.write_bytes(good)
        self.good("--resume", run, "--device=cpu", "--bind=none")

    def test_checkpoint_of_another_run(self):
        run = self.unbroken("cartpole")["run"]
        file = self.folder / run / "checkpoint" / "gen-00000012.safetensors"
        for env, changes in [("acrobot", {}), ("cartpole", {"hidden": "8,16"}), ("cartpole", {"activation": "relu"})]:
            with self.subTest(env=env, changes=changes):
                other = self.unbroken(env, **changes)["run"]
                shutil.copy(f"{other}/checkpoint/{file.name}", file)
                self.refuses_checkpoint(run, file, [f"'{env} ", "'cartpole 4-16-8-2 tanh, separate critic'"])
        other = self.good(*fixed("cartpole"), "--shared", "--out", self.path())["run"]
        shutil.copy(f"{other}/checkpoint/{file.name}", file)
        self.refuses_checkpoint(run, file, "'cartpole 4-16-8-2 tanh, shared critic'")
        other = self.unbroken("cartpole", envs=32, rollout=16)["run"]
        shutil.copy(f"{other}/checkpoint/{file.name}", file)
        self.refuses_checkpoint(run, file, "envs: U32 [32,")

    def test_edited_settings_are_another_run(self):
        run = self.folder / self.unbroken("pendulum", updates=6)["run"]
        config = run / "config.json"
        sane = config.read_text(encoding="utf-8")
        for name, value in [("seed", 99), ("lr", 0.5), ("gamma", 0.9), ("shards", 4)]:
            config.write_text(json.dumps({**json.loads(sane), name: value}), encoding="utf-8")
            before = tree(run / "checkpoint")
            done = self.call("--resume", run, "--device=cpu", "--bind=none", "--quiet")
            self.assertEqual(2, done.code, done)
            self.assertIn(f"config.json has {name} = ", done.err)
            self.assertEqual(before, tree(run / "checkpoint"))

    def test_settings_of_esrun_are_refused(self):
        config = self.folder / "config.json"
        config.write_text('{"tool": "esrun"}', encoding="utf-8")
        self.refused(2, "another tool, 'esrun'", "cartpole", "--config", config)


class Infinite(PporunTest):
    def test_a_simulator_that_blows_up(self):
        """The message names env, step and field, and is the same for any threads and lanes."""
        messages = set()
        for changes in [{"threads": 1}, {"threads": 2}, {"lanes": 1}, {"lanes": 8}, {"isa": "baseline"}]:
            done = self.call(*fixed("pendulum", **changes), "--set=dt_s=3e38", "--set=max_speed_radps=3e38", "--quiet",
                             "--out", self.path())  # fmt: skip
            self.assertEqual(1, done.code, done)
            messages.add(done.err)
        self.assertEqual(1, len(messages), messages)
        self.assertRegex(messages.pop(), r"^pporun: pendulum: .*env \d+.*step \d+.*theta.*\n$")


if __name__ == "__main__":
    harness.main()
