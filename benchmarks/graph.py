"""Closed loops compared with MuJoCo, Pinocchio and SciPy in one run: time per body, error, growth, memory of `Graph`.

    python benchmarks/graph.py [--quick] [--json FILE] [--markdown FILE]

All engines do the same mechanism (see peers.py, which also says how each closes a hinge) in generic orientation, at the
same closed state, moving; before their loops are compared their trees without loops must agree. Their calls alternate:
what disturbs the machine disturbs all, and the shortest of many repeats counts. Calls from Python are set beside calls
from Python; what loopdyn takes inside a compiled loop, where its integrators call it, is a figure of its own.

The error is that of the accelerations, over the largest one, against a sparse solution of the equations of absolute
coordinates, written once more in peers.py and refined by its residual; how far this is from the dense oracle is shown
where dense matrices are possible.
"""

from __future__ import annotations

import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported: one core for all engines

import numpy as np
import peers
from common import Figure, command_line, in_new_process, repeated, save, settings, shortest, show, shuffled
from numba.core.runtime import _nrt_python, rtsys

import loopdyn as ld
from loopdyn.engine.jit import kernel
from loopdyn.loops.elimination import layout
from loopdyn.loops.elimination.passes import accelerate
from loopdyn.loops.elimination.solver import Elimination

ACCURATE = 1e-9  # relative error that loopdyn must keep
SAME_TREE = 1e-9  # relative difference of the trees without loops, above which a comparison would mean nothing:
# of Pinocchio's accelerations, and of the forces that MuJoCo finds for loopdyn's (its own accelerations lose digits)
CLOSED = 1e-12  # largest residual of a closed state, in natural units
SMALLEST_MOVE = 1e-6  # s at speeds of 1 rad/s: below it the state is the reference pose, where some models do not move

# Proximal settings (mu, iterations) of Pinocchio: the fastest useful one, and the most accurate found on the tower.
FAST_LCABA, TOWER_LCABA = (1e-6, 1), (1e-2, 10)
FAST_CONSTRAINTS, EXACT_CONSTRAINTS = (1e-10, 1), (1e-8, 2)
LARGEST_PINOCCHIO = 520  # speeds; its data take 4 GB there and grow with the cube

FACTS = {
    "MuJoCo": peers.MUJOCO_SETTINGS,
    "Pinocchio": "ProximalSettings(0, 0, mu, iterations); LOCAL frames; a universal joint is two hinges in a row; "
    f"lcaba fast {FAST_LCABA}, also {TOWER_LCABA}; constraintDynamics fast {FAST_CONSTRAINTS}, exact "
    f"{EXACT_CONSTRAINTS}; up to {LARGEST_PINOCCHIO} speeds (memory)",
    "SciPy": "spsolve (SuperLU, COLAMD) of the equations of absolute coordinates; the matrix is given",
    "RBDL": "no published figure for closed loops of these sizes was found to cite",
    "hinges": "a cut hinge is one point (3 rows) for the others, which is enough in these models and faster for them, "
    "two points (6 rows) where said; 5 rows less the dependent ones for loopdyn",
}


# ------------------------------------------------------------------------------------------- mechanisms and states


@dataclass(frozen=True)
class Case:
    """A model of the library."""

    family: str
    size: int | None = None

    def mechanism(self) -> ld.Mechanism:
        made = getattr(ld.library, self.family)
        return ld.library.turned(made() if self.size is None else made(self.size))

    def __str__(self) -> str:
        return self.family if self.size is None else f"{self.family}({self.size})"


CELLS = {"star_ladder": 2, "n_four_bar": 2, "tower": 3}  # bodies of a cell


