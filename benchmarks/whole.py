"""What a user waits for: public calls beside the prepared solver that they are made around, in one run.

    python benchmarks/whole.py [--quick] [--json FILE] [--markdown FILE]

Every call is measured as a second one, at states that differ from call to call where it has a state. "above" is the
difference to the prepared call at the same states. The error is that of the accelerations against the dense oracle.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from itertools import cycle

import numpy as np
from common import Figure, command_line, repeated, save, settings, shortest, show
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


def one_run(system: ld.System, at: ld.State, repeats: int) -> list[Figure]:
    """A run of 1 s with 101 outputs, and what of it is not spent from the first step to the last."""
    times, whole, around = np.linspace(0.0, 1.0, 101), np.inf, np.inf
    for _ in range(repeats + 1):
        made = ld.simulate(system, at, (0, 1), t_eval=times, rtol=1e-8, progress=False).statistics
        whole, around = min(whole, made.seconds), min(around, made.seconds - made.integrating)
    return [
        Figure("four-bar: simulate 1 s, rtol 1e-8, 101 outputs", whole * 1e3, "ms", 3.0),
        Figure("four-bar: ... of it before the first step", around * 1e3, "ms"),
    ]


def main(given: list[str] | None = None) -> int:
    options = command_line(__doc__ or "", given)
    repeats, seconds = (3, 0.005) if options.quick else (30, 0.02)
    found = models()
    figures = [f for name, (system, at) in found.items() for f in one_state(name, system, at, repeats, seconds)]
    figures += one_run(*found["four-bar"], repeats)
    facts = settings(["numba", "numpy", *(["pin"] if find_spec("pinocchio") is not None else [])])
    show(figures, facts)
    save(figures, facts, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
