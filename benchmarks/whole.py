"""What a user waits for: public calls beside the prepared solver that they are made around, in one run.

    python benchmarks/whole.py [--quick] [--json FILE] [--markdown FILE]

Every call is measured as a second one, at states that differ from call to call where it has a state; large systems are
new ones each time, with kernels that are compiled. "above" is the difference to the prepared call at the same states.
The error is that of the accelerations against the dense oracle. Many motions at once: `benchmarks/rollout.py`; growth
of `graph` with the number of bodies: `benchmarks/graph.py`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import cycle

import numpy as np
from common import Figure, command_line, in_new_process, repeated, save, settings, shortest, show
from tree import links, loopdyn_chain, pinocchio_chain, state

import loopdyn as ld

ABOVE = 10.0  # us that `ld.accelerations` may take above the prepared call
PEER = 1.5  # times the call of Pinocchio, for a chain of 100


def models() -> dict[str, tuple[ld.System, ld.State]]:
    """Systems with a state each."""
    found = {}
    for name, m in (("four-bar", ld.library.four_bar()), ("6-UPS", ld.library.stewart_6ups())):
        system = m.compile()
        found[name] = system, ld.assemble(system)
    system, (q, v, _) = loopdyn_chain(links(100)).compile(), state(100)
    found["chain of 100"] = system, ld.State(0.0, q, v)
    return found


def one_state(name: str, system: ld.System, at: ld.State, repeats: int, seconds: float) -> list[Figure]:
    """Accelerations and reactions at states with other speeds."""
    solve = ld.prepare(system, "auto", at)
    states = cycle([ld.State(at.t, at.q, k * at.v) for k in (1.0, 0.5, -1.0)])
    exact = ld.accelerations(system, at, "oracle")
    error = float(np.abs(ld.accelerations(system, at) - exact).max() / np.abs(exact).max())

    def prepared() -> object:
        s = next(states)
        return solve(s.t, s.q, s.v)

    calls = {
        "prepared": repeated(prepared),
        "accelerations": repeated(lambda: ld.accelerations(system, next(states))),
        "reactions": repeated(lambda: ld.reactions(system, next(states))),
        "prepare": repeated(lambda: ld.prepare(system, "auto", at)),
    }
    if name.startswith("chain") and find_spec("pinocchio") is not None:
        import pinocchio as pin

        model = pinocchio_chain(links(100))
        data, still = model.createData(), np.zeros(100)
        calls["pin.aba"] = repeated(lambda: pin.aba(model, data, at.q, at.v, still))
    best = shortest(calls, repeats, seconds)
    above = best["accelerations"] - best["prepared"]
    figures = [Figure(f"{name}: {what}", t * 1e6, "us") for what, t in best.items()]
    figures[1].error = error
    figures.append(Figure(f"{name}: accelerations above the prepared call", above * 1e6, "us", ABOVE))
    if "pin.aba" in best:
        figures.append(Figure(f"{name}: accelerations / pin.aba", best["accelerations"] / best["pin.aba"], "", PEER))
    return figures


def seconds_of(call: Callable[[], object], repeats: int) -> float:
    """Shortest time of a call."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return float(best)


