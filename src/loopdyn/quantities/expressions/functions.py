"""Functions and constants of formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from loopdyn.errors import ExpressionError
from loopdyn.quantities.expressions import opcodes as OP


@dataclass(frozen=True)
class Function:
    """A function that formulas may call."""

    arguments: tuple[str, ...]  # their names
    codes: tuple[int | None, ...]  # the instruction that follows each argument
    meaning: str
    open_ended: bool = False  # whether more arguments may follow, each with the last instruction


def _one(code: int, meaning: str) -> Function:
    return Function(("x",), (code,), meaning)


def _two(code: int, names: str, meaning: str, open_ended: bool = False) -> Function:
    return Function((names[0], names[1]), (None, code), meaning, open_ended)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "sin": _one(OP.SIN, "sine of an angle in radians"),
        "cos": _one(OP.COS, "cosine of an angle in radians"),
        "tan": _one(OP.TAN, "tangent of an angle in radians"),
        "asin": _one(OP.ASIN, "angle whose sine is x"),
        "acos": _one(OP.ACOS, "angle whose cosine is x"),
        "atan": _one(OP.ATAN, "angle whose tangent is x"),
        "atan2": _two(OP.ATAN2, "yx", "angle of the direction (x, y), above -pi, up to pi"),
        "sinh": _one(OP.SINH, "hyperbolic sine"),
        "cosh": _one(OP.COSH, "hyperbolic cosine"),
        "tanh": _one(OP.TANH, "hyperbolic tangent"),
        "exp": _one(OP.EXP, "e to the power x"),
        "log": _one(OP.LOG, "natural logarithm"),
        "log10": _one(OP.LOG10, "logarithm to base ten"),
        "sqrt": _one(OP.SQRT, "square root"),
        "abs": _one(OP.ABS, "absolute value of x"),
        "min": _two(OP.MIN, "xy", "the smallest of two or more numbers", open_ended=True),
        "max": _two(OP.MAX, "xy", "the largest of two or more numbers", open_ended=True),
        "sign": _one(OP.SIGN, "-1, 0 or 1"),
        "step": _one(OP.STEP, "0 for x < 0, otherwise 1"),
        "clip": Function(("x", "low", "high"), (None, OP.MAX, OP.MIN), "x limited to a range"),
        "hypot": _two(OP.HYPOT, "xy", "sqrt(x**2 + y**2)"),
        "mod": _two(OP.MOD, "xy", "x - y*floor(x/y), with the sign of y"),
        "radians": _one(OP.RADIANS, "degrees to radians"),
        "degrees": _one(OP.DEGREES, "radians to degrees"),
    }
)

CONSTANTS: Mapping[str, float] = MappingProxyType({"pi": math.pi, "e": math.e})


def check_free(name: str) -> None:
    """Raise if a name is reserved in formulas."""
    if name in FUNCTIONS or name in CONSTANTS:
        meaning = "a function" if name in FUNCTIONS else "a constant"
        raise ExpressionError(f"'{name}' already means {meaning} in formulas. Choose another name")
