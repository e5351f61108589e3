"""Whole runs of `auto` compared with those of its parts, on regular motions; momentum steps against size.

    python benchmarks/auto.py [--quick] [--json FILE] [--markdown FILE]

Every run is 1 s (Andrews' squeezer 0.03 s; Bennett's linkage 20 s, with low indicators again and again) at a tolerance
of 1e-8; times are those of the integration alone, the shortest of several in turns. Goal: at most 1.3 times the fastest
part. Steps of `momentum` are timed on n_four_bar with dense matrices and by elimination.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
from common import Figure, command_line, repeated, save, settings, shortest, show

import loopdyn as ld
from loopdyn.formulations.momentum.formulation import MomentumSolver
from loopdyn.formulations.momentum.large import LargeMomentumSolver
from loopdyn.loops.rank import decide

PARTS = ("graph", "rcr", "closure")
NAMES = (
    "pendulum", "four_bar", "slider_crank", "five_bar", "stephenson", "watt", "andrews", "rssr", "bennett", "bricard",
    "stewart_3rrs", "stewart_6ups", "ladder", "star_ladder", "tower",
)  # fmt: skip
LENGTHS = {"andrews": 0.03, "bennett": 20.0}  # of a run in s, where it is not one second
GOAL = 1.3
LARGEST_DENSE, STEP = 80, 5e-3  # windows for which dense steps are made; size of a step in s


def seconds(system: ld.System, state: ld.State, time: float, formulation: str) -> float | None:
    """Time of the integration; None if the formulation does not support the system or does not reach the end."""
    span = (state.t, state.t + time)
    try:
        run = ld.simulate(system, state, span, t_eval=[span[1]], formulation=formulation, progress=False)
    except ld.LoopdynError:
        return None
    return run.statistics.integrating if run.status == "finished" else None


def momentum_steps(sizes: Sequence[int], repeats: int) -> list[Figure]:
    """Times of steps of order two on windows of several sizes, and the growth exponent."""
    figures, ours = [], []
    for count in sizes:
        system = ld.library.n_four_bar(count).compile()
        state = ld.assemble(system)
        rank, regular = decide(system, state), ld.prepare(system, "graph", state)
        calls: dict[str, Callable[[int], object]] = {}
        for name, kind in (("dense", MomentumSolver), ("elimination", LargeMomentumSolver)):
            if name == "elimination" or count <= LARGEST_DENSE:
                solver = kind(system, rank, regular, 2)
                solver.begin(state.t, state.q, state.v)
                calls[name] = repeated(lambda solver=solver: solver.take_steps(STEP, (1.0,)))
        best = shortest(calls, repeats, 0.01)
        ours.append(best["elimination"])
        figures += [Figure(f"step of n_four_bar({count}), {name}", 1e3 * s, "ms") for name, s in best.items()]
    exponent = float(np.polyfit(np.log(sizes), np.log(ours), 1)[0])
    return [*figures, Figure(f"exponent of steps by elimination, {sizes[0]} to {sizes[-1]} windows", exponent, "")]


def main(arguments: list[str] | None = None) -> int:
    given = command_line(__doc__, arguments)
    figures = []
    for name in NAMES[:4] if given.quick else NAMES:
        system = getattr(ld.library, name)().compile()
        state, time = ld.assemble(system), LENGTHS.get(name, 1.0)
        best: dict[str, float] = {}
        for _ in range(3 if given.quick else 10):
            for f in (*PARTS, "auto"):
                took = seconds(system, state, time, f)
                if took is not None:
                    best[f] = min(best.get(f, took), took)
        fastest = min((f for f in best if f != "auto"), key=lambda f: best[f])
        figures += [Figure(f"{name} by {f}", 1e3 * s, "ms") for f, s in best.items()]
        figures.append(Figure(f"{name}: auto over {fastest}", best["auto"] / best[fastest], "", GOAL))
    figures += momentum_steps([10, 20] if given.quick else [10, 20, 40, 80, 200, 500, 1000], 3 if given.quick else 10)
    facts = settings(("numba", "llvmlite", "numpy"))
    save(figures, facts, given)
    show(figures, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
