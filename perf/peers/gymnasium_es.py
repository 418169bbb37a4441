"""How far training moves away from the simulator: the same evolution strategy on CartPole, three times over, under Shoal's
profiler.

1. one      Gymnasium's environment, one at a time, under a trainer in Python and NumPy
2. batched  the same trainer, Gymnasium's vectorised CartPole: one environment for each member of the population
3. fused    esrun on the CPU: simulator and policy in one loop, in SIMD batches

usage: gymnasium_es.py FOLDER [BUILD]: makes FOLDER/one, FOLDER/batched and FOLDER/fused with the programs of BUILD (the
release build), and prints profreport's comparison; FOLDER/comparison.html has it as a page. gymnasium_es.txt is an example.
"""

import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

POP, GENERATIONS, HIDDEN, SIGMA, RATE, SEED, LIMIT = 64, 12, 32, 0.1, 0.05, 1, 500
SIZES = [(4, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 2)]
NAMES = ["one", "batched", "fused"]


class Trainer:
    """Antithetic perturbations, centred ranks, Adam: as es/es.h says."""

    def __init__(self, numpy, scope):
        self.np, self.scope = numpy, scope
        self.rng = numpy.random.default_rng(SEED)
        self.shapes = [shape for n, m in SIZES for shape in [(n, m), (m,)]]
        self.params = numpy.concatenate([self.rng.standard_normal(shape).ravel() / max(shape[0], 1) ** 0.5 if len(shape) == 2
                                         else numpy.zeros(shape) for shape in self.shapes])  # fmt: skip
        self.first, self.second, self.step = numpy.zeros_like(self.params), numpy.zeros_like(self.params), 0

    def weights(self, params):
        """Of one member, or of several by their first index."""
        parts, at = [], 0
        for shape in self.shapes:
            size = int(self.np.prod(shape))
            parts.append(params[..., at : at + size].reshape(params.shape[:-1] + shape))
            at += size
        return parts

    def generation(self, evaluate):
        np = self.np
        with self.scope("perturb", "learning"):
            noise = self.rng.standard_normal((POP // 2, self.params.size))
            members = self.params + SIGMA * np.concatenate([noise, -noise])
        returns = evaluate(members)
        with self.scope("update", "learning"):
            ranks = np.argsort(np.argsort(returns)) / (POP - 1) - 0.5
            gradient = (ranks[: POP // 2] - ranks[POP // 2 :]) @ noise / (POP * SIGMA)
            self.step += 1
            self.first = 0.9 * self.first + 0.1 * gradient
            self.second = 0.999 * self.second + 0.001 * gradient**2
            self.params = self.params + RATE * (self.first / (1 - 0.9**self.step)) / (
                np.sqrt(self.second / (1 - 0.999**self.step)) + 1e-8)  # fmt: skip
        return returns


def evaluate_one(trainer, gymnasium):
    """An evaluation of members one after the other."""
    np, scope = trainer.np, trainer.scope
    env = gymnasium.make("CartPole-v1")
    reset, step, act = scope("env reset", "simulation"), scope("env step", "simulation"), scope("act", "policy")

    def evaluate(members):
        returns = np.zeros(POP)
        for m in range(POP):
            w = trainer.weights(members[m])
            with reset:
                obs, _ = env.reset(seed=SEED + m)
            done = False
            while not done:
                with act:
                    y = np.tanh(obs @ w[0] + w[1])
                    y = np.tanh(y @ w[2] + w[3])
                    action = int(np.argmax(y @ w[4] + w[5]))
                with step:
                    obs, reward, terminated, truncated, _ = env.step(action)
                returns[m] += reward
                done = terminated or truncated
        return returns

    return evaluate


def evaluate_batched(trainer, gymnasium):
    """An evaluation of all members at once, until the last one's episode is over."""
    np, scope = trainer.np, trainer.scope
    envs = gymnasium.make_vec("CartPole-v1", num_envs=POP, vectorization_mode="vector_entry_point", vector_kwargs={})
    reset, step, act = scope("env reset", "simulation"), scope("env step", "simulation"), scope("act", "policy")

    def evaluate(members):
        w = trainer.weights(members)
        returns, alive = np.zeros(POP), np.ones(POP, dtype=bool)
        with reset:
            obs, _ = envs.reset(seed=SEED)
        for _ in range(LIMIT):
            with act:
                y = np.tanh(np.matmul(obs[:, None, :], w[0])[:, 0] + w[1])
                y = np.tanh(np.matmul(y[:, None, :], w[2])[:, 0] + w[3])
                actions = np.argmax(np.matmul(y[:, None, :], w[4])[:, 0] + w[5], axis=1)
            with step:
                obs, rewards, terminated, truncated, _ = envs.step(actions)
            returns += rewards * alive
            alive &= ~(terminated | truncated)
            if not alive.any():
                break
        return returns

    return evaluate


def train(kind, folder):
    """One run in Python, recorded. In a process of its own."""
    import gymnasium
    import numpy
    import shoal_scope

    trainer = Trainer(numpy, shoal_scope.scope)
    evaluate = {"one": evaluate_one, "batched": evaluate_batched}[kind](trainer, gymnasium)
    trainer.generation(evaluate)  # warm
    shoal_scope.start(folder, f"Python, Gymnasium {gymnasium.__version__}")
    shoal_scope.phase("train")
    for _ in range(GENERATIONS):
        with shoal_scope.scope("generation"):
            returns = trainer.generation(evaluate)
    shoal_scope.stop()
    print(f"{kind}: mean return of the last generation {returns.mean():.1f}", flush=True)


def main():
    folder, build = Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "build").resolve()
    environment = {**os.environ, "PYTHONPATH": str(build / "lib")}
    for kind in NAMES[:2]:
        subprocess.run([sys.executable, __file__, "--train", kind, folder / kind], check=True, env=environment)
    subprocess.run([build / "bin/esrun", "cartpole", f"--pop={POP}", f"--generations={GENERATIONS}", f"--hidden={HIDDEN},{HIDDEN}",
                    f"--seed={SEED}", "--no-stop-at-target", "--test-every=1000000", "--threads=1", "--device=cpu", "--profile",
                    "--quiet", f"--out={folder / 'fused'}"], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    report = [build / "bin/profreport", *NAMES, "--phase", "train"]
    subprocess.run([*report, "--html", "comparison.html"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    subprocess.run(report, check=True, cwd=folder)


if __name__ == "__main__":
    if sys.argv[1] == "--train":
        train(*sys.argv[2:4])
    else:
        main()
