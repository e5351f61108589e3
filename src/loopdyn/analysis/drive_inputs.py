"""Inputs of a kinematic analysis: ranges, or motions in time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.path_following import Inputs
from loopdyn.constraints import Driver
from loopdyn.errors import LoopdynError, ModelError, warn
from loopdyn.forces.base import Table, law_program
from loopdyn.quantities.profiles import Profile
from loopdyn.system.system import System, TableUse
from loopdyn.tree.tables import leave_table

Array = NDArray[np.float64]

POINTS = 361  # default number of steps of a range: a turn by degrees
MOST_POINTS = 1_000_000  # most points of a range: more is a mistake
MANY_TURNS = 10.0  # turns of a range in rad: more are likely degrees


@dataclass(frozen=True)
class InputCourse:
    """Motion of the inputs: pieces, each with its function, its parameter values and its first value."""

    labels: tuple[str, ...]
    parameter: str
    pieces: tuple[tuple[Inputs, Array], ...]  # the targets of a piece begin with the last one of the piece before
    start: Array  # values of the inputs at the first target
    unit: float  # natural unit of the parameter
    time: float = 0.0  # at the first target of a motion


def course_of(system: System, given: Mapping[str, Any], times: Any) -> InputCourse:
    """Motion of the inputs, from checked arguments."""
    labels = tuple(given)
    in_time = [isinstance(m, (str | Profile | Table, Mapping)) for m in given.values()]
    if any(in_time) and not all(in_time):
        raise LoopdynError("some inputs have a range and others a motion in time. Give only ranges or only motions.")
    if all(in_time):
        return _motion_course(system, given, times)
    if times is not None:
        raise LoopdynError("times are given for a range, which has none. Leave them out, or give a motion of t.")
    sizes = {"angle": 1.0, "length": system.size}
    dimensions = [system.labels.scalars[label].dimension for label in labels]
    factors = [system.units.factor(d) for d in dimensions]
    values = [_range(label, m) * f for (label, m), f in zip(given.items(), factors, strict=True)]
    if system.units.angle == "rad":
        _note_many_turns({n: v for n, d, v in zip(labels, dimensions, values, strict=True) if d == "angle"})
    if len({len(v) for v in values}) > 1:
        counts = ", ".join(f"{label}: {len(v)}" for label, v in zip(labels, values, strict=True))
        raise LoopdynError(f"the inputs have ranges of different lengths ({counts}). Give all of them as many steps.")
    u = np.array(values).T
    if len(labels) == 1:
        one, none = np.ones(1), np.zeros(1)
        return InputCourse(
            labels, "input", ((lambda s: (np.array([s]), one, none), u[:, 0]),), u[0], sizes[dimensions[0]]
        )
    shares = np.linspace(0.0, 1.0, len(u))
    straight = np.abs(np.diff(u, 2, axis=0)).max(initial=0.0) <= 1e-12 * np.abs(u).max()
    ends = [0, len(u) - 1] if straight else range(len(u))
    pieces = []
    for i, j in itertools.pairwise(ends):
        pieces.append((straight_line(u[i], u[j], shares[i], shares[j]), shares[i : j + 1]))
    return InputCourse(labels, "share", tuple(pieces), u[0], 1.0)


def straight_line(u0: Array, u1: Array, s0: float, s1: float) -> Inputs:
    """Linear function from values u0 at s0 to u1 at s1."""
    slope, none = (u1 - u0) / (s1 - s0), np.zeros(len(u0))
    return lambda s: (u0 + slope * (s - s0), slope, none)


def _range(label: str, given: Any) -> Array:
    hint = "Give (start, stop), (start, stop, n), a list of values, a profile, or a formula of t."
    try:
        numbers = np.asarray(given, float)
    except (TypeError, ValueError, OverflowError):
        numbers = np.zeros(0)
    if numbers.ndim != 1 or len(numbers) < 2 or not np.isfinite(numbers).all():
        raise LoopdynError(f"the motion of '{label}' is not clear. {hint}")
    if isinstance(given, tuple):
        if len(given) > 3 or (len(given) == 3 and not (given[2] == int(given[2]) and 2 <= given[2] <= MOST_POINTS)):
            between = f"n from 2 to {MOST_POINTS:,}"
            raise LoopdynError(f"the range of '{label}' is not clear: a tuple is (start, stop, n), {between}. {hint}")
        numbers = np.linspace(numbers[0], numbers[1], POINTS if len(given) == 2 else int(given[2]))
    return numbers


def _note_many_turns(ranges: Mapping[str, Array]) -> None:
    """Warn of ranges in rad that are probably in degrees."""
    for label, values in ranges.items():
        turns = float(np.ptp(values)) / (2.0 * np.pi)
        if turns > MANY_TURNS:
            text = f"'{label}' is driven over {np.ptp(values):g} rad, {turns:.3g} turns. If degrees are meant, use "
            text += "np.radians(...), or declare units: {angle: deg} in the model."
            warn(text)


def span_of_profiles(system: System, motions: Mapping[str, Any]) -> tuple[float, float]:
    """First and last time of motions in time, s: the whole of the longest profile, of an endless one a cycle."""
    r = system.mechanism.resolver()
    laws = [Driver(joint=label, motion=law).motion for label, law in motions.items()]  # profiles may be mappings
    found = [law.resolve(r, "motion", ()) for law in laws if isinstance(law, Profile)]
    curves = [curve for curve in found if curve is not None]
    ends = [c.duration if np.isfinite(c.duration) else c.cycle_time for c in curves]
    if not any(np.isfinite(ends)):
        raise LoopdynError("a motion in time needs times. Give t_span=(start, stop) in s.")
    return 0.0, max(x for x in ends if np.isfinite(x))


def _motion_course(system: System, given: Mapping[str, Any], times: Any) -> InputCourse:
    r = system.mechanism.resolver()
    programs = []
    for label, law in given.items():
        element = f"motion of '{label}'"
        motion = Driver(joint=label, motion=law).motion  # raises if the form is wrong
        dimension = system.labels.scalars[label].dimension
        programs.append(law_program(motion, {"t": "number"}, dimension, r, element, (), motion=True))
    if r.problems:
        raise ModelError(dict.fromkeys(r.problems))
    t = _range("times", span_of_profiles(system, given) if times is None else times)
    for element, of, lookup in r.tables:
        if lookup.left_by(float(t.min())) or lookup.left_by(float(t.max())):
            leave_table(TableUse(element, of, lookup), f": times go from {t.min():g} to {t.max():g} s")

    def inputs(s: float) -> tuple[Array, Array, Array]:
        jets = np.array([p.jet([(s, 1.0, 0.0)]) for p in programs])
        return jets[:, 0], jets[:, 1], jets[:, 2]

    return InputCourse(
        tuple(given), "time", ((inputs, t),), inputs(float(t[0]))[0], float(np.ptp(t)) or 1.0, float(t[0])
    )
