#!/usr/bin/env python3
"""Bad input to esrun: what it shares with other trainers (cli_bad_input.py), and its own."""

import esrun_harness as harness
from cli_bad_input import FileTests, InfiniteTests, UsageTests
from esrun_harness import EsrunTest


class Usage(UsageTests, EsrunTest):
    COUNT, COUNT_RANGE = "pop", "2 to 1048576"
    TOO_SHORT = 5
    OTHER_TOOL = "pporun"

    def test_own_ranges(self):
        self.refuses_ranges([
            ("pop", 1, "2 to 1048576 members"),
            ("episodes", 65537, "1 to 65536"),
            ("sigma", 0, "1e-06 to 100"),
            ("sigma", "nan", "1e-06 to 100"),
        ])  # fmt: skip

    def test_own_values(self):
        self.refuses_values([
            (["--pop 7", "even"], "--pop=7"),
            (["sigma-min", "above"], "--sigma=0.001", "--sigma-min=0.1", "--sigma-decay=0.9"),
            (["at most"], "--pop=1048576", "--episodes=65536"),
        ])  # fmt: skip
        self.refuses_configs(self.folder / "config.json", [('{"pop": 5}', "even")])

    def test_own_settings_are_the_runs(self):
        run = self.unbroken("cartpole")["run"]
        self.refused(2, ["--weight-decay", "--resume"], "--resume", run, "--weight-decay=0.1")


class Files(FileTests, EsrunTest):
    POLICY, OTHER_POLICY = "cartpole 4-16-8-2 tanh", "cartpole 4-3-2 tanh"
    ENDLESS = {"generations": 100000}

    def test_edited_settings_are_another_run(self):
        blow_up = Infinite.BLOW_UP["pendulum"][0].split()
        self.refuses_edited_settings({"generations": 6}, [("set", blow_up), ("seed", 99), ("lr", 0.5)])


class Infinite(InfiniteTests, EsrunTest):
    WHERE = r"generation 0, env \d+ .*member \d+.*, step \d+: "
    WHERE_RETURN = r"member \d+, episode \d+: "


if __name__ == "__main__":
    harness.main()
