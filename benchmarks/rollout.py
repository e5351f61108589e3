"""Many motions of one mechanism: `ld.rollout` beside `mujoco.rollout`, on one thread and on two, in one run.

    python benchmarks/rollout.py [--quick] [--json FILE] [--markdown FILE]

Samples are starts with other speeds, integrated over 1 s; both give the state at the end. MuJoCo's constraints are
soft: its error stops falling whatever the step. It runs with the setting, of those listed here, that has the smallest
error; loopdyn with the largest tolerance whose error is not larger. The error is that of the sample whose solution is
known, at the end (`benchmarks/simulate.py` says how). Throughput is samples per second; MuJoCo gets fewer samples,
since it takes minutes for all. A number of threads means little where other programs use the cores: the load is
printed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import peers
from common import Figure, command_line, save, settings, show
from simulate import STIFFEST, Problem, check_trees, problems

import loopdyn as ld

SAMPLES = {"four_bar": 1000, "stewart_6ups": 200}
SHARE = 25  # of the samples, one in this many is for MuJoCo
STEPS = (1e-3, 5e-4, 2e-4, 1e-4)  # s
TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
REPEATS = 10  # of loopdyn, which takes a second: what disturbs the machine slows two threads more than one
SLOWER, TWO_THREADS = 0.1, 1 / 1.7  # goals: time per sample over MuJoCo's, of two threads over one


def starts(problem: Problem, count: int) -> list[ld.State]:
    """Starts whose speeds are between 0.9 and 1.1 of those of the problem; the first is that of the problem."""
    factors = [1.0, *np.linspace(0.9, 1.1, count - 1)]
    return [ld.State(0.0, problem.start.q, x * problem.start.v) for x in factors]


class Ours:
    """Rollout of loopdyn with the largest tolerance that is accurate enough."""

    def __init__(self, problem: Problem, count: int, accurate: float):
        self.problem, self.states = problem, starts(problem, count)
        self.span = 0.0, problem.span
        for self.rtol in TOLERANCES:
            self.error = problem.error(*self.ends(self.states[:1], 1))
            if self.error <= accurate:
                return
        raise RuntimeError(f"no tolerance gives '{problem.name}' an error of {accurate:.1e}")

    def ends(self, states: list[ld.State], threads: int) -> tuple[np.ndarray, np.ndarray]:
        found = ld.rollout(
            self.problem.system, states, self.span, [self.problem.span], rtol=self.rtol, threads=threads, progress=False
        )
        if set(found["status"].values) != {"finished"}:
            raise RuntimeError(f"not all samples of '{self.problem.name}' finished")
        return found["q"].values[0, -1], found["v"].values[0, -1]

    def __call__(self, threads: int) -> int:
        self.ends(self.states, threads)
        return len(self.states)


class MuJoCos:
    """Rollout of MuJoCo with the step that gives the smallest error, constraints as stiff as it allows."""

    def __init__(self, problem: Problem, count: int, steps: tuple[float, ...]):
        import mujoco
        from mujoco import rollout

        mujoco.set_mju_user_warning(lambda _: None)
        self.problem, self.rollout, described = problem, rollout.rollout, problem.described
        engine = peers.MuJoCo(described, described.angles(problem.start.q), problem.start.v)
        self.model, data, self.place = engine.model, engine.data, engine.place
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
        full, v = mujoco.mjtState.mjSTATE_FULLPHYSICS, data.qvel.copy()
        self.first = np.zeros((count, mujoco.mj_stateSize(self.model, full)))
        for row, state in zip(self.first, starts(problem, count), strict=True):
            data.qvel[:] = v * (state.v / problem.start.v)[np.argmax(np.abs(problem.start.v))]
            mujoco.mj_getState(self.model, data, row, full)
        self.data = [mujoco.MjData(self.model) for _ in range(2)]
        errors = {h: self._error(h) for h in steps}
        self.step = min(errors, key=lambda h: errors[h])
        self.error = self._error(self.step)

    def _error(self, step: float) -> float:
        self.model.opt.timestep = step
        self.model.eq_solref[:] = STIFFEST * step, 1.0
        self.steps = round(self.problem.span / step)
        end = self._run(self.first[:1], 1)[0, -1]
        angles, rates = end[1 : 1 + self.model.nq], end[1 + self.model.nq : 1 + self.model.nq + self.model.nv]
        return self.problem.error(*self.problem.state(angles[self.place], rates[self.place]))

    def _run(self, first: np.ndarray, threads: int) -> np.ndarray:
        states, _ = self.rollout(self.model, self.data[:threads], first, nstep=self.steps)
        return states

    def __call__(self, threads: int) -> int:
        self._run(self.first, threads)
        return len(self.first)


def throughput(call: Callable[[int], int], repeats: int) -> dict[int, float]:
    """Samples per second on one thread and on two, which take turns; the most of all repeats."""
    best = {1: 0.0, 2: 0.0}
    for _ in range(repeats):
        for threads in best:
            begin = time.perf_counter()
            count = call(threads)
            best[threads] = max(best[threads], count / (time.perf_counter() - begin))
    return best


def measured(problem: Problem, quick: bool) -> list[Figure]:
    """Throughput of both engines, and ratios."""
    count, name = SAMPLES[problem.name] // (20 if quick else 1), problem.name
    repeats, figures, rates = 1 if quick else 3, [], {}
    accurate = 1e-6
    if find_spec("mujoco") is not None:
        check_trees(problem)
        peer = MuJoCos(problem, max(2, count // SHARE), STEPS[:1] if quick else STEPS)
        accurate, rates["mujoco"] = peer.error, throughput(peer, repeats)
        setting = f"RK4, step {peer.step:g} s, {len(peer.first)} samples"
        for threads, rate in rates["mujoco"].items():
            figures.append(
                Figure(f"{name}: mujoco.rollout, {setting}, threads: {threads}", rate, "1/s", None, peer.error)
            )
    ours = Ours(problem, count, accurate)
    rates["loopdyn"] = throughput(ours, 1 if quick else REPEATS)
    for threads, rate in rates["loopdyn"].items():
        setting = f"auto, rtol {ours.rtol:g}, {count} samples, threads: {threads}"
        figures.append(Figure(f"{name}: ld.rollout, {setting}", rate, "1/s", None, ours.error))
        if "mujoco" in rates:
            times = f"{name}: time of ld.rollout / mujoco.rollout, threads: {threads}"
            figures.append(Figure(times, rates["mujoco"][threads] / rate, "", SLOWER))
    two = rates["loopdyn"][1] / rates["loopdyn"][2]
    figures.append(Figure(f"{name}: time of ld.rollout on two threads / one", two, "", TWO_THREADS))
    return figures


def main(given: list[str] | None = None) -> int:
    options = command_line(__doc__ or "", given)
    chosen = [problem for problem in problems() if problem.name in SAMPLES]
    figures = [f for problem in chosen for f in measured(problem, options.quick)]
    facts = settings(["numba", "numpy", *(["mujoco"] if find_spec("mujoco") is not None else [])])
    show(figures, facts)
    save(figures, facts, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