def closed_state(elimination: Elimination) -> ld.State:
    """A closed state near the reference pose, with speeds of 1 rad/s root mean square."""
    system = elimination.system
    v = np.random.default_rng(0).normal(size=system.nv)
    state = elimination.project(ld.State(0.0, system.q_reference, v), 3)
    for _ in range(5):
        v, move = state.v / np.sqrt(np.mean(state.v**2)), 0.02
        moved = elimination.project(ld.State(0.0, state.q + move * v, v), 10)
        while not gap(elimination, moved) < CLOSED:  # at the end of a long chain a small move is a large one
            move *= 0.5
            if move < SMALLEST_MOVE:
                raise RuntimeError(f"'{system.name}': no closed state was found near the reference pose")
            moved = elimination.project(ld.State(0.0, state.q + move * v, v), 10)
        state = moved
    return ld.State(0.0, state.q, state.v / np.sqrt(np.mean(state.v**2)))


def gap(elimination: Elimination, state: ld.State) -> float:
    """Residual of the constraints in natural units.

    The change of q would not do: coordinates of a tower of 1000 stages amplify rounding to 1e-9.
    """
    elimination.set_state(state.t, state.q, state.v)
    elimination.run(accelerate)
    return float(np.abs(elimination.work.phi[: elimination.system.nc]).max(initial=0.0) / elimination.system.size)


@kernel(short_loops=True)
def evaluate(ints, floats, work, times):
    """`times` evaluations inside one compiled loop; the first coordinate changes from one to the next."""
    status = 0
    for k in range(times):
        work[1] += 1e-9 * (1 - 2 * (k % 2))
        status += accelerate(ints, floats, work)
    return status


def compiled_loop(elimination: Elimination) -> Callable[[int], object]:
    return lambda times: evaluate(*elimination.arrays, times)


def relative(a: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(a - exact).max() / np.abs(exact).max())


# ------------------------------------------------------------------------------------------ compared with others


class Comparison:
    """One mechanism in all engines: their calls, and the errors of their results."""

    def __init__(self, case: Case):
        self.system = case.mechanism().compile()
        elimination = Elimination(self.system, self.system.state())
        self.state = state = closed_state(elimination)
        self.described = peers.describe(self.system)
        self.sparse = peers.Sparse(self.described, state.q, state.v)
        self.exact = self.sparse.refined()
        self.calls: dict[str, Callable[[int], object]] = {}
        self.errors: dict[str, float] = {}
        self._check_trees()
        self._loopdyn()
        self._mujoco()
        if self.system.nv <= LARGEST_PINOCCHIO:
            self._pinocchio()
            self.errors["oracle"] = relative(ld.accelerations(self.system, state, "oracle"), self.exact)
        self.errors["scipy"] = relative(self.sparse.hinges(self.sparse()), self.exact)
        self.calls["scipy"] = repeated(self.sparse)

    def _check_trees(self) -> None:
        """The trees without loops are the same: Pinocchio by accelerations, MuJoCo by the forces of ours."""
        state = self.state
        ours = ld.tree.open_tree_forward_dynamics(self.system, state)
        mujoco = peers.MuJoCo(self.described, state.q, state.v, loops=False)
        differences = {"MuJoCo": mujoco.force_missing(ours)}
        self.errors["tree mujoco"] = relative(mujoco.a, ours)
        if self.system.nv <= LARGEST_PINOCCHIO:
            tree = peers.Pinocchio(self.described, state.q, state.v).tree()
            differences["Pinocchio"] = self.errors["tree pinocchio"] = relative(tree, ours)
        for engine, difference in differences.items():
            if not difference <= SAME_TREE:
                raise RuntimeError(f"{engine}: the tree of '{self.system.name}' differs by {difference:.1e}")

    def _add(self, name: str, call: Callable[[], object], a: np.ndarray) -> None:
        self.calls[name], self.errors[name] = repeated(call), relative(a, self.exact)

    def _loopdyn(self) -> None:
        state = self.state
        solve = ld.prepare(self.system, "graph", state)
        self._add("python", lambda: solve.accelerations(state.t, state.q, state.v), solve(state.t, state.q, state.v).a)
        self.calls["loop"], self.errors["loop"] = compiled_loop(solve.elimination), self.errors["python"]

    def _mujoco(self) -> None:
        state, hinges = self.state, any(c.axes is not None for c in self.described.closures)
        for points in (1, 2) if hinges and self.system.nb < 10 else (1,):
            engine = peers.MuJoCo(self.described, state.q, state.v, points)
            self._add(f"mujoco {points}", engine, engine.a)
        engine = peers.MuJoCo(self.described, state.q, state.v)
        self.calls["mujoco steps"] = engine.steps

    def _pinocchio(self) -> None:
        state, hinges = self.state, any(c.axes is not None for c in self.described.closures)
        for points in (1, 2) if hinges and self.system.nb < 10 else (1,):
            engine = peers.Pinocchio(self.described, state.q, state.v, points)
            calls = engine.lcaba(FAST_LCABA, TOWER_LCABA)
            calls += engine.constraint_dynamics(FAST_CONSTRAINTS, EXACT_CONSTRAINTS)
            names = ("lcaba fast", "lcaba accurate", "constraintDynamics fast", "constraintDynamics exact")
            for name, call in zip(names, calls, strict=True):
                self._add(f"{name} {points}", call, call()[engine.place].copy())


