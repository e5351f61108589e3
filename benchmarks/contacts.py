"""Cost of contacts that are not touched: a four-bar with two stops beside the one without, in one run.

    python benchmarks/contacts.py [--quick] [--json FILE] [--markdown FILE]

The crank swings for 20 s well inside the stops. Times are those of the integration, the shortest of ten turns, in
which both run one after the other.
"""

from __future__ import annotations

import sys

import numpy as np
from common import Figure, command_line, save, settings, show

import loopdyn as ld

TURNS = 10
MOST = 1.1  # times the run without stops


def four_bar(stops: bool) -> ld.System:
    """The library's four-bar, with damping at the crank so that it swings and stays inside."""
    m = ld.library.four_bar()
    m.add_force("damper", ld.forces.JointSpring(joint="A", stiffness=50.0, damping=0.05))
    if stops:
        m.add_contact("left", ld.contacts.Stop(joint="A", lower=-3.0))
        m.add_contact("right", ld.contacts.Stop(joint="A", upper=3.0))
    return m.compile()


def main(given: list[str] | None = None) -> int:
    options = command_line(__doc__ or "", given)
    systems = [four_bar(False), four_bar(True)]
    times = np.full(2, np.inf)
    for _ in range(1 if options.quick else TURNS):
        for k, system in enumerate(systems):
            run = ld.simulate(system, system.state(), (0.0, 20.0), progress=False).raise_if_failed()
            times[k] = min(times[k], run.statistics.integrating)
    figures = [
        Figure("four-bar, 20 s: integration", float(times[0]), "s"),
        Figure("four-bar, 20 s: integration with two stops", float(times[1]), "s"),
        Figure("stops that are not touched: time / without", float(times[1] / times[0]), "", MOST),
    ]
    facts = settings(["numba", "numpy"])
    show(figures, facts)
    save(figures, facts, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
