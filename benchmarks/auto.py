"""Whole runs by `auto` beside those of its parts: time, on mechanisms whose motion is regular.

    python benchmarks/auto.py [--quick] [--json FILE] [--markdown FILE]

Every run is 1 s (Andrews' squeezer 0.03 s) at a tolerance of 1e-8; times are those of integrating alone, the shortest
of several in turns. Goal: at most 1.3 of the fastest part.
"""

from __future__ import annotations

import sys

from common import Figure, command_line, save, settings, show

import loopdyn as ld

PARTS = ("graph", "rcr", "closure")
NAMES = (
    "pendulum", "four_bar", "slider_crank", "five_bar", "stephenson", "watt", "andrews", "rssr", "bennett", "bricard",
    "stewart_3rrs", "stewart_6ups", "ladder", "star_ladder", "tower",
)  # fmt: skip
GOAL = 1.3


def seconds(system: ld.System, state: ld.State, time: float, formulation: str) -> float | None:
    """Of integrating; None if the formulation cannot treat the system or does not reach the end."""
    span = (state.t, state.t + time)
    try:
        run = ld.simulate(system, state, span, t_eval=[span[1]], formulation=formulation, progress=False)
    except ld.LoopdynError:
        return None
    return run.statistics.integrating if run.status == "finished" else None


def main(arguments: list[str] | None = None) -> int:
    given = command_line(__doc__, arguments)
    figures = []
    for name in NAMES[:4] if given.quick else NAMES:
        system = getattr(ld.library, name)().compile()
        state, time = ld.assemble(system), 0.03 if name == "andrews" else 1.0
        best: dict[str, float] = {}
        for _ in range(3 if given.quick else 10):
            for f in (*PARTS, "auto"):
                took = seconds(system, state, time, f)
                if took is not None:
                    best[f] = min(best.get(f, took), took)
        fastest = min((f for f in best if f != "auto"), key=lambda f: best[f])
        figures += [Figure(f"{name} by {f}", 1e3 * s, "ms") for f, s in best.items()]
        figures.append(Figure(f"{name}: auto over {fastest}", best["auto"] / best[fastest], "", GOAL))
    facts = settings(("numba", "llvmlite", "numpy"))
    save(figures, facts, given)
    show(figures, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
