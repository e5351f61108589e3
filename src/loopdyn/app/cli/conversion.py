"""Numbers of commands in the units of the file, as functions of the library that take or give SI units need them.

Functions of the library that follow the units of the mechanism themselves need nothing of this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopdyn.model.mechanism import Mechanism
    from loopdyn.results.run import Run
    from loopdyn.system.system import System


def in_si(mechanism: Mechanism, dimension: str, value: float) -> float:
    """SI value of a number in the units of the file.

    Examples
    --------
    >>> import loopdyn as ld
    >>> in_si(ld.Mechanism("drawing", units={"length": "mm"}), "length", 250.0)
    0.25
    """
    return value * mechanism.units.factor(dimension)


def pair_of_tolerances(angle: float | None, length: float | None) -> tuple[float, float] | None:
    """Tolerances of assembly of angles and lengths, in the units of the file; None if none was given."""
    if angle is None and length is None:
        return None
    return angle or 0.0, length or 0.0


def final_state(run: Run) -> dict[str, dict[str, float]]:
    """Last coordinates and speeds of a run, by label, in the units of the file."""
    system, path = run.system, run.path
    if not len(path):
        return {"q": {}, "v": {}}

    def shown(labels: tuple[str, ...], values: list[float]) -> dict[str, float]:
        return {k: x / in_si(system.mechanism, _dimension(system, k), 1.0) for k, x in zip(labels, values, strict=True)}

    return {"q": shown(system.coordinates, path.q[-1].tolist()), "v": shown(system.speeds, path.v[-1].tolist())}


def _dimension(system: System, label: str) -> str:
    known = system.labels
    return (known.coordinates if label in known.coordinates else known.speeds)[label].dimension
