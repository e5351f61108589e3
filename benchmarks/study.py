"""Many designs of a four-bar: `ld.study` on threads and processes, beside Exudyn's `ProcessParameterList`, in one run.

    python benchmarks/study.py [--quick] [--json FILE] [--markdown FILE]

500 variants of the four-bar, runs of 1 s, peaks of all determinate bearing loads. "Beside its steps" is the time of a
design on one thread minus that of the compiled steps in it; "beside ld.rollout" is the time minus that of `ld.rollout`
of the same designs with one reduction, which builds and assembles them, too. The efficiency of processes is that of
four times as many designs, without the time until the first ones are there. Exudyn runs every fifth of the same
mechanisms as trees with loops closed by points, with 1000 steps each, without loads; describing them is not in its
time. Errors are not compared here, see `benchmarks/simulate.py`. Workers mean little where other programs use the
cores: the load is printed.
"""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from typing import Any

import numpy as np
import peers
from common import Figure, command_line, save, settings, show

import loopdyn as ld
from loopdyn.integrators.stepper import Stepper

DESIGNS, SPAN, STEPS = 500, 1.0, 1000
BESIDE = 1.0  # ms, goal
EFFICIENCY = 1 / (2 * 0.85)  # goal: time on two workers over that on one
VARIED = {
    "crank": (0.28, 0.32),
    "g": (9.0, 10.0),
}  # a length, so that the geometry changes; a load, so that it does not


def exudyn_design(values: dict[str, Any]) -> float:
    """Run of one design with Exudyn; its last first coordinate."""
    described, angles, speeds = values["design"]
    q, _ = peers.Exudyn(described, angles, speeds).solve(SPAN, STEPS)
    return float(q[0])


def exudyn_figures(name: str, values: np.ndarray) -> list[Figure]:
    """Time per design of Exudyn on one process and on two."""
    if find_spec("exudyn") is None:
        return []
    import exudyn.processing as processing

    listed = []
    values = values[::5]
    for x in values:
        system = ld.library.four_bar().compile().with_parameters(**{name: x})
        state, described = ld.assemble(system), peers.describe(system)
        listed.append({"design": (described, described.angles(state.q), state.v)})
    figures = []
    for several in (False, True):
        begin = time.perf_counter()
        options = {"numberOfThreads": 2} if several else {}
        processing.ProcessParameterList(exudyn_design, listed, several, showProgress=False, **options)
        each = 1e3 * (time.perf_counter() - begin) / len(values)
        figures.append(Figure(f"{name}: Exudyn, {1 + several} process{'es' * several}, per design", each, "ms"))
    return figures


def study_seconds(name: str, values: np.ndarray, **options: Any) -> float:
    begin = time.perf_counter()
    found = ld.study(ld.library.four_bar(), {name: values}, "peak loads", over=(0, SPAN), progress=False, **options)
    if not found.finished.all():
        raise RuntimeError(str(found.failed))
    return time.perf_counter() - begin


def step_seconds(name: str, values: np.ndarray) -> float:
    """Time of a study on one thread that its compiled steps take."""
    spent, advance = [0.0], Stepper.advance

    def timed(self: Stepper, *given: Any) -> Any:
        begin = time.perf_counter()
        found = advance(self, *given)
        spent[0] += time.perf_counter() - begin
        return found

    Stepper.advance = timed  # type: ignore[method-assign]
    try:
        study_seconds(name, values, executor="threads", workers=1)
    finally:
        Stepper.advance = advance  # type: ignore[method-assign]
    return spent[0]


def process_seconds(name: str, values: np.ndarray, workers: int) -> tuple[float, float]:
    """Time until the first designs are there, and time per design after them, on processes."""
    begin, seen = time.perf_counter(), [(0.0, 0)]

    def note(done: int) -> None:
        if done > seen[-1][1]:
            seen.append((time.perf_counter() - begin, done))

    m = ld.library.four_bar()
    options: dict[str, Any] = {"executor": "processes", "workers": workers, "progress": note}
    ld.study(m, {name: values}, "peak loads", over=(0, SPAN), **options)
    (start, first), (end, last) = seen[1 + workers], seen[-1]  # all of them have begun
    return start, (end - start) / (last - first)


def our_figures(name: str, values: np.ndarray) -> list[Figure]:
    """Time per design on threads and processes, and beside its integration."""
    n, system = len(values), ld.library.four_bar().compile()
    study_seconds(name, values[:4], workers=2)  # compiles
    begin = time.perf_counter()
    ld.rollout(system, None, (0, SPAN), parameters={name: values}, threads=1, reduce="peak", progress=False)
    integration = time.perf_counter() - begin
    one = study_seconds(name, values, executor="threads", workers=1)
    two = study_seconds(name, values, executor="threads", workers=2)
    figures = [
        Figure(f"{name}: ld.study, one thread, per design", 1e3 * one / n, "ms"),
        Figure(f"{name}: beside its steps", 1e3 * (one - step_seconds(name, values)) / n, "ms", BESIDE),
        Figure(f"{name}: beside ld.rollout, one thread", 1e3 * (one - integration) / n, "ms", BESIDE),
        Figure(f"{name}: two threads / one thread", two / one, "", EFFICIENCY),
    ]
    (start, alone), (_, both) = (process_seconds(name, np.tile(values, 4), k) for k in (1, 2))
    figures.append(Figure(f"{name}: two processes / one, {4 * n} designs", both / alone, "", EFFICIENCY))
    figures.append(Figure(f"{name}: start of a process", start, "s"))
    return figures


def main(arguments: list[str] | None = None) -> int:
    given = command_line(__doc__, arguments)
    figures: list[Figure] = []
    facts = settings(["numba", "numpy", "scipy", *(["exudyn"] if find_spec("exudyn") else [])])
    for name, (low, high) in VARIED.items():
        values = np.linspace(low, high, 50 if given.quick else DESIGNS)
        figures += our_figures(name, values) + exudyn_figures(name, values)
        save(figures, facts, given)
    show(figures, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