NAMES = {
    "loop": "loopdyn, compiled loop",
    "python": "loopdyn, prepared solver from Python",
    "mujoco 1": "MuJoCo mj_forward from Python",
    "mujoco 2": "MuJoCo mj_forward from Python, hinge by two points",
    "mujoco steps": "MuJoCo mj_step, a loop in C (integration included)",
    "lcaba fast 1": "Pinocchio lcaba from Python, fast",
    "lcaba fast 2": "Pinocchio lcaba from Python, fast, hinge by two points",
    "lcaba accurate 1": "Pinocchio lcaba from Python, mu 0.01 and 10 iterations",
    "lcaba accurate 2": "Pinocchio lcaba from Python, mu 0.01 and 10 iterations, hinge by two points",
    "constraintDynamics fast 1": "Pinocchio constraintDynamics from Python, fast",
    "constraintDynamics fast 2": "Pinocchio constraintDynamics from Python, fast, hinge by two points",
    "constraintDynamics exact 1": "Pinocchio constraintDynamics from Python, exact",
    "constraintDynamics exact 2": "Pinocchio constraintDynamics from Python, exact, hinge by two points",
    "scipy": "SciPy spsolve from Python",
}

CHECKS = {
    "oracle": "dense oracle against the reference",
    "tree mujoco": "tree without loops, accelerations of MuJoCo against loopdyn",
    "tree pinocchio": "tree without loops, accelerations of Pinocchio against loopdyn",
}

# (case, ours, theirs or all others together, goal): ratios that are to be at most the goal. The hinge of the four-bar
# is closed in both ways: by two points as in space, like the five rows here, and by one, which is enough in a plane.
GOALS = [
    ("four_bar", "loop", "constraintDynamics fast 2", 0.33),
    ("four_bar", "loop", "constraintDynamics", 0.33),
    ("four_bar", "python", "pinocchio", 1.0),
    ("star_ladder(100)", "python", "", 0.5),
    ("star_ladder(1000)", "loop", "mujoco", 0.5),
    ("tower(100)", "loop", "lcaba", 1.1),
]


def beside_others(case: Case, repeats: int, seconds: float) -> list[Figure]:
    """Time per body of one evaluation in all engines, and the ratios that have goals."""
    c = Comparison(case)
    best, n = shortest(c.calls, repeats, seconds), c.system.nb
    figures = []
    for name, words in NAMES.items():
        if name in best:
            error = c.errors.get(name)
            figures.append(Figure(f"{case}, {n} bodies: {words}", best[name] / n * 1e6, "us per body", error=error))
    for key, words in CHECKS.items():
        if key in c.errors:
            figures.append(Figure(f"{case}: {words}", c.errors[key], "relative"))
    for goal_case, ours, theirs, goal in GOALS:
        if goal_case == str(case):
            among = {k: t for k, t in best.items() if _is_peer(k, theirs)}
            fastest = min(among, key=lambda k: among[k])
            figures.append(Figure(f"{case}: {NAMES[ours]} / {NAMES[fastest]}", best[ours] / among[fastest], "", goal))
    return figures


