"""Fig. 11 of Anderson and Critchley: cost of a ladder against its cells, for four methods in one run.

    python benchmarks/rcr.py [--quick] [--json FILE] [--markdown FILE] [--plot FILE]

The ladder of the paper in our reconstruction (`ld.library.ladder`), at a closed state, moving: the tree of the same
bodies without constraints, the traditional method (`relative`: multipliers of the cut joints by a dense matrix), `rcr`
with speeds that follow at each evaluation, as its runs have it, and without (the state as it is given), and `graph`.
All but the traditional one are timed inside a compiled loop; that one from Python, where it lives. Calls take turns,
the shortest counts. Operations are counted by running the kernels on numbers that count (counting.py).

The four-bar is compared with Pinocchio's `constraintDynamics`. That call is given coordinates and speeds that meet the
constraints and solves for no speeds, so "speeds given" does the same; "rcr" itself does more, as runs need it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported: one core for all

import numpy as np
import peers
from common import Figure, command_line, in_new_process, repeated, save, settings, shortest, show, shuffled

import loopdyn as ld
from loopdyn.engine.jit import kernel
from loopdyn.formulations.rcr.formulation import RcrSolver
from loopdyn.formulations.rcr.kernels import accelerate
from loopdyn.loops.elimination.passes import accelerate as graph_accelerate
from loopdyn.loops.rank import decide
from loopdyn.tree.aba import aba

LARGEST_DENSE = 130  # cells for which the traditional method is run: it takes seconds from there on
FAST_CONSTRAINTS = (1e-10, 1)  # mu and iterations of Pinocchio, the fastest useful ones (benchmarks/graph.py)


@kernel(short_loops=True)
def of_tree(ints, floats, work, times):
    """`times` evaluations inside one compiled loop; the first coordinate changes from one to the next."""
    status = 0
    for k in range(times):
        work[1] += 1e-9 * (1 - 2 * (k % 2))
        status += aba(ints, floats, work)
    return status


@kernel(short_loops=True)
def of_rcr(ints, floats, work, times):
    """`times` evaluations of `rcr`, likewise."""
    status = 0
    for k in range(times):
        work[1] += 1e-9 * (1 - 2 * (k % 2))
        status += accelerate(ints, floats, work)
    return status


@kernel(short_loops=True)
def of_graph(ints, floats, work, times):
    """`times` evaluations of `graph`, likewise."""
    status = 0
    for k in range(times):
        work[1] += 1e-9 * (1 - 2 * (k % 2))
        status += graph_accelerate(ints, floats, work)
    return status


def ladder(L: int, change: Callable[[ld.Mechanism], ld.Mechanism] = lambda m: m) -> tuple[ld.System, ld.State]:
    """In generic orientation, both angles and their speeds as in Fig. 10: legs and rungs stay parallel."""
    system = change(ld.library.turned(ld.library.ladder(L))).compile()
    angles = {"U.1": (0.4, 0.5), "U.2": (0.3, -0.7), "A": (-0.3, 0.7), "B": (0.3, -0.7)}
    kind = [x[0] + x[x.find(".") :] if "." in x else x[0] for x in system.speeds]
    q, v = (np.array([angles[k][n] for k in kind]) for n in (0, 1))
    return system, ld.State(0.0, q, v)


class Case:
    """One mechanism in all methods."""

    def __init__(self, system: ld.System, state: ld.State):
        self.system, self.state = system, state
        self.rank = decide(system, state)
        self.solver = RcrSolver(system, self.rank, ld.Partition())  # whatever the width: never handed to graph
        for arrays in (self.solver.calls, self.solver.run):
            arrays.put(state.t, state.q, state.v)
        self.graph = ld.Graph().prepare(system, self.rank)
        self.graph.elimination.set_state(state.t, state.q, state.v)
        self.work = system.work()
        opened = system.open_work(self.work)
        opened.q[:], opened.v[:] = state.q, state.v

    def calls(self, dense: bool) -> dict[str, Callable[[int], object]]:
        s, state = self.system, self.state
        found: dict[str, Callable[[int], object]] = {
            "tree": lambda n: of_tree(s.ints, s.floats, self.work, n),
            "rcr": lambda n: of_rcr(*self.solver.run.arrays, n),
            "rcr, speeds given": lambda n: of_rcr(*self.solver.calls.arrays, n),
            "graph": lambda n: of_graph(*self.graph.elimination.arrays, n),
        }
        if dense:
            solve = ld.Relative().prepare(s, self.rank)
            found["traditional"] = repeated(lambda: solve(state.t, state.q, state.v))
        return found


METHODS = ("tree", "traditional", "rcr", "rcr, speeds given", "graph")


def error(case: Case) -> float:
    """Error of `rcr` against `graph`, which has been compared with the oracle and with other engines."""
    s = case.state
    a, b = (x.accelerations(s.t, s.q, s.v).copy() for x in (case.solver, case.graph))
    return float(np.abs(a - b).max() / np.abs(b).max())


# ---------------------------------------------------------------------------------------------------------- figures


def growth(sizes: list[int], repeats: int, seconds: float) -> tuple[list[Figure], dict[str, list[list[float]]]]:
    ladders = {L: Case(*ladder(L)) for L in sizes}
    calls = {f"{m} {L}": call for L, x in ladders.items() for m, call in x.calls(L <= LARGEST_DENSE).items()}
    best = shortest(calls, repeats, seconds)
    figures, curves = [], {}
    for method in METHODS:
        at = [L for L in sizes if f"{method} {L}" in best]
        curves[method] = [[float(L), best[f"{method} {L}"]] for L in at]
        for L in at:
            wrong = error(ladders[L]) if method.startswith("rcr") else None
            figures.append(Figure(f"ladder({L}): {method}", best[f"{method} {L}"] * 1e6, "us", error=wrong))
        wide = [L for L in at if sizes[0] <= L]
        if len(wide) > 1:
            exponent = float(np.polyfit(np.log(wide), np.log([best[f"{method} {L}"] for L in wide]), 1)[0])
            goal = 1.05 if method == "rcr" else None
            name = f"{method}: growth exponent, {wide[0]} to {wide[-1]} cells"
            figures.append(Figure(name, exponent, "", goal))
    shown = 1000 if 1000 in sizes else sizes[-1]
    for method in ("rcr", "rcr, speeds given"):
        ratio = best[f"{method} {shown}"] / best[f"tree {shown}"]
        figures.append(Figure(f"ladder({shown}): {method} / tree", ratio, "", 4.0 if method == "rcr" else None))
    return figures, curves


def operations(sizes: list[int]) -> list[Figure]:
    """Counted operations: those of each additional cell, and their growth."""
    _, output = in_new_process(f"import counting; counting.report({sizes})", NUMBA_DISABLE_JIT="1")
    counts = {int(L): found for L, found in json.loads(output).items()}
    a, b = counts[sizes[-2]], counts[sizes[-1]]
    shared = {"tree": "kinematics of the tree", "traditional": "kinematics and rows", "graph": "kinematics and rows",
              "rcr, speeds given": "kinematics and rows"}  # fmt: skip
    figures = []
    for method in METHODS:
        more = (b[method] - a[method]) / (sizes[-1] - sizes[-2])
        name = f"ladder, {sizes[-2]} to {sizes[-1]} cells: operations of {method}"
        figures.append(Figure(name, more, "per cell"))
        if method in shared:
            less = (b[shared[method]] - a[shared[method]]) / (sizes[-1] - sizes[-2])
            figures.append(Figure(f"{name}, {shared[method]} apart", more - less, "per cell"))
        exponent = np.log(b[method] / a[method]) / np.log(sizes[-1] / sizes[-2])
        figures.append(Figure(f"{name}, exponent", float(exponent), ""))
    return figures


def order_of_file(L: int, repeats: int, seconds: float) -> list[Figure]:
    """Dependence of time and result on the order in which bodies and joints are given."""
    cases = {"given": Case(*ladder(L)), "shuffled": Case(*ladder(L, shuffled))}
    found = {}
    for name, x in cases.items():
        s = x.state
        found[name] = dict(zip(x.system.speeds, x.solver.accelerations(s.t, s.q, s.v).tolist(), strict=True))
    a, b = (np.array([found[name][label] for label in cases["given"].system.speeds]) for name in cases)
    best = shortest({name: x.calls(False)["rcr"] for name, x in cases.items()}, repeats, seconds)
    ratio = best["shuffled"] / best["given"]
    wrong = float(np.abs(b - a).max() / np.abs(a).max())
    return [
        Figure(f"ladder({L}): rcr, shuffled file / as written, or its inverse", max(ratio, 1 / ratio), "", 1.2, wrong)
    ]


def widths(stages: list[int], repeats: int, seconds: float) -> list[Figure]:
    """Towers, one group whose width is twice the stages: where `graph` becomes faster (`rcr.WIDEST`)."""
    figures = []
    for n in stages:
        system = ld.library.turned(ld.library.tower(n)).compile()
        x = Case(system, ld.assemble(system, v=0.3 * np.random.default_rng(1).normal(size=system.nv)))
        best = shortest({k: c for k, c in x.calls(False).items() if k in ("rcr", "graph")}, repeats, seconds)
        name = f"tower({n}), group of width {x.solver.plan_.width}: rcr / graph"
        figures.append(Figure(name, best["rcr"] / best["graph"], "", error=error(x)))
    return figures


def four_bar(repeats: int, seconds: float) -> list[Figure]:
    """Comparison with Pinocchio's call, which does not correct the speeds.

    Its hinge is closed by one point, which is enough in a plane, and by two, as a hinge in space needs.
    """
    system = ld.library.turned(ld.library.four_bar()).compile()
    x = Case(system, ld.assemble(system, v={"A": 2.0}))
    calls = {k: c for k, c in x.calls(False).items() if k != "tree"}
    names = {k: f"Pinocchio constraintDynamics, hinge by {k} point{'s' if k > 1 else ''}" for k in (1, 2)}
    for points, name in names.items():
        engine = peers.Pinocchio(peers.describe(x.system), x.state.q, x.state.v, points)
        calls[name] = repeated(engine.constraint_dynamics(FAST_CONSTRAINTS)[0])
    best = shortest(calls, repeats, seconds)
    figures = [Figure(f"four_bar: {k}", t * 1e6, "us") for k, t in best.items()]
    for theirs in names.values():
        for method in ("rcr", "rcr, speeds given"):
            figures.append(Figure(f"four_bar: {method} / {theirs}", best[method] / best[theirs], "", 0.5))
    return figures


def plot(curves: dict[str, list[list[float]]], file: object) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for method, points in curves.items():
        x, y = np.array(points).T
        ax.loglog(x, 1e6 * y, "o-", ms=3, label=method)
    ax.set(xlabel="cells L", ylabel="time of one evaluation, µs", title="Fig. 11: cost of a ladder against its cells")
    ax.grid(alpha=0.3, which="both")
    ax.legend()
    figure.savefig(file, dpi=130)


def main(arguments: list[str] | None = None) -> int:
    given = command_line(__doc__, arguments, plot=True)
    repeats, seconds = (5, 0.001) if given.quick else (150, 0.003)
    sizes = [10, 20, 40] if given.quick else [10, 30, 100, 300, 1000, 3000, 10_000]
    figures, curves = growth(sizes, repeats, seconds)
    facts = settings(("pin", "numba", "llvmlite", "numpy"))
    facts["traditional"] = f"called from Python, up to {LARGEST_DENSE} cells"
    facts["settings of Pinocchio"] = f"ProximalSettings(0, 0, mu, iterations) {FAST_CONSTRAINTS}"
    steps: list[Callable[[], list[Figure]]] = [
        lambda: four_bar(5 * repeats, seconds),
        lambda: operations([3, 5] if given.quick else [10, 20]),
        lambda: order_of_file(20 if given.quick else 1000, repeats, seconds),
        lambda: widths([4] if given.quick else [4, 6, 8, 10, 12, 14, 16, 24], repeats, seconds),
    ]
    for step in steps:
        save(figures, facts, given, curves=curves)  # a long run: nothing is lost if it ends early
        figures += step()
    save(figures, facts, given, curves=curves)
    if given.plot:
        plot(curves, given.plot)
    show(figures, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
