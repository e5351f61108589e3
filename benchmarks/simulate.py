"""Whole simulations compared with MuJoCo, Pinocchio and, if installed, Exudyn in one run: time against error.

    python benchmarks/simulate.py [--quick] [--json FILE] [--markdown FILE] [--plot FILE]

Every engine integrates the same motions (see peers.py, which makes the models) with several sizes of steps or
tolerances. Each gives a point: seconds for the integration, error of the state at its end, gap of the loops, error of
the energy. Models are made, and loopdyn's solver prepared, before the clock starts; what loopdyn needs for that and for
labelled results is shown apart. Runs of all engines alternate and the shortest counts.

The error is the largest difference in a coordinate (rad or m) or, over the largest speed, in a speed. The judge is
none of the curves: the four-bar and the n-four-bar have solutions of their own (a table made with other equations; a
pendulum, since couplers of a parallelogram only translate); elsewhere it is loopdyn's run with the smallest tolerance,
and how far another formulation and the finest run of Pinocchio are from it is part of the table.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported: one core for all engines

import numpy as np
import peers
from common import Figure, command_line, save, settings, show
from scipy.integrate import solve_ivp

import loopdyn as ld

GOAL_ERROR, GOAL = 1e-5, 0.3  # error of the end state at which times are compared; ours over the best of the others
TIGHTEST = 1e-12  # rtol of the judge
SAME_TREE = 1e-9  # relative difference of the trees without loops, above which a comparison would mean nothing
PROXIMAL = (1e-10, 2)  # mu and iterations of Pinocchio: the fewest that bring the rows of these models to rounding
STEPS = (1e-1, 5e-2, 2e-2, 1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4)  # s
LOST = 1e6  # rad, m, per s: beyond it a run has diverged
LONG = 0.5  # seconds spent on repeating one run
FEWER = 5  # times as many simulations as packagings of their results
LARGE = 15  # bodies above which Exudyn's smallest steps are left out
STIFFEST = 2.0  # steps: the shortest time constant of constraints that MuJoCo allows

REFERENCE = Path(__file__).parents[1] / "tests" / "data" / "reference" / "four_bar" / "reference.csv"

FACTS = {
    "MuJoCo": "integrator RK4, mj_step(nstep) in C, solver Newton, tolerance 1e-8 and 100 iterations (defaults), "
    f"jacobian sparse, connect with solimp {peers.MUJOCO_HARDNESS}; 'default' has solref 0.02 1, 'stiff' has "
    f"solref {STIFFEST:g}*step 1, the shortest it allows",
    "Pinocchio": f"RK4 in Python over constraintDynamics, ProximalSettings(0, 0, {PROXIMAL[0]:g}, {PROXIMAL[1]}), "
    "LOCAL frames, no drift control",
    "Exudyn": "kinematic tree, loops closed by points (two rows where planar), generalised-alpha with its defaults, "
    "dense solver (sparse and modified Newton were no faster); other ways to model the same may be",
    "loopdyn": 'formulation "graph", drift="projection", atol=0, one output, at the end',
    "hinges": "a cut hinge is one point (3 rows) for MuJoCo and Pinocchio, 5 rows less the dependent ones for loopdyn; "
    "balls of the tree are three hinges in a row for the others",
}


@dataclass(frozen=True)
class Point:
    """One run: an engine with one setting."""

    case: str
    engine: str
    setting: str
    seconds: float
    error: float
    gap: float  # largest, of the loops at the end, m
    energy: float  # against that of the judge at the end, over the largest kinetic energy of start and end


@dataclass
class Problem:
    """A motion that all engines integrate."""

    name: str
    mechanism: ld.Mechanism
    span: float
    v: dict[str, float] | None = None
    springs: dict[str, tuple[float, float]] = field(default_factory=dict)
    exact: Callable[[Problem], tuple[np.ndarray, np.ndarray]] | None = None

    @cached_property
    def system(self) -> ld.System:
        return self.mechanism.compile()

    @cached_property
    def start(self) -> ld.State:
        return ld.assemble(self.system, v=self.v) if self.v else ld.assemble(self.system)

    @cached_property
    def described(self) -> peers.Mechanism:
        return peers.describe(self.system, self.springs)

    @property
    def nowhere(self) -> tuple[np.ndarray, np.ndarray]:
        """The state where a run that failed ends."""
        return np.full(self.system.nq, np.nan), np.full(self.system.nv, np.nan)

    def state(self, angles: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and speeds from those of another engine, which may have diverged."""
        known = np.abs(angles).max() < LOST and np.abs(rates).max() < LOST
        return self.described.state(angles, rates) if known else self.nowhere

    def run(self, formulation: str | ld.formulations.Formulation = "graph", **options) -> ld.results.Run:
        given = {"t_eval": [self.span], "progress": False, "formulation": formulation} | options
        return ld.simulate(self.system, self.start, (0.0, self.span), **given)

    @cached_property
    def judge(self) -> tuple[np.ndarray, np.ndarray]:
        """State at the end."""
        if self.exact is not None:
            return self.exact(self)
        path = self.run(rtol=TIGHTEST).raise_if_failed().path
        return path.q[-1], path.v[-1]

    def error(self, q: np.ndarray, v: np.ndarray) -> float:
        """Error of a state at the end."""
        exact, fastest = self.judge, np.abs(self.judge[1]).max()
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            return np.inf
        moved = np.abs(ld.tree.difference(self.system, exact[0], q)).max()
        return float(max(moved, np.abs(v - exact[1]).max() / fastest))

    def point(self, engine: str, setting: str, seconds: float, q: np.ndarray, v: np.ndarray) -> Point:
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            return Point(self.name, engine, setting, seconds, np.inf, np.inf, np.inf)
        state = ld.State(self.span, q, v)
        rows = np.array([row.rpartition(".")[2][0] in "fp" for row in self.system.constraint_rows])
        gap = np.abs(ld.terms(self.system, state).phi[rows]).max()
        energy = self._energy(state) - self._energy(ld.State(self.span, *self.judge))
        kinetic = max(ld.tree.energy(self.system, s).kinetic for s in (self.start, state))
        return Point(self.name, engine, setting, seconds, self.error(q, v), float(gap), abs(energy) / kinetic)

    def _energy(self, state: ld.State) -> float:
        found = ld.tree.energy(self.system, state)
        total = found.kinetic + found.gravity
        for label, (stiffness, _) in self.springs.items():
            total += 0.5 * stiffness * state.q[self.system.coordinates.index(label)] ** 2
        return total


