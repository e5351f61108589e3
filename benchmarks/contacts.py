"""Cost of contacts: those that are not touched, and those that a mechanism rests on, each beside the one without.

    python benchmarks/contacts.py [--quick] [--json FILE] [--markdown FILE]

The crank of a four-bar swings for 20 s well inside two stops of its angle, or one of a distance, or beside a point
above a line. A 6-UPS platform rests for 10 s on the stops of its six legs, or sinks on its springs without them. Times
are those of the integration, the shortest of ten turns, in which all run one after the other.
"""

from __future__ import annotations

import sys

import numpy as np
from common import Figure, command_line, save, settings, show

import loopdyn as ld
from loopdyn.constraints import LineShape, PointShape

TURNS = 10
MOST = 1.1  # times the run without contacts
UNTOUCHED = ("two stops", "a stop of a distance", "a point above a line")


def four_bar(contacts: str) -> ld.System:
    """The library's four-bar, with damping at the crank so that it swings and stays inside."""
    m = ld.library.four_bar()
    m.add_force("damper", ld.forces.JointSpring(joint="A", stiffness=50.0, damping=0.05))
    first, _, last = m.bodies
    if contacts == "two stops":
        m.add_contact("left", ld.contacts.Stop(joint="A", lower=-3.0))
        m.add_contact("right", ld.contacts.Stop(joint="A", upper=3.0))
    elif contacts == "a stop of a distance":
        points = {"point1": (0, 0, 0), "point2": (0.5, 1, 0)}
        m.add_contact("rope", ld.contacts.Stop(body1=first, body2=last, **points, upper=50.0))
    elif contacts == "a point above a line":
        line, point = LineShape(through=(0, -20, 0), outward=(0, 1, 0)), PointShape(at=(0.5, 1, 0))
        m.add_contact("floor", ld.contacts.Contact(body1="ground", shape1=line, body2=last, shape2=point))
    return m.compile()


def integrations(systems: list[ld.System], end: float, turns: int) -> list[float]:
    """Shortest time of the integration of each system, s."""
    times = np.full(len(systems), np.inf)
    for _ in range(turns):
        for k, system in enumerate(systems):
            run = ld.simulate(system, system.state(), (0.0, end), progress=False).raise_if_failed()
            times[k] = min(times[k], run.statistics.integrating)
    return times.tolist()


def main(given: list[str] | None = None) -> int:
    options = command_line(__doc__ or "", given)
    turns = 1 if options.quick else TURNS
    without, *touched = integrations([four_bar(kind) for kind in ("none", *UNTOUCHED)], 20.0, turns)
    figures = [Figure("four-bar, 20 s: integration", without, "s")]
    figures += [
        Figure(f"{kind}, not touched: time / without", time / without, "", MOST)
        for kind, time in zip(UNTOUCHED, touched, strict=True)
    ]
    platforms = [ld.library.stewart_6ups(stops=stops).compile() for stops in (False, True)]
    moving, resting = integrations(platforms, 10.0, turns)
    figures += [
        Figure("6-UPS platform, 10 s on its springs: integration", moving, "s"),
        Figure("6-UPS platform at rest on six stops: time / on its springs", resting / moving, "", 1.0),
    ]
    facts = settings(["numba", "numpy"])
    show(figures, facts)
    save(figures, facts, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
