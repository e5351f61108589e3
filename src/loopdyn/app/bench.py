"""Benchmark problems of the IFToMM library and ladders of growing size, with errors against independent solutions.

| name | problem | known solution |
|---|---|---|
| A01 | pendulum, 10 s | elliptic functions |
| A02, A02-40 | 2 square windows for 10 s, 40 for 20 s, which fold flat again and again | elliptic functions |
| A03 | Andrews' squeezer, 0.03 s | angle beta by quadrature of the energy with 30 digits, and it only |
| A04 | Bricard's linkage, 8.7 s | pose at the seventh quarter of its period, by quadrature with 30 digits |
| A05 | stiff flyball governor, 10 s | none: our own run by Radau IIA at a tolerance of 1e-12 |
| ladder-1, -10, -100 | ladders of 1, 10 and 100 loops, 1 s | none: energy only |
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ellipj

from loopdyn import library
from loopdyn.analysis.assembly import assemble
from loopdyn.errors import LoopdynError
from loopdyn.files import write_figure
from loopdyn.formulations.base import Formulation
from loopdyn.interchange.mjcf.reading import read_mjcf
from loopdyn.interchange.mjcf.writing import write_mjcf
from loopdyn.model.mechanism import Mechanism
from loopdyn.quantities.wording import nearest
from loopdyn.results.run import Run, Statistics, Trajectory
from loopdyn.run.locking import Phase
from loopdyn.run.simulate import simulate
from loopdyn.system.system import State, System

Array = NDArray[np.float64]
Error = Callable[[Run], float]

# Angle beta of Andrews' squeezer at 0.03 s, turned from its start: quadrature of the energy, 30 digits.
BETA = 15.81077119515371673 - -0.0617138900142764496
# Quarter of the period of Bricard's linkage of square rods in s, quadrature with 30 digits: P3 = (0, -sqrt(3)/2, -1/2).
QUARTER = 1.247927878422180722442
FINEST = 1e-12  # tolerance of loopdyn's reference run
OUTPUTS, FIRST = 101, 1e-3  # number of outputs of a run; fraction of it that is run before timing
STEP = 1e-3  # step of other engines, s


@dataclass(frozen=True)
class BenchCase:
    """Mechanism, duration of its run, and a function for the error of a run."""

    title: str
    build: Callable[[], Mechanism]
    time: float
    error: Error | None
    against: str


@dataclass(frozen=True)
class BenchResult:
    """Result of a run of a problem."""

    name: str
    title: str
    formulation: str
    status: str
    message: str
    error: float | None  # rad or m
    against: str
    energy_error: float | None  # unknown for other engines
    passages: int
    steps: int
    evaluations: int
    seconds: float


def _amplitude(t: Array, m: float) -> Array:
    """2 am(t/2 | m) for m < 0, by the imaginary-modulus transformation: sn and cn with parameter m/(m - 1)."""
    root = np.sqrt(1.0 - m)
    sn, cn, dn, _ = ellipj(root * t / 2.0, m / (m - 1.0))
    amplitude: Array = 2.0 * np.arctan2(sn / (root * dn), cn / dn)
    return amplitude


def _pendulum(run: Run) -> float:
    """theta'' = -g sin theta from rest at pi/2: sin(theta/2) = k cd(sqrt(g) t | k^2), k = sin(pi/4)."""
    _, cn, dn, _ = ellipj(np.sqrt(9.81) * run.path.t, 0.5)
    known = 2.0 * np.arcsin(np.sqrt(0.5) * cn / dn)
    return float(np.abs(np.pi / 2 - run.path.q[:, 0] - known).max())


def _windows(count: int) -> Error:
    """phi/2 = am(t/2 | -4 g a / I) of the cranks from the vertical, I = (N + 1)/3 + N, a = (N + 1)/2 + N."""

    def error(run: Run) -> float:
        m = -4 * 9.81 * ((count + 1) / 2 + count) / ((count + 1) / 3 + count)
        phi = _amplitude(run.path.t, m)
        path = run.point(run.system.bodies[run.system.n_bases], at=(0, 1, 0))["position"].values[:, :2]
        return float(np.abs(path - np.stack([np.sin(phi), np.cos(phi)], axis=1)).max())

    return error


def _squeezer(run: Run) -> float:
    return abs(float(run.path.q[-1, run.system.coordinates.index("O")]) - BETA)


def _bricard(run: Run) -> float:
    body = run.system.bodies[run.system.joints["P3"].child]
    end = run.point(body, at=(1, -1, 0))["position"].values[-1]
    return float(np.abs(end - (0.0, -np.sqrt(0.75), -0.5)).max())


def _beside_radau(run: Run) -> float:
    state = run.at(float(run.path.t[0]))
    span = (float(run.path.t[0]), float(run.path.t[-1]))
    fine = simulate(run.system, state, span, t_eval=run.path.t, integrator="stiff", rtol=FINEST, progress=False)
    return float(np.abs(fine.path.q - run.path.q).max())


def _ladder(count: int) -> BenchCase:
    return BenchCase(f"ladder, {count} loops", lambda: library.ladder(count), 1.0, None, "")


ELLIPTIC = "elliptic functions"
PROBLEMS: dict[str, BenchCase] = {
    "A01": BenchCase("pendulum", library.pendulum, 10.0, _pendulum, ELLIPTIC),
    "A02": BenchCase("2 windows", lambda: library.n_four_bar(2), 10.0, _windows(2), ELLIPTIC),
    "A02-40": BenchCase("40 windows", lambda: library.n_four_bar(40), 20.0, _windows(40), ELLIPTIC),
    "A03": BenchCase("Andrews' squeezer", library.andrews, 0.03, _squeezer, "quadrature"),
    "A04": BenchCase("Bricard", library.bricard, 7.0 * QUARTER, _bricard, "quadrature"),
    "A05": BenchCase("flyball governor", library.flyball, 10.0, _beside_radau, f"own Radau run, {FINEST:g}"),
    "ladder-1": _ladder(1),
    "ladder-10": _ladder(10),
    "ladder-100": _ladder(100),
}


def run_problem(name: str, formulation: str | Formulation = "auto", rtol: float = 1e-8) -> BenchResult:
    """Run one problem by one formulation.

    Examples
    --------
    >>> result = run_problem("A01")
    >>> result.status, result.error < 1e-5
    ('finished', True)
    """
    problem = PROBLEMS[chosen([name])[0]]
    system = problem.build().compile()
    state = assemble(system)
    times = np.linspace(0.0, problem.time, OUTPUTS)
    options: dict[str, Any] = {"formulation": formulation, "rtol": rtol, "progress": False}
    simulate(system, state, (0.0, FIRST * problem.time), **options)  # loads kernels, not timed
    run = simulate(system, state, (0.0, problem.time), t_eval=times, **options)
    error = problem.error(run) if problem.error is not None and run.status == "finished" else None
    count = run.statistics
    return BenchResult(
        name,
        problem.title,
        formulation if isinstance(formulation, str) else repr(formulation),
        run.status,
        run.message,
        error,
        problem.against,
        run.energy_error,
        len(run.passages),
        count.steps,
        count.evaluations,
        count.integrating,
    )


def run_by_mujoco(name: str, step: float = STEP) -> BenchResult:
    """Run a problem by MuJoCo, whose loops are springs, as stiff as it allows (a time constant of two steps).

    It uses its Runge-Kutta method of order 4 with fixed steps, from the same start, on the model of
    :func:`loopdyn.write_mjcf`.

    Raises
    ------
    LoopdynError
        If MuJoCo is not installed, or MJCF cannot hold the model.
    """
    problem = PROBLEMS[chosen([name])[0]]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.xml"
        write_mjcf(problem.build(), file)
        found = read_mjcf(file)
        import mujoco

        model = mujoco.MjModel.from_xml_path(str(file))
    system = found.compile()
    state = assemble(system)
    times = np.linspace(0.0, problem.time, OUTPUTS)
    between = max(1, round(problem.time / (OUTPUTS - 1) / step))
    model.opt.timestep = times[1] / between
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.eq_solref[:] = 2.0 * model.opt.timestep, 1.0
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = found.to_mujoco(system, state)
    states, seconds = [state], 0.0
    warnings: list[str] = []
    mujoco.set_mju_user_warning(warnings.append)  # it would write warnings to a file, and restart after a blow-up
    try:
        for t in times[1:]:
            begin = time.perf_counter()
            mujoco.mj_step(model, data, nstep=between)
            seconds += time.perf_counter() - begin
            states.append(found.from_mujoco(system, data.qpos, data.qvel, t))
    finally:
        mujoco.set_mju_user_warning(None)
    error = problem.error(_as_run(system, times, states)) if problem.error is not None and not warnings else None
    steps = between * (OUTPUTS - 1)
    title = f"MuJoCo RK4, {model.opt.timestep:.1e} s"
    status, message = ("failed", warnings[0]) if warnings else ("finished", "")
    ended = status, message, error, problem.against
    return BenchResult(name, problem.title, title, *ended, None, 0, steps, 4 * steps, seconds)


def _as_run(system: System, times: Array, states: Sequence[State]) -> Run:
    """Run from the states of another engine: positions and speeds only."""
    q, v = np.array([s.q for s in states]), np.array([s.v for s in states])
    path = Trajectory(times, q, v, np.zeros_like(v), np.zeros((len(times), 0)), np.zeros(len(times), np.int64))
    none = Statistics(0, 0, 0, 0.0, 0.0)
    return Run(system, path, "finished", "", (), none, {}, np.zeros(len(times)), (Phase(system),))


def chosen(names: Sequence[str]) -> list[str]:
    """Names of the chosen problems; "all" stands for all of them.

    Examples
    --------
    >>> chosen(["a02"])
    ['A02']
    """
    known = {name.lower(): name for name in PROBLEMS}
    if not names or "all" in names:
        return list(PROBLEMS)
    for name in names:
        if name.lower() not in known:
            raise LoopdynError(f"there is no benchmark '{name}'. {nearest(name, PROBLEMS)}")
    return [known[name.lower()] for name in names]


def table(results: Sequence[BenchResult]) -> list[list[str]]:
    """Rows of text; the first one has the headings."""
    rows = [["problem", "formulation", "error, rad or m", "against", "energy error", "passages", "steps", "seconds"]]
    for r in results:
        error = "" if r.error is None else f"{r.error:.1e}"
        ended = r.status if r.status == "finished" else f"{r.status}: {r.message}"
        rows.append(
            [
                f"{r.name} {r.title}",
                r.formulation,
                error if r.status == "finished" else ended,
                r.against if error else "",
                "" if r.energy_error is None else f"{r.energy_error:.1e}",
                str(r.passages),
                str(r.steps),
                f"{r.seconds:.2f}",
            ]
        )
    return rows


def as_data(results: Sequence[BenchResult]) -> list[dict[str, Any]]:
    """Plain numbers and text."""
    return [asdict(r) for r in results]


def plot(results: Sequence[BenchResult], path: str) -> None:
    """Plot errors over seconds, one mark per run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(r.formulation for r in results):
        known = [r for r in results if r.formulation == name and r.error]
        axes.loglog([r.seconds for r in known], [r.error for r in known], "o", label=name)
        for r in known:
            axes.annotate(r.name, (r.seconds, r.error), textcoords="offset points", xytext=(5, 3), fontsize=8)
    axes.set(xlabel="seconds of integration", ylabel="largest error in rad or m", title="IFToMM benchmark problems")
    axes.legend()
    write_figure(path, figure)
