"""Errors and warnings of loopdyn: each names an element, says what is wrong and what to do."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

# The public names of `ld.errors`.
__all__ = [
    "AssemblyError",
    "ConvergenceError",
    "ExpressionError",
    "LoopdynError",
    "LoopdynWarning",
    "ModelError",
    "Problem",
    "RunError",
    "SingularityError",
    "UnknownLabelError",
]

Path = tuple[str | int, ...]  # keys that lead to a value in a model


class LoopdynError(Exception):
    """Base of every error loopdyn raises on purpose."""


class LoopdynWarning(UserWarning):
    """Something legal but suspicious; issued by :mod:`warnings`, whose filters can hide it or make it an error."""


def warn(text: str) -> None:
    """Issue a :class:`LoopdynWarning` at the line of the user's code that called loopdyn."""
    inside = os.path.dirname(__file__) + os.sep
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, LoopdynWarning, stacklevel=level)


@dataclass(frozen=True)
class Problem:
    """Problem of a model.

    Attributes
    ----------
    element : str
        Element concerned, as the user wrote it: ``"joint 'A'"``, ``"body 'crank'"``.
    message : str
        What is wrong.
    hint : str
        What to do about it.
    file, line : str, int, optional
        Position in the model file, for models that come from a file.
    path : tuple
        Keys that lead to the value in a model file, e.g. ``("joints", "A", "axis")``.
    """

    element: str
    message: str
    hint: str = ""
    file: str | None = None
    line: int | None = None
    path: Path = ()

    def __str__(self) -> str:
        place = "" if self.file is None else self.file + (f":{self.line}" if self.line else "") + ": "
        text = place + (f"{self.element}: " if self.element else "") + self.message
        return f"{text}. {self.hint}" if self.hint else text


class ModelError(LoopdynError):
    """The description of a mechanism is wrong; carries every problem found, not only the first.

    Examples
    --------
    >>> print(ModelError([Problem("joint 'A'", "axis has length zero", "Give a direction, e.g. [0, 0, 1].")]))
    joint 'A': axis has length zero. Give a direction, e.g. [0, 0, 1].
    """

    def __init__(self, problems: Iterable[Problem]):
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        lines = [str(p) for p in self.problems]
        if len(lines) == 1:
            return lines[0]
        return "\n".join([f"{len(lines)} problems:", *(f"  {line}" for line in lines)])


class UnknownLabelError(ModelError, KeyError):
    """There is no coordinate, joint, body, force or other thing of this name; the message has the nearest known one.

    Also a KeyError, as mappings and xarray expect.
    """


class ExpressionError(LoopdynError):
    """A formula in a model cannot be read or evaluated."""


class SingularityError(LoopdynError):
    """The equations of motion have no unique solution at this pose."""


class ConvergenceError(LoopdynError):
    """An iteration did not reach its tolerance."""


class RunError(LoopdynError):
    """A run ended early."""


class AssemblyError(LoopdynError):
    """The loops of a mechanism cannot be closed as asked.

    Attributes
    ----------
    nearest : State or None
        The nearest pose that was found.
    gap : float
        Largest residual there, in m or rad.
    """

    def __init__(self, message: str, nearest: object = None, gap: float = 0.0):
        super().__init__(message)
        self.nearest = nearest
        self.gap = gap