# ------------------------------------------------------------------------------------------------------ the motions


def four_bar_exact(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """End state from a table of independent equations (problem.md next to it), whose angles are counted from +x."""
    with REFERENCE.open() as file:
        row = next(row for row in csv.DictReader(file) if float(row["t"]) == problem.span)
    with REFERENCE.open() as file:
        first = next(csv.DictReader(file))
    turn = {k: float(row[f"theta{k}"]) - float(first[f"theta{k}"]) for k in (1, 2, 3)}
    rate = {k: float(row[f"dtheta{k}"]) for k in (1, 2, 3)}
    s = problem.system
    of = {"A": (turn[1], rate[1]), "B": (turn[2] - turn[1], rate[2] - rate[1]), "D": (turn[3], rate[3])}
    return tuple(np.array([of[label][k] for label in s.coordinates]) for k in (0, 1))


def parallelogram_exact(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """n_four_bar as a pendulum: all cranks have the same angle, couplers translate."""
    s = problem.system
    cranks = sum(label.startswith("A") for label in s.speeds)
    couplers = cranks - 1
    inertia, moment = cranks / 3.0 + couplers, 9.81 * (cranks / 2.0 + couplers)

    def rate(t: float, y: np.ndarray) -> list[float]:
        return [y[1], moment / inertia * np.sin(y[0])]

    first = problem.start.v[s.speeds.index("A0")]
    angle, speed = solve_ivp(rate, (0.0, problem.span), [0.0, first], "DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    sign = np.array([1.0 if label.startswith("A") else -1.0 for label in s.coordinates])
    return sign * angle, sign * speed


def problems() -> list[Problem]:
    turned, library = ld.library.turned, ld.library
    legs = [f"P{k}" for k in range(1, 7)]
    platform = library.stewart_6ups()
    spring = platform.parameters["stiffness"], platform.parameters["damping"]
    pushed = dict(zip(legs, (0.5, -0.3, 0.2, 0.4, -0.5, 0.1), strict=True))  # m/s
    return [
        Problem("four_bar", turned(library.four_bar()), 1.0, exact=four_bar_exact),
        Problem("stewart_6ups", turned(platform), 1.0, pushed, dict.fromkeys(legs, spring)),
        Problem("star_ladder(10)", turned(library.star_ladder(10)), 1.0),
        # at 0.72 s all links are collinear, where N more freedoms appear: see `through_the_flat_pose`
        Problem("n_four_bar(40), 0.7 s", turned(library.n_four_bar(40)), 0.7, exact=parallelogram_exact),
    ]


# ------------------------------------------------------------------------------------------------------ the engines


@dataclass(frozen=True)
class Entry:
    """An engine with one setting: call it for the seconds of one integration and the state at its end."""

    engine: str
    setting: str
    call: Callable[[], tuple[float, np.ndarray, np.ndarray]]


def loopdyn_entries(problem: Problem, quick: bool) -> list[Entry]:
    tolerances = (1e-4, 1e-8) if quick else (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11)
    steps = (1e-2, 1e-3) if quick else STEPS[:-2]
    given = [("dop853", f"rtol {r:g}", {"integrator": "dop853", "rtol": r}) for r in tolerances]
    given += [("dp5", f"rtol {r:g}", {"integrator": "dp5", "rtol": r}) for r in tolerances[: len(tolerances) - 2]]
    given += [("RK4", f"step {h:g}", {"integrator": ld.integrators.RK4(step=h)}) for h in steps]

    def call(options: dict[str, object]) -> tuple[float, np.ndarray, np.ndarray]:
        run = problem.run(**options)
        if run.status != "finished":  # steps that are too long
            return run.statistics.integrating, *problem.nowhere
        return run.statistics.integrating, run.path.q[-1], run.path.v[-1]

    return [Entry(f"loopdyn {name}", setting, lambda o=o: call(o)) for name, setting, o in given]


def mujoco_entries(problem: Problem, quick: bool) -> list[Entry]:
    import mujoco

    mujoco.set_mju_user_warning(lambda _: None)  # steps that are too long show in the error; else it writes a file
    described = problem.described
    angles = described.angles(problem.start.q)

    def entry(h: float, stiff: bool) -> Entry:
        engine = peers.MuJoCo(described, angles, problem.start.v)
        model, data, place = engine.model, engine.data, engine.place
        model.opt.timestep, model.opt.integrator = h, mujoco.mjtIntegrator.mjINT_RK4
        if stiff:
            model.eq_solref[:] = STIFFEST * h, 1.0
        q, v, steps = data.qpos.copy(), data.qvel.copy(), round(problem.span / h)

        def call() -> tuple[float, np.ndarray, np.ndarray]:
            mujoco.mj_resetData(model, data)
            data.qpos[:], data.qvel[:] = q, v
            begin = time.perf_counter()
            mujoco.mj_step(model, data, nstep=steps)
            seconds = time.perf_counter() - begin
            return seconds, *problem.state(data.qpos[place], data.qvel[place])

        return Entry(f"MuJoCo RK4, {'stiff' if stiff else 'default'}", f"step {h:g}", call)

    steps = (1e-2, 1e-3) if quick else STEPS
    return [entry(h, stiff) for stiff in (False, True) for h in steps]


def pinocchio_entries(problem: Problem, quick: bool) -> list[Entry]:
    engine = peers.Pinocchio(problem.described, problem.described.angles(problem.start.q), problem.start.v)
    q0, v0, tau, place = engine.q.copy(), engine.v.copy(), engine.tau, engine.place
    (evaluate,) = engine.constraint_dynamics(PROXIMAL)
    springs = bool(problem.springs)

    def accelerations(q: np.ndarray, v: np.ndarray) -> np.ndarray:
        engine.q[:], engine.v[:] = q, v
        if springs:
            tau[:] = -engine.stiffness * q - engine.damping * v
        return evaluate().copy()

    def call(h: float) -> tuple[float, np.ndarray, np.ndarray]:
        q, v, steps = q0, v0, round(problem.span / h)
        begin = time.perf_counter()
        for _ in range(steps):
            a1 = accelerations(q, v)
            v2 = v + (0.5 * h) * a1
            a2 = accelerations(q + (0.5 * h) * v, v2)
            v3 = v + (0.5 * h) * a2
            a3 = accelerations(q + (0.5 * h) * v2, v3)
            v4 = v + h * a3
            a4 = accelerations(q + h * v3, v4)
            q = q + (h / 6.0) * (v + 2.0 * v2 + 2.0 * v3 + v4)
            v = v + (h / 6.0) * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        seconds = time.perf_counter() - begin
        return seconds, *problem.state(q[place], v[place])

    steps = (1e-2, 1e-3) if quick else STEPS[:-1]
    return [Entry("Pinocchio RK4", f"step {h:g}", lambda h=h: call(h)) for h in steps]


def exudyn_entries(problem: Problem, quick: bool) -> list[Entry]:
    """Exudyn, or None if it is not installed."""
    if find_spec("exudyn") is None:
        return []
    described = problem.described
    engine = peers.Exudyn(described, described.angles(problem.start.q), problem.start.v)

    def call(h: float) -> tuple[float, np.ndarray, np.ndarray]:
        begin = time.perf_counter()
        try:
            q, v = engine.solve(problem.span, round(problem.span / h))
        except Exception:  # Newton's method did not converge: whatever the engine raises
            return time.perf_counter() - begin, *problem.nowhere
        return time.perf_counter() - begin, *problem.state(q, v)

    steps = (1e-2, 1e-3) if quick else STEPS[:-1]
    longest = len(steps) if problem.system.nb < LARGE else 5  # seconds per run there
    return [Entry("Exudyn", f"step {h:g}", lambda h=h: call(h)) for h in steps[:longest]]


def check_trees(problem: Problem) -> None:
    """The trees without loops are the same in all engines, springs and dampers included, at the start."""
    s, start, described = problem.system, problem.start, problem.described
    ours, angles = ld.tree.open_tree_forward_dynamics(s, start), described.angles(start.q)
    ours = described.angle_accelerations(start.v, ours)
    differences = {
        "Pinocchio": np.abs(peers.Pinocchio(described, angles, start.v).tree() - ours).max() / np.abs(ours).max(),
        "MuJoCo": peers.MuJoCo(described, angles, start.v, loops=False).force_missing(ours),
    }
    for engine, difference in differences.items():
        if not difference <= SAME_TREE:
            raise RuntimeError(f"{engine}: the tree of '{s.name}' differs by {difference:.1e}")


# ---------------------------------------------------------------------------------------------------- the comparison


def curves(problem: Problem, quick: bool, repeats: int) -> list[Point]:
    """Time and error of all engines with all settings; they take turns, the shortest time counts."""
    check_trees(problem)
    makers = (loopdyn_entries, mujoco_entries, pinocchio_entries, exudyn_entries)
    entries = [entry for make in makers for entry in make(problem, quick)]
    points = [problem.point(e.engine, e.setting, *e.call()) for e in entries]
    best = [p.seconds for p in points]
    for n in range(repeats):
        for k, entry in enumerate(entries):
            if (n + 1) * best[k] < LONG:
                best[k] = min(best[k], entry.call()[0])
    return [Point(**(asdict(p) | {"seconds": seconds})) for p, seconds in zip(points, best, strict=True)]


def time_at(points: Sequence[Point], error: float) -> float:
    """Shortest time in which an engine gets below an error, interpolated linearly in logarithms between two settings.

    Infinite if none of its runs gets there.
    """
    good = [p for p in points if p.error <= error]
    if not good:
        return np.inf
    best = min(good, key=lambda p: p.seconds)
    worse = [p for p in points if p.error > error and p.seconds < best.seconds]
    if not worse:
        return best.seconds
    near = max(worse, key=lambda p: p.seconds)
    x = np.log(error / near.error) / np.log(best.error / near.error) if best.error > 0.0 else 1.0
    return float(np.exp((1.0 - x) * np.log(near.seconds) + x * np.log(best.seconds)))


def summary(problem: Problem, points: list[Point]) -> list[Figure]:
    """Time of each engine for the required error, and ours over that of the best of the others."""
    engines = list(dict.fromkeys(p.engine for p in points))
    best = {e: time_at([p for p in points if p.engine == e], GOAL_ERROR) for e in engines}
    figures = []
    for engine, seconds in best.items():
        reached = min(p.error for p in points if p.engine == engine)
        name = f"{problem.name}: {engine}, integration to an error of {GOAL_ERROR:g} (error: the smallest reached)"
        figures.append(Figure(name, 1e3 * seconds, "ms", error=reached))
    ours = min(t for e, t in best.items() if e.startswith("loopdyn"))
    theirs = {e: t for e, t in best.items() if not e.startswith("loopdyn")}
    fastest = min(theirs, key=lambda e: theirs[e])
    name = f"{problem.name}: loopdyn / best of the others ({fastest}) at an error of {GOAL_ERROR:g}"
    goal = GOAL if problem.name == "four_bar" else None
    return [*figures, Figure(name, ours / theirs[fastest] if theirs[fastest] < np.inf else 0.0, "", goal)]


def judges(problem: Problem, points: list[Point]) -> list[Figure]:
    """Errors of others against the reference: another formulation of ours, and the best of another engine."""
    other = problem.run("relative", rtol=1e-11).raise_if_failed().path
    found = {
        "relative, rtol 1e-11": problem.error(other.q[-1], other.v[-1]),
        "Pinocchio, smallest step": min(p.error for p in points if "Pinocchio" in p.engine),
    }
    if problem.exact is not None:
        tight = problem.run(rtol=TIGHTEST).raise_if_failed().path
        found[f"graph, rtol {TIGHTEST:g}"] = problem.error(tight.q[-1], tight.v[-1])
    return [Figure(f"{problem.name}: the judge against {name}", error, "") for name, error in found.items()]


def apart(problem: Problem, repeats: int) -> list[Figure]:
    """Time outside the integration of loopdyn: preparation, and labelled results."""
    times = np.linspace(0.0, problem.span, 101)
    whole, prepared, inside, data = [], [], [], []
    for n in range(repeats):
        run = problem.run(t_eval=times)
        whole.append(run.statistics.seconds)
        inside.append(run.statistics.integrating)
        prepared.append(run.statistics.seconds - run.statistics.integrating)
        if n % FEWER == 0:
            begin = time.perf_counter()
            assert run.data is not None
            data.append(time.perf_counter() - begin)
    name = f"{problem.name}: ld.simulate, rtol 1e-8, 101 outputs"
    return [
        Figure(f"{name}: all of it", 1e3 * min(whole), "ms"),
        Figure(f"{name}: preparing (rank, plan, rows, checks)", 1e3 * min(prepared), "ms"),
        Figure(f"{name}: integration, outputs checked", 1e3 * min(inside), "ms"),
        Figure(f"{name}: run.data, labelled, with reactions", 1e3 * min(data), "ms"),
    ]


def through_the_flat_pose(quick: bool) -> list[Figure]:
    """1 s of n_four_bar through a pose where the rank drops; errors after it, or NaN if a run fails."""
    size = 4 if quick else 40
    problem = Problem(
        f"n_four_bar({size}), 1 s", ld.library.turned(ld.library.n_four_bar(size)), 1.0, exact=parallelogram_exact
    )
    found = {}
    for rtol in (1e-4, 1e-8):
        run = problem.run(rtol=rtol)
        error = problem.error(run.path.q[-1], run.path.v[-1]) if run.status == "finished" else np.nan
        words = "error" if run.status == "finished" else f"{run.status} there, and says why; error"
        found[f"loopdyn dop853, rtol {rtol:g}: {words}"] = error
    for entry in mujoco_entries(problem, True) + pinocchio_entries(problem, True):
        _, q, v = entry.call()
        found[f"{entry.engine}, {entry.setting}: error"] = problem.error(q, v)
    return [Figure(f"{problem.name}, through a singular pose: {name}", x, "") for name, x in found.items()]


# ---------------------------------------------------------------------------------------------------------- showing

POINTS = ("case", "engine", "setting", "ms", "error", "gap / m", "energy")


def cells(p: Point) -> tuple[str, ...]:
    return p.case, p.engine, p.setting, f"{1e3 * p.seconds:.3g}", *(f"{x:.1e}" for x in (p.error, p.gap, p.energy))


def show_points(points: list[Point]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*POINTS, title="time against error")
    for p in points:
        table.add_row(*cells(p))
    Console(width=None if sys.stdout.isatty() else 130).print(table)


def markdown_points(points: list[Point]) -> str:
    rows = [POINTS, tuple("---" for _ in POINTS), *(cells(p) for p in points)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def plot(points: list[Point], path: Path) -> None:
    """Error-time curves, a panel for each motion."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cases = list(dict.fromkeys(p.case for p in points))
    engines = list(dict.fromkeys(p.engine for p in points))
    figure, axes = plt.subplots(2, (len(cases) + 1) // 2, figsize=(11, 8), squeeze=False, layout="constrained")
    for case, ax in zip(cases, axes.flat, strict=False):
        for n, engine in enumerate(engines):
            mine = [p for p in points if p.case == case and p.engine == engine and 0.0 < p.error < 10.0]
            style = "o-" if engine.startswith("loopdyn") else "s--"
            x, y = [p.error for p in mine], [1e3 * p.seconds for p in mine]
            ax.loglog(x, y, style, color=f"C{n}", markersize=4, label=engine)
        ax.axvline(GOAL_ERROR, color="0.7", linewidth=1)
        ax.set(title=case, xlabel="error of the state at the end", ylabel="integration, ms")
        ax.invert_xaxis()
        ax.grid(alpha=0.3)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    given = command_line(__doc__, arguments, plot=True)
    repeats = 1 if given.quick else 40
    packages = ["mujoco", "pin", "scipy", "numba", "numpy", *(["exudyn"] if find_spec("exudyn") else [])]
    facts = settings(packages) | {f"settings of {k}" if k != "hinges" else k: v for k, v in FACTS.items()}
    figures: list[Figure] = []
    points: list[Point] = []
    asked = problems()[:1] if given.quick else problems()
    for problem in asked:
        found = curves(problem, given.quick, repeats)
        points += found
        figures += summary(problem, found) + judges(problem, found) + apart(problem, 1 if given.quick else 3 * FEWER)
        save(figures, facts, given, points=[asdict(p) for p in points])
        print(f"{problem.name} done", file=sys.stderr)
    figures += through_the_flat_pose(given.quick)
    save(figures, facts, given, points=[asdict(p) for p in points])
    if given.markdown:
        given.markdown.write_text(given.markdown.read_text() + "\n" + markdown_points(points))
    if given.plot:
        plot(points, given.plot)
    show_points(points)
    show(figures, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
