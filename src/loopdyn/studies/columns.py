"""Columns of a study: what is measured of each design, from measures, formulas, loads and functions.

A text is a formula of the terms of measures (:mod:`loopdyn.model.measures`), the name of a measure, a bearing load such
as ``C radial force``, or a point such as ``coupler P``, which gives the columns x, y and z. Along a path it stands in a
reduction, ``peak(C.fx)``, or is taken at a time or input, ``x(P) at A=60``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.equilibrium import equilibrium
from loopdyn.analysis.linearize import linearize
from loopdyn.analysis.loads import reactions
from loopdyn.errors import LoopdynError
from loopdyn.model.measures import Measure
from loopdyn.quantities.expressions import parse
from loopdyn.quantities.wording import nearest
from loopdyn.results.bearings import over_time
from loopdyn.system.labels import COMPONENT_DIMENSIONS
from loopdyn.system.measures import CompiledMeasure, compiled_formula
from loopdyn.system.system import System

Array = NDArray[np.float64]
Over = Literal["run", "drive", "equilibrium", "pose"]

REDUCTIONS: Mapping[str, Callable[[Array, Array], Any]] = {
    "peak": lambda x, t: np.abs(x).max(),
    "rms": lambda x, t: np.sqrt(over_time(x**2, t)),
    "mean": over_time,
    "largest": lambda x, t: x.max(),
    "smallest": lambda x, t: x.min(),
    "first": lambda x, t: x[0],
    "last": lambda x, t: x[-1],
}
SPECIAL = {"energy error": ("run",), "reach": ("drive",)}  # numbers of a path as a whole
LOADS = {"peak loads": "peak", "rms loads": "rms"}  # one column for each determinate bearing load
POLES = "poles"  # two columns for each pole of the linear equations about the equilibrium
RESERVED = ("status", "reason", "seconds", "parameters", "parameter", "design", "name")
ELSEWHERE = re.compile(r"^(?P<what>.+?)\s+at\s+(?P<label>[^\s=]+)\s*=\s*(?P<value>[^\s=]+)\s*$")
REDUCED = re.compile(rf"^(?P<how>{'|'.join(REDUCTIONS)})\s*\((?P<inner>.*)\)$")


@dataclass(frozen=True)
class Column:
    """Number that a study finds for each design.

    Attributes
    ----------
    name : str
    text : str
        Formula, load or special quantity; empty for a function.
    reduction : str
        How values along a path become one number; empty if they do not have to.
    at : tuple of (str, float) or None
        Label, "t" or a coordinate, and its value in declared units, at which it is taken.
    load : tuple of (str, str) or None
        Joint and name of a bearing load.
    function : callable or None
        Function of the run, drive, equilibrium or state.
    pole : tuple of (int, str) or None
        Number of a pole, as :meth:`Linearization.poles` orders them, and its part, "re" or "im".
    fixed : bool
        Whether the compiled formula is independent of the parameters.
    """

    name: str
    text: str
    reduction: str = ""
    at: tuple[str, float] | None = None
    load: tuple[str, str] | None = None
    function: Callable[[Any], Any] | None = None
    pole: tuple[int, str] | None = None
    unit: str = ""
    fixed: bool = False

    @property
    def description(self) -> list[Any]:
        """Data by which two columns are compared."""
        return [self.name, self.text, self.reduction, self.at, self.load, self.unit]


def columns_of(system: System, measure: Any, over: Over, along: str = "") -> tuple[Column, ...]:
    """Columns from the argument `measure` of a study; `along`: label of the input of a drive."""
    found: list[Column] = []
    for name, one in _named(system, measure).items():
        if callable(one):
            found.append(Column(name, "", function=one))
            continue
        text = one.formula if isinstance(one, Measure) else one
        if not isinstance(text, str):
            raise LoopdynError(f"measure '{name}' is {one!r}. Give a ld.results.Measure, a formula, or a function.")
        found += _columns(system, name, text.strip(), over, along)
    names = [c.name for c in found]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice or not names:
        raise LoopdynError(f"there are two columns '{twice}'. Rename one." if twice else "there is nothing to measure.")
    taken = next((n for n in names if n in RESERVED), None)
    if taken:
        raise LoopdynError(f"a measure is called '{taken}', as a column of every study. Choose another name.")
    return tuple(found)


def _named(system: System, measure: Any) -> dict[str, Any]:
    """Measures by name."""
    if isinstance(measure, Mapping):
        return {str(name): one for name, one in measure.items()}
    if isinstance(measure, Measure):
        return {"measure": measure}
    if isinstance(measure, str):
        return {measure.strip(): measure}
    if callable(measure):
        return {getattr(measure, "__name__", "value"): measure}
    if isinstance(measure, list | tuple) and all(isinstance(x, str) for x in measure):
        return {x.strip(): x for x in measure}
    raise LoopdynError(
        f"measure is {measure!r}. Give a ld.results.Measure, a formula such as 'peak(C.fx)', a function, or a mapping "
        "of names to them."
    )


def _columns(system: System, name: str, text: str, over: Over, along: str) -> list[Column]:
    if text in LOADS:
        return _all_loads(system, name if name != text else "", LOADS[text], over)
    if text == POLES:
        return _all_poles(system, name if name != text else "", over)
    if text in SPECIAL:
        if over not in SPECIAL[text]:
            raise LoopdynError(f"'{text}' is known over a {SPECIAL[text][0]} only. See over=.")
        unit = "1" if over == "run" else system.units.symbol(system.labels.scalars[along].dimension)
        return [Column(name, text, unit=unit)]
    at, reduction, inner = None, "", text
    found = ELSEWHERE.match(text)
    if found:
        inner, at = found["what"], _place(system, name, found["label"], found["value"], over, along)
    found = REDUCED.match(inner)
    if found:
        reduction, inner = found["how"], found["inner"].strip()
    _check_reduction(name, text, over, at, reduction)
    column = Column(name, inner, reduction, at)
    point = _point(system, name, inner)
    if point:
        parts = [replace(column, name=f"{name}.{x}", text=f"{x}({point})") for x in "xyz"]
        return [_compiled(system, part) for part in parts]
    load = _load(system, inner)
    if load:
        return [_with_load(system, column, load, over)]
    return [_compiled(system, column)]


def _check_reduction(name: str, text: str, over: Over, at: Any, reduction: str) -> None:
    along = over in ("run", "drive")
    if at is not None and reduction:
        raise LoopdynError(f"measure '{name}': '{text}' is reduced and taken at a value. Give one of both.")
    if along and at is None and not reduction:
        raise LoopdynError(
            f"measure '{name}': '{text}' varies along the {over}. Write e.g. peak({text}), {', '.join(REDUCTIONS)}, or "
            f"'{text} at t=0.5'."
        )
    if not along and reduction:
        raise LoopdynError(f"measure '{name}': '{text}' has one value at a {over}. Leave '{reduction}' out.")


def _place(system: System, name: str, label: str, value: str, over: Over, along: str) -> tuple[str, float]:
    """Label and value at which a measure is taken."""
    try:
        number = float(value)
    except ValueError:
        raise LoopdynError(f"measure '{name}': '{value}' after 'at {label}=' is no number.") from None
    allowed = {"run": ["t"], "drive": [along], "pose": [*system.labels.scalars], "equilibrium": []}[over]
    if label not in allowed:
        where = {"run": "at t=...", "drive": f"at {along}=...", "pose": "at a joint coordinate, A=...",
                 "equilibrium": "at the equilibrium alone"}[over]  # fmt: skip
        raise LoopdynError(f"measure '{name}' is taken at '{label}', but here only {where}. {nearest(label, allowed)}")
    return label, number


def _point(system: System, name: str, text: str) -> str:
    """Named point of a text 'P' or 'coupler P'; empty if it is none."""
    points = system.mechanism.points
    *body, point = text.split()
    if point not in points or len(body) > 1 or (not body and (point in system.measures or point in system.labels)):
        return ""
    on = points[point].on
    if body and on != body[0]:
        carried = f"on '{on}'" if on else "on no body"
        raise LoopdynError(f"measure '{name}': the point '{point}' is {carried}, not on '{body[0]}'.")
    return point


def _load(system: System, text: str) -> tuple[str, str] | None:
    """Joint and bearing load of a text 'C radial force'."""
    joint, _, part = text.partition(" ")
    if joint in system.joints and part.strip() in system.joints[joint].spec.bearing_loads:
        return joint, part.strip()
    return None


def _with_load(system: System, column: Column, load: tuple[str, str], over: Over) -> Column:
    if over != "run":
        raise LoopdynError(
            f"measure '{column.name}': bearing loads are known along a run. Give over=(start, end) in s."
        )
    unit = system.units.symbol(COMPONENT_DIMENSIONS[_group(system, load)[0]])
    return replace(column, load=load, unit=unit)


def _all_loads(system: System, name: str, reduction: str, over: Over) -> list[Column]:
    """Columns of all bearing loads that are determinate at the start of the model."""
    found = []
    for joint, data in system.joints.items():
        for part in data.spec.bearing_loads:
            text = f"{joint} {part}"
            label = f"{name} {text}" if name else f"{reduction}({text})"
            found.append(_with_load(system, Column(label, text, reduction), (joint, part), over))
    carried = reactions(system, assemble(system))
    known = dict(zip(carried.joints, carried.unique, strict=True))
    return [c for c in found if c.load and known[c.load[0]][list(_group(system, c.load))].all()]


def _all_poles(system: System, name: str, over: Over) -> list[Column]:
    """Columns of the real and imaginary parts of all poles, of which all designs have as many as the model."""
    if over != "equilibrium":
        raise LoopdynError("'poles' are those about an equilibrium. Give over='equilibrium'.")
    count = len(linearize(system, equilibrium(system)).poles())
    prefix = f"{name} " if name else ""
    return [
        Column(f"{prefix}pole {k + 1}.{part}", POLES, pole=(k, part), unit="rad/s")
        for k in range(count)
        for part in ("re", "im")
    ]


def _group(system: System, load: tuple[str, str]) -> tuple[int, ...]:
    """Components of the reaction that make up a bearing load."""
    return tuple(system.joints[load[0]].spec.bearing_loads[load[1]])


def _compiled(system: System, column: Column) -> Column:
    """Column with its unit; raises if its formula is wrong."""
    made = compiled(system, column)
    fixed = column.text not in system.measures  # which know their parameters, and are compiled with every system
    if fixed:
        fixed = not parse(column.text, with_terms=True).names & system.mechanism.parameters.keys()
    return replace(column, unit=made.unit, fixed=fixed)


def compiled(system: System, column: Column) -> CompiledMeasure:
    """Formula of a column for a system."""
    if column.text in system.measures:
        return system.measures[column.text]
    return compiled_formula(system, column.text, f"measure '{column.name}'")


__all__ = ["REDUCTIONS", "Column", "Over", "columns_of", "compiled"]