def _is_peer(name: str, which: str) -> bool:
    """Whether a call from Python is one of the engine or method `which`; of any, if that is empty."""
    if name in ("loop", "python", "mujoco steps"):
        return False
    if which == "pinocchio":
        return name.startswith(("lcaba", "constraintDynamics"))
    return name.startswith(which)


# ---------------------------------------------------------------------------------- growth, order of the file, memory


def growth(family: str, bodies: list[int], repeats: int, seconds: float) -> list[Figure]:
    """Time per body of growing mechanisms inside the compiled loop; sizes take turns, too.

    Each turn is long enough for ten evaluations of the largest: the first one must reload the caches after the others,
    which does not happen in a run.
    """
    found = {}
    for n in bodies:
        system = Case(family, n // CELLS[family]).mechanism().compile()
        elimination = Elimination(system, system.state())
        state = closed_state(elimination)
        elimination.choose(state)
        found[system.nb] = elimination
    best = shortest({str(n): compiled_loop(e) for n, e in found.items()}, repeats, seconds)
    sizes, total = list(found), [best[str(n)] for n in found]
    exponent = float(np.polyfit(np.log(sizes), np.log(total), 1)[0])
    figures = []
    for (n, e), t in zip(found.items(), total, strict=True):
        residual = float(e.views.diagnostics[layout.RESIDUAL])
        name = f"{family}, {n} bodies: loopdyn, compiled loop (error: residual)"
        figures.append(Figure(name, t / n * 1e6, "us per body", error=residual))
    used = Figure(f"{family}, {sizes[-1]} bodies: arrays of model, plan and work", memory(e), "bytes per body", 4000.0)
    return [*figures, used, Figure(f"{family}: growth exponent, {sizes[0]} to {sizes[-1]} bodies", exponent, "", 1.05)]


def memory(elimination: Elimination) -> float:
    """Bytes per body of everything that the kernels read and write."""
    return sum(x.nbytes for x in elimination.arrays) / elimination.system.nb


def order_of_file(case: Case, repeats: int, seconds: float) -> list[Figure]:
    """Dependence of time and result on the order in which bodies and joints are given."""
    mechanism = case.mechanism()
    systems = {"given": mechanism.compile(), "shuffled": shuffled(mechanism).compile()}
    eliminations = {name: Elimination(s, s.state()) for name, s in systems.items()}
    state = closed_state(eliminations["given"])
    s = systems["given"]
    q, v = dict(zip(s.coordinates, state.q, strict=True)), dict(zip(s.speeds, state.v, strict=True))
    at = {"given": state, "shuffled": systems["shuffled"].state(q, v)}
    found = {}
    for name, e in eliminations.items():
        e.choose(at[name])
        found[name] = dict(zip(systems[name].speeds, e.work.a.tolist(), strict=True))
    a, b = (np.array([found[name][label] for label in s.speeds]) for name in ("given", "shuffled"))
    best = shortest({name: compiled_loop(e) for name, e in eliminations.items()}, repeats, seconds)
    ratio = best["shuffled"] / best["given"]
    return [
        Figure(f"{case}: shuffled file / as written, or its inverse", max(ratio, 1 / ratio), "", 1.2, relative(b, a))
    ]


def allocations(case: Case, times: int) -> list[Figure]:
    """Allocations of `times` evaluations less those of one: arrays counted by Numba, bytes by tracemalloc.

    The call itself allocates a handle for each array that comes from Python.
    """
    system = case.mechanism().compile()
    elimination = Elimination(system, system.state())
    evaluate(*elimination.arrays, 1)
    counts, peaks = [], []
    _nrt_python.memsys_enable_stats()
    for n in (1, 1 + times):
        before = rtsys.get_allocation_stats().alloc
        tracemalloc.start()
        evaluate(*elimination.arrays, n)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        counts.append(rtsys.get_allocation_stats().alloc - before)
    _nrt_python.memsys_disable_stats()
    return [
        Figure(f"{case}: arrays allocated in {times} evaluations", counts[1] - counts[0], "", 0.0),
        Figure(f"{case}: memory of Python allocated in {times} evaluations", peaks[1] - peaks[0], "bytes", 0.0),
    ]


def report_large(n: int) -> None:
    """Memory, times and residual of a star ladder; printed (called in a process of its own)."""
    clocks = [time.perf_counter()]
    mechanism = ld.library.star_ladder(n // 2)
    clocks.append(time.perf_counter())
    system = mechanism.compile()
    clocks.append(time.perf_counter())
    elimination = Elimination(system, system.state())
    clocks.append(time.perf_counter())
    best = shortest({"": compiled_loop(elimination)}, 10, 0.0)[""]
    print(json.dumps([*np.diff(clocks).tolist(), memory(elimination), best / system.nb * 1e6]))


def large(n: int) -> list[Figure]:
    _, output = in_new_process(f"import graph; graph.report_large({n})")
    describing, compiling, planning, size, per_body = json.loads(output)
    name = f"star_ladder of {n} bodies"
    return [
        Figure(f"{name}: describing it", describing, "s"),
        Figure(f"{name}: compile()", compiling, "s"),
        Figure(f"{name}: plan and choice of rows", planning, "s"),
        Figure(f"{name}: arrays of model, plan and work", size, "bytes per body", 4000.0),
        Figure(f"{name}: compiled loop", per_body, "us per body"),
    ]


def main(arguments: list[str] | None = None) -> int:
    given = command_line(__doc__, arguments)
    repeats, seconds = (10, 0.001) if given.quick else (150, 0.002)
    if given.quick:
        cases = [
            Case("four_bar"),
            Case("star_ladder", 20),
            Case("n_four_bar", 20),
            Case("tower", 10),
            Case("ladder", 10),
        ]
    else:
        large_cases = [Case(family, n) for n in (100, 1000) for family in ("star_ladder", "n_four_bar")]
        cases = [Case("four_bar"), *large_cases, Case("tower", 100), Case("ladder", 100)]
    bodies = [60, 120, 240] if given.quick else [300, 1000, 3000, 10_000]
    reordered = (
        (Case("star_ladder", 20), Case("tower", 10)) if given.quick else (Case("star_ladder", 500), Case("tower", 100))
    )
    steps = [lambda c=c: beside_others(c, repeats, seconds) for c in cases]
    steps += [lambda f=f: growth(f, bodies, repeats // 5, 25 * seconds) for f in CELLS]
    steps += [lambda c=c: order_of_file(c, repeats, seconds) for c in reordered]
    steps += [lambda: allocations(Case("tower", 10), 1000), lambda: large(400 if given.quick else 100_000)]

    facts = settings(("mujoco", "pin", "scipy", "numba", "llvmlite", "numpy"))
    facts |= {f"settings of {k}" if k != "hinges" else k: v for k, v in FACTS.items()}
    figures: list[Figure] = []
    for k, step in enumerate(steps):
        figures += step()
        save(figures, facts, given)  # a long run: nothing is lost if it ends early
        print(f"step {k + 1} of {len(steps)} done", file=sys.stderr)
    show(figures, facts)
    wrong = [f.name for f in figures if "loopdyn" in f.name and f.error is not None and not f.error <= ACCURATE]
    if wrong:
        print(f"The error is above {ACCURATE:g}: {'; '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
