#!/usr/bin/env python3
"""esrun with workers that come and go as the run wants them: by a hook, which may fail, and between bounds."""

import os
import re
import signal
import subprocess
from pathlib import Path

import esrun_harness as harness
from esrun_harness import ESRUN, ESRUN_FAULTS, WorkersTest

from workers_harness import PATIENCE_S, state

# Starts as many workers as are missing, on this host, beside those that it has started and that may not have joined yet.
STARTS = """
there=1
for p in $(cat pids); do
    if grep -qs "^State:[[:space:]][^ZX]" "/proc/$p/status"; then there=$((there + 1)); fi
done
while [ "$there" -lt "$SHOAL_WANTED" ]; do
    "$SHOAL_PROGRAM" --join "$SHOAL_JOIN" --secret "$SHOAL_SECRET_FILE" --threads=1 --bind=none --device=cpu >>log 2>&1 &
    echo $! >>pids
    there=$((there + 1))
done
"""


class ScaleTest(WorkersTest):
    FOR_EVER = {"generations": 1_000_000, "test_every": 1_000_000}  # until the test ends it
    SPARE = {"pop": 4, "episodes": 1}  # two pairs: more than two workers only wait

    def hook(self, script):
        """A command that notes each call, its environment among it, and runs the script."""
        path = self.path("hook")
        path.write_text(f'cd "{self.folder}"\ntouch pids\n'
                        f'echo "$SHOAL_WORKERS $SHOAL_WANTED $SHOAL_REASON" >>calls\nenv >>environment\n{script}')
        return f"--scale-hook=. {path}"

    def lines(self, name):
        """Of a file that a hook has written, by now."""
        try:
            return (self.folder / name).read_text().splitlines()
        except OSError:
            return []

    def calls(self, *reasons):
        """Calls so far for one of the reasons: (workers, wanted)."""
        words = [line.split() for line in self.lines("calls")]
        return [(int(there), int(wanted)) for there, wanted, reason in words if reason in reasons]

    def ends_as_alone(self, run, **changes):
        """Ctrl-C: the parameters are those of a run by one process of as many generations."""
        run.process.send_signal(signal.SIGINT)
        done = run.end()
        self.assertEqual("stopped", done["outcome"], done)
        expected = self.reference(**{**self.FOR_EVER, **changes, "generations": done["generations"]})
        self.assertEqual(expected["params_hash"], done["params_hash"], done)
        self.same_rows(expected["run"], run.out, tests_may_lack=True)
        return done

    def start_evaluator(self, run, *more):
        call = [ESRUN_FAULTS, "--join", run.out, "--threads=1", "--bind=none", "--device=cpu", *more]
        process = subprocess.Popen(call, stderr=subprocess.PIPE, text=True, cwd=self.folder, env={**os.environ, **self.SLOW})
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process


