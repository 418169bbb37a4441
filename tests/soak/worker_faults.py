#!/usr/bin/env python3
"""faults.sh's work on several workers: TRIALS (200) faults at random moments of runs of random sizes. Every fault must have
landed, and every run must end with the parameters and metrics of one that nothing happened to."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for folder in ["", "es", "ppo"]:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / folder))
import esrun_harness  # noqa: E402
import pporun_harness  # noqa: E402
from cli_harness import SEED, SIMULATORS, program, rows  # noqa: E402
from workers_harness import SmallDisk, WorkersRun, faults_program, shared_memory, state  # noqa: E402

TRIALS = int(os.environ.get("TRIALS", "200"))
STEPS = 12  # generations or updates
ROLES = ["evaluator", "follower", "trainer", "master"]


def signal_all(pids, number):
    for pid in pids:
        os.kill(pid, number)


def kill_some(*roles):
    """Kills a random number, at least one, of the processes of these roles."""

    def hurt(run, draw):
        pids = [pid for role in roles for pid in run.pids(role)]
        chosen = draw.sample(pids, draw.randint(1, len(pids)))
        signal_all(chosen, signal.SIGKILL)
        return lambda done: all(f"(process {pid}) was ended by signal 9" in done["stderr"] for pid in chosen)

    return hurt


def stop_one(role):
    def hurt(run, draw):
        pid = draw.choice(run.pids(role))
        os.kill(pid, signal.SIGSTOP)
        run.wait_until(lambda: state(pid) == "T", "the process has stopped")
        return lambda done: state(pid) is None

    return hurt


def stop_for_a_moment(run, draw):
    """A process that sleeps for a while and goes on: whatever was thought of it meanwhile."""
    pid = draw.choice([pid for role in ROLES for pid in run.pids(role)])
    os.kill(pid, signal.SIGSTOP)
    run.wait_until(lambda: state(pid) == "T", "the process has stopped")
    time.sleep(draw.uniform(0, 3))
    if state(pid) is not None:
        os.kill(pid, signal.SIGCONT)
    return lambda done: True


def kill_twice(*roles):
    """Once more in what the first time has brought about, such as a group that is being formed."""

    def hurt(run, draw):
        kill_some(*roles)(run, draw)
        time.sleep(draw.uniform(0, 0.4))
        pids = run.wait_until(lambda: [pid for role in roles for pid in run.pids(role)], "processes to kill")
        signal_all([draw.choice(pids)], signal.SIGKILL)
        return lambda done: done["stderr"].count("was ended by signal 9") >= 2

    return hurt


def kill_all(run, draw):
    run.kill()
    return None


def fill_disk(run, draw):
    """Until the lead cannot write a checkpoint, or a row: the run ends, and goes on once there is room."""
    while run.process.poll() is None:
        run.disk.fill()
        time.sleep(0.001)
    _, err = run.process.communicate()
    if run.process.returncode != 1 or "No space left on device" not in err:
        raise AssertionError(f"status {run.process.returncode} on a full disk: {err}")
    run.disk.free()


def join_one(run, draw):
    """An evaluator or a follower that joins in mid-generation and may leave again."""
    call = [run.tool, "--join", run.out, "--threads=1", "--bind=none", "--device=cpu", "--quiet"]
    call += draw.choice([[], ["--role=follower"]])
    joined = subprocess.Popen(call, env={**os.environ, "SHOAL_TEST_SLOW_MS": "20"}, stderr=subprocess.DEVNULL)
    pid = joined.pid
    run.wait_for_status(lambda s: any(w["pid"] == pid for w in s["workers"]), "the join")
    if draw.random() < 0.5:
        joined.send_signal(draw.choice([signal.SIGTERM, signal.SIGKILL]))
    return lambda done: joined.wait(90) in (0, -signal.SIGKILL)


FAULTS = {
    "kill evaluators": kill_some("evaluator"),
    "kill the trainer": kill_some("trainer"),
    "kill the master": kill_some("master"),
    "kill followers": kill_some("follower"),
    "kill trainers": kill_some("trainer", "follower"),
    "kill any": kill_some("evaluator", "follower", "trainer", "master"),
    "kill trainers twice": kill_twice("trainer", "follower"),
    "kill all": kill_all,
    "fill the disk": fill_disk,
    "stop an evaluator": stop_one("evaluator"),
    "stop the trainer": stop_one("trainer"),
    "stop a follower": stop_one("follower"),
    "stop the master": stop_one("master"),
    "stop for a moment": stop_for_a_moment,
    "join": join_one,
    "spin": None,
    "crash": None,
}


def of_es(draw, env, kind):
    """A run's arguments, and those that say which workers it has."""
    args = esrun_harness.fixed(env, threads=1, generations=STEPS, checkpoint_every=draw.choice([1, 3, 5]))
    workers, trainers = draw.randint(2, 5), 1
    if "follower" in kind or "trainers" in kind or draw.random() < 0.6:
        trainers = draw.randint(2, workers)
    if "evaluator" in kind:
        workers = max(workers, trainers + 1)
    return args, [f"--workers={workers}", f"--trainers={trainers}"]


