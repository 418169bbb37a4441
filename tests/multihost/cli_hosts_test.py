#!/usr/bin/env python3
"""One run on four hosts: the same parameters as on one, also where a link is cut or a worker dies."""

import json
import os
import signal
import subprocess
import sys

from hosts_harness import HostsTests

import esrun_harness
import pporun_harness
from cli_harness import program


class Hash(HostsTests, esrun_harness.WorkersTest):
    """Whoever computes, and wherever."""

    def test_evaluators(self):
        expected = self.reference()
        run = self.begin_here(*self.args(), "--min-workers=4")
        for host in self.hosts[1:]:
            self.join(run, host)
        done = self.same_end(expected, run)
        self.all_end_well()
        figures = done["workers"]
        self.assertGreater(figures["other_items"], 0)
        # Parameters go to each host once in a generation.
        self.assertGreater(figures["payload_messages"], 0)
        self.assertLessEqual(figures["payload_messages"], 3 * figures["rounds"])

    def trainers(self, count):
        expected = self.reference()
        run = self.begin_here(*self.args(), "--min-workers=4", f"--trainers={count}")
        for i, host in enumerate(self.hosts[1:], 1):
            (self.follow if i < count else self.join)(run, host)
        done = self.same_end(expected, run)
        self.all_end_well()
        self.assertGreater(done["workers"]["groups"], 0)
        self.assertGreater(done["workers"]["collective_bytes"], 0)
        self.assertEqual(count < 4, done["workers"]["payload_messages"] > 0, done)

    def test_two_trainers_and_two_evaluators(self):
        self.trainers(2)

    def test_four_trainers(self):
        self.trainers(4)


class Clocks(HostsTests, esrun_harness.WorkersTest):
    def report(self, *args):
        return subprocess.run([program("profreport"), *map(str, args)], capture_output=True, text=True, check=True).stdout

    def test_a_profile_has_one_time_axis(self):
        """A host whose clock is a thousand seconds ahead: what its worker did is put where it belongs."""
        folder = self.path("elsewhere")
        run = self.begin_here(*self.args(generations=30), "--min-workers=2", "--profile")
        ahead = ["unshare", "--time", "--monotonic=1000", "--fork"]
        self.join(run, self.hosts[1], "--profile", "--out", str(folder), by=ahead)
        done = self.same_end(self.reference(generations=30), run)
        self.assertGreater(done["workers"]["other_items"], 0)
        self.all_end_well()
        [trace] = (folder / "profile").iterdir()
        trace.rename(run.out / "profile" / trace.name)
        chrome = self.path("timeline")
        self.report(run.out, "--chrome", chrome)
        events = [e for e in json.loads(chrome.read_text())["traceEvents"] if e["ph"] in "BE"]
        times = {}
        for event in events:
            times.setdefault(event["pid"], []).append(event["ts"])
        self.assertEqual(2, len(times))
        (a, b), (c, d) = [(min(t), max(t)) for t in times.values()]
        self.assertLess(max(a, c), min(b, d))  # they overlap
        self.assertRegex(self.report(run.out), r"Clocks of different hosts agree to [\d.]+ [um]s")


class Ppo(HostsTests, pporun_harness.WorkersTest):
    """pporun's trainers."""

    def test_four_trainers(self):
        expected = self.reference()
        run = self.begin_here(*self.args(), "--min-workers=4")
        for host in self.hosts[1:]:
            self.follow(run, host)
        done = self.same_end(expected, run)
        self.all_end_well()
        self.assertGreater(done["workers"]["collective_bytes"], 0)


class Faults(HostsTests, esrun_harness.WorkersTest):
    """Each must have been noticed; the run goes on to the parameters of one without it."""

    LONG = {"generations": 100000, "test_every": 50, "checkpoint_every": 1000}

    def begin_slowly(self, followers):
        """A run of that many followers, and evaluators on the other hosts; the process on the last one."""
        slow = {"environment": self.SLOW, "tool": self.faulty}
        run = self.begin_here(*self.args(**self.LONG), f"--trainers={followers + 1}", **slow)
        for i, host in enumerate(self.hosts[1:], 1):
            last = (self.follow if i <= followers else self.join)(run, host, **slow)
        run.wait_for_workers(4)
        if followers > 0:
            run.wait_for_status(lambda s: s["trainers"] == followers + 1, "a group of all trainers")
        run.wait_for_rows(2 + self.random.randrange(5))
        return run, last

    def wait_for_news(self, run):
        rows = run.rows()
        run.wait_until(lambda: run.rows() >= rows + 2, "two generations")

    def stop(self, run):
        """Stops the run, which has come through its fault, and compares it with one that had none."""
        self.wait_for_news(run)
        run.process.send_signal(signal.SIGINT)
        done = run.end()
        self.assertEqual("stopped", done["outcome"])
        self.all_end_well()
        expected = self.reference(**{**self.LONG, "generations": done["generations"]})
        self.assertEqual(expected["params_hash"], done["params_hash"], done)
        self.assertEqual(expected["env_steps"], done["env_steps"])
        self.same_rows(expected["run"], run.out, tests_may_lack=True)

    @staticmethod
    def workers(status):
        return sum(w["state"] in ("works", "waits") for w in status["workers"])

    def print(self, text):
        print(f"{self.id()}: {text}", file=sys.stderr)

    def cut(self, followers):
        run, _ = self.begin_slowly(followers)
        last = self.hosts[-1]
        last.set_link("down")
        noticed_s = self.seconds_until(run, lambda s: self.workers(s) == 3, "the cut")
        self.print(f"a cut link was noticed in {noticed_s:.2f} s")
        self.wait_for_news(run)  # without the host that was cut off
        last.set_link("up")
        back_s = self.seconds_until(run, lambda s: self.workers(s) == 4, "the host's return")
        self.print(f"its worker was back {back_s:.2f} s after the link")
        self.stop(run)

    def test_cut_an_evaluator_off(self):
        self.cut(0)

    def test_cut_a_trainer_off(self):
        self.cut(3)

    def killed(self, followers):
        run, last = self.begin_slowly(followers)
        os.kill(last.pid, signal.SIGKILL)
        noticed_s = self.seconds_until(run, lambda s: s["failures"]["deaths"] == 1, "the death")
        self.print(f"a death was noticed in {noticed_s:.3f} s")
        self.joined.remove(last)
        last.communicate()
        self.assertEqual(-signal.SIGKILL, last.returncode)
        self.stop(run)

    def test_kill_an_evaluator(self):
        self.killed(0)

    def test_kill_a_trainer(self):
        self.killed(3)


if __name__ == "__main__":
    esrun_harness.main()
