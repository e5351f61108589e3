"""Events on measures: formulas of points, coordinates and speeds as event functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError
from loopdyn.quantities.expressions import parse
from loopdyn.results.measures import Measured, Path
from loopdyn.system.measures import LEVELS, SPEED, compiled_formula
from loopdyn.system.system import System

Array = NDArray[np.float64]


def names_measures(text: str) -> bool:
    """Whether a formula has names besides ``t``, so that it is one of measures and labels.

    Examples
    --------
    >>> names_measures("t - 1"), names_measures("lift - 20"), names_measures("distance(P, Q) - 20")
    (False, True, True)
    """
    return bool(parse(text, with_terms=True).names - {"t"})


class MeasureFunction:
    """Event function ``f(t, q, v)`` of a formula in the units of the model, whose angles are continuous.

    Angles keep the turns that bring them, by their rates, nearest to their last values: at half a turn there is
    no jump, and so no event.
    """

    def __init__(self, system: System, text: str, name: str):
        element = f"event '{name}'"
        self.system, self.formula = system, compiled_formula(system, text, element)
        if self.formula.level > SPEED:
            raise LoopdynError(
                f"{element}: '{text}' depends on {LEVELS[self.formula.level]}, which are not known between outputs. "
                "Use positions and speeds in events, or search the outputs of the run."
            )
        self._last: tuple[Array, ...] = ()  # time, coordinates and speeds, each with one row
        self._angles: dict[str, float] = {}  # there, with their full turns

    def __call__(self, t: float, q: Array, v: Array) -> float:
        """Value at a state."""
        now = np.array([t]), np.array(q, float)[None], np.array(v, float)[None]
        both = [np.concatenate(x) for x in zip(self._last, now, strict=True)] if self._last else now
        path = Path(both[0], both[1], both[2], np.zeros_like(both[2]), both[0])
        found = Measured(self.system, path, turns=self._angles)
        value = float(found.of(self.formula)[-1])
        self._last, self._angles = now, found.ends
        return value

    def save(self) -> Array:
        """Last state and its angles as one array, for a checkpoint."""
        return np.concatenate([*(x.ravel() for x in self._last), np.array(list(self._angles.values()))])

    def restore(self, saved: Array) -> None:
        """Restore the data of :meth:`save`."""
        if not len(saved):
            return
        nq, nv = self.system.nq, self.system.nv
        self(float(saved[0]), saved[1 : 1 + nq], saved[1 + nq : 1 + nq + nv])  # which angles there are
        self._angles = dict(zip(self._angles, saved[1 + nq + nv :].tolist(), strict=True))


def of_measures(system: System, event: Any) -> Any:
    """A crossing whose formula of measures and labels has become a function; others as they are."""
    text = event.function
    if not isinstance(text, str) or event.coordinates or event.speeds or not names_measures(text):
        return event
    return replace(event, function=MeasureFunction(system, text, event.name))


def measured_functions(crossings: Iterable[Any]) -> list[tuple[str, MeasureFunction]]:
    """Event functions that are measures, by names for a file."""
    found = enumerate(w.event.function for w in crossings)
    return [(f"measured {k}", f) for k, f in found if isinstance(f, MeasureFunction)]