class Hook(ScaleTest):
    """Hooks that do what they are asked for."""

    def test_it_brings_workers(self):
        """Too few at first, busy then, and one that is lost; all is done by a hook, and nothing is known of the secret."""
        secret = "a secret of somebody's own making"
        run = self.begin(*self.args(**self.FOR_EVER), "--min-workers=2", "--max-workers=3", "--scale-interval=1", self.hook(STARTS),
                         workers=1, environment={**self.SLOW, "SHOAL_SECRET": secret})  # fmt: skip
        run.wait_until(lambda: self.calls("min"), "a call for the least")
        self.assertEqual((1, 2), self.calls("min")[0])
        run.wait_until(lambda: self.calls("busy"), "a call for more")
        self.assertEqual((2, 3), self.calls("busy")[0])
        seen = run.wait_until(lambda: (s := run.status_by(secret)) and s["present"] == 3 and s, "three workers")
        self.assertEqual((3, 2, 3), (seen["wanted"], seen["min_workers"], seen["max_workers"]), seen)
        before = len(self.calls("lost", "busy", "min"))
        os.kill(int(self.lines("pids")[-1]), signal.SIGKILL)
        run.wait_until(lambda: len(self.calls("lost", "busy", "min")) > before, "a call for the one that was lost")
        self.assertEqual((2, 3), self.calls("lost", "busy", "min")[-1])
        run.wait_until(lambda: (s := run.status_by(secret)) and s["present"] == 3, "three workers again")
        master = (run.out / "master").read_text().strip()
        done = self.ends_as_alone(run)
        self.assertGreater(done["workers"]["other_items"], 0)
        told = dict(line.split("=", 1) for line in self.lines("environment") if "=" in line)
        for name, value in {"SHOAL_MIN_WORKERS": "2", "SHOAL_MAX_WORKERS": "3", "SHOAL_JOIN": master, "SHOAL_RUN": str(run.out),
                            "SHOAL_RUN_NAME": run.out.name, "SHOAL_PROGRAM": os.path.realpath(ESRUN_FAULTS)}.items():  # fmt: skip
            self.assertEqual(value, told[name])
        self.assertEqual(secret, Path(told["SHOAL_SECRET_FILE"]).read_text().strip())
        self.assertNotIn(secret, (self.folder / "environment").read_text())
        self.assertIn("the run is over after", (self.folder / "log").read_text())

    def scaled_down(self, script, *interval):
        run = self.begin(*self.args(**self.FOR_EVER, **self.SPARE), "--max-workers=5", *interval, self.hook(script), workers=2,
                         environment=self.SLOW)  # fmt: skip
        run.wait_for_workers(2)
        joined = [self.start_evaluator(run) for _ in range(3)]
        (self.folder / "pids").write_text("\n".join(str(p.pid) for p in joined) + "\n")
        there, wanted = run.wait_until(lambda: self.calls("idle"), "a call for fewer")[0]
        self.assertEqual((there + 1) // 2, wanted)
        return run, joined

    def test_it_takes_workers_away(self):
        run, joined = self.scaled_down("for p in $(head -n $((SHOAL_WORKERS - SHOAL_WANTED)) pids); do kill $p; done",
                                       "--scale-interval=3")  # fmt: skip
        for process in joined[:2]:
            _, err = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(0, process.returncode, err)
            self.assertRegex(err, r"esrun: stopped after \d+ members")
        seen = run.wait_for_status(lambda s: s["failures"]["leaves"] >= 2, "two that have left")
        self.assertEqual((0, 0), (seen["failures"]["deaths"], seen["failures"]["dismissals"]), seen)
        self.ends_as_alone(run, **self.SPARE)

    def test_those_that_nobody_takes_away_are_asked_to_leave(self):
        """Which is what a hook for sbatch leaves to the run: they hand their leases back."""
        run, joined = self.scaled_down("", "--scale-interval=1")
        run.wait_until(lambda: sum(process.poll() is not None for process in joined) >= 2, "two that have left")
        for process in joined:
            if process.poll() is not None:
                err = process.stderr.read()
                self.assertEqual(0, process.returncode, err)
                self.assertRegex(err, r"esrun: asked to leave: \d workers are enough; after \d+ members")
        seen = run.wait_for_status(lambda s: s["failures"]["leaves"] >= 2, "two that have left")
        self.assertEqual(0, seen["failures"]["deaths"], seen)
        self.assertGreaterEqual(seen["failures"]["dismissals"], 2)
        self.ends_as_alone(run, **self.SPARE)


class Trainers(ScaleTest):
    def test_trainers_stay(self):
        """The evaluator goes, and no follower, however idle they are."""
        run = self.begin(*self.args(**self.FOR_EVER, **self.SPARE), "--trainers=3", "--max-workers=4", "--scale-interval=1", self.hook(""),
                         workers=3, environment=self.SLOW)  # fmt: skip
        run.wait_for_workers(3)
        _, err = self.start_evaluator(run).communicate(timeout=PATIENCE_S)
        self.assertRegex(err, r"esrun: asked to leave: 3 workers are enough; after \d+ members")
        rows = run.rows()
        run.wait_for_rows(rows + 2)
        self.assertEqual([3] * len(self.calls("idle")), [wanted for _, wanted in self.calls("idle")])
        seen = run.wait_for_status(lambda s: s["present"] == 3, "three trainers")
        self.assertEqual((3, 1), (seen["trainers"], seen["failures"]["dismissals"]), seen)
        self.ends_as_alone(run, **self.SPARE)


class Failures(ScaleTest):
    """Hooks that do not: the run goes on, and people are told."""

    def failed(self, script, interval, happens):
        """What a run of two workers, which wants more, says by the time that this has happened."""
        run = self.begin(*self.args(**self.FOR_EVER), "--max-workers=4", f"--scale-interval={interval}", self.hook(script), workers=2,
                         environment=self.SLOW)  # fmt: skip
        run.wait_until(lambda: happens(run), "what the hook does")
        rows = run.rows()
        run.wait_for_rows(rows + 2)
        return self.ends_as_alone(run)["stderr"]

    def test_a_status(self):
        err = self.failed("exit 3", 0.2, lambda run: len(self.calls("busy")) >= 3)
        self.assertRegex(err, r"esrun: --scale-hook ended with status 3; it was to make \d workers of 2\. The next call is in 0\.2 s")
        self.assertRegex(err, r"The next call is in 0\.4 s")  # and later each time

    def test_no_such_command(self):
        err = self.failed("exec /not/there", 0.2, lambda run: len(self.calls("busy")) >= 2)
        self.assertIn("--scale-hook ended with status 127", err)
        self.assertIn("/not/there", err)

    def test_it_hangs(self):
        """It is ended with all that it has started and waits for."""
        def happens(run):
            pids = self.lines("pids")
            return len(pids) >= 2 and all(state(int(pid)) is None for pid in pids[:2])

        err = self.failed('trap "" TERM; echo $$ >>pids; sleep 1000 & echo $! >>pids; wait; wait', 0.5, happens)
        self.assertIn("--scale-hook took more than 1 s and was ended", err)

    def test_it_is_ended_with_the_run(self):
        run = self.begin(*self.args(**self.FOR_EVER), "--max-workers=4", "--scale-interval=5", self.hook("echo $$ >>pids; sleep 1000"),
                         workers=2, environment=self.SLOW)  # fmt: skip
        (pid,) = run.wait_until(lambda: self.lines("pids"), "the hook")
        self.ends_as_alone(run)
        self.assertIsNone(state(int(pid)))


class Bounds(ScaleTest):
    def test_more_than_the_most_are_asked_to_leave(self):
        """Without a hook."""
        run = self.begin(*self.args(**self.FOR_EVER), "--max-workers=2", "--hang-limit=2", workers=2, environment=self.SLOW)
        run.wait_for_workers(2)
        joined = self.start_evaluator(run, "--dismissal-status=76")
        _, err = joined.communicate(timeout=PATIENCE_S)
        self.assertEqual(76, joined.returncode, err)
        self.assertRegex(err, r"esrun: asked to leave: 2 workers are the most \(--max-workers\); after \d+ members\n$")
        says = re.compile(r", 2 workers \(at least 1, at most 2\)\n")
        run.wait_until(lambda: says.search(self.call("--status", run.out).out), "a status of two workers")
        self.ends_as_alone(run)

    def test_people_are_told_who_is_missing(self):
        expected = self.reference()
        out = self.path()
        call = [ESRUN, *self.args(), "--min-workers=2", "--bind-address=tcp://127.0.0.1:*", "--out", out]
        with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder) as process:
            lines = []
            while not lines or "nothing is computed" not in lines[-1]:
                lines.append(process.stderr.readline())
                self.assertNotEqual("", lines[-1], lines)
            self.assertEqual("esrun: 1 of 2 workers is there: nothing is computed until 1 more has come\n", lines[-1])
            self.assertIn("(at least 2, waits for 1 more)", self.call("--status", out).out)
            joined = subprocess.Popen([ESRUN, "--join", out, "--threads=1", "--bind=none", "--device=cpu", "--quiet"])
            text, err = process.communicate(timeout=PATIENCE_S)
            self.assertEqual(0, process.returncode, err)
            self.assertEqual(0, joined.wait(PATIENCE_S))
        self.same_rows(expected["run"], out)
        self.assertIn(expected["params_hash"], text)

    def test_usage(self):
        hook = "--scale-hook=true"
        for words, args in [
            (["--max-workers 2", "--min-workers 3"], ["--min-workers=3", "--max-workers=2", "--workers=2", "--bind-address=tcp://*:*"]),
            (["--max-workers 2", "starts with 4 workers"], ["--max-workers=2", "--workers=4"]),
            (["--max-workers 3", "--trainers 4"], ["--max-workers=3", "--workers=2", "--trainers=4", "--bind-address=tcp://*:*"]),
            (["--scale-hook needs --max-workers"], [hook]),
            (["--scale-interval", "--scale-hook"], ["--scale-interval=5"]),
            (["--scale-interval", "0.1"], ["--scale-interval=0", "--max-workers=4", hook]),
            (["--max-workers", "65536"], ["--max-workers=70000"]),
            (["--dismissal-status", "--join"], ["--dismissal-status=76"]),
        ]:
            self.refused(2, words, "cartpole", *args)
        of_several = ["--max-workers=3", "--min-workers=1", "--collectives=gloo", "--hang-limit=3", "--trainers=1"]
        for option in [*of_several, "--patience=3", "--secret=x"]:
            self.refused(2, [option.partition("=")[0], "several workers", "--workers N"], "cartpole", option)
        for option in [*of_several, hook, "--scale-interval=3"]:
            self.refused(2, ["--join", "leave out", option.partition("=")[0]], "--join=tcp://127.0.0.1:1", option)
        for option in ["--workers=2", hook, "--bind-address=tcp://*:*"]:
            self.refused(2, ["--eval", "leave out", option.partition("=")[0]], "--eval=x", "--max-workers=3", option)
        for option in ["--hang-limit=3", "--pop=4"]:
            self.refused(2, ["--status", "leave out", option.partition("=")[0]], "--status=x", option)
        # A number of workers that was given may be one.
        done = self.good(*self.args(generations=1), *of_several, "--workers=1", "--out", self.path())
        self.assertNotIn("workers", done)
        self.refused(2, ["--min-workers 2: the run has 1 worker;"], "cartpole", "--min-workers=2")


class Forks(ScaleTest):
    def test_a_system_without_room_for_a_process(self):
        """The trainer and an evaluator are started when there is."""
        expected = self.reference()
        run = self.begin(*self.args(), "--min-workers=3", workers=3, environment={"SHOAL_TEST_FORKS": "2:3"})
        done = self.same_end(expected, run)
        for role in ["trainer", "evaluator"]:
            self.assertEqual(1, done["stderr"].count(f"esrun: cannot start the {role}: {os.strerror(11)}; it is tried again\n"), done)
        self.assertFalse(re.search("given up|signal", done["stderr"]), done)


if __name__ == "__main__":
    harness.main()