def one_run(system: ld.System, at: ld.State, repeats: int) -> list[Figure]:
    """A run of 1 s with 101 outputs, what of it is not spent from the first step to the last, and its outputs."""
    times, whole, around = np.linspace(0.0, 1.0, 101), np.inf, np.inf
    made = []
    for _ in range(repeats + 1):
        made.append(ld.simulate(system, at, (0, 1), t_eval=times, rtol=1e-8, progress=False))
        statistics = made[-1].statistics
        whole, around = min(whole, statistics.seconds), min(around, statistics.seconds - statistics.integrating)
    solve = ld.prepare(system, "graph", at)
    graph = shortest({"graph": repeated(lambda: solve(at.t, at.q, at.v))}, repeats, 0.01)["graph"]
    runs = iter(made)
    q = seconds_of(lambda: next(runs).data["q"].values, len(made) // 4)
    labelled = seconds_of(lambda: next(runs).data["wrench"].values, len(made) // 4)
    reactions = seconds_of(lambda: next(runs).wrench, len(made) // 4)  # the arrays behind the labels
    everything = seconds_of(lambda: next(runs).data.load(), len(made) // 4)
    name = "four-bar, 101 outputs"
    return [
        Figure("four-bar: simulate 1 s, rtol 1e-8, 101 outputs", whole * 1e3, "ms", 3.0),
        Figure("four-bar: ... of it before the first step and after the last", around * 1e3, "ms", 1.0),
        Figure(f"{name}: run.data['q']", q * 1e3, "ms"),
        Figure(f"{name}: run.data['wrench']", labelled * 1e3, "ms"),
        Figure(f"{name}: ... of it the reactions, without labels", reactions * 1e3, "ms"),
        Figure(f"{name}: run.data.load()", everything * 1e3, "ms", 8.0),
        Figure(f"{name}: reactions of one output / evaluation of graph", reactions / 101 / graph, "", 3.0),
    ]


def other_numbers(repeats: int) -> list[Figure]:
    """A four-bar with another crank."""
    m = ld.library.four_bar()
    system, lengths = m.compile(), cycle(np.linspace(0.30, 0.31, 97).tolist())
    calls = {
        "system.with_parameters": lambda: system.with_parameters(crank=next(lengths)),
        "m.with_(...).compile()": lambda: m.with_(crank=next(lengths)).compile(),
    }
    best = shortest({name: repeated(call) for name, call in calls.items()}, repeats, 0.02)
    return [
        Figure(f"four-bar: {name}", t * 1e3, "ms", goal)
        for (name, t), goal in zip(best.items(), (0.3, None), strict=True)
    ]


# Prints a dict of seconds, and the memory of the process in GB.
LARGE = """
import json, resource, time
import loopdyn as ld
from loopdyn.loops.elimination.plan import plan_elimination

def timed(call):
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start

def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024e-9

small = ld.library.star_ladder(3).compile()
ld.accelerations(small, ld.assemble(small))
ld.mobility(small, ld.assemble(small))
windows = ld.library.n_four_bar(3).compile()
ld.mobility(windows, windows.state())
"""
ASSEMBLED = """
system = ld.library.star_ladder(2000).compile()
state, assembling = timed(lambda: ld.assemble(system))
_, evaluating = timed(lambda: ld.accelerations(system, state))
print(json.dumps({"assemble and accelerations, 4,001 bodies": assembling + evaluating, "memory": memory()}))
"""
GROWTH = """
found = {}
for n in (100, 300, 1000):
    system = ld.library.star_ladder(n).compile()
    state, found[f"assemble, {system.nb:,} bodies"] = timed(lambda: ld.assemble(system))
    _, found[f"mobility, {system.nb:,} bodies"] = timed(lambda: ld.mobility(system, state))
for n in (100, 300, 1000):
    system = ld.library.n_four_bar(n).compile()
    _, found[f"mobility, n_four_bar({n})"] = timed(lambda: ld.mobility(system, system.state()))
print(json.dumps(found))
"""
COMPILED = """
m = ld.library.star_ladder(50_000)
system, compiling = timed(m.compile)
_, planning = timed(lambda: plan_elimination(system))
print(json.dumps({"compile(), 100,001 bodies": compiling, "its plan": planning}))
"""
GOALS = {
    "assemble, 2,001 bodies": 1.0,
    "mobility, 2,001 bodies": 5.0,
    "mobility, n_four_bar(1000)": 5.0,
    "assemble and accelerations, 4,001 bodies": 3.0,
    "memory": 0.6,
    "compile(), 100,001 bodies": 10.0,
    "its plan": 10.0,
}


def large(quick: bool) -> list[Figure]:
    """Systems of thousands of bodies, in processes of their own."""
    found = {}
    for code in (GROWTH, ASSEMBLED) if quick else (GROWTH, ASSEMBLED, COMPILED):
        found |= json.loads(in_new_process(LARGE + code)[1])
    return [Figure(f"large: {n}", x, "GB" if n == "memory" else "s", GOALS.get(n)) for n, x in found.items()]


def passages(quick: bool) -> list[Figure]:
    """A run through singular poses, beside one of the same length through none."""
    system = ld.library.n_four_bar(2).compile()
    start, span = ld.assemble(system, v={system.speeds[0]: 8.0}), (0.0, 10.0 if quick else 100.0)
    ld.simulate(system, start, (0.0, 2.0), progress=False)
    begin = time.perf_counter()
    run = ld.simulate(system, start, span, progress=False)
    each = (time.perf_counter() - begin) / len(run.passages)
    return [Figure(f"n_four_bar(2), {span[1]:g} s: a singular passage, steps included", each * 1e3, "ms", 10.0)]


def two_threads(repeats: int) -> list[Figure]:
    """Two systems simulated one after the other, and by two threads."""
    systems = [ld.library.four_bar().compile() for _ in range(2)]
    starts = [ld.assemble(system, v={"A": 6.0}) for system in systems]

    def simulate(k: int) -> object:
        return ld.simulate(systems[k], starts[k], (0, 100), t_eval=[100.0], progress=False)

    with ThreadPoolExecutor(2) as pool:
        calls = {
            "one": lambda: [simulate(0), simulate(1)],
            "two": lambda: list(pool.map(simulate, (0, 1))),
        }
        best = dict.fromkeys(calls, np.inf)
        for _ in range(repeats):  # in turn: the speed of a machine varies in time
            for name, call in calls.items():
                best[name] = min(best[name], seconds_of(call, 1))
    return [Figure("two threads on two systems: time / that of one thread", best["two"] / best["one"], "", 1 / 1.8)]


def main(given: list[str] | None = None) -> int:
    options = command_line(__doc__ or "", given)
    repeats, seconds = (3, 0.005) if options.quick else (30, 0.02)
    found = models()
    figures = [f for name, (system, at) in found.items() for f in one_state(name, system, at, repeats, seconds)]
    figures += one_run(*found["four-bar"], repeats)
    figures += other_numbers(repeats)
    figures += passages(options.quick)
    figures += two_threads(3 if options.quick else 30)
    figures += large(options.quick)
    facts = settings(["numba", "numpy", *(["pin"] if find_spec("pinocchio") is not None else [])])
    show(figures, facts)
    save(figures, facts, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
