"""Terms of the formulas of measures: functions of named points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

AXES = ("x", "y", "z")


@dataclass(frozen=True)
class TermFunction:
    """A function of named points."""

    points: tuple[int, int]  # fewest and most points
    rate: int  # 0: a function of positions, 1: of velocities, too, 2: of accelerations, too
    usage: str
    meaning: str
    angle: bool = False  # whether it is an angle; a length or its rate otherwise
    about: bool = False  # whether it may have an axis
    body: bool = False  # whether a body may follow, in whose axes it is meant


def _along(axis: str) -> dict[str, TermFunction]:
    return {
        axis: TermFunction((1, 1), 0, f"{axis}(P) or {axis}(P, body)", f"{axis} of P", body=True),
        f"v{axis}": TermFunction((1, 1), 1, f"v{axis}(P)", f"velocity of P along {axis}"),
        f"a{axis}": TermFunction((1, 1), 2, f"a{axis}(P)", f"acceleration of P along {axis}"),
    }


_ANGLE = "angle(P, Q), angle(P, Q, R), or either with about=x, y or z"
TERMS: Mapping[str, TermFunction] = MappingProxyType(
    {
        **{name: f for axis in AXES for name, f in _along(axis).items()},
        "distance": TermFunction((2, 2), 0, "distance(P, Q)", "distance of two points"),
        "speed": TermFunction((1, 1), 1, "speed(P)", "size of the velocity of P"),
        "angle": TermFunction(
            (2, 3),
            0,
            _ANGLE,
            "direction from P to Q, about z by default; angle at Q between P and R, with an axis from QP to QR",
            angle=True,
            about=True,
        ),
    }
)


class Term(NamedTuple):
    """A function of points as it occurs in a formula; its text is its name."""

    function: str
    points: tuple[str, ...]
    body: str = ""  # in whose frame coordinates are
    about: str = ""  # axis of an angle

    def __str__(self) -> str:
        about = f", about={self.about}" if self.about else ""
        return f"{self.function}({', '.join((*self.points, *([self.body] if self.body else [])))}{about})"


def term_of(name: str, given: Sequence[str], options: Mapping[str, str]) -> Term | str:
    """Term for the arguments of a function of points, or the words in which they are refused."""
    f = TERMS[name]
    wrong = [key for key in options if key != "about" or not f.about]
    if wrong:
        return f"'{name}' has no option '{wrong[0]}'"
    about = options.get("about", "")
    if about not in ("", *AXES):
        return f"'about={about}' is no axis"
    least, most = f.points
    count = len(given) - (1 if f.body and len(given) == most + 1 else 0)
    if not least <= count <= most:
        return f"'{name}' takes {least}{f' or {most}' if most > least else ''} points, {len(given)} given"
    return Term(name, tuple(given[:count]), given[count] if count < len(given) else "", about)
