"""Minimal coordinates: cost of an evaluation and of the criterion, compared with Graph, Relative and the oracle.

    python benchmarks/partition.py [--quick] [--json FILE] [--markdown FILE]

Mechanisms: an arm of k - 1 links whose last one carries a train of four-bars, every rocker being the crank of the
next; k freedoms and n speeds. Besides, two mechanisms of the library. All formulations are called from
Python at the same closed state, in turns, and the shortest of many repeats counts; evaluation and check are also timed
inside a compiled loop, where integrators call them, and their ratio is taken there. The error is that of the
accelerations over the largest one, against the oracle.

Reactions by the schemes (35), (37), (38) of Blajer 1994 are timed with the same dense routines (LAPACK by NumPy) once
M, h, J and the accelerations are known, and compared with `loopdyn.reactions`, which covers all joints.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported: one core for all

import numpy as np
from common import Figure, command_line, repeated, save, settings, shortest, show

import loopdyn as ld
from loopdyn.engine.jit import kernel
from loopdyn.formulations.partition import kernels
from loopdyn.formulations.partition.formulation import PartitionSolver
from loopdyn.loops.rank import decide

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.literature.blajer1994 import scheme_35, scheme_37, scheme_38  # the schemes of section 5

SHARE = 0.30  # of an evaluation that a check of the criterion may take


def train(freedoms: int, speeds: int) -> ld.Mechanism:
    """Arm and train of four-bars, all with different lengths."""
    m = ld.Mechanism(f"train k={freedoms} n={speeds}", gravity=(0, -9.81, 0))
    pin, base, at = ld.Revolute(axis=(0, 0, 1)), m.ground, np.zeros(3)

    def link(name: str, parent: object, start: np.ndarray, end: np.ndarray) -> object:
        body = m.add_body(name, ld.Inertia.rod(mass=1.0, start=tuple(start), end=tuple(end), radius=0.02))
        m.add_joint(f"{name}_pin", pin, parent, body, at=tuple(start))
        return body

    for i in range(freedoms - 1):
        base, at = link(f"arm{i}", base, at, at + [0.5, 0.1 * (-1) ** i, 0]), at + [0.5, 0.1 * (-1) ** i, 0]
    cells = (speeds - freedoms) // 2
    foot, tip = at, at + [0.05, 0.4, 0.0]
    rocker = link("rocker0", base, foot, tip)
    for i in range(cells):
        foot, end = foot + [0.5, 0.0, 0.0], tip + [0.5 + 0.013 * np.sin(i), 0.02 * np.cos(2.0 * i), 0.0]
        coupler = link(f"coupler{i}", rocker, tip, end)
        rocker, tip = link(f"rocker{i + 1}", base, foot, end), end
        m.add_joint(f"end{i}", pin, coupler, rocker, at=tuple(end))
    return m


@kernel
def evaluations(ints, floats, work, times):
    status = 0
    for k in range(times):
        work[1] += 1e-9 * (1 - 2 * (k % 2))
        status += kernels.accelerate(ints, floats, work)
    return status


@kernel
def checks(ints, floats, work, times):
    status = 0
    for _ in range(times):
        status += kernels.check(ints, floats, work)
    return status


def measured(m: ld.Mechanism, quick: bool, q: dict[str, float] | None = None) -> list[Figure]:
    system = ld.library.turned(m).compile()
    state = ld.assemble(system, q=q or {}, v=np.random.default_rng(0).normal(size=system.nv))
    rank = decide(system, state)
    solver = PartitionSolver(system, rank, ld.Partition())
    at = state.t, state.q, state.v
    others = {name: ld.prepare(system, name, state) for name in ("graph", "relative", "oracle")}
    exact = others["oracle"](*at).a
    calls = {name: repeated(lambda s=s: s(*at)) for name, s in ({"partition": solver} | others).items()}
    solver(*at)
    fast = {"partition": solver, "graph": others["graph"]}
    calls |= {f"{name}, accelerations alone": repeated(lambda s=s: s.accelerations(*at)) for name, s in fast.items()}
    calls["evaluation"] = lambda times: evaluations(*solver.calls.arrays, times)
    calls["check"] = lambda times: checks(*solver.calls.arrays, times)
    times = shortest(calls, 3 if quick else 20, 0.02)
    name = f"{m.name}: n = {system.nv}, k = {solver.freedoms}, {system.nc} rows"

    def error(s) -> float:
        return float(np.abs(s(*at).a - exact).max() / np.abs(exact).max())

    figures = [
        Figure(f"{name}; called from Python: {f}", 1e6 * times[f], "us", error=error(s))
        for f, s in ({"partition": solver} | others).items()
    ]
    for f in fast:
        alone = f"{f}, accelerations alone"
        figures.append(Figure(f"{name}; called from Python: {alone}", 1e6 * times[alone], "us"))
    figures.append(Figure(f"{name}; compiled: one evaluation", 1e6 * times["evaluation"], "us"))
    figures.append(Figure(f"{name}; compiled: one check of the criterion", 1e6 * times["check"], "us"))
    figures.append(Figure(f"{name}; check over evaluation", times["check"] / times["evaluation"], "", SHARE))
    return figures


def schemes(m: ld.Mechanism, quick: bool) -> list[Figure]:
    system = ld.library.turned(m).compile()
    state = ld.assemble(system, v=np.random.default_rng(0).normal(size=system.nv))
    solver = PartitionSolver(system, decide(system, state), ld.Partition())
    a = solver(state.t, state.q, state.v).a
    P = solver.calls.views
    B, xi, D = P.J[P.rows].copy(), np.zeros(system.nv), np.zeros((solver.freedoms, system.nv))
    xi[P.D] = P.xi[:, 0]
    D[np.arange(len(P.I)), P.I], D[:, P.D] = 1.0, P.A.T
    M, h = P.M.copy(), P.h.copy()
    calls = {
        "(35)": lambda: scheme_35(M, h, B, xi),
        "(37)": lambda: scheme_37(M, h, B, D, a),
        "(38)": lambda: scheme_38(M, h, B, a),
        "loopdyn.reactions, all joints, preparation included": lambda: ld.reactions(system, state, a),
    }
    times = shortest({k: repeated(f) for k, f in calls.items()}, 3 if quick else 20, 0.02)
    name = f"{m.name}: n = {system.nv}, {len(B)} reactions; reactions by"
    return [Figure(f"{name} {k}", 1e6 * t, "us") for k, t in times.items()]


def main(given: list[str] | None = None) -> int:
    options = command_line(__doc__, given)
    sizes = [(1, 9), (3, 15)] if options.quick else [(k, n) for k in range(1, 7) for n in (k + 8, k + 24, k + 54)]
    figures: list[Figure] = []
    for k, n in sizes:
        figures += measured(train(k, n), options.quick)
    if not options.quick:
        # at the reference pose the links hang down and all accelerations are zero, as are those that errors refer to
        figures += measured(ld.library.n_four_bar(29), options.quick, {"A0": 0.4})
        figures += measured(ld.library.star_ladder(19), options.quick)
    for k, n in sizes[-1:] if options.quick else [(1, 9), (1, 25), (1, 55), (6, 60)]:
        figures += schemes(train(k, n), options.quick)
    facts = settings(["numpy", "numba"]) | {"threads of LAPACK": os.environ["OPENBLAS_NUM_THREADS"]}
    show(figures, facts)
    save(figures, facts, options)
    return 0 if all(f.met is not False for f in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