def of_ppo(draw, env, kind):
    args = pporun_harness.fixed(env, threads=1, updates=3 * STEPS, checkpoint_every=draw.choice([1, 3, 5]))
    return args, [f"--workers={draw.randint(2, 5)}"]


# Faults of evaluators, and those from within, are of ES.
TOOLS = {"esrun": (of_es, list(FAULTS)),
         "pporun": (of_ppo, [k for k in FAULTS if "evaluator" not in k and FAULTS[k] is not None])}  # fmt: skip


def reference(folder, tool, args, env):
    out = folder / f"reference-{tool}-{env}"
    call = [program(tool), *args, "--json", "--quiet", "--out", out]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    return done.stdout.split('"params_hash": "')[1][:16], out


def trial(folder, number, kind, draw, references):
    """One fault; what went wrong, or None."""
    env = draw.choice(SIMULATORS)
    tool = draw.choice([tool for tool, (_, kinds) in TOOLS.items() if kind in kinds])
    args, workers_args = TOOLS[tool][0](draw, env, kind)
    out, marker = folder / f"run-{number}", folder / f"marker-{number}"
    environment = {"SHOAL_TEST_SLOW_MS": "20"}
    if FAULTS[kind] is None:
        environment["SHOAL_TEST_FAULT"] = f"{kind}:{draw.randrange(2, 8)}:{draw.randrange(32)}:{marker}"
    disk = SmallDisk() if kind == "fill the disk" else None
    if disk is not None:
        if not disk.is_there:
            raise AssertionError("mounting a small tmpfs needs root and mount namespaces")
        disk.FREE_BYTES = 4096  # the policies are small
        out = disk.path / "run"
    limit = ["--hang-limit=1"] if disk is None else []  # nothing hangs
    run = WorkersRun(out, [*args, *workers_args, *limit], faults_program(tool), environment)
    run.disk = disk
    try:
        run.wait_for_workers(int(workers_args[0].partition("=")[2]))
        run.wait_for_rows(1)
        time.sleep(draw.uniform(0, 0.5))
        landed = FAULTS[kind](run, draw) if FAULTS[kind] else lambda done: marker.exists()
        if landed is None:
            again = ["--resume", str(out), *workers_args, "--threads=1", "--bind=none", "--device=cpu"]
            run = WorkersRun(out, again, program(tool))
            landed = lambda done: True  # noqa: E731
        done = run.end()
        found = [row["return_mean"] for row in rows(out)]
    finally:
        if run.process.poll() is None:
            run.kill()
        if disk is not None:
            disk.close()
    if not landed(done):
        return f"the fault did not land: {done}"
    if kind == "crash":  # another run: a member ranks last; the tests compare it
        return None if done["workers"]["lost_items"] == 1 else f"nothing was lost: {done}"
    if (tool, env) not in references:
        references[tool, env] = reference(folder, tool, args, env)
    expected, whole = references[tool, env]
    if done["params_hash"] != expected:
        return f"{done['params_hash']} instead of {expected}: {done}"
    return None if found == [row["return_mean"] for row in rows(whole)] else f"other rows: {found}"


def main():
    print(f"SHOAL_TEST_SEED={SEED}")
    draw = random.Random(SEED)
    folder = Path(tempfile.mkdtemp(prefix="shoal-faults-", dir=esrun_harness.TEMPORARY))
    before, references, failures, figures = shared_memory(), {}, 0, dict.fromkeys(FAULTS, 0)
    for number in range(TRIALS):
        kind = list(FAULTS)[number % len(FAULTS)]
        try:
            wrong = trial(folder, number, kind, draw, references)
        except AssertionError as error:
            wrong = str(error)
        figures[kind] += 1
        if wrong:
            failures += 1
            print(f"trial {number}, {kind}: {wrong}; kept in {folder / f'run-{number}'}", flush=True)
        else:
            shutil.rmtree(folder / f"run-{number}", ignore_errors=True)
    for kind, count in figures.items():
        print(f"{kind:<24}{count:>6}")
    print(f"{'failures':<24}{failures:>6}")
    print(f"{'payloads left':<24}{len(shared_memory() - before):>6}", flush=True)
    if failures == 0:
        shutil.rmtree(folder)
    return 1 if failures > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
